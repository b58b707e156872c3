package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
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

// defaultPageSize is the assumed size of a page, in bytes, on a host that no earlier crawl visited.
const defaultPageSize = 100 << 10

// A dryRunOptions holds --dry-run and the flags that belong to it.
type dryRunOptions struct {
	enabled         bool
	assumedPageSize project.Size // bytes of a page on a host that no earlier crawl visited
	output          string       // file for the forecast, "-" for standard output; empty: only the table
}

// addFlags adds the flags of a dry run.
func (r *dryRunOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&r.enabled, "dry-run", false, "fetch only robots.txt files and sitemaps, and forecast the crawl")
	fs.TextVar(&r.assumedPageSize, "page-size", project.Size(defaultPageSize),
		"with --dry-run, assume pages of this mean `SIZE`, as 100KiB, on hosts that no earlier crawl visited")
}

// checkFlagsAndSetOutput rejects flags that have no meaning with, or without, a dry run, and sets
// output from --output.
func (r *dryRunOptions) checkFlagsAndSetOutput(fs *pflag.FlagSet) error {
	if !r.enabled {
		if fs.Changed("page-size") {
			return usage.Errorf("--page-size is a setting of dry runs: use it with --dry-run")
		}
		return nil
	}
	for _, name := range []string{"resume", "fresh", "warc"} {
		if fs.Changed(name) {
			return usage.Errorf("--dry-run keeps nothing and continues no crawl: leave out --%s", name)
		}
	}
	if output := fs.Lookup("output"); output.Changed { // the project file's output is for pages
		r.output = output.Value.String()
	}
	return nil
}

// forecastByDryRun fetches the robots.txt files and sitemaps of the project and prints a forecast
// of its crawl. It works in a temporary directory, and leaves the crawl's own state untouched.
func (a *program) forecastByDryRun(ctx context.Context, p project.Project, s crawlOptions) (err error) {
	seedPerOrigin, err := p.FirstSeedPerOrigin(os.Open)
	if err != nil {
		return err
	}
	out := sinks.NewJSONLRecorder(io.Discard)
	if s.dryRunOptions.output != "" {
		if out, err = sinks.OpenJSONLRecorder(sinks.Config{JSONLPath: s.dryRunOptions.output,
			FileMode: p.Output.FileModeBits(), Stdout: a.Stdout}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, out.Close()) }()
	}
	dir, err := os.MkdirTemp("", "decorum-dry-run-")
	if err != nil {
		return fmt.Errorf("cannot create a temporary directory for the queue of the dry run: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	files, err := datadir.OpenStores(projectForDryRun(p, dir), a.BoltOptions(p, nil))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	crawl, err := newDryRun(engine.Config{
		Stores: files, Handlers: a.Handlers, Log: a.Log,
		SharedResources: engine.SharedResources{SharedHosts: politeness.NewSharedHosts(), BodyMemory: a.BodyMemory,
			IdleConns: a.IdleConns},
		FastRetries: s.fastRetries,
	}, projectForDryRun(p, dir), seedPerOrigin)
	if err != nil {
		return err
	}
	switch err := a.seedAndCrawlUntilEnd(ctx, &crawl.foregroundRun, s.progressMode); {
	case errors.Is(err, engine.ErrInterrupted):
		return &command.ExitError{Code: command.ExitStopped,
			Err: errors.New("the dry run was interrupted: it has no complete forecast")}
	// A time limit, or hosts that stay suspended, would end the crawl at the same point: the
	// forecast is complete without them.
	case err != nil && !errors.Is(err, engine.ErrTimeLimit) && !errors.Is(err, frontier.ErrOnlySuspendedLeft):
		return err
	}
	f, err := crawl.newForecast(context.WithoutCancel(ctx), p, a.loadHostAverages(ctx, p),
		s.dryRunOptions.assumedPageSize)
	if err != nil {
		return err
	}
	return a.writeForecast(f, out, s.dryRunOptions.output == "-")
}

// writeForecast writes f as JSON Lines to out and as a table: to standard error if the JSON Lines take
// standard output. If the reader of standard output leaves, it returns the exit code of a crawl whose
// reader left, without a message.
func (a *program) writeForecast(f *dryRunForecast, out *sinks.JSONLRecorder, linesTakeStdout bool) error {
	var table io.Writer = a.Stdout
	if linesTakeStdout {
		table = a.Stderr
	}
	linesErr := f.writeJSONL(out)
	err := errors.Join(linesErr, f.writeTable(table))
	if errors.Is(a.Stdout.WriteErr, syscall.EPIPE) && (linesErr == nil || errors.Is(linesErr, syscall.EPIPE)) {
		return &command.ExitError{Code: command.ExitStopped}
	}
	return err
}

