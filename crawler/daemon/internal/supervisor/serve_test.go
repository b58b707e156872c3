package supervisor

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
)

// A daemonFixture is a daemon over a web on loopback.
type daemonFixture struct {
	*Supervisor
	*daemontest.DaemonFixture
	apiRules  APIProjectRestrictions
	readUsage func() memoryUsage // Options.readMemoryUsage
}

// inspector returns the inspector of a project.
func (f *daemonFixture) inspector(project string) api.Inspector {
	f.T.Helper()
	i, err := f.Inspector(f.T.Context(), project)
	if err != nil {
		f.T.Fatal(err)
	}
	return i
}

// newDaemonFixture starts a web, and makes the directories of a daemon. The caller starts the daemon.
func newDaemonFixture(t *testing.T, sites ...crawltest.Site) *daemonFixture {
	t.Helper()
	return newDaemonFixtureOn(t, crawltest.New(sites...))
}

// newDaemonFixtureOn is newDaemonFixture for an existing web.
func newDaemonFixtureOn(t *testing.T, web *crawltest.Web) *daemonFixture {
	t.Helper()
	return &daemonFixture{DaemonFixture: daemontest.NewDaemonFixture(t, web),
		apiRules: APIProjectRestrictions{AllowPrivate: true}}
}

// start opens and runs the daemon until Stop, or until the test ends.
func (f *daemonFixture) start(startNew bool) {
	f.T.Helper()
	s, err := Open(&engine.Dependencies{StandardOutput: io.Discard, Log: f.Logger()}, Options{
		DataDir: f.WebFixture.DataDir(), ProjectFilesDir: f.ProjectFilesPath(), StartNewProjects: startNew,
		APIProjectRestrictions: f.apiRules, readMemoryUsage: f.readUsage,
	})
	if err != nil {
		f.T.Fatal(err)
	}
	f.Supervisor = s
	f.DaemonFixture.Run(s)
}

// A file that is put into the folder is a stopped project. The project starts on command, and is done
// when no URL is left.
func TestServeStartsAndIsDone(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, daemontest.ShopSite())
	f.start(false)
	if all, err := f.Projects(t.Context()); err != nil || len(all) != 0 {
		t.Fatalf("projects %v, %v; want none", all, err)
	}
	f.PutProjectFile("shop", f.ProjectYAML("http://shop.example/", daemontest.NoDelayYAML))
	daemontest.WaitUntil(t, "the daemon finds the new file by itself", func() bool {
		_, err := f.runners.find("shop")
		return err == nil
	})
	if p := f.GetProject("shop"); p.State != api.StateStopped || p.UserAgent != "decorum/"+decorum.Version()+
		" (+mailto:bot@example.com)" || p.FileLoadedAt.IsZero() || p.FileError != "" {
		t.Errorf("the new project is %+v", p)
	}
	f.DoActions("shop", api.ActionStart, api.ActionStart)
	p := f.WaitForState("shop", api.StateDone)
	if got := daemontest.RequestedPages(f.Web.Log()); !slices.Equal(got, daemontest.ShopURLs) {
		t.Errorf("the crawl requested %q, want %q", got, daemontest.ShopURLs)
	}
	if p.Stats.Pages != int64(len(daemontest.ShopURLs)) || p.FrontierCounts.SeenURLs != 6 ||
		p.FrontierCounts.ParkedURLs != 1 || p.LargestDelayShortfall != 0 {
		t.Errorf("it shows %+v", p)
	}
	f.DoActions("shop", api.ActionStop)
	f.WaitForState("shop", api.StateStopped)
	if got := daemontest.ReadRecords(t, filepath.Join(f.WebFixture.DataDir(), datadir.ProjectsDir, "shop",
		datadir.OutputFile)); len(got) != len(daemontest.ShopURLs) {
		t.Errorf("%d lines of output, want %d", len(got), len(daemontest.ShopURLs))
	}
}

// The log says how to start a new project, also one whose first file was invalid. With --start-new such a
// project starts as soon as its file is valid.
func TestServeExplainsNewProjects(t *testing.T) {
	t.Parallel()
	for _, startNew := range []bool{false, true} {
		f := newDaemonFixture(t, daemontest.ShopSite())
		var log bytes.Buffer
		f.Log = slog.NewTextHandler(&log, nil)
		f.PutProjectFile("shop", f.ProjectYAML("http://shop.example/", daemontest.NoDelayYAML))
		f.PutProjectFile("late", "whither: there\n")
		f.start(startNew)
		f.PutProjectFile("late", f.ProjectYAML("http://shop.example/", daemontest.NoDelayYAML))
		f.ReloadAndFind("late")
		for _, name := range []string{"shop", "late"} {
			if startNew {
				f.WaitForState(name, api.StateDone)
			}
		}
		f.Stop()
		for _, name := range []string{"shop", "late"} {
			command := "decorum start " + name + " --data " + string(f.Supervisor.DataDir)
			if strings.Contains(log.String(), command) == startNew {
				t.Errorf("new projects start at once: %v; the log is\n%s\nof which %q is a part: %v", startNew, &log,
					command, !startNew)
			}
		}
	}
}

