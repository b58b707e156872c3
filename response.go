package decorum

import (
	"bytes"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// A Response is the answer to the request of one URL. Fetchers do not follow redirects, so a 3xx is
// a Response like any other.
type Response struct {
	URL               URL            // the URL that was requested
	Status            int            // the HTTP status; FTP replies are mapped to one
	Header            http.Header    // as the server sent it, Content-Encoding included
	Body              []byte         // decoded from its Content-Encoding, at most the fetcher's limit
	BodyLimitExceeded bool           // the body was longer than the limit and was cut
	EncodedBodyLen    int64          // bytes of Body before it was decoded; 0: it was not, or is empty
	Addr              netip.AddrPort // the server's address; zero if the fetcher does not know it
	Start             time.Time      // when the request began
	End               time.Time      // when the end of the body was read
}

// Location returns the target of a redirect. It returns false if the response is not a redirect, or
// if its Location header is not a valid URL by the rules of ParseURL.
func (r *Response) Location() (URL, bool) {
	switch r.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return URL{}, false
	}
	to := r.Header.Get("Location")
	if to == "" {
		return URL{}, false
	}
	u, err := r.URL.Resolve(to)
	return u, err == nil
}

// RetryAfter returns how long after now the Retry-After header (RFC 9110 §10.2.3) asks the client to
// wait. The header is a number of seconds or an HTTP date; for any other text, and for a date in the
// past, RetryAfter returns 0. It does not bound large values: the caller must.
func (r *Response) RetryAfter(now time.Time) time.Duration {
	value := strings.TrimSpace(r.Header.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		const maxSeconds = int64(1<<63-1) / int64(time.Second)
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n > maxSeconds {
			n = maxSeconds // a number out of range still asks for a long wait
		}
		return time.Duration(n) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}

// A RawExchange is one HTTP/1.1 request and its answer, byte for byte as the connection carried them
// (inside TLS, if it was used).
type RawExchange struct {
	RawRequest []byte // header and body
	// RawResponse is the part of the answer that was read. Interim answers (1xx) may precede the
	// answer, and other bytes may follow it.
	RawResponse []byte
	Addr        netip.AddrPort   // the server's address
	Truncation  TruncationReason // why RawResponse ends before the answer does
}

// HeaderOnly returns a copy of the exchange in which RawResponse ends after the header of the final
// answer. RawResponse is nil if that header is incomplete. HeaderOnly of nil is nil.
func (x *RawExchange) HeaderOnly() *RawExchange {
	if x == nil {
		return nil
	}
	head := *x
	head.RawResponse, head.Truncation = nil, TruncatedUnspecified
	// Skip the interim answers (1xx) before the final one.
	for at := 0; ; {
		size := headerLen(x.RawResponse[at:])
		if size == 0 {
			return &head
		}
		interim := bytes.HasPrefix(x.RawResponse[at:], []byte("HTTP/1.1 1"))
		if at += size; !interim {
			head.RawResponse = x.RawResponse[:at:at]
			return &head
		}
	}
}

// headerLen returns the length of the header at the beginning of b, in bytes and including the empty
// line after it, or 0 if b ends before the header does. Lines may end in LF alone (RFC 9112, section
// 2.2).
func headerLen(b []byte) int {
	for i, c := range b {
		if c != '\n' {
			continue
		}
		rest := bytes.TrimPrefix(b[i+1:], []byte("\r"))
		if len(rest) > 0 && rest[0] == '\n' {
			return len(b) - len(rest) + 1
		}
	}
	return 0
}

// A TruncationReason says why an answer was not read to its end.
type TruncationReason uint8

// The truncation reasons.
const (
	NotTruncated          TruncationReason = iota // the answer was read to its end
	TruncatedByLength                             // it exceeded a limit on its size
	TruncatedByTime                               // it exceeded a limit on its time
	TruncatedByDisconnect                         // the server closed the connection, or it broke
	TruncatedUnspecified                          // the crawl did not want the rest, or could not parse the answer
)

// String returns the reason as WARC-Truncated names it (ISO 28500:2017, 5.13), "" for NotTruncated.
func (c TruncationReason) String() string {
	names := [...]string{"", "length", "time", "disconnect", "unspecified"}
	if int(c) < len(names) {
		return names[c]
	}
	return "unspecified"
}