// projectForDryRun returns p as the dry run crawls it: with its state in dir, no output, no
// revisits, and without the limits on pages and bytes, which must not stop the fetches of sitemaps.
func projectForDryRun(p project.Project, dir string) project.Project {
	p.Store, p.Output = project.StoreSettings{Path: dir}, project.OutputSettings{}
	p.Limits.Pages, p.Limits.Bytes = 0, 0
	p.Scope.MaxPagesPerHost = 0
	p.Revisit.Mode = project.Default().Revisit.Mode
	return p
}

// A dryRun is the run of a crawl that counts the pages it would visit instead of visiting them. Its
// maps are read without mu after the crawl has ended.
type dryRun struct {
	foregroundRun

	// mu guards skippedPagesByOrigin, robotsRequestsByHost, tdmrepRequestsByHost and
	// lastRobotsFetchRequestsByOrigin.
	mu                   sync.Mutex
	skippedPagesByOrigin map[decorum.Origin]int64 // pages that the crawl would visit, by the origin of their robots.txt
	robotsRequestsByHost map[string]int64         // requests for robots.txt
	tdmrepRequestsByHost map[string]int64         // requests for tdmrep.json
	// lastRobotsFetchRequestsByOrigin counts the requests of the latest fetch of each origin's
	// robots.txt: 1, and 1 more for each redirect.
	lastRobotsFetchRequestsByOrigin map[decorum.Origin]int64
}

// newDryRun returns a dry run of the project p on the stores of g.
func newDryRun(g engine.Config, p project.Project, seedPerOrigin []decorum.URL) (*dryRun, error) {
	s := &dryRun{skippedPagesByOrigin: map[decorum.Origin]int64{}, robotsRequestsByHost: map[string]int64{},
		tdmrepRequestsByHost: map[string]int64{}, lastRobotsFetchRequestsByOrigin: map[decorum.Origin]int64{},
		foregroundRun: foregroundRun{stores: g.Stores,
			visitedHosts: visitedHostSet{names: map[string]bool{}}, startedAt: time.Now()}}
	g.Hooks.Visited, g.Hooks.SkippedInDryRun = s.addHostAndCountRobotsRequests, s.countSkippedPage
	var err error
	if s.Engine, err = g.NewEngine(p, seedPerOrigin); err != nil {
		return nil, err
	}
	s.Crawler.Settings.DryRun, s.Crawler.PageRecorder = true, nil
	return s, nil
}

// addHostAndCountRobotsRequests is the Visited hook: it counts a visit as a request for robots.txt
// or tdmrep.json. Visits that sent no request count for nothing.
func (s *dryRun) addHostAndCountRobotsRequests(v *crawler.Visit) {
	s.countVisit(v)
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
		} else { // the target of a redirect, possibly on another host
			s.lastRobotsFetchRequestsByOrigin[v.Lease.RobotsFor]++
		}
	case v.URL() == aiuse.TDMRepURL(o):
		s.tdmrepRequestsByHost[o.Host()]++
	}
}

// countSkippedPage is the SkippedInDryRun hook.
func (s *dryRun) countSkippedPage(_ storage.Lease, c gate.Clearance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skippedPagesByOrigin[c.RobotsOrigin()]++
}

// A hostAverages holds means over all requests that an earlier crawl sent to a host.
type hostAverages struct {
	responseBytes int64
	visitDuration time.Duration
	traffic       crawler.HostTraffic // the sums that the averages are of
}

// loadHostAverages returns the averages of the hosts of the crawl in the project's data directory;
// nil if the directory holds no crawl. If it cannot read the crawl, it logs a warning and returns the
// averages read so far.
func (a *program) loadHostAverages(ctx context.Context, p project.Project) map[string]hostAverages {
	if hasCrawl, err := datadir.StateDir(p.Store.Path).HasCrawl(); err == nil && !hasCrawl {
		return nil
	}
	averages := map[string]hostAverages{}
	k, err := stoppedcrawl.Open(&a.Env, p.Store.Path)
	if err == nil {
		err = errors.Join(k.FrontierStore.Origins(ctx, func(o storage.OriginInfo) bool {
			if m := crawler.DecodeHostStats(o.HostState.EncodedStats); m.Requests > 0 {
				averages[o.Origin.Host()] = hostAverages{responseBytes: m.Bytes / m.Requests,
					visitDuration: m.TotalRequestTime / time.Duration(m.Requests), traffic: m.HostTraffic}
			}
			return true
		}), k.Close())
	}
	if err != nil {
		a.Log.Warn("cannot read the page sizes of the earlier crawl", "dir", p.Store.Path, "why", err)
	}
	return averages
}
