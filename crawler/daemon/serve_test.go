package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A farm is a daemon over a web on loopback.
type farm struct {
	*supervisor
	visit
	t   *testing.T
	end func() error // closes the daemon
}

// farmOf starts a web, and makes the folders of a daemon that is not started.
func farmOf(t *testing.T, sites ...crawltest.Site) *farm {
	t.Helper()
	return farmOver(t, crawltest.New(sites...))
}

// farmOver is farmOf a web with a plan.
func farmOver(t *testing.T, web *crawltest.Web) *farm {
	t.Helper()
	server, err := web.Start("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	f := &farm{visit: visit{web, server.Addr, t.TempDir()}, t: t}
	if err := os.Mkdir(f.folderName(), 0o755); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *farm) folderName() string { return filepath.Join(f.dir, "projects") }

// start starts the daemon. It ends with the test, or by stop.
func (f *farm) start(startNew bool) {
	f.t.Helper()
	a := &app{log: slog.New(slog.DiscardHandler)}
	s, err := openSupervisor(a, f.visit.data(), f.folderName(), startNew)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ran sync.WaitGroup
	ran.Go(func() { s.run(ctx) })
	f.supervisor = s
	f.end = sync.OnceValue(func() error { cancel(); ran.Wait(); return s.Close() })
	f.t.Cleanup(func() { f.stop() })
}

// stop ends the daemon in order.
func (f *farm) stop() {
	f.t.Helper()
	if err := f.end(); err != nil {
		f.t.Errorf("the daemon ended with %v", err)
	}
}

// put writes the file of a project, as an editor does.
func (f *farm) put(name, text string) {
	f.t.Helper()
	if err := writeWhole(filepath.Join(f.folderName(), name+projectExt), []byte(text)); err != nil {
		f.t.Fatal(err)
	}
}

// reload has the daemon read the project files again, and returns what became of
// one.
func (f *farm) reload(name string) api.Reloaded {
	f.t.Helper()
	all, err := f.Reload(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(r api.Reloaded) bool { return r.Project == name })
	if i < 0 {
		return api.Reloaded{}
	}
	return all[i]
}

func (f *farm) do(name string, actions ...api.Action) {
	f.t.Helper()
	for _, a := range actions {
		if err := f.Do(f.t.Context(), name, a); err != nil {
			f.t.Fatalf("%s %s: %v", a, name, err)
		}
	}
}

func (f *farm) project(name string) api.Project {
	f.t.Helper()
	p, err := f.Project(f.t.Context(), name)
	if err != nil {
		f.t.Fatal(err)
	}
	return *p
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for begin := time.Now(); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("in a minute it did not come to this: %s", what)
		}
	}
}

// becomes waits until a project is in a state.
func (f *farm) becomes(name string, s api.State) api.Project {
	f.t.Helper()
	var p api.Project
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(5 * time.Millisecond) {
		if p = f.project(name); p.State == s {
			return p
		}
	}
	f.t.Fatalf("%s is %s (%s) for a minute, want %s", name, p.State, p.Why, s)
	return p
}

// file returns a project file that crawls the web from a seed.
func (f *farm) file(seed string, more ...string) string {
	return fmt.Sprintf("agent: {product: decorum, contact: 'mailto:bot@example.com'}\nseeds: [%s]\n"+
		"fetch: {allow_private: true, connect_to: ['::%s']}\n%s\n", seed, f.addr, strings.Join(more, "\n"))
}

const brisk = "politeness: {delay: 0s, adaptive: 0}"