// After a restart, running projects resume; paused projects stay paused, and stopped ones stopped.
func TestServeKeepsDesiredStates(t *testing.T) {
	t.Parallel() // it mostly waits: after a restart hosts rest
	f := newDaemonFixture(t, daemontest.ChainSite("a.example", 1000), daemontest.ChainSite("b.example", 1000),
		daemontest.ChainSite("c.example", 1000))
	for _, name := range []string{"a", "b", "c"} {
		f.PutProjectFile(name, f.ProjectYAML("http://"+name+".example/0", "politeness: {delay: 20ms, adaptive: 0}",
			"scope: {max_depth: 2000}"))
	}
	f.start(true)
	for _, name := range []string{"a", "b", "c"} {
		daemontest.WaitUntil(t, name+" visits pages", func() bool { return f.GetProject(name).Stats.Pages > 2 })
	}
	f.DoActions("b", api.ActionPause)
	f.DoActions("c", api.ActionPause, api.ActionStop)
	f.WaitForState("b", api.StatePaused)
	f.WaitForState("c", api.StateStopped)
	f.Stop()
	before := f.Web.Log()
	f.start(true)
	daemontest.WaitUntil(t, "a resumes", func() bool { return f.GetProject("a").Stats.Pages > 2 })
	f.WaitForState("b", api.StatePaused)
	f.WaitForState("c", api.StateStopped)
	for _, x := range f.Web.Log()[len(before):] {
		if !strings.HasPrefix(x.URL, "http://a.example/") {
			t.Errorf("%s was requested", x.URL)
		}
	}
	f.DoActions("b", api.ActionResume)
	f.DoActions("c", api.ActionStart)
	for _, name := range []string{"b", "c"} {
		daemontest.WaitUntil(t, name+" resumes", func() bool { return f.GetProject(name).Stats.Pages > 2 })
	}
	f.Stop()
	if r := f.Web.Judge(crawltest.JudgeOptions{MinDelay: 20 * time.Millisecond}); !r.OK() {
		t.Errorf("the judge says:\n%s", r)
	}
}

