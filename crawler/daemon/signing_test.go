package daemon

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/crawler/botauth/authtest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

func TestSigningRefused(t *testing.T) {
	for _, tt := range []struct{ text, says string }{
		{"{keys: [bot.pem]}", "p.yaml:3:3: agent.signature.directory: where sites find the keys is not said"},
		{"{directory: https://bot.example.com}", "agent.signature.keys: no key is named to sign with"},
		{"{keys: [''], directory: https://bot.example.com}", "p.yaml:3:22: agent.signature.keys[0]: expected the name of a file"},
		{"{keys: [bot.pem], directory: 'http://bot.example.com'}", `p.yaml:3:43: agent.signature.directory: "http://bot.example.com": expected an origin on https`},
		{"{keys: [bot.pem], directory: 'https://bot.example.com', valid: 2s}", "agent.signature.valid: 2s is out of range: expected 10s to 24h"},
		{"{valid: 2d}", "agent.signature.valid: 48h is out of range: expected 10s to 24h"},
		{"{key: bot.pem}", `unknown field "agent.signature.key"; expected one of keys, directory, valid, agent_form`},
		{"{agent_form: token}", `agent.signature.agent_form: "token" is not a form: expected dictionary or string`},
	} {
		text := "agent:\n  contact: mailto:bot@example.com\n  signature: " + tt.text + "\nseeds: [https://example.com/]\n"
		if _, err := project.Read(testfile.Write(t, "p.yaml", text)); err == nil || !strings.Contains(project.DetailedErrorText(err), tt.says) {
			t.Errorf("%s: %v, want %q", tt.text, project.DetailedErrorText(err), tt.says)
		}
	}
}