// pages returns what was asked for, but for robots.txt files.
func pagesOf(log []crawltest.Exchange) (urls []string) {
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
	f := farmOf(t, shop())
	f.start(false)
	if all, err := f.Projects(t.Context()); err != nil || len(all) != 0 {
		t.Fatalf("projects %v, %v; want none", all, err)
	}
	f.put("shop", f.file("http://shop.example/", brisk))
	await(t, "the new file is seen without being asked for", func() bool { _, err := f.find("shop"); return err == nil })
	if p := f.project("shop"); p.State != api.Stopped || p.UserAgent != "decorum/"+Version()+" (+mailto:bot@example.com)" || p.Loaded.IsZero() || p.FileError != "" {
		t.Errorf("the new project is %+v", p)
	}
	f.do("shop", api.Start, api.Start)
	p := f.becomes("shop", api.Done)
	if got := pagesOf(f.web.Log()); !slices.Equal(got, shopPages) {
		t.Errorf("asked for %q, want %q", got, shopPages)
	}
	if p.Stats.Pages != int64(len(shopPages)) || p.Counts.Seen != 6 || p.Counts.Parked != 1 || p.Shortfall != 0 {
		t.Errorf("it shows %+v", p)
	}
	f.do("shop", api.Stop)
	f.becomes("shop", api.Stopped)
	if got := records(t, filepath.Join(f.visit.data(), projectsDir, "shop", outputFile)); len(got) != len(shopPages) {
		t.Errorf("%d lines of output, want %d", len(got), len(shopPages))
	}
}

// chain is a site whose pages lead on one to the next, n of them.
func chain(host string, n int) crawltest.Site {
	pages := map[string]crawltest.Page{}
	for i := range n {
		pages[fmt.Sprintf("/%d", i)] = crawltest.Always(crawltest.HTML(fmt.Sprintf(`<a href="/%d">next</a>`, i+1)))
	}
	return crawltest.Site{Host: host, Pages: pages}
}

// What ran goes on after a restart, what was paused stays so, and what was
// stopped, too.
func TestServeKeepsWhatItWasTold(t *testing.T) {
	t.Parallel() // it mostly waits: after a restart hosts are left alone
	f := farmOf(t, chain("a.example", 1000), chain("b.example", 1000), chain("c.example", 1000))
	for _, name := range []string{"a", "b", "c"} {
		f.put(name, f.file("http://"+name+".example/0", "politeness: {delay: 20ms, adaptive: 0}", "scope: {max_depth: 2000}"))
	}
	f.start(true)
	for _, name := range []string{"a", "b", "c"} {
		await(t, name+" visits pages", func() bool { return f.project(name).Stats.Pages > 2 })
	}
	f.do("b", api.Pause)
	f.do("c", api.Pause, api.Stop)
	f.becomes("b", api.Paused)
	f.becomes("c", api.Stopped)
	f.stop()
	before := f.web.Log()
	f.start(true)
	await(t, "a goes on", func() bool { return f.project("a").Stats.Pages > 2 })
	f.becomes("b", api.Paused)
	f.becomes("c", api.Stopped)
	for _, x := range f.web.Log()[len(before):] {
		if !strings.HasPrefix(x.URL, "http://a.example/") {
			t.Errorf("%s was asked for", x.URL)
		}
	}
	f.do("b", api.Resume)
	f.do("c", api.Start)
	for _, name := range []string{"b", "c"} {
		await(t, name+" goes on", func() bool { return f.project(name).Stats.Pages > 2 })
	}
	f.stop()
	if r := f.web.Judge(crawltest.Options{MinDelay: 20 * time.Millisecond}); !r.OK() {
		t.Errorf("the judge says:\n%s", r)
	}
}

// A project that is deleted is gone for the daemon, and nothing of it is lost.
func TestServeDeletes(t *testing.T) {
	f := farmOf(t, shop())
	f.put("shop", f.file("http://shop.example/", brisk))
	f.start(true)
	f.becomes("shop", api.Done)
	if err := f.DeleteProject(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	var problem *api.Problem
	if _, err := f.Project(t.Context(), "shop"); !errors.As(err, &problem) || problem.Status != 404 {
		t.Errorf("after that it is found: %v", err)
	}
	aside, err := filepath.Glob(filepath.Join(f.visit.data(), deletedDir, "shop-*"))
	if err != nil || len(aside) != 1 {
		t.Fatalf("put aside %q, %v", aside, err)
	}
	for _, name := range []string{storeFile, outputFile, projectFile, "shop.yaml"} {
		if _, err := os.Stat(filepath.Join(aside[0], name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(f.folderName(), "shop.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its file: %v", err)
	}
	if r := f.reload("shop"); r != (api.Reloaded{}) {
		t.Errorf("reloaded: %v", r)
	}
	f.put("shop", f.file("http://shop.example/", brisk))
	if r := f.reload("shop"); r.Change != "new" {
		t.Errorf("put back: %v", r)
	}
	f.becomes("shop", api.Done)
}
