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
		if _, err := ReadProject(write(t, "p.yaml", text)); err == nil || !strings.Contains(detailOf(err), tt.says) {
			t.Errorf("%s: %v, want %q", tt.text, detailOf(err), tt.says)
		}
	}
}

// TestIdentityCommands: a key that is made is nobody else's to read, is not written
// over another, and is what the directory holds.
func TestIdentityCommands(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	made := call(t, "identity", "key", file("bot.pem"))
	made.want(t, ExitDone)
	if info, err := os.Stat(file("bot.pem")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	call(t, "identity", "directory", file("bot.pem")).want(t, ExitDone, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"`+strings.TrimSpace(made.stdout)+`"`)
	call(t, "identity", "key", file("bot.pem")).want(t, ExitUsage, "is there already, and may be a key that is in use")
	call(t, "identity", "key", file("no/bot.pem")).want(t, ExitFailed, "no such file or directory")
	call(t, "identity", "directory").want(t, ExitUsage, "requires at least 1 arg")
	call(t, "identity", "directory", file("bot.pem"), file("bot.pem")).want(t, ExitUsage, "holds the same key as")
	call(t, "identity", "directory", dir).want(t, ExitUsage, "is not the file of a key")
	call(t, "identity", "directory", write(t, "x.pem", "secret")).want(t, ExitUsage, "no private key in PEM is in it")
	if err := os.Chmod(file("bot.pem"), 0o640); err != nil {
		t.Fatal(err)
	}
	call(t, "identity", "directory", file("bot.pem")).want(t, ExitUsage, "others may read the key in")
	call(t, "crawl", "--data", file("data"), "-c", write(t, "p.yaml", minimalProject[:len("agent: {contact: \"mailto:bot@example.com\"")]+
		", signature: {keys: ["+file("bot.pem")+"], directory: 'https://bot.example.com'}}\nseeds: [https://example.com/]\n")).
		want(t, ExitUsage, "agent.signature.keys[0]: others may read the key in")
	if _, err := os.Stat(file("data")); err == nil {
		t.Error("a refused crawl has made its data directory")
	}
}

// A gatekeeper is a site that looks at the signature of every request.
type gatekeeper struct {
	t  *testing.T
	mu sync.Mutex
	x  map[string]string // public keys, by ID
	by []string          // the keys of the requests that were good
}

func (g *gatekeeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, x := range g.x {
		if s, err := authtest.VerifyRequest(r, x, time.Now()); err == nil && s.KeyID == id && s.DirectoryOrigin == "https://bot.example.com" {
			g.by = append(g.by, id+" "+r.URL.Path)
			io.WriteString(w, "User-agent: *\nAllow: /\n")
			return
		}
	}
	g.t.Errorf("%s is not signed with a key of the directory: %q", r.URL, r.Header)
}

// learn takes the keys of a directory.
func (g *gatekeeper) learn(keys []authtest.DirectoryKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.x = map[string]string{}
	for _, k := range keys {
		g.x[k.Kid] = k.X
	}
}

// directoryAt asks for a key directory, and checks it.
func directoryAt(t *testing.T, l net.Listener, method string) []authtest.DirectoryKey {
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
	keys, err := authtest.VerifyDirectory(res.Header, body, r.Host, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestSignedDaemon: a site checks every request of a daemon with the keys that the
// daemon publishes, at both of its doors, for whoever asks. When the next key takes
// over, sites have known it before.
func TestSignedDaemon(t *testing.T) {
	site := &gatekeeper{t: t}
	server := httptest.NewServer(site)
	defer server.Close()
	g, _ := open(t, doorway{listen: "127.0.0.1:0", bot: "127.0.0.1:0"})
	d := g.daemon.(*supervisor)
	var ids []string
	for _, name := range []string{"now.pem", "next.pem"} {
		k, err := makeKey(filepath.Join(d.folder, name))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, k.ID())
	}
	put := func(keys, path string) {
		t.Helper()
		text := fmt.Sprintf("agent: {contact: 'mailto:bot@example.com', signature: {keys: [%s], directory: 'https://bot.example.com/'}}\n"+
			"seeds: [http://site.test%s]\nfetch: {allow_private: true, connect_to: ['::%s']}\n%s\n", keys, path, server.Listener.Addr(), brisk)
		if _, err := d.PutProject(t.Context(), "signed", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	put("now.pem, next.pem", "/first")
	for _, l := range []net.Listener{g.api, g.bot} {
		keys := directoryAt(t, l, http.MethodGet)
		if directoryAt(t, l, http.MethodHead); len(keys) != 2 || keys[0].Kid != ids[0] || keys[1].Kid != ids[1] {
			t.Fatalf("the directory at %s has %+v, want %q", l.Addr(), keys, ids)
		}
		site.learn(keys)
	}
	if res, err := http.Post("http://"+g.bot.Addr().String()+botauth.DirectoryPath, "", nil); err != nil || res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a POST to the directory: %v, %v", res, err)
	}
	if about := d.About(); len(about.Identities) != 1 || about.Identities[0].SigningKeyDirectoryURL != "https://bot.example.com"+botauth.DirectoryPath {
		t.Errorf("%+v", about)
	}
	if err := d.ControlProject(t.Context(), "signed", api.ActionStart); err != nil {
		t.Fatal(err)
	}
	done := func(page string) func() bool {
		return func() bool {
			site.mu.Lock()
			defer site.mu.Unlock()
			return slices.Contains(site.by, page)
		}
	}
	await(t, "the first page is visited", done(ids[0]+" /first"))
	put("next.pem, now.pem", "/second") // nobody has asked for the directory again
	await(t, "the second page is visited", done(ids[1]+" /second"))
	if !slices.Contains(site.by, ids[0]+" /robots.txt") {
		t.Errorf("robots.txt is not among %q", site.by)
	}
}

// TestKeyFileReplaced: a key whose file becomes another is followed, as the project
// file is; one that makes no sense is not.
func TestKeyFileReplaced(t *testing.T) {
	f := farmOf(t)
	file := filepath.Join(f.folderName(), "bot.pem")
	if _, err := makeKey(file); err != nil {
		t.Fatal(err)
	}
	f.put("signed", signedProject("bot.pem", "https://bot.example.com"))
	f.start(false)
	if got := f.reload("signed").Change; got != "none" {
		t.Errorf("change %s", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	k, err := makeKey(file)
	if err != nil {
		t.Fatal(err)
	}
	published := func() {
		t.Helper()
		w := httptest.NewRecorder()
		f.SigningKeyDirectory("bot.example.com").ServeHTTP(w, httptest.NewRequest(http.MethodGet, botauth.DirectoryPath, nil))
		if !strings.Contains(w.Body.String(), k.ID()) {
			t.Errorf("the directory is %s, want %s", w.Body, k.ID())
		}
	}
	if got := f.reload("signed"); got.Error != "" { // the daemon may have seen it before
		t.Errorf("%+v", got)
	}
	published()
	if err := os.WriteFile(file, []byte("half a ke"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := f.reload("signed"); got.Change != "refused" || !strings.Contains(got.Error, "agent.signature.keys[0]: "+file) {
		t.Errorf("%+v", got)
	}
	published()
}

// TestKeyFileMended: a project whose file names a key that cannot be read follows it
// as soon as the key can be, though the project file stays as it is.
func TestKeyFileMended(t *testing.T) {
	f := farmOf(t)
	f.put("new", signedProject("new.pem", "https://bot.example.com"))
	f.put("known", "agent: {contact: 'mailto:bot@example.com'}\nseeds: [http://site.test/]\n")
	f.start(false)
	f.put("known", signedProject("known.pem", "https://bot.example.com"))
	for _, name := range []string{"new", "known"} {
		file := filepath.Join(f.folderName(), name+".pem")
		if got := f.reload(name); got.Change != "refused" || !strings.Contains(got.Error, file) {
			t.Errorf("%s: without its key: %+v", name, got)
		}
		if _, err := makeKey(file); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
		if got := f.reload(name); got.Change != "refused" || !strings.Contains(got.Error, "chmod 600") {
			t.Errorf("%s: with a key that others may read: %+v", name, got)
		}
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := f.reload(name); got.Error != "" {
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
	f := farmOf(t)
	ids, file := map[string]string{}, func(name string) string { return filepath.Join(f.folderName(), name) }
	for _, name := range []string{"deleted", "gone", "stays"} {
		k, err := makeKey(file(name + ".pem"))
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = k.ID()
		f.put(name, signedProject(name+".pem", "https://bot.example.com"))
	}
	f.start(false)
	published := func(after time.Duration, want ...string) {
		t.Helper()
		w := httptest.NewRecorder()
		f.keyDirectory("bot.example.com", time.Now().Add(after)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, botauth.DirectoryPath, nil))
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
	if got := f.reload("gone").Change; got != "gone" {
		t.Fatalf("change %s", got)
	}
	published(botauth.DefaultLifetime/2, "deleted", "gone", "stays")
	published(botauth.DefaultLifetime+time.Minute, "stays")
	r, err := f.find("gone")
	if err != nil {
		t.Fatal(err)
	}
	await(t, "it has stopped", func() bool { _, why := r.currentState(); return why != "" })
	r.is(api.StatePausing, "") // its last visits go on
	published(time.Hour, "gone", "stays")
	r.is(api.StateStopped, "its file is gone")
	published(time.Hour, "stays")
	f.put("gone", string(text))
	if got := f.reload("gone"); got.Error != "" {
		t.Fatalf("%+v", got)
	}
	published(time.Hour, "gone", "stays")
	if n := len(f.retired); n != 1 {
		t.Errorf("%d keyrings are kept of one project that was deleted", n)
	}
	f.retire(r, time.Now().Add(time.Hour)) // another, later
	if n := len(f.retired); n != 1 {
		t.Errorf("%d keyrings are kept, of which one is over", n)
	}
}

// TestKeyDirectories: projects of several origins do not mix; of one, they share.
func TestKeyDirectories(t *testing.T) {
	f := farmOf(t)
	ids := map[string]string{}
	project := func(name, origin string) {
		k, err := makeKey(filepath.Join(f.folderName(), name+".pem"))
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = k.ID()
		f.put(name, signedProject(name+".pem", origin))
	}
	f.put("unsigned", "agent: {contact: 'mailto:bot@example.com'}\nseeds: [http://site.test/]\n")
	f.start(false)
	if d := f.SigningKeyDirectory("a.example"); d != nil {
		t.Errorf("without keys: %+v", d)
	}
	has := func(host string, names ...string) {
		t.Helper()
		d := f.SigningKeyDirectory(host)
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
	f.reload("two")
	has("a.example", "one", "two")
	has("127.0.0.1:8470", "one", "two") // a proxy asks
	project("other", "https://b.example:8443")
	f.reload("other")
	has("A.example", "one", "two")
	has("b.example:8443", "other")
	has("127.0.0.1:8470")
}
