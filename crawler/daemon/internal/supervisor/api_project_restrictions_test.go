package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// secret is the text of files that a project from the API may not read.
const secret = "xyzzy-the-secret"

// A project that comes by the API may name files only below its two directories, and may not reach
// private networks. The error names the field, and the flag that would allow the value. The same file,
// put into the folder by hand, is followed.
func TestAPIProjectsAreConfined(t *testing.T) {
	f := newDaemonFixture(t, daemontest.ShopSite())
	f.apiRules = APIProjectRestrictions{}
	f.start(false)
	outside := t.TempDir()
	list := filepath.Join(outside, "list")
	if err := os.WriteFile(list, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(outside, "key.pem")
	daemontest.CreateSigningKey(t, key)
	const redisAt = "store: {redis: {addresses: ['127.0.0.1:7000'], "
	for _, tt := range []struct{ text, field, flag string }{
		{fmt.Sprintf("seed_files: [%s]", list), "seed_files[0]", "--files-root"},
		{"seed_files: [../data/token]", "seed_files[0]", "--files-root"},
		{fmt.Sprintf("output: {ledger_key: %s}", key), "output.ledger_key", "--files-root"},
		{redisAt + fmt.Sprintf("password_file: %s}}", list), "store.redis.password_file", "--files-root"},
		{redisAt + fmt.Sprintf("tls: true, ca_file: %s}}", list), "store.redis.ca_file", "--files-root"},
		{fmt.Sprintf("output: {jsonl: %s}", filepath.Join(outside, ".bashrc")), "output.jsonl", "--output-root"},
		{"output: {jsonl: ../../../../.bashrc}", "output.jsonl", "--output-root"},
		{fmt.Sprintf("output: {warc: %s}", outside), "output.warc", "--output-root"},
		{"fetch: {allow_private: true}", "fetch.allow_private", "--api-private-networks"},
		{"fetch: {connect_to: ['::127.0.0.1:1']}", "fetch.connect_to", "--api-private-networks"},
		{"fetch: {proxy: 'http://10.0.0.1:3128'}", "fetch.proxy", "--api-private-networks"},
		{redisAt + "}}", "store.redis.addresses", "--api-private-networks"},
	} {
		_, err := f.PutProject(t.Context(), "p", []byte(daemontest.MinimalProject+tt.text+"\n"))
		if err == nil || !strings.Contains(err.Error(), tt.field+": ") || !strings.Contains(err.Error(), tt.flag) ||
			strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v\nwant an error that names %s and %s", tt.text, err, tt.field, tt.flag)
		}
	}
	signed := fmt.Sprintf("agent: {contact: 'mailto:a@b.example', signature: {keys: [%s], directory: "+
		"'https://b.example'}}\nseeds: [https://example.com/]\n", key)
	if _, err := f.PutProject(t.Context(), "p", []byte(signed)); err == nil ||
		!strings.Contains(err.Error(), "agent.signature.keys[0]: ") {
		t.Errorf("a key elsewhere: %v", err)
	}
	own := daemontest.MinimalProject + fmt.Sprintf("output: {jsonl: %s, warc: %s, ledger_key: %s}\nfetch: "+
		"{allow_private: true}\n", filepath.Join(outside, "x.jsonl"), outside, key)
	f.PutProjectFile("own", own)
	if got := f.ReloadAndFind("own"); got.Outcome != "new" {
		t.Errorf("put into the folder by hand: %+v", got)
	}
	if _, err := f.PutProject(t.Context(), "own", []byte(own)); err == nil {
		t.Error("the operator's own file was written by the API, which may not write one like it")
	}
}

