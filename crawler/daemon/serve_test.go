package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
)

// A daemonFixture is a daemon over a web on loopback.
type daemonFixture struct {
	*Supervisor
	crawlFixture
	t           *testing.T
	log         slog.Handler // of the daemon; nil: nothing is logged
	closeDaemon func() error // closes the daemon
	apiRules    APIProjectRestrictions

	readUsage func() memoryUsage // of the daemon; nil: that of the process
}

// newDaemonFixture starts a web, and makes the folders of a daemon that is not started.
func newDaemonFixture(t *testing.T, sites ...crawltest.Site) *daemonFixture {
	t.Helper()
	return newDaemonFixtureOn(t, crawltest.New(sites...))
}

// newDaemonFixtureOn is newDaemonFixture a web with a plan.
func newDaemonFixtureOn(t *testing.T, web *crawltest.Web) *daemonFixture {
	t.Helper()
	f := &daemonFixture{crawlFixture: crawlFixture{web, startWeb(t, web), t.TempDir()}, t: t, apiRules: APIProjectRestrictions{allowPrivate: true}}
	if err := os.Mkdir(f.projectFilesPath(), 0o755); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *daemonFixture) projectFilesPath() string { return filepath.Join(f.dir, "projects") }

// start starts the daemon. It ends with the test, or by stop.
func (f *daemonFixture) start(startNew bool) {
	f.t.Helper()
	if f.log == nil {
		f.log = slog.DiscardHandler
	}
	env := &Dependencies{StandardOutput: io.Discard, Log: slog.New(f.log)}
	s, err := Open(env, Options{
		DataDir: f.crawlFixture.dataDir(), ProjectFilesDir: f.projectFilesPath(), StartNewProjects: startNew,
		APIProjectRestrictions: f.apiRules, readMemoryUsage: f.readUsage,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ran sync.WaitGroup
	ran.Go(func() { s.Run(ctx) })
	f.Supervisor = s
	f.closeDaemon = sync.OnceValue(func() error { cancel(); ran.Wait(); return s.Close() })
	f.t.Cleanup(func() { f.stop() })
}

// stop ends the daemon in order.
func (f *daemonFixture) stop() {
	f.t.Helper()
	if err := f.closeDaemon(); err != nil {
		f.t.Errorf("the daemon ended with %v", err)
	}
}

// putProjectFile writes the file of a project, as an editor does.
func (f *daemonFixture) putProjectFile(name, text string) {
	f.t.Helper()
	if err := datadir.WriteFileAtomic(filepath.Join(f.projectFilesPath(), name+projectExt), []byte(text)); err != nil {
		f.t.Fatal(err)
	}
}

// reloadAndFind has the daemon read the project files again, and returns what became of
// one.
func (f *daemonFixture) reloadAndFind(name string) api.ProjectReloadResult {
	f.t.Helper()
	all, err := f.ReloadProjects(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(r api.ProjectReloadResult) bool { return r.Project == name })
	if i < 0 {
		return api.ProjectReloadResult{}
	}
	return all[i]
}

func (f *daemonFixture) doActions(name string, actions ...api.ProjectAction) {
	f.t.Helper()
	for _, a := range actions {
		if err := f.ControlProject(f.t.Context(), name, a); err != nil {
			f.t.Fatalf("%s %s: %v", a, name, err)
		}
	}
}

func (f *daemonFixture) getProject(name string) api.Project {
	f.t.Helper()
	p, err := f.Project(f.t.Context(), name)
	if err != nil {
		f.t.Fatal(err)
	}
	return *p
}

// waitUntil waits until something is so.
func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for start := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatalf("in a minute it did not come to this: %s", what)
		}
	}
}

// waitForState waits until a project is in a state.
func (f *daemonFixture) waitForState(name string, s api.ProjectState) api.Project {
	f.t.Helper()
	var p api.Project
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(5 * time.Millisecond) {
		if p = f.getProject(name); p.State == s {
			return p
		}
	}
	f.t.Fatalf("%s is %s (%s) for a minute, want %s", name, p.State, p.StateReason, s)
	return p
}

