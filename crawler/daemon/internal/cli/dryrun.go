package cli

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
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/stoppedcrawl"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/aiuse"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// defaultPageSize is how many bytes a page is taken to have of which nothing is known.
const defaultPageSize = 100 << 10

// A dryRunOptions is a crawl that is only to be foreseen.
type dryRunOptions struct {
	enabled         bool
	assumedPageSize project.Size // of a page of a host that was never crawled
	output          string       // file for the forecast; empty: only the table
}

// AddFlags adds the flags of a dry run.
func (r *dryRunOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&r.enabled, "dry-run", false, "visit only robots.txt and sitemaps, and say what the crawl would do")
	fs.TextVar(&r.assumedPageSize, "page-size", project.Size(defaultPageSize), "mean `SIZE` of a page, for the bytes that a --dry-run foresees where no earlier crawl tells")
}

// checkFlagsAndSetOutput reads the rest of what the flags of the crawl mean for a dry run.
func (r *dryRunOptions) checkFlagsAndSetOutput(fs *pflag.FlagSet) error {
	if !r.enabled {
		if fs.Changed("page-size") {
			return usage.Errorf("--page-size: says what a dry run assumes; give --dry-run with it")
		}
		return nil
	}
	for _, name := range []string{"resume", "fresh", "warc"} {
		if fs.Changed(name) {
			return usage.Errorf("--dry-run keeps nothing, and goes on with nothing: leave --%s away", name)
		}
	}
	if output := fs.Lookup("output"); output.Changed { // what the project file says is for pages
		r.output = output.Value.String()
	}
	return nil
}

// forecastByDryRun visits what leads to pages, and says what a crawl of the project would
// do. The crawl's own state is not touched, and none is left.
func (a *program) forecastByDryRun(ctx context.Context, p project.Project, s crawlOptions) (err error) {
	seedPerOrigin, err := p.FirstSeedPerOrigin(os.Open)
	if err != nil {
		return err
	}
	out := sinks.NewJSONLRecorder(io.Discard)
	if s.dryRunOptions.output != "" {
		if out, err = sinks.OpenJSONLRecorder(sinks.Config{JSONLPath: s.dryRunOptions.output, FileMode: p.Output.FileModeBits(), Stdout: a.Stdout}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, out.Close()) }()
	}
	dir, err := os.MkdirTemp("", "decorum-dry-run-")
	if err != nil {
		return fmt.Errorf("a dry run keeps its queue in a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	files, err := datadir.OpenStores(projectForDryRun(p, dir), a.BoltOptions(p, nil))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	crawl, err := newDryRun(engine.Config{
		Stores: files, Handlers: a.Handlers, Log: a.Log,
		SharedResources: engine.SharedResources{SharedHosts: politeness.NewSharedHosts(), BodyMemory: a.BodyMemory}, FastRetries: s.fastRetries,
	}, projectForDryRun(p, dir), seedPerOrigin)
	if err != nil {
		return err
	}
	switch err := a.seedAndCrawlUntilEnd(ctx, &crawl.foregroundRun, s.progressMode); {
	case errors.Is(err, engine.ErrInterrupted):
		return &command.ExitError{Code: command.ExitStopped, Err: errors.New("the dry run was interrupted: what it has found so far is not all")}
	case err != nil && !errors.Is(err, engine.ErrTimeLimit) && !errors.Is(err, frontier.ErrOnlySuspendedLeft): // else the crawl would find no more either
		return err
	}
	f, err := crawl.newForecast(context.WithoutCancel(ctx), p, a.loadHostAverages(ctx, p), s.dryRunOptions.assumedPageSize)
	if err != nil {
		return err
	}
	var table io.Writer = a.Stdout
	if s.dryRunOptions.output == "-" {
		table = a.Stderr
	}
	return errors.Join(f.writeJSONL(out), f.writeTable(table))
}

