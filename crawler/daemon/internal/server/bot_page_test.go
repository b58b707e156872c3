package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/supervisor"
)

// The page about the bot promises to fetch robots.txt once a day only as far as the projects do. Of
// several projects it names the longest time.
func TestBotPageSaysHowLongTheCrawlerKeepsRobots(t *testing.T) {
	g, _ := openServer(t, ListenOptions{addr: "127.0.0.1:0", botPageAddr: "127.0.0.1:0"})
	d := g.daemon.(*supervisor.Supervisor)
	for _, tt := range []struct{ name, ttl, says string }{
		{"hourly", "1h", "again at least once a day. From then on"},
		{"daily", "24h", "again at least once a day. From then on"},
		{"rare", "90d", "again at least once a day, unless <code>Cache-Control</code> or <code>Expires</code> of " +
			"your <code>robots.txt</code> allows a longer time: then at least every 90 d. From then on"},
		{"weekly", "7d", "then at least every 90 d."},
	} {
		if _, err := d.PutProject(t.Context(), tt.name, fmt.Appendf(nil, "agent: {contact: 'mailto:bot@example.com'}\n"+
			"seeds: [http://site.test/]\nrobots: {max_ttl: %s}\n", tt.ttl)); err != nil {
			t.Fatal(err)
		}
		res, err := http.Get("http://" + g.botListener.Addr().String() + "/bot")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !strings.Contains(string(text), tt.says) {
			t.Errorf("with %s: %v, the page lacks %q:\n%s", tt.ttl, err, tt.says, text)
		}
	}
}