// projectYAML returns a project file that crawls the web from a seed.
func (f *daemonFixture) projectYAML(seed string, more ...string) string {
	return fmt.Sprintf("agent: {product: decorum, contact: 'mailto:bot@example.com'}\nseeds: [%s]\n"+
		"fetch: {allow_private: true, connect_to: ['::%s']}\n%s\n", seed, f.addr, strings.Join(more, "\n"))
}

const noDelayYAML = "politeness: {delay: 0s, adaptive: 0}"

// pages returns what was asked for, but for robots.txt files.
func requestedPages(log []crawltest.Exchange) (urls []string) {
	for _, x := range log {
		if !strings.HasSuffix(x.URL, "/robots.txt") {
			urls = append(urls, x.URL)
		}
	}
	slices.Sort(urls)
	return urls
}

// A file that is put into the folder is a project that is stopped; it starts when
// it is told to, and is done when nothing is left.
func TestServeStartsAndIsDone(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, shopSite())
	f.start(false)
	if all, err := f.Projects(t.Context()); err != nil || len(all) != 0 {
		t.Fatalf("projects %v, %v; want none", all, err)
	}
	f.putProjectFile("shop", f.projectYAML("http://shop.example/", noDelayYAML))
	waitUntil(t, "the new file is seen without being asked for", func() bool { _, err := f.findRunner("shop"); return err == nil })
	if p := f.getProject("shop"); p.State != api.StateStopped || p.UserAgent != "decorum/"+decorum.Version()+" (+mailto:bot@example.com)" || p.FileLoadedAt.IsZero() || p.FileError != "" {
		t.Errorf("the new project is %+v", p)
	}
	f.doActions("shop", api.ActionStart, api.ActionStart)
	p := f.waitForState("shop", api.StateDone)
	if got := requestedPages(f.web.Log()); !slices.Equal(got, shopURLs) {
		t.Errorf("asked for %q, want %q", got, shopURLs)
	}
	if p.Stats.Pages != int64(len(shopURLs)) || p.FrontierCounts.SeenURLs != 6 || p.FrontierCounts.ParkedURLs != 1 || p.LargestDelayShortfall != 0 {
		t.Errorf("it shows %+v", p)
	}
	f.doActions("shop", api.ActionStop)
	f.waitForState("shop", api.StateStopped)
	if got := readRecords(t, filepath.Join(f.crawlFixture.dataDir(), datadir.ProjectsDir, "shop", datadir.OutputFile)); len(got) != len(shopURLs) {
		t.Errorf("%d lines of output, want %d", len(got), len(shopURLs))
	}
}

// chainSite is a site whose pages lead on one to the next, n of them.
func chainSite(host string, n int) crawltest.Site {
	pages := map[string]crawltest.PageFunc{}
	for i := range n {
		pages[fmt.Sprintf("/%d", i)] = crawltest.StaticPage(crawltest.HTML(fmt.Sprintf(`<a href="/%d">next</a>`, i+1)))
	}
	return crawltest.Site{Host: host, Pages: pages}
}

// What ran goes on after a restart, what was paused stays so, and what was
// stopped, too.
func TestServeKeepsDesiredStates(t *testing.T) {
	t.Parallel() // it mostly waits: after a restart hosts are left alone
	f := newDaemonFixture(t, chainSite("a.example", 1000), chainSite("b.example", 1000), chainSite("c.example", 1000))
	for _, name := range []string{"a", "b", "c"} {
		f.putProjectFile(name, f.projectYAML("http://"+name+".example/0", "politeness: {delay: 20ms, adaptive: 0}", "scope: {max_depth: 2000}"))
	}
	f.start(true)
	for _, name := range []string{"a", "b", "c"} {
		waitUntil(t, name+" visits pages", func() bool { return f.getProject(name).Stats.Pages > 2 })
	}
	f.doActions("b", api.ActionPause)
	f.doActions("c", api.ActionPause, api.ActionStop)
	f.waitForState("b", api.StatePaused)
	f.waitForState("c", api.StateStopped)
	f.stop()
	before := f.web.Log()
	f.start(true)
	waitUntil(t, "a goes on", func() bool { return f.getProject("a").Stats.Pages > 2 })
	f.waitForState("b", api.StatePaused)
	f.waitForState("c", api.StateStopped)
	for _, x := range f.web.Log()[len(before):] {
		if !strings.HasPrefix(x.URL, "http://a.example/") {
			t.Errorf("%s was asked for", x.URL)
		}
	}
	f.doActions("b", api.ActionResume)
	f.doActions("c", api.ActionStart)
	for _, name := range []string{"b", "c"} {
		waitUntil(t, name+" goes on", func() bool { return f.getProject(name).Stats.Pages > 2 })
	}
	f.stop()
	if r := f.web.Judge(crawltest.JudgeOptions{MinDelay: 20 * time.Millisecond}); !r.OK() {
		t.Errorf("the judge says:\n%s", r)
	}
}

