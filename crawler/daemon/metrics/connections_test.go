package metrics_test

import (
	"log/slog"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/metrics"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
)

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