// The daemon no longer knows a deleted project, whose file and state are in the directory of deleted
// projects.
func TestServeDeletes(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, daemontest.ShopSite())
	f.PutProjectFile("shop", f.ProjectYAML("http://shop.example/", daemontest.NoDelayYAML))
	f.start(true)
	f.WaitForState("shop", api.StateDone)
	if err := f.DeleteProject(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	var problem *api.Problem
	if _, err := f.Project(t.Context(), "shop"); !errors.As(err, &problem) || problem.Status != 404 {
		t.Errorf("the deleted project is found: %v", err)
	}
	deleted, err := filepath.Glob(filepath.Join(f.WebFixture.DataDir(), datadir.DeletedDir, "shop-*"))
	if err != nil || len(deleted) != 1 {
		t.Fatalf("deleted projects %q, %v", deleted, err)
	}
	for _, name := range []string{datadir.StoreFile, datadir.OutputFile, datadir.ProjectFile, "shop.yaml"} {
		if _, err := os.Stat(filepath.Join(deleted[0], name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(f.ProjectFilesPath(), "shop.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its file: %v", err)
	}
	if r := f.ReloadAndFind("shop"); r != (api.ProjectReloadResult{}) {
		t.Errorf("reloaded: %v", r)
	}
	f.PutProjectFile("shop", f.ProjectYAML("http://shop.example/", daemontest.NoDelayYAML))
	if r := f.ReloadAndFind("shop"); r.Outcome != "new" {
		t.Errorf("put back: %v", r)
	}
	f.WaitForState("shop", api.StateDone)
}

// A project stops when its file goes away, and resumes when the file is back. A file that belongs to no
// project is ignored. An unreadable folder stops no project.
func TestServeFilesComeAndGo(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, daemontest.ChainSite("a.example", 2000))
	file := f.ProjectYAML("http://a.example/0", "politeness: {delay: 10ms, adaptive: 0}", "scope: {max_depth: 2000}")
	f.PutProjectFile("a", file)
	f.start(true)
	f.WaitForState("a", api.StateRunning)
	if err := os.Remove(filepath.Join(f.ProjectFilesPath(), "a.yaml")); err != nil {
		t.Fatal(err)
	}
	f.ReloadAndFind("a")
	if p := f.WaitForState("a", api.StateStopped); !strings.Contains(p.StateReason, "its file is gone") {
		t.Errorf("without its file: %+v", p)
	}
	if err := f.ControlProject(t.Context(), "a", api.ActionStart); err == nil ||
		!strings.Contains(err.Error(), "put it back") {
		t.Errorf("started without its file: %v", err)
	}
	f.PutProjectFile("a", file)
	f.ReloadAndFind("a")
	f.WaitForState("a", api.StateRunning)
	for name, wantErr := range map[string]string{"B.yaml": `"B" is not a project's name`,
		"c.yml": "project files are named NAME.yaml"} {
		if err := os.WriteFile(filepath.Join(f.ProjectFilesPath(), name), []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
		if r := f.ReloadAndFind(name); r.Outcome != "refused" || !strings.Contains(r.Error, wantErr) {
			t.Errorf("%s: %+v, want %q", name, r, wantErr)
		}
	}
	f.PutProjectFile("d", file+"output: {jsonl: /dev/null}\n")
	f.PutProjectFile("e", file+"output: {jsonl: /dev/null}\n")
	f.ReloadAndFind("d")
	if r := f.ReloadAndFind("e"); r.Outcome != "refused" || !strings.Contains(r.Error, "is written by project d") {
		t.Errorf("two projects with one output: %+v", r)
	}
	if err := os.Rename(f.ProjectFilesPath(), f.ProjectFilesPath()+"-away"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReloadProjects(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("without the folder: %v", err)
	}
	before := len(f.Web.Log())
	daemontest.WaitUntil(t, "the crawl continues without the folder", func() bool {
		return len(f.Web.Log()) > before+2
	})
	if err := os.Rename(f.ProjectFilesPath()+"-away", f.ProjectFilesPath()); err != nil {
		t.Fatal(err)
	}
	if r := f.ReloadAndFind("a"); r.Outcome != "none" {
		t.Errorf("with the folder again: %+v", r)
	}
}

// A project that cannot run fails, and others do not. A limit pauses its project; each resumption allows
// the same amount again.
func TestServeFailsAndLimits(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, daemontest.ChainSite("a.example", 100))
	f.PutProjectFile("bad", "agent: {contact: 'mailto:bot@example.com'}\nseeds: [http://a.example/0]\nlimits: "+
		"{workers: none}\n")
	f.PutProjectFile("torn", f.ProjectYAML("http://a.example/0", daemontest.NoDelayYAML))
	torn := filepath.Join(f.WebFixture.DataDir(), datadir.ProjectsDir, "torn")
	if err := os.MkdirAll(torn, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(torn, datadir.StoreFile),
		bytes.Repeat([]byte("no store "), 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	f.PutProjectFile("limited", f.ProjectYAML("http://a.example/0", daemontest.NoDelayYAML, "limits: {pages: 5}"))
	f.start(true)
	if p := f.GetProject("bad"); p.State != api.StateStopped ||
		!strings.Contains(p.FileError, `bad.yaml:3:19: limits.workers: "…" is not a whole number`) {
		t.Errorf("the bad one: %+v", p)
	}
	if err := f.ControlProject(t.Context(), "bad", api.ActionStart); err == nil ||
		!strings.Contains(err.Error(), "limits.workers") {
		t.Errorf("the bad one is started: %v", err)
	}
	if p := f.WaitForState("torn", api.StateFailed); !strings.Contains(p.StateReason,
		"cannot open the state of the crawl") {
		t.Errorf("the torn one: %+v", p)
	}
	if err := f.CheckReady(t.Context()); err == nil || !strings.Contains(err.Error(), "project torn has failed") {
		t.Errorf("ready: %v", err)
	}
	for _, want := range []int64{5, 10} {
		if p := f.WaitForState("limited", api.StatePaused); p.Stats.Pages != want ||
			p.StateReason != crawler.ErrPages.Error() {
			t.Errorf("the limited one has %d pages, %q", p.Stats.Pages, p.StateReason)
		}
		f.DoActions("limited", api.ActionResume)
	}
	f.WaitForState("limited", api.StatePaused)
	f.Stop()
	f.start(true)
	if p := f.WaitForState("limited", api.StatePaused); p.StateReason != crawler.ErrPages.Error() {
		t.Errorf("after a restart: %+v", p)
	}
	if err := os.Remove(filepath.Join(torn, datadir.StoreFile)); err != nil {
		t.Fatal(err)
	}
	f.DoActions("torn", api.ActionStart)
	f.WaitForState("torn", api.StateRunning)
}

// A project whose file cannot be moved is not deleted: its state stays where it is, so that the project
// continues instead of starting again.
func TestServeDeletesAllOrNothing(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, daemontest.ShopSite())
	f.PutProjectFile("shop", f.ProjectYAML("http://shop.example/", daemontest.NoDelayYAML))
	f.start(true)
	f.WaitForState("shop", api.StateDone)
	file := filepath.Join(f.ProjectFilesPath(), "shop"+projectExt)
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.Remove(file)
	}
	if err == nil {
		err = os.Mkdir(file, 0o755) // a directory in the place of the file cannot be moved
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
	before := len(f.Web.Log())
	f.PutProjectFile("shop", string(text))
	f.ReloadAndFind("shop")
	if p := f.WaitForState("shop", api.StateDone); p.FrontierCounts.SeenURLs != 6 {
		t.Errorf("the seen URLs are lost: %+v", p.FrontierCounts)
	}
	if again := f.Web.Log()[before:]; len(again) > 0 {
		t.Errorf("%d requests were repeated", len(again))
	}
}
