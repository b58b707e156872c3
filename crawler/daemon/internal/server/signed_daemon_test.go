package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/crawler/botauth/authtest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/supervisor"
)

// A signatureChecker is a site that checks the signature of every request.
type signatureChecker struct {
	t             *testing.T
	mu            sync.Mutex
	publicKeys    map[string]string // public keys, by ID
	requestsByKey []string          // "key path" of each request with a valid signature
}

func (g *signatureChecker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, x := range g.publicKeys {
		if s, err := authtest.VerifyRequest(r, x, time.Now()); err == nil && s.KeyID == id &&
			s.DirectoryOrigin == "https://bot.example.com" {
			g.requestsByKey = append(g.requestsByKey, id+" "+r.URL.Path)
			io.WriteString(w, "User-agent: *\nAllow: /\n")
			return
		}
	}
	g.t.Errorf("%s is not signed with a key of the directory: %q", r.URL, r.Header)
}

// addKeys adds the keys of a directory.
func (g *signatureChecker) addKeys(keys []authtest.DirectoryKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.publicKeys = map[string]string{}
	for _, k := range keys {
		g.publicKeys[k.Kid] = k.X
	}
}

// fetchKeyDirectory fetches a key directory, and checks it.
func fetchKeyDirectory(t *testing.T, l net.Listener, method string) []authtest.DirectoryKey {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+l.Addr().String()+botauth.DirectoryPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "bot.example.com"
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", method, res.Status, err)
	}
	if method == http.MethodHead {
		return nil
	}
	keys, err := authtest.VerifyKeyDirectory(res.Header, body, r.Host, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// A site can check every request of a daemon with the keys that the daemon publishes on both of its
// listeners. A site that has fetched the directory once also knows the next key before it is used.
func TestSignedDaemon(t *testing.T) {
	site := &signatureChecker{t: t}
	server := httptest.NewServer(site)
	defer server.Close()
	g, _ := openServer(t, ListenOptions{addr: "127.0.0.1:0", botPageAddr: "127.0.0.1:0"})
	d := g.daemon.(*supervisor.Supervisor)
	var ids []string
	for _, name := range []string{"now.pem", "next.pem"} {
		k := daemontest.CreateSigningKey(t, filepath.Join(d.ProjectFilesDir, name))
		ids = append(ids, k.ID())
	}
	put := func(keys, path string) {
		t.Helper()
		text := fmt.Sprintf("agent: {contact: 'mailto:bot@example.com', signature: {keys: [%s], directory: "+
			"'https://bot.example.com/'}}\n"+
			"seeds: [http://site.test%s]\nfetch: {allow_private: true, connect_to: ['::%s']}\n%s\n", keys, path,
			server.Listener.Addr(), daemontest.NoDelayYAML)
		if _, err := d.PutProject(t.Context(), "signed", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	put("now.pem, next.pem", "/first")
	for _, l := range []net.Listener{g.APIListener, g.botListener} {
		keys := fetchKeyDirectory(t, l, http.MethodGet)
		if fetchKeyDirectory(t, l, http.MethodHead); len(keys) != 2 || keys[0].Kid != ids[0] || keys[1].Kid != ids[1] {
			t.Fatalf("the directory at %s has %+v, want %q", l.Addr(), keys, ids)
		}
		site.addKeys(keys)
	}
	if res, err := http.Post("http://"+g.botListener.Addr().String()+botauth.DirectoryPath, "", nil); err != nil ||
		res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a POST to the directory: %v, %v", res, err)
	}
	if about := d.CrawlerIdentities(); len(about.Identities) != 1 ||
		about.Identities[0].SigningKeyDirectoryURL != "https://bot.example.com"+botauth.DirectoryPath {
		t.Errorf("%+v", about)
	}
	if err := d.ControlProject(t.Context(), "signed", api.ActionStart); err != nil {
		t.Fatal(err)
	}
	done := func(page string) func() bool {
		return func() bool {
			site.mu.Lock()
			defer site.mu.Unlock()
			return slices.Contains(site.requestsByKey, page)
		}
	}
	daemontest.WaitUntil(t, "the first page is visited", done(ids[0]+" /first"))
	put("next.pem, now.pem", "/second") // the site does not fetch the directory again
	daemontest.WaitUntil(t, "the second page is visited", done(ids[1]+" /second"))
	if !slices.Contains(site.requestsByKey, ids[0]+" /robots.txt") {
		t.Errorf("robots.txt is not among %q", site.requestsByKey)
	}
}
