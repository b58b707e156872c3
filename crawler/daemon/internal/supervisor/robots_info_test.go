package supervisor

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/page"
)

// If a robots.txt file redirects to another host, and a project may reach private networks, then only
// tokens of the role operate see the text of the answer.
func TestRedirectedRobotsAreWithheld(t *testing.T) {
	const inside = "User-agent: *\nDisallow: /" + secret + "\n"
	f := newDaemonFixture(t,
		crawltest.Site{Host: "a.example", Fallback: crawltest.StaticPage(crawltest.HTML("")),
			Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Redirect(http.StatusFound,
				"http://inside.example/status")})},
		crawltest.Site{Host: "b.example", Fallback: crawltest.StaticPage(crawltest.HTML("")),
			Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Redirect(http.StatusFound,
				"http://b.example/rules")}),
			Pages: map[string]crawltest.PageFunc{"/rules": crawltest.StaticPage(crawltest.Text(inside))}},
		crawltest.Site{Host: "inside.example",
			Pages: map[string]crawltest.PageFunc{"/status": crawltest.StaticPage(crawltest.Text(inside))}},
	)
	f.start(true)
	f.PutProjectFile("p", f.ProjectYAML("'http://a.example/', 'http://b.example/'", daemontest.NoDelayYAML))
	f.ReloadAndFind("p")
	f.WaitForState("p", api.StateDone)
	// Without access to private networks, the same robots.txt files are shown to every token.
	f.PutProjectFile("public", daemontest.MinimalProject)
	f.ReloadAndFind("public")
	keys := []api.APIKey{api.APIKeyFromToken("reader", api.RoleRead, "reader"),
		api.APIKeyFromToken("operator", api.RoleOperate, "operator")}
	audit, err := api.OpenAuditLog(filepath.Join(t.TempDir(), datadir.AuditFile), api.AuditRotationLimits{})
	if err != nil {
		t.Fatal(err)
	}
	defer audit.Close()
	server := api.NewServer(f.Supervisor,
		api.ServerConfig{APIKeys: keys, AuditLog: audit, PageHandler: page.New(f.Supervisor, audit),
			Log: slog.New(slog.DiscardHandler)})
	get := func(token, path string) string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		return w.Body.String()
	}
	for _, tt := range []struct {
		token, origin string
		shown         bool
	}{
		{"reader", "http://a.example", false},
		{"operator", "http://a.example", true},
		{"reader", "http://b.example", true},
	} {
		var file api.RobotsFile
		text := get(tt.token, "/api/v1/projects/p/robots/"+url.PathEscape(tt.origin))
		if err := json.Unmarshal([]byte(text), &file); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if (file.Text == inside) != tt.shown || (file.TextWithheldReason == "") != tt.shown ||
			file.FinalURL == "" || file.SHA256 == "" {
			t.Errorf("%s of %s: %+v; want the text shown: %v", tt.token, tt.origin, file, tt.shown)
		}
		text = get(tt.token, "/api/v1/projects/public/robots/"+url.PathEscape(tt.origin))
		if strings.Contains(text, secret) != tt.shown {
			t.Errorf("%s of %s by a project without private networks: %s; want the text shown: %v",
				tt.token, tt.origin, text, tt.shown)
		}
		raw := get(tt.token, "/projects/p/robots.txt?origin="+url.QueryEscape(tt.origin))
		if (raw == inside) != tt.shown {
			t.Errorf("%s of %s by the page: %q; want the text shown: %v", tt.token, tt.origin, raw, tt.shown)
		}
	}
}