// The errors that the API, the page and the log show never contain the text of a file's line.
func TestSeedErrorsHideText(t *testing.T) {
	f := newDaemonFixture(t)
	f.start(false)
	for name, text := range map[string]string{"seeds.txt": "https://example.com/\n" + secret + "\n",
		"long.txt": secret + strings.Repeat("x", 1<<17)} {
		if err := os.WriteFile(filepath.Join(f.ProjectFilesPath(), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		project := daemontest.MinimalProject + "seed_files: [" + name + "]\n"
		_, err := f.PutProject(t.Context(), "p", []byte(project))
		f.PutProjectFile("p", project)
		fileError := f.ReloadAndFind("p").Error
		for _, got := range []string{fmt.Sprint(err), fileError} {
			if !strings.Contains(got, name+":") || strings.Contains(got, secret) {
				t.Errorf("%s: %q; want the number of the line without its text", name, got)
			}
		}
	}
}

// The files of a project that came by the API are confined at each open, after a restart too. An
// operator who edits the project file ends the confinement.
func TestConfinementOutlivesRestart(t *testing.T) {
	f := newDaemonFixture(t, daemontest.ShopSite())
	f.start(false)
	list := filepath.Join(f.ProjectFilesPath(), "list")
	outside := testfile.Write(t, "outside", "http://shop.example/a\n")
	if err := os.WriteFile(list, []byte("http://shop.example/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := f.ProjectYAML("http://shop.example/", "seed_files: [list]", daemontest.NoDelayYAML)
	if _, err := f.PutProject(t.Context(), "p", []byte(text)); err != nil {
		t.Fatal(err)
	}
	f.DoActions("p", api.ActionStart)
	f.WaitForState("p", api.StateDone)
	f.Stop()
	if err := errors.Join(os.Remove(list), os.Symlink(outside, list)); err != nil {
		t.Fatal(err)
	}
	f.start(false)
	if p := f.GetProject("p"); !strings.Contains(p.FileError, "list") || !strings.Contains(p.FileError, "escapes") {
		t.Errorf("with a list that leads out of the folder: %q", p.FileError)
	}
	f.PutProjectFile("p", text+"# edited by hand\n")
	if got := f.ReloadAndFind("p"); got.Outcome != "changed" && got.Outcome != "new" {
		t.Errorf("after its operator edited it: %+v", got)
	}
	if _, err := f.PutProject(t.Context(), "p", []byte(text+"# edited by hand\n")); err == nil {
		t.Error("the API took the same text for its own")
	}
}

// After a crash between the two writes of a PUT, both the previous file and the new one count as files
// of the API. A file that the operator wrote before still counts as the operator's.
func TestInterruptedPut(t *testing.T) {
	file := filepath.Join(t.TempDir(), datadir.DaemonStateFile)
	w, err := openDaemonStateStore(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.addAPIProjectFileHash("p", sha256Hex([]byte("one"))),
		w.setAPIProjectFileHash("p", sha256Hex([]byte("one"))),
		w.addAPIProjectFileHash("p", sha256Hex([]byte("two")))); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for text, want := range map[string]bool{"one": true, "two": true, "three": false} {
			if got := w.isProjectFileFromAPI("p", []byte(text)); got != want {
				t.Errorf("%s came by the API: %v, want %v", text, got, want)
			}
		}
		if w, err = openDaemonStateStore(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.setAPIProjectFileHash("p", sha256Hex([]byte("two"))); err != nil ||
		w.isProjectFileFromAPI("p", []byte("one")) {
		t.Errorf("%v; the previous file is still recorded", err)
	}
	if err := w.update(func(t *savedDaemonState) { delete(t.APIProjects, "p") }); err != nil ||
		w.isProjectFileFromAPI("p", []byte("two")) {
		t.Errorf("%v; a deleted project is still recorded", err)
	}
}

// The copy of a project file in the project's directory says whether the file came by the API, so that
// the last valid file is confined, too.
func TestLastValidRevisionIsConfined(t *testing.T) {
	f := newDaemonFixture(t, daemontest.ShopSite())
	f.start(false)
	if _, err := f.PutProject(t.Context(), "p",
		[]byte(f.ProjectYAML("http://shop.example/", daemontest.NoDelayYAML))); err != nil {
		t.Fatal(err)
	}
	f.PutProjectFile("own", f.ProjectYAML("http://shop.example/", daemontest.NoDelayYAML))
	f.ReloadAndFind("own")
	for name, confined := range map[string]bool{"p": true, "own": false} {
		f.DoActions(name, api.ActionStart)
		f.WaitForState(name, api.StateDone)
		if loaded := f.loader.lastValidProject(name); loaded == nil || (loaded.pathConfinement != nil) != confined {
			t.Errorf("%s: %+v, want confined: %v", name, loaded, confined)
		}
	}
}

// Outputs of a project that came by the API follow no symbolic link.
func TestOutputsFollowNoLinks(t *testing.T) {
	for _, tt := range []struct{ name, output, link string }{
		{"file", "jsonl: pages.out", "pages.out"},
		{"directory", "jsonl: sub/pages.jsonl", "sub"},
		{"archive", "warc: archive", "archive"},
		{"archive in a directory", "warc: sub/archive", "sub"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newDaemonFixture(t, daemontest.ShopSite())
			f.start(false)
			if _, err := f.PutProject(t.Context(), "p",
				[]byte(f.ProjectYAML("http://shop.example/", daemontest.NoDelayYAML,
					"output: {"+tt.output+"}"))); err != nil {
				t.Fatal(err)
			}
			outside := t.TempDir()
			target := outside
			if tt.name == "file" {
				target = filepath.Join(outside, ".bashrc")
			}
			link := f.projectStateDir("p").Path(tt.link)
			if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(target, link)); err != nil {
				t.Fatal(err)
			}
			f.DoActions("p", api.ActionStart)
			f.WaitForState("p", api.StateFailed)
			if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
				t.Errorf("%v, %v were made outside", entries, err)
			}
		})
	}
}

// A project that came by the API appends only to a file that it has begun, or to a file of an older
// daemon in its own directory.
func TestAPIProjectsContinueTheirOwn(t *testing.T) {
	f := newDaemonFixture(t, daemontest.ShopSite())
	root := t.TempDir()
	f.apiRules.OutputRoot = root
	f.start(false)
	put := func(jsonl string) {
		t.Helper()
		if _, err := f.PutProject(t.Context(), "p",
			[]byte(f.ProjectYAML("http://shop.example/", daemontest.NoDelayYAML,
				"output: {jsonl: "+jsonl+"}"))); err != nil {
			t.Fatal(err)
		}
	}
	projectDir := f.projectStateDir("p")
	if err := os.MkdirAll(string(projectDir), 0o700); err != nil {
		t.Fatal(err)
	}
	const line = `{"url":"http://shop.example/old"}` + "\n"
	began := filepath.Join(root, "began.jsonl")
	for _, tt := range []struct {
		path, holds string
		appends     bool
	}{
		{filepath.Join(root, "foreign.jsonl"), line, false},
		{filepath.Join(root, "rc"), "alias ls=ls\n", false},
		{projectDir.Path("rc"), "alias ls=ls\n", false},
		{projectDir.Path("old.jsonl"), line, true},
		{filepath.Join(root, "empty.jsonl"), "", true},
		{began, "", true},
		{began, "a line that is torn, or zeros", true},
	} {
		if err := os.WriteFile(tt.path, []byte(tt.holds), 0o600); err != nil {
			t.Fatal(err)
		}
		if tt.path == began && tt.holds == "" {
			if err := os.Remove(began); err != nil {
				t.Fatal(err)
			}
		}
		put(tt.path)
		err := f.openAndCloseOutputs("p")
		text, readErr := os.ReadFile(tt.path)
		if (err == nil) != tt.appends || readErr != nil || !tt.appends && string(text) != tt.holds {
			t.Errorf("%s with %q: %v; it holds %q now (%v)", tt.path, tt.holds, err, text, readErr)
		}
		if err != nil && !strings.Contains(err.Error(), tt.path) {
			t.Errorf("%v does not name the file", err)
		}
		f.Stop() // the record of begun files survives a restart
		f.start(false)
	}
}

// A project that came by the API leaves the unfinished WARC files of other programs alone. It closes its
// own after a crash, as any project does.
func TestAPIProjectsLeaveArchivesOfOthers(t *testing.T) {
	f := newDaemonFixture(t, daemontest.ShopSite())
	root := t.TempDir()
	f.apiRules.OutputRoot = root
	f.start(false)
	dir := filepath.Join(root, "archive")
	unfinished := filepath.Join(dir, "other-20261122000000-00000-host.warc.gz.open")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.MkdirAll(string(f.projectStateDir("p")), 0o700),
		os.WriteFile(unfinished, []byte("no record"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.PutProject(t.Context(), "p",
		[]byte(f.ProjectYAML("http://shop.example/", daemontest.NoDelayYAML, "output: {warc: "+dir+"}"))); err != nil {
		t.Fatal(err)
	}
	open := func() error { return f.openAndCloseOutputs("p") }
	if err := open(); err == nil || !strings.Contains(err.Error(), unfinished[len(dir)+1:]) {
		t.Errorf("with a file of others: %v; want an error that names it", err)
	}
	if _, err := os.Stat(unfinished); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(unfinished); err != nil {
		t.Fatal(err)
	}
	for _, left := range []bool{false, true} { // whether the project itself has left a file unfinished
		if left {
			if err := os.WriteFile(unfinished, []byte("no record"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := open(); err != nil {
			t.Errorf("with an unfinished file of its own %v: %v", left, err)
		}
	}
}

// openAndCloseOutputs opens the outputs of a project as a run does, and closes them.
func (f *daemonFixture) openAndCloseOutputs(name string) error {
	r, err := f.runners.find(name)
	if err != nil {
		return err
	}
	loaded := r.state.loadedProject()
	cfg, err := engine.NewSinksConfig(&loaded.project, loaded.pathConfinement)
	if err != nil {
		return err
	}
	cfg.Resume, cfg.Log = true, r.env.Log
	o, err := sinks.Open(cfg)
	if err != nil {
		return err
	}
	return o.Close()
}
