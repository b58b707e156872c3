package supervisor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
)

// A replaced key file is followed, as a changed project file is. An invalid key file is refused, and the
// previous key stays in use.
func TestKeyFileReplaced(t *testing.T) {
	f := newDaemonFixture(t)
	file := filepath.Join(f.ProjectFilesPath(), "bot.pem")
	daemontest.CreateSigningKey(t, file)
	f.PutProjectFile("signed", signedProject("bot.pem", "https://bot.example.com"))
	f.start(false)
	if got := f.ReloadAndFind("signed").Outcome; got != "none" {
		t.Errorf("change %s", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	k := daemontest.CreateSigningKey(t, file)
	published := func() {
		t.Helper()
		w := httptest.NewRecorder()
		f.PublishedSigningKeys("bot.example.com").ServeHTTP(w,
			httptest.NewRequest(http.MethodGet, botauth.DirectoryPath, nil))
		if !strings.Contains(w.Body.String(), k.ID()) {
			t.Errorf("the directory is %s, want %s", w.Body, k.ID())
		}
	}
	if got := f.ReloadAndFind("signed"); got.Error != "" { // the outcome may be "none": the daemon also polls
		t.Errorf("%+v", got)
	}
	published()
	if err := os.WriteFile(file, []byte("half a ke"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := f.ReloadAndFind("signed"); got.Outcome != "refused" ||
		!strings.Contains(got.Error, "agent.signature.keys[0]: "+file) {
		t.Errorf("%+v", got)
	}
	published()
}

// A project whose file names an unreadable key follows the file as soon as the key is readable, although
// the project file is unchanged.
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
		// The daemon also polls the files: it must never see this key with mode 0600.
		temp := filepath.Join(t.TempDir(), "key.pem")
		daemontest.CreateSigningKey(t, temp)
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

// signedProject returns the text of a project that signs its requests.
func signedProject(key, origin string) string {
	return fmt.Sprintf("agent: {contact: 'mailto:bot@example.com', signature: {keys: [%s], directory: "+
		"'%s'}}\nseeds: [http://site.test/]\n", key, origin)
}

// The keys of a project that is deleted, or whose file is gone, are published until the last signature
// by them has expired.
func TestKeysOfProjectsThatAreNoMore(t *testing.T) {
	f := newDaemonFixture(t)
	ids, file := map[string]string{}, func(name string) string { return filepath.Join(f.ProjectFilesPath(), name) }
	for _, name := range []string{"deleted", "gone", "stays"} {
		k := daemontest.CreateSigningKey(t, file(name+".pem"))
		ids[name] = k.ID()
		f.PutProjectFile(name, signedProject(name+".pem", "https://bot.example.com"))
	}
	f.start(false)
	published := func(after time.Duration, want ...string) {
		t.Helper()
		w := httptest.NewRecorder()
		f.retiredKeyrings.directoryForHost("bot.example.com", f.runners.requestSigningKeys(),
			time.Now().Add(after)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, botauth.DirectoryPath, nil))
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
	text, err := os.ReadFile(file("gone" + ".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file("gone" + ".yaml")); err != nil {
		t.Fatal(err)
	}
	if got := f.ReloadAndFind("gone").Outcome; got != "gone" {
		t.Fatalf("change %s", got)
	}
	published(botauth.DefaultLifetime/2, "deleted", "gone", "stays")
	published(botauth.DefaultLifetime+time.Minute, "stays")
	r, err := f.runners.find("gone")
	if err != nil {
		t.Fatal(err)
	}
	daemontest.WaitUntil(t, "it has stopped", func() bool { _, why := r.state.current(); return why != "" })
	r.state.set(api.StatePausing, "") // its last visits continue
	published(time.Hour, "gone", "stays")
	r.state.set(api.StateStopped, "its file is gone")
	published(time.Hour, "stays")
	f.PutProjectFile("gone", string(text))
	if got := f.ReloadAndFind("gone"); got.Error != "" {
		t.Fatalf("%+v", got)
	}
	published(time.Hour, "gone", "stays")
	if n := len(f.retiredKeyrings.rings); n != 1 {
		t.Errorf("%d keyrings are stored for one deleted project", n)
	}
	f.retiredKeyrings.add(r.state.requestSigningKeys(), time.Now().Add(time.Hour)) // another, later
	if n := len(f.retiredKeyrings.rings); n != 1 {
		t.Errorf("%d keyrings are stored, and one of them has expired", n)
	}
}

// Projects with the same origin share a key directory; projects with different origins do not.
func TestKeyDirectories(t *testing.T) {
	f := newDaemonFixture(t)
	ids := map[string]string{}
	project := func(name, origin string) {
		k := daemontest.CreateSigningKey(t, filepath.Join(f.ProjectFilesPath(), name+".pem"))
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
	has("127.0.0.1:8470", "one", "two") // the name that a proxy uses
	project("other", "https://b.example:8443")
	f.ReloadAndFind("other")
	has("A.example", "one", "two")
	has("b.example:8443", "other")
	has("127.0.0.1:8470")
}

// Retired keyrings are published with those of running projects until their signatures
// expire, and then dropped by the next addition.
func TestRetiredKeyrings(t *testing.T) {
	file, now := filepath.Join(t.TempDir(), "bot.pem"), time.Now()
	k := daemontest.CreateSigningKey(t, file)
	ring := requestSigningKeys{keyDirectoryOrigin: "https://bot.example.com",
		keys: []*botauth.Key{k}, signatureTTL: time.Minute}
	var retired retiredKeyrings
	if d := retired.directoryForHost("bot.example.com", nil, now); d != nil {
		t.Error("there is a directory of no keys")
	}
	retired.add(ring, now)
	for after, want := range map[time.Duration]bool{time.Second: true, 2 * time.Minute: false} {
		if d := retired.directoryForHost("bot.example.com", nil, now.Add(after)); (d != nil) != want {
			t.Errorf("after %v there is a directory: %v", after, d != nil)
		}
		if d := retired.directoryForHost("bot.example.com", []requestSigningKeys{ring}, now.Add(after)); d == nil {
			t.Errorf("after %v the key of a running project is not published", after)
		}
	}
	retired.add(requestSigningKeys{}, now.Add(2*time.Minute))
	if n := len(retired.rings); n != 0 {
		t.Errorf("%d expired keyrings are stored", n)
	}
}