// A project that is deleted is gone for the daemon, and nothing of it is lost.
func TestServeDeletes(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, shopSite())
	f.putProjectFile("shop", f.projectYAML("http://shop.example/", noDelayYAML))
	f.start(true)
	f.waitForState("shop", api.StateDone)
	if err := f.DeleteProject(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	var problem *api.Problem
	if _, err := f.Project(t.Context(), "shop"); !errors.As(err, &problem) || problem.Status != 404 {
		t.Errorf("after that it is found: %v", err)
	}
	deleted, err := filepath.Glob(filepath.Join(f.crawlFixture.dataDir(), datadir.DeletedDir, "shop-*"))
	if err != nil || len(deleted) != 1 {
		t.Fatalf("put aside %q, %v", deleted, err)
	}
	for _, name := range []string{datadir.StoreFile, datadir.OutputFile, datadir.ProjectFile, "shop.yaml"} {
		if _, err := os.Stat(filepath.Join(deleted[0], name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(f.projectFilesPath(), "shop.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its file: %v", err)
	}
	if r := f.reloadAndFind("shop"); r != (api.ProjectReloadResult{}) {
		t.Errorf("reloaded: %v", r)
	}
	f.putProjectFile("shop", f.projectYAML("http://shop.example/", noDelayYAML))
	if r := f.reloadAndFind("shop"); r.Outcome != "new" {
		t.Errorf("put back: %v", r)
	}
	f.waitForState("shop", api.StateDone)
}

// A file that goes away stops its project, and when it is back it goes on; one that
// is no project's is passed by, and a folder that cannot be read stops nothing.
func TestServeFilesComeAndGo(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, chainSite("a.example", 2000))
	file := f.projectYAML("http://a.example/0", "politeness: {delay: 10ms, adaptive: 0}", "scope: {max_depth: 2000}")
	f.putProjectFile("a", file)
	f.start(true)
	f.waitForState("a", api.StateRunning)
	if err := os.Remove(filepath.Join(f.projectFilesPath(), "a.yaml")); err != nil {
		t.Fatal(err)
	}
	f.reloadAndFind("a")
	if p := f.waitForState("a", api.StateStopped); !strings.Contains(p.StateReason, "its file is gone") {
		t.Errorf("without its file: %+v", p)
	}
	if err := f.ControlProject(t.Context(), "a", api.ActionStart); err == nil || !strings.Contains(err.Error(), "put it back") {
		t.Errorf("started without its file: %v", err)
	}
	f.putProjectFile("a", file)
	f.reloadAndFind("a")
	f.waitForState("a", api.StateRunning)
	for name, wantErr := range map[string]string{"B.yaml": `"B" is not a project's name`, "c.yml": "project files are named NAME.yaml"} {
		if err := os.WriteFile(filepath.Join(f.projectFilesPath(), name), []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
		if r := f.reloadAndFind(name); r.Outcome != "refused" || !strings.Contains(r.Error, wantErr) {
			t.Errorf("%s: %+v, want %q", name, r, wantErr)
		}
	}
	f.putProjectFile("d", file+"output: {jsonl: /dev/null}\n")
	f.putProjectFile("e", file+"output: {jsonl: /dev/null}\n")
	f.reloadAndFind("d")
	if r := f.reloadAndFind("e"); r.Outcome != "refused" || !strings.Contains(r.Error, "is written by project d") {
		t.Errorf("two projects with one output: %+v", r)
	}
	if err := os.Rename(f.projectFilesPath(), f.projectFilesPath()+"-away"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReloadProjects(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("without the folder: %v", err)
	}
	before := len(f.web.Log())
	waitUntil(t, "the crawl goes on without the folder", func() bool { return len(f.web.Log()) > before+2 })
	if err := os.Rename(f.projectFilesPath()+"-away", f.projectFilesPath()); err != nil {
		t.Fatal(err)
	}
	if r := f.reloadAndFind("a"); r.Outcome != "none" {
		t.Errorf("with the folder again: %+v", r)
	}
}

// A project that cannot run fails, and others do not; its limit pauses it, for as
// much again when it is resumed.
func TestServeFailsAndLimits(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, chainSite("a.example", 100))
	f.putProjectFile("bad", "agent: {contact: 'mailto:bot@example.com'}\nseeds: [http://a.example/0]\nlimits: {workers: none}\n")
	f.putProjectFile("torn", f.projectYAML("http://a.example/0", noDelayYAML))
	torn := filepath.Join(f.crawlFixture.dataDir(), datadir.ProjectsDir, "torn")
	if err := os.MkdirAll(torn, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(torn, datadir.StoreFile), bytes.Repeat([]byte("no store "), 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	f.putProjectFile("limited", f.projectYAML("http://a.example/0", noDelayYAML, "limits: {pages: 5}"))
	f.start(true)
	if p := f.getProject("bad"); p.State != api.StateStopped || !strings.Contains(p.FileError, `bad.yaml:3:19: limits.workers: "…" is not a whole number`) {
		t.Errorf("the bad one: %+v", p)
	}
	if err := f.ControlProject(t.Context(), "bad", api.ActionStart); err == nil || !strings.Contains(err.Error(), "limits.workers") {
		t.Errorf("the bad one is started: %v", err)
	}
	if p := f.waitForState("torn", api.StateFailed); !strings.Contains(p.StateReason, "cannot open the state of the crawl") {
		t.Errorf("the torn one: %+v", p)
	}
	if err := f.CheckReady(t.Context()); err == nil || !strings.Contains(err.Error(), "project torn has failed") {
		t.Errorf("ready: %v", err)
	}
	for _, want := range []int64{5, 10} {
		if p := f.waitForState("limited", api.StatePaused); p.Stats.Pages != want || p.StateReason != crawler.ErrPages.Error() {
			t.Errorf("the limited one has %d pages, %q", p.Stats.Pages, p.StateReason)
		}
		f.doActions("limited", api.ActionResume)
	}
	f.waitForState("limited", api.StatePaused)
	f.stop()
	f.start(true)
	if p := f.waitForState("limited", api.StatePaused); p.StateReason != crawler.ErrPages.Error() {
		t.Errorf("after a restart: %+v", p)
	}
	if err := os.Remove(filepath.Join(torn, datadir.StoreFile)); err != nil {
		t.Fatal(err)
	}
	f.doActions("torn", api.ActionStart)
	f.waitForState("torn", api.StateRunning)
}

// A project whose file cannot be moved away is not deleted: its state stays where
// it is, so that it goes on and does not begin anew.
func TestServeDeletesAllOrNothing(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, shopSite())
	f.putProjectFile("shop", f.projectYAML("http://shop.example/", noDelayYAML))
	f.start(true)
	f.waitForState("shop", api.StateDone)
	file := filepath.Join(f.projectFilesPath(), "shop"+projectExt)
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.Remove(file)
	}
	if err == nil {
		err = os.Mkdir(file, 0o755) // no file, and so none that could be moved
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.DeleteProject(t.Context(), "shop"); err == nil {
		t.Fatal("it was deleted, and its file is there")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	before := len(f.web.Log())
	f.putProjectFile("shop", string(text))
	f.reloadAndFind("shop")
	if p := f.waitForState("shop", api.StateDone); p.FrontierCounts.SeenURLs != 6 {
		t.Errorf("what it had seen is lost: %+v", p.FrontierCounts)
	}
	if again := f.web.Log()[before:]; len(again) > 0 {
		t.Errorf("%d requests were made again", len(again))
	}
}
