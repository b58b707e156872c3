package metrics_test

import (
	"log/slog"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/metrics"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/storage"
)

// TestTraffic: the bytes on the wire, answers 304 and what was saved are those of crawler.Visit.Traffic.
func TestTraffic(t *testing.T) {
	m := metrics.New(staticProjects(), slog.New(slog.DiscardHandler))
	use := crawler.ConnectionUse{WireBytesSent: 20, WireBytesReceived: 300}
	visit := crawler.Visit{Connection: use, Response: &decorum.Response{Status: 200, Body: make([]byte, 50),
		EncodedBodyLen: 40}}
	m.Hooks("p").Visited(&visit)
	visit.Lease.VisitHistorySummary = &storage.VisitHistorySummary{ETag: "e", EncodedBodyLen: 7}
	visit.Response = &decorum.Response{Status: 304}
	m.Hooks("p").Visited(&visit)
	// A Fetcher of somebody else may say what cannot be: that counts nothing.
	m.Hooks("p").Visited(&crawler.Visit{Response: &decorum.Response{Status: 204, EncodedBodyLen: -1},
		Connection: crawler.ConnectionUse{FullHandshake: true, WireBytesSent: -1, WireBytesReceived: -1}})
	m.Hooks("p").Visited(&crawler.Visit{Response: &decorum.Response{Status: 204},
		Connection: crawler.ConnectionUse{Opened: true, FullHandshake: true, ResumedHandshake: true}})
	// An aborted visit has the cost of its connection alone.
	m.Hooks("p").VisitAborted(storage.Lease{}, crawler.HostTraffic{WireBytesSent: 1000, Connections: 1})
	// A visit whose TLS handshake failed has bytes, but neither a request nor a connection.
	m.Hooks("p").Visited(&crawler.Visit{Connection: use, Err: &decorum.Error{Kind: decorum.Unticketed}})
	got := scrape(t, m)
	for series, want := range map[string]float64{
		`decorum_wire_bytes_total{direction="sent"}`:         1060,
		`decorum_wire_bytes_total{direction="received"}`:     900,
		"decorum_bytes_total":                                50,
		"decorum_not_modified_total":                         1,
		`decorum_saved_bytes_total{by="compression"}`:        10,
		`decorum_saved_bytes_total{by="revalidation"}`:       7,
		`decorum_connections_opened_total{handshake="none"}`: 1,
		`decorum_connections_opened_total{handshake="full"}`: 0,
	} {
		if value, ok := got[series]; !ok || value != want {
			t.Errorf("%s is %v, want %v", series, value, want)
		}
	}
}

// TestConnections: connections are counted when they are opened, by how their TLS handshake went.
func TestConnections(t *testing.T) {
	m := metrics.New(staticProjects(), slog.New(slog.DiscardHandler))
	m.RegisterIdleConns(httpfetch.NewIdleConns(7))
	for _, use := range []crawler.ConnectionUse{
		{Opened: true}, {Opened: true, FullHandshake: true}, {Opened: true, ResumedHandshake: true}, {Reused: true}, {},
	} {
		m.Hooks("p").Visited(&crawler.Visit{Response: &decorum.Response{Status: 200}, Connection: use})
	}
	got := scrape(t, m)
	for series, want := range map[string]float64{
		`decorum_connections_opened_total{handshake="none"}`:    1,
		`decorum_connections_opened_total{handshake="full"}`:    1,
		`decorum_connections_opened_total{handshake="resumed"}`: 1,
		"decorum_idle_connections":                              0,
		"decorum_idle_connections_limit":                        7,
	} {
		if got[series] != want {
			t.Errorf("%s is %v, want %v", series, got[series], want)
		}
	}
}
