package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// assumedPage is how many bytes a page is taken to have of which nothing is known.
const assumedPage = 100 << 10

// A dryRun is a crawl that is only to be foreseen.
type dryRun struct {
	wanted   bool
	pageSize Size   // of a page of a host that was never crawled
	output   string // file for the forecast; empty: only the table
}

// flags adds the flags of a dry run.
func (r *dryRun) flags(fs *pflag.FlagSet) {
	r.pageSize = assumedPage
	fs.BoolVar(&r.wanted, "dry-run", false, "visit only robots.txt and sitemaps, and say what the crawl would do")
	fs.TextVar(&r.pageSize, "page-size", r.pageSize, "mean `SIZE` of a page, for the bytes that a --dry-run foresees where no earlier crawl tells")
}

// check reads the rest of what the flags of the crawl mean for a dry run.
func (r *dryRun) check(fs *pflag.FlagSet) error {
	if !r.wanted {
		if fs.Changed("page-size") {
			return usage("--page-size: says what a dry run assumes; give --dry-run with it")
		}
		return nil
	}
	for _, name := range []string{"resume", "fresh", "warc"} {
		if fs.Changed(name) {
			return usage("--dry-run keeps nothing, and goes on with nothing: leave --%s away", name)
		}
	}
	if output := fs.Lookup("output"); output.Changed { // what the project file says is for pages
		r.output = output.Value.String()
	}
	return nil
}

// foresee visits what leads to pages, and says what a crawl of the project would
// do. The crawl's own state is not touched, and none is left.
func (a *app) foresee(ctx context.Context, p Project, s start) (err error) {
	roots, err := p.roots(nil)
	if err != nil {
		return err
	}
	out := &output{w: discarded{}}
	if s.dryRun.output != "" {
		if out, err = openOutput(nil, s.dryRun.output, 0, p.Output.fileMode(), a.stdout, false, knownFiles{}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, out.Close()) }()
	}
	dir, err := os.MkdirTemp("", "decorum-dry-run-")
	if err != nil {
		return fmt.Errorf("a dry run keeps its queue in a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	files, err := openStores(scoutOf(p, dir), a.boltOptions(p, nil))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	scout, err := newScout(ground{
		files: files, handlers: a.handlers, log: a.log,
		shared: shared{hosts: politeness.NewHosts(), bodies: a.bodies}, brisk: s.brisk,
	}, scoutOf(p, dir), roots)
	if err != nil {
		return err
	}
	switch err := a.runJob(ctx, &scout.job, s.progress); {
	case errors.Is(err, errSignal):
		return &exit{ExitStopped, errors.New("the dry run was interrupted: what it has found so far is not all")}
	case err != nil && !errors.Is(err, errTime) && !errors.Is(err, frontier.ErrDormant): // else the crawl would find no more either
		return err
	}
	f, err := scout.forecast(context.WithoutCancel(ctx), p, a.earlier(ctx, p), s.dryRun.pageSize)
	if err != nil {
		return err
	}
	var table io.Writer = a.stdout
	if s.dryRun.output == "-" {
		table = a.screen
	}
	return errors.Join(f.writeLines(out), f.writeTable(table))
}

// discarded is where the lines of a forecast go that nobody wants.
type discarded struct{}

// Write forgets p.
func (discarded) Write(p []byte) (int, error) { return len(p), nil }

// scoutOf returns p as its dry run is made: the state is kept in dir, and what
// bounds pages does not bound what leads to them.
func scoutOf(p Project, dir string) Project {
	p.Store, p.Output = Store{Path: dir}, Output{}
	p.Limits.Pages, p.Limits.Bytes = 0, 0
	p.Scope.MaxPagesPerHost = 0
	p.Revisit.Mode = DefaultProject().Revisit.Mode
	return p
}

// A scout is the run of a crawl that passes its pages by.
type scout struct {
	job
	mu     sync.Mutex
	pages  map[decorum.Origin]int64 // passed by
	robots map[string]int64         // requests for robots.txt, by host
	tdmrep map[string]int64         // likewise, for tdmrep.json
	rules  map[decorum.Origin]int64 // requests that it took to have an origin's robots.txt the last time
}

// newScout returns the scout of a project, ready to run on g.
func newScout(g ground, p Project, roots []decorum.URL) (*scout, error) {
	s := &scout{pages: map[decorum.Origin]int64{}, robots: map[string]int64{}, tdmrep: map[string]int64{}, rules: map[decorum.Origin]int64{},
		job: job{files: g.files, hosts: hostSet{names: map[string]bool{}}, start: time.Now()}}
	g.hooks.Visited, g.hooks.SkippedInDryRun = s.visited, s.passed
	var err error
	if s.crawlEngine, err = g.furnish(p, roots); err != nil {
		return nil, err
	}
	s.crawler.Settings.DryRun, s.crawler.PageRecorder = true, nil
	return s, nil
}

func (s *scout) visited(v *crawler.Visit) {
	s.hosts.add(v)
	if !v.Sent() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := v.URL().Origin(); {
	case v.Clearance.ForRobots():
		s.robots[o.Host()]++
		if v.Lease.For.IsZero() {
			s.rules[o] = 1
		} else { // a redirect led there, be it on another host
			s.rules[v.Lease.For]++
		}
	case v.URL() == robots.TDMRepURL(o):
		s.tdmrep[o.Host()]++
	}
}

func (s *scout) passed(_ storage.Lease, c robots.Clearance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[c.Origin()]++
}

// A habit is what an earlier crawl says of a host's answers.
type habit struct {
	bytes int64         // of one
	visit time.Duration // that it takes
}

// earlier returns what the crawl in the project's directory, if there is one,
// remembers of its hosts. One that cannot be asked tells nothing.
func (a *app) earlier(ctx context.Context, p Project) map[string]habit {
	if holds, err := stateDir(p.Store.Path).holdsCrawl(); err == nil && !holds {
		return nil
	}
	habits := map[string]habit{}
	k, err := a.openOfflineCrawl(p.Store.Path)
	if err == nil {
		err = errors.Join(k.store.Origins(ctx, func(o storage.OriginInfo) bool {
			if m := crawler.DecodeHostStats(o.Host.Memo); m.Requests > 0 {
				habits[o.Origin.Host()] = habit{bytes: m.Bytes / m.Requests, visit: m.RequestTime / time.Duration(m.Requests)}
			}
			return true
		}), k.Close())
	}
	if err != nil {
		a.log.Warn("the earlier crawl cannot be asked how large its pages were", "dir", p.Store.Path, "why", err)
	}
	return habits
}