// TestIdentityCommands: a key that is made is nobody else's to read, is not written
// over another, and is what the directory holds.
func TestIdentityCommands(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	made := runCommand(t, "identity", "key", file("bot.pem"))
	made.want(t, ExitDone)
	if info, err := os.Stat(file("bot.pem")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	runCommand(t, "identity", "directory", file("bot.pem")).want(t, ExitDone, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"`+strings.TrimSpace(made.stdout)+`"`)
	runCommand(t, "identity", "key", file("bot.pem")).want(t, ExitUsage, "is there already, and may be a key that is in use")
	runCommand(t, "identity", "key", file("no/bot.pem")).want(t, ExitFailed, "no such file or directory")
	runCommand(t, "identity", "directory").want(t, ExitUsage, "requires at least 1 arg")
	runCommand(t, "identity", "directory", file("bot.pem"), file("bot.pem")).want(t, ExitUsage, "holds the same key as")
	runCommand(t, "identity", "directory", dir).want(t, ExitUsage, "is not the file of a key")
	runCommand(t, "identity", "directory", testfile.Write(t, "x.pem", "secret")).want(t, ExitUsage, "no private key in PEM is in it")
	if err := os.Chmod(file("bot.pem"), 0o640); err != nil {
		t.Fatal(err)
	}
	runCommand(t, "identity", "directory", file("bot.pem")).want(t, ExitUsage, "others may read the key in")
	runCommand(t, "crawl", "--data", file("data"), "-c", testfile.Write(t, "p.yaml", MinimalProject[:len("agent: {contact: \"mailto:bot@example.com\"")]+
		", signature: {keys: ["+file("bot.pem")+"], directory: 'https://bot.example.com'}}\nseeds: [https://example.com/]\n")).
		want(t, ExitUsage, "agent.signature.keys[0]: others may read the key in")
	if _, err := os.Stat(file("data")); err == nil {
		t.Error("a refused crawl has made its data directory")
	}
}

// A signatureChecker is a site that looks at the signature of every request.
type signatureChecker struct {
	t             *testing.T
	mu            sync.Mutex
	publicKeys    map[string]string // public keys, by ID
	requestsByKey []string          // the keys of the requests that were good
}

func (g *signatureChecker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, x := range g.publicKeys {
		if s, err := authtest.VerifyRequest(r, x, time.Now()); err == nil && s.KeyID == id && s.DirectoryOrigin == "https://bot.example.com" {
			g.requestsByKey = append(g.requestsByKey, id+" "+r.URL.Path)
			io.WriteString(w, "User-agent: *\nAllow: /\n")
			return
		}
	}
	g.t.Errorf("%s is not signed with a key of the directory: %q", r.URL, r.Header)
}

// addKeys takes the keys of a directory.
func (g *signatureChecker) addKeys(keys []authtest.DirectoryKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.publicKeys = map[string]string{}
	for _, k := range keys {
		g.publicKeys[k.Kid] = k.X
	}
}

// fetchKeyDirectory asks for a key directory, and checks it.
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

// TestSignedDaemon: a site checks every request of a daemon with the keys that the
// daemon publishes, at both of its doors, for whoever asks. When the next key takes
// over, sites have known it before.
func TestSignedDaemon(t *testing.T) {
	site := &signatureChecker{t: t}
	server := httptest.NewServer(site)
	defer server.Close()
	g, _ := openServer(t, ListenOptions{addr: "127.0.0.1:0", botPageAddr: "127.0.0.1:0"})
	d := g.daemon.(*Supervisor)
	var ids []string
	for _, name := range []string{"now.pem", "next.pem"} {
		k, err := createSigningKeyFile(filepath.Join(d.ProjectFilesDir, name))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, k.ID())
	}
	put := func(keys, path string) {
		t.Helper()
		text := fmt.Sprintf("agent: {contact: 'mailto:bot@example.com', signature: {keys: [%s], directory: 'https://bot.example.com/'}}\n"+
			"seeds: [http://site.test%s]\nfetch: {allow_private: true, connect_to: ['::%s']}\n%s\n", keys, path, server.Listener.Addr(), NoDelayYAML)
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
	if res, err := http.Post("http://"+g.botListener.Addr().String()+botauth.DirectoryPath, "", nil); err != nil || res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a POST to the directory: %v, %v", res, err)
	}
	if about := d.CrawlerInfo(); len(about.Identities) != 1 || about.Identities[0].SigningKeyDirectoryURL != "https://bot.example.com"+botauth.DirectoryPath {
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
	WaitUntil(t, "the first page is visited", done(ids[0]+" /first"))
	put("next.pem, now.pem", "/second") // nobody has asked for the directory again
	WaitUntil(t, "the second page is visited", done(ids[1]+" /second"))
	if !slices.Contains(site.requestsByKey, ids[0]+" /robots.txt") {
		t.Errorf("robots.txt is not among %q", site.requestsByKey)
	}
}

// TestKeyFileReplaced: a key whose file becomes another is followed, as the project
// file is; one that makes no sense is not.
func TestKeyFileReplaced(t *testing.T) {
	f := newDaemonFixture(t)
	file := filepath.Join(f.ProjectFilesPath(), "bot.pem")
	if _, err := createSigningKeyFile(file); err != nil {
		t.Fatal(err)
	}
	f.PutProjectFile("signed", signedProject("bot.pem", "https://bot.example.com"))
	f.start(false)
	if got := f.ReloadAndFind("signed").Outcome; got != "none" {
		t.Errorf("change %s", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	k, err := createSigningKeyFile(file)
	if err != nil {
		t.Fatal(err)
	}
	published := func() {
		t.Helper()
		w := httptest.NewRecorder()
		f.PublishedSigningKeys("bot.example.com").ServeHTTP(w, httptest.NewRequest(http.MethodGet, botauth.DirectoryPath, nil))
		if !strings.Contains(w.Body.String(), k.ID()) {
			t.Errorf("the directory is %s, want %s", w.Body, k.ID())
		}
	}
	if got := f.ReloadAndFind("signed"); got.Error != "" { // the daemon may have seen it before
		t.Errorf("%+v", got)
	}
	published()
	if err := os.WriteFile(file, []byte("half a ke"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := f.ReloadAndFind("signed"); got.Outcome != "refused" || !strings.Contains(got.Error, "agent.signature.keys[0]: "+file) {
		t.Errorf("%+v", got)
	}
	published()
}

// TestKeyFileRepaired: a project whose file names a key that cannot be read follows it
// as soon as the key can be, though the project file stays as it is.
func TestKeyFileRepaired(t *testing.T) {
	f := newDaemonFixture(t)
	f.PutProjectFile("new", signedProject("new.pem", "https://bot.example.com"))
	f.PutProjectFile("known", "agent: {contact: 'mailto:bot@example.com'}\nseeds: [http://site.test/]\n")
	f.start(false)
	f.PutProjectFile("known", signedProject("known.pem", "https://bot.example.com"))
	for _, name := range []string{"new", "known"} {
		file := filepath.Join(f.ProjectFilesPath(), name+".pem")
		if got := f.ReloadAndFind(name); got.Outcome != "refused" || !strings.Contains(got.Error, file) {
			t.Errorf("%s: without its key: %+v", name, got)
		}
		// The daemon follows the files by itself, too: it must never see the key with mode 0600.
		temp := filepath.Join(t.TempDir(), "key.pem")
		if _, err := createSigningKeyFile(temp); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(temp, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temp, file); err != nil {
			t.Fatal(err)
		}
		if got := f.ReloadAndFind(name); got.Outcome != "refused" || !strings.Contains(got.Error, "chmod 600") {
			t.Errorf("%s: with a key that others may read: %+v", name, got)
		}
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := f.ReloadAndFind(name); got.Error != "" {
			t.Errorf("%s: with its key: %+v", name, got)
		}
	}
}

// signedProject is the text of a project that signs its requests.
func signedProject(key, origin string) string {
	return fmt.Sprintf("agent: {contact: 'mailto:bot@example.com', signature: {keys: [%s], directory: '%s'}}\nseeds: [http://site.test/]\n", key, origin)
}

// TestKeysOfProjectsThatAreNoMore: the keys of a project that is deleted, or whose file
// is gone, are published as long as a signature of theirs may be valid, and no longer.
func TestKeysOfProjectsThatAreNoMore(t *testing.T) {
	f := newDaemonFixture(t)
	ids, file := map[string]string{}, func(name string) string { return filepath.Join(f.ProjectFilesPath(), name) }
	for _, name := range []string{"deleted", "gone", "stays"} {
		k, err := createSigningKeyFile(file(name + ".pem"))
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = k.ID()
		f.PutProjectFile(name, signedProject(name+".pem", "https://bot.example.com"))
	}
	f.start(false)
	published := func(after time.Duration, want ...string) {
		t.Helper()
		w := httptest.NewRecorder()
		f.keyDirectoryForHost("bot.example.com", time.Now().Add(after)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, botauth.DirectoryPath, nil))
		for name, id := range ids {
			if got := strings.Contains(w.Body.String(), id); got != slices.Contains(want, name) {
				t.Errorf("after %v the key of %s is published: %v", after, name, got)
			}
		}
	}
	published(time.Hour, "deleted", "gone", "stays")
	if err := f.DeleteProject(t.Context(), "deleted"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file("gone" + projectExt))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file("gone" + projectExt)); err != nil {
		t.Fatal(err)
	}
	if got := f.ReloadAndFind("gone").Outcome; got != "gone" {
		t.Fatalf("change %s", got)
	}
	published(botauth.DefaultLifetime/2, "deleted", "gone", "stays")
	published(botauth.DefaultLifetime+time.Minute, "stays")
	r, err := f.findRunner("gone")
	if err != nil {
		t.Fatal(err)
	}
	WaitUntil(t, "it has stopped", func() bool { _, why := r.currentState(); return why != "" })
	r.setState(api.StatePausing, "") // its last visits go on
	published(time.Hour, "gone", "stays")
	r.setState(api.StateStopped, "its file is gone")
	published(time.Hour, "stays")
	f.PutProjectFile("gone", string(text))
	if got := f.ReloadAndFind("gone"); got.Error != "" {
		t.Fatalf("%+v", got)
	}
	published(time.Hour, "gone", "stays")
	if n := len(f.retiredKeyrings); n != 1 {
		t.Errorf("%d keyrings are kept of one project that was deleted", n)
	}
	f.retireDeletedProjectKeyring(r, time.Now().Add(time.Hour)) // another, later
	if n := len(f.retiredKeyrings); n != 1 {
		t.Errorf("%d keyrings are kept, of which one is over", n)
	}
}

// TestKeyDirectories: projects of several origins do not mix; of one, they share.
func TestKeyDirectories(t *testing.T) {
	f := newDaemonFixture(t)
	ids := map[string]string{}
	project := func(name, origin string) {
		k, err := createSigningKeyFile(filepath.Join(f.ProjectFilesPath(), name+".pem"))
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = k.ID()
		f.PutProjectFile(name, signedProject(name+".pem", origin))
	}
	f.PutProjectFile("unsigned", "agent: {contact: 'mailto:bot@example.com'}\nseeds: [http://site.test/]\n")
	f.start(false)
	if d := f.PublishedSigningKeys("a.example"); d != nil {
		t.Errorf("without keys: %+v", d)
	}
	has := func(host string, names ...string) {
		t.Helper()
		d := f.PublishedSigningKeys(host)
		if d == nil && len(names) == 0 {
			return
		}
		w := httptest.NewRecorder()
		d.ServeHTTP(w, httptest.NewRequest(http.MethodGet, botauth.DirectoryPath, nil))
		for name, id := range ids {
			if got, want := strings.Contains(w.Body.String(), id), slices.Contains(names, name); got != want {
				t.Errorf("the key of %s is in the directory of %s: %v, want %v", name, host, got, want)
			}
		}
	}
	project("one", "https://a.example")
	project("two", "https://A.example:443/")
	f.ReloadAndFind("two")
	has("a.example", "one", "two")
	has("127.0.0.1:8470", "one", "two") // a proxy asks
	project("other", "https://b.example:8443")
	f.ReloadAndFind("other")
	has("A.example", "one", "two")
	has("b.example:8443", "other")
	has("127.0.0.1:8470")
}
