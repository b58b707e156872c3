package crawler

import (
	"cmp"
	"math"
	"net/http"
)

// HostTraffic counts what the requests of a crawl cost a host, or several hosts together: the answer
// to "what does your crawler cost us?". It covers all requests, those for robots.txt, sitemaps and
// retries included. All counts only grow.
type HostTraffic struct {
	Requests int64 // requests that were sent or may have been
	Bytes    int64 // length of all bodies, decoded
	// WireBytesSent and WireBytesReceived are the bytes that passed through the connections to the host:
	// headers, encoded bodies, framing and TLS handshakes, without TCP and IP, and without what a proxy
	// adds to open a tunnel. The bytes with which a connection ends after its last visit do not count.
	WireBytesSent     int64
	WireBytesReceived int64
	Connections       int64 // connections opened for visits, TLS handshake included
	FullHandshakes    int64 // of Connections, those with a full TLS handshake
	ResumedHandshakes int64 // of Connections, those whose TLS handshake resumed an earlier session
	NotModified       int64 // answers 304, which have no body
	// SavedByCompression is how many bytes longer the bodies would have been without content coding.
	SavedByCompression int64
	// SavedByRevalidation sums the lengths of the bodies that answers 304 spared, as they were sent the last
	// time. It lacks bodies whose length is unknown, because they were read by an earlier version.
	SavedByRevalidation int64
}

// Add adds u to t. A count that would exceed the largest int64 stays there.
func (t *HostTraffic) Add(u HostTraffic) {
	addCount(&t.Requests, u.Requests)
	addCount(&t.Bytes, u.Bytes)
	addCount(&t.WireBytesSent, u.WireBytesSent)
	addCount(&t.WireBytesReceived, u.WireBytesReceived)
	addCount(&t.Connections, u.Connections)
	addCount(&t.FullHandshakes, u.FullHandshakes)
	addCount(&t.ResumedHandshakes, u.ResumedHandshakes)
	addCount(&t.NotModified, u.NotModified)
	addCount(&t.SavedByCompression, u.SavedByCompression)
	addCount(&t.SavedByRevalidation, u.SavedByRevalidation)
}

// addCount adds n to count. A stored count or length can be any number: a sum that wrapped around would
// be negative, and the record of the host could not be read any more.
func addCount(count *int64, n int64) {
	*count += min(n, math.MaxInt64-*count)
}

// Traffic returns what v cost its host. A visit that opened a connection but sent no request has only
// the cost of the connection. No count is negative, whatever the Fetcher says.
func (v *Visit) Traffic() HostTraffic {
	t := v.Connection.traffic()
	t.Requests, t.NotModified = countIf(v.WasSent()), countIf(v.Status() == http.StatusNotModified)
	if v.Response == nil {
		return t
	}
	t.Bytes = int64(v.BodyLen())
	if v.wasConditional() && v.Status() == http.StatusNotModified {
		t.SavedByRevalidation = v.Lease.VisitHistorySummary.EncodedBodyLen
	}
	t.SavedByCompression = max(t.Bytes-v.encodedBodyLen(), 0) // a coding makes some short bodies longer
	return t
}

// traffic returns the cost of the connection alone. A handshake counts with its connection.
func (use ConnectionUse) traffic() HostTraffic {
	return HostTraffic{
		WireBytesSent: max(use.WireBytesSent, 0), WireBytesReceived: max(use.WireBytesReceived, 0),
		Connections:       countIf(use.Opened),
		FullHandshakes:    countIf(use.Opened && use.FullHandshake && !use.ResumedHandshake),
		ResumedHandshakes: countIf(use.Opened && use.ResumedHandshake),
	}
}

// wasConditional reports whether the request carried validators of the last visit.
func (v *Visit) wasConditional() bool {
	last := v.Lease.VisitHistorySummary
	return last != nil && v.Lease.Request == nil && v.Kind.isConditional() &&
		(last.ETag != "" || last.LastModified != "")
}

// encodedBodyLen returns the length of the body in bytes as it was sent, 0 without an answer.
func (v *Visit) encodedBodyLen() int64 {
	if v.Response == nil {
		return 0
	}
	return cmp.Or(max(v.Response.EncodedBodyLen, 0), int64(v.BodyLen()))
}

// countIf returns 1 if counts is true, else 0.
func countIf(counts bool) int64 {
	if counts {
		return 1
	}
	return 0
}