// projectForDryRun returns p as its dry run is made: the state is kept in dir, and what
// bounds pages does not bound what leads to them.
func projectForDryRun(p project.Project, dir string) project.Project {
	p.Store, p.Output = project.StoreSettings{Path: dir}, project.OutputSettings{}
	p.Limits.Pages, p.Limits.Bytes = 0, 0
	p.Scope.MaxPagesPerHost = 0
	p.Revisit.Mode = project.Default().Revisit.Mode
	return p
}

// A dryRun is the run of a crawl that passes its pages by.
type dryRun struct {
	foregroundRun
	mu                              sync.Mutex
	skippedPagesByOrigin            map[decorum.Origin]int64 // passed by
	robotsRequestsByHost            map[string]int64         // requests for robots.txt, by host
	tdmrepRequestsByHost            map[string]int64         // likewise, for tdmrep.json
	lastRobotsFetchRequestsByOrigin map[decorum.Origin]int64 // requests that it took to have an origin's robots.txt the last time
}

// newDryRun returns the dry run of a project, ready to run on g.
func newDryRun(g engine.Config, p project.Project, seedPerOrigin []decorum.URL) (*dryRun, error) {
	s := &dryRun{skippedPagesByOrigin: map[decorum.Origin]int64{}, robotsRequestsByHost: map[string]int64{}, tdmrepRequestsByHost: map[string]int64{}, lastRobotsFetchRequestsByOrigin: map[decorum.Origin]int64{},
		foregroundRun: foregroundRun{stores: g.Stores, visitedHosts: visitedHostSet{names: map[string]bool{}}, startedAt: time.Now()}}
	g.Hooks.Visited, g.Hooks.SkippedInDryRun = s.addHostAndCountRobotsRequests, s.countSkippedPage
	var err error
	if s.Engine, err = g.NewEngine(p, seedPerOrigin); err != nil {
		return nil, err
	}
	s.Crawler.Settings.DryRun, s.Crawler.PageRecorder = true, nil
	return s, nil
}

func (s *dryRun) addHostAndCountRobotsRequests(v *crawler.Visit) {
	s.visitedHosts.addVisitedHost(v)
	if !v.WasSent() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := v.URL().Origin(); {
	case v.Clearance.IsForRobots():
		s.robotsRequestsByHost[o.Host()]++
		if v.Lease.RobotsFor.IsZero() {
			s.lastRobotsFetchRequestsByOrigin[o] = 1
		} else { // a redirect led there, be it on another host
			s.lastRobotsFetchRequestsByOrigin[v.Lease.RobotsFor]++
		}
	case v.URL() == aiuse.TDMRepURL(o):
		s.tdmrepRequestsByHost[o.Host()]++
	}
}

func (s *dryRun) countSkippedPage(_ storage.Lease, c gate.Clearance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skippedPagesByOrigin[c.RobotsOrigin()]++
}

// A hostAverages is what an earlier crawl says of a host's answers.
type hostAverages struct {
	responseBytes int64         // of one
	visitDuration time.Duration // that it takes
}

// loadHostAverages returns what the crawl in the project's directory, if there is one,
// remembers of its hosts. One that cannot be asked tells nothing.
func (a *program) loadHostAverages(ctx context.Context, p project.Project) map[string]hostAverages {
	if hasCrawl, err := datadir.StateDir(p.Store.Path).HasCrawl(); err == nil && !hasCrawl {
		return nil
	}
	averages := map[string]hostAverages{}
	k, err := stoppedcrawl.Open(&a.Env, p.Store.Path)
	if err == nil {
		err = errors.Join(k.FrontierStore.Origins(ctx, func(o storage.OriginInfo) bool {
			if m := crawler.DecodeHostStats(o.HostState.EncodedStats); m.Requests > 0 {
				averages[o.Origin.Host()] = hostAverages{responseBytes: m.Bytes / m.Requests, visitDuration: m.TotalRequestTime / time.Duration(m.Requests)}
			}
			return true
		}), k.Close())
	}
	if err != nil {
		a.Log.Warn("the earlier crawl cannot be asked how large its pages were", "dir", p.Store.Path, "why", err)
	}
	return averages
}
