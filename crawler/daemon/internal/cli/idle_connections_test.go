package cli

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
)

// TestIdleConnectionsFlag: the default is that of httpfetch, and a negative number is wrong usage.
func TestIdleConnectionsFlag(t *testing.T) {
	for _, tt := range []struct{ limit, want int }{
		{defaultIdleConns, httpfetch.DefaultIdleConnsLimit()}, {0, 0}, {7, 7},
	} {
		a := new(program)
		if err := a.initIdleConns(tt.limit); err != nil || a.IdleConns.Limit() != tt.want {
			t.Errorf("%d: got %v, want %d", tt.limit, err, tt.want)
		}
	}
	if err := new(program).initIdleConns(-2); command.ExitCode(err) != command.ExitUsage {
		t.Errorf("-2: got %v, want wrong usage", err)
	}
}

// TestConnectionSettings checks how many connections a crawl of four pages and a robots.txt opens, how many
// TLS sessions it resumes, which version of HTTP it speaks, and whether it offers post-quantum key exchange.
func TestConnectionSettings(t *testing.T) {
	for _, tt := range []struct {
		name, settings string
		args           []string
		want           string
	}{
		{"defaults", "{}", nil, "1 opened, 0 resumed, 0 over HTTP/2, 5 post-quantum"},
		{"HTTP/2", "{http2: true}", nil, "1 opened, 0 resumed, 5 over HTTP/2, 5 post-quantum"},
		{"no idle connections", "{}", []string{"--idle-connections", "0"},
			"5 opened, 4 resumed, 0 over HTTP/2, 5 post-quantum"},
		{"no idle time", "{idle_timeout: 0s}", nil, "5 opened, 4 resumed, 0 over HTTP/2, 5 post-quantum"},
		{"no post-quantum key exchange", "{post_quantum: never}", nil,
			"1 opened, 0 resumed, 0 over HTTP/2, 0 post-quantum"},
		{"no sessions", "{idle_timeout: 0s, tls_sessions: 0}", nil,
			"5 opened, 0 resumed, 0 over HTTP/2, 5 post-quantum"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			intranet, authority := startIntranet(t)
			var opened, resumed, http2, postQuantum atomic.Int32
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.ProtoMajor == 2 {
					http2.Add(1)
				}
				if r.TLS.DidResume {
					resumed.Add(1)
				}
				if r.TLS.CurveID == tls.X25519MLKEM768 {
					postQuantum.Add(1)
				}
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, "<a href=/1>1</a><a href=/2>2</a><a href=/3>3</a>")
			}))
			s.TLS, s.EnableHTTP2 = &tls.Config{Certificates: intranet.TLS.Certificates}, true
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					opened.Add(1)
				}
			}
			s.StartTLS()
			defer s.Close()
			dir := t.TempDir()
			file, text := filepath.Join(dir, "p.yaml"), "agent: {contact: 'mailto:bot@example.com'}\n"+
				"seeds: ['https://wiki.intranet.example/']\npoliteness: {delay: 0s}\ndiscover: {sitemaps: false}\n"+
				"fetch: {ca_file: ca.pem, allow_private: true, connect_to: ['::"+s.Listener.Addr().String()+
				"'], connections: "+tt.settings+"}\n"
			for name, content := range map[string]string{file: text, filepath.Join(dir, "ca.pem"): string(authority)} {
				if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			args := append([]string{"crawl", "-c", file, "--data", filepath.Join(dir, "data")}, tt.args...)
			runCommand(t, args...).want(t, command.ExitDone, "pages: 4 (")
			got := fmt.Sprintf("%d opened, %d resumed, %d over HTTP/2, %d post-quantum", opened.Load(), resumed.Load(),
				http2.Load(), postQuantum.Load())
			if got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
