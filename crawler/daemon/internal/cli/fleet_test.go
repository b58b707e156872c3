package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// fleetDelay is the delay of a host in the tests with several processes.
const fleetDelay = 200 * time.Millisecond

// fleetWeb returns a web of many hosts with a few pages each. Every page links to the next, and to
// another host.
func fleetWeb(hosts, pages int) *crawltest.Web {
	var sites []crawltest.Site
	var seeds []string
	for h := range hosts {
		site := crawltest.Site{Host: fmt.Sprintf("h%d.example", h), Pages: map[string]crawltest.PageFunc{}}
		for p := range pages {
			site.Pages[fmt.Sprintf("/%d", p)] = crawltest.StaticPage(crawltest.HTML(fmt.Sprintf(
				`<a href="/%d">next</a><a href="http://h%d.example/%d">there</a>`, min(p+1, pages-1), (h+1)%hosts, p)))
		}
		sites = append(sites, site)
		seeds = append(seeds, "http://"+site.Host+"/0")
	}
	web := crawltest.New(sites...)
	web.CrawlSettings = crawltest.CrawlSettings{Seeds: seeds, MaxDepth: 1e5}
	return web
}

// A fleet is several processes that crawl one project, and the web that they crawl.
type fleet struct {
	t       *testing.T
	web     *crawltest.Web
	addr    string
	dir     string
	project string
	mu      sync.Mutex
	starts  []time.Time
}

func newFleet(t *testing.T, web *crawltest.Web, project string) *fleet {
	t.Helper()
	return &fleet{t: t, web: web, addr: daemontest.StartWeb(t, web).Addr, dir: t.TempDir(),
		project: testfile.Write(t, "p.yaml", project)}
}

// DataDir returns the data directory of one process.
func (f *fleet) dataDir(i int) string { return filepath.Join(f.dir, fmt.Sprint(i)) }

// startProcess starts a process, which resumes the crawl if an earlier one left state in its data
// directory.
func (f *fleet) startProcess(i int) (*exec.Cmd, *bytes.Buffer, error) {
	args := []string{"crawl", "--data", f.dataDir(i), "--contact=mailto:bot@example.com", "--allow-private",
		"--connect-to=::" + f.addr, "--delay", fleetDelay.String(), "--max-depth=100000",
		"--progress=none", "--log-level=error"}
	if hasCrawl, err := datadir.StateDir(f.dataDir(i)).HasCrawl(); err != nil {
		return nil, nil, err
	} else if hasCrawl {
		args = append(args, "--resume")
	} else {
		args = append(append(args, "-c", f.project), f.web.CrawlSettings.Seeds...)
	}
	f.mu.Lock()
	f.starts = append(f.starts, time.Now())
	f.mu.Unlock()
	c, stderr := newCommandProcess(f.t, args...)
	return c, stderr, c.Start()
}

// visitCounts returns how often each page was recorded, and how many by each process.
func (f *fleet) visitCounts(processes int) (visitsByURL map[string]int, visitsByProcess []int) {
	visitsByURL = map[string]int{}
	for i := range processes {
		rs := daemontest.ReadRecords(f.t, filepath.Join(f.dataDir(i), datadir.OutputFile))
		visitsByProcess = append(visitsByProcess, len(rs))
		for _, r := range rs {
			visitsByURL[r.URL]++
		}
	}
	return visitsByURL, visitsByProcess
}

// Four processes crawl 300 hosts: every page is visited once, every host at the pace of one crawl, and
// each process does a share of the work.
func TestFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("the crawls are separate processes")
	}
	t.Parallel() // it mostly waits
	const processes, hosts, pages = 4, 300, 4
	c := redistest.StartClusterForTest(t, 3, 1)
	f := newFleet(t, fleetWeb(hosts, pages), daemontest.RedisField(c, ""))
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			p, stderr, err := f.startProcess(i)
			if err == nil {
				err = p.Wait()
			}
			if err != nil {
				t.Errorf("process %d: %v\n%s", i, err, stderr)
			}
		})
	}
	wg.Wait()
	visitsByURL, visitsByProcess := f.visitCounts(processes)
	for u, n := range visitsByURL {
		if n != 1 {
			t.Errorf("%s was visited %d times", u, n)
		}
	}
	if len(visitsByURL) != hosts*pages {
		t.Errorf("%d pages were visited, want %d", len(visitsByURL), hosts*pages)
	}
	for i, n := range visitsByProcess {
		if n < hosts*pages/processes/3 {
			t.Errorf("process %d visited %d of %d pages", i, n, hosts*pages)
		}
	}
	if r := f.web.Judge(crawltest.JudgeOptions{MinDelay: fleetDelay, RequiredProductToken: "decorum"}); !r.OK() {
		t.Error(r)
	}
	// A host is visited by several processes, which count its requests and connections together.
	report := runCommand(t, "report", "--data", f.dataDir(0), "--format=json")
	report.want(t, command.ExitDone)
	total := decodeJSON[api.CrawlReport](t, report.stdout)
	if requests := int64(len(f.web.Log())); total.Requests != requests || total.Connections < hosts ||
		total.WireBytesSent < 100*requests || total.WireBytesReceived < total.Bytes+100*requests {
		t.Errorf("the servers saw %d requests, the report has %+v", requests, total.HostTraffic)
	}
	t.Logf("%d pages, by process: %v", len(visitsByURL), visitsByProcess)
}

// How many faults TestFleetChaos injects: each kind at least once, and many more in .ci/proofs.
var fleetRounds = flag.Int("fleet-rounds", 5, "how often TestFleetChaos kills or stops something")

// TestFleetChaos kills processes, stops them until their leases expire, and kills Redis masters during
// a crawl. No page is lost, and no host is visited by two processes at once or too early.
func TestFleetChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("the crawls are separate processes")
	}
	t.Parallel() // it mostly waits
	const processes, hosts, lease = 4, 20, 2 * time.Second
	c := redistest.StartClusterForTest(t, 3, 1)
	f := newFleet(t, fleetWeb(hosts, 10+8**fleetRounds), daemontest.RedisField(c, fmt.Sprintf(", lease: %v", lease)))
	injector := &faultInjector{fleet: f, cluster: c, lease: lease, rnd: rand.New(rand.NewPCG(*killSeed, 0)),
		running: map[int]*exec.Cmd{}}
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() { injector.keepAlive(i) })
	}
	injector.injectFaults(*fleetRounds)
	wg.Wait()
	visitsByURL, visitsByProcess := f.visitCounts(processes)
	want := f.web.ReachablePages()
	got := slices.Collect(func(yield func(string) bool) {
		for u := range visitsByURL {
			if !yield(u) {
				return
			}
		}
	})
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages that should be in the output (-), and that are (+):\n%s", diff)
	}
	repeated := 0
	for _, n := range visitsByURL {
		repeated += n - 1
	}
	if r := f.web.Judge(crawltest.JudgeOptions{MinDelay: fleetDelay, RequiredProductToken: "decorum",
		RestartTimes: f.starts[1:], CrashLossWindow: time.Second, AllowRevisits: true}); !r.OK() {
		t.Error(r)
	}
	t.Logf("%d rounds (%v): %d pages, by process: %v; %d visits were repeated", *fleetRounds, injector.injected,
		len(got), visitsByProcess, repeated)
}

// A faultInjector kills and stops the processes and the Redis masters of a fleet.
type faultInjector struct {
	*fleet
	cluster  *redistest.Cluster
	lease    time.Duration
	rnd      *rand.Rand
	injected map[string]int

	mu      sync.Mutex
	running map[int]*exec.Cmd
}

// keepAlive restarts a process each time that it is killed, until it finishes the crawl.
func (s *faultInjector) keepAlive(i int) {
	for {
		c, stderr, err := s.startProcess(i)
		if err != nil {
			s.t.Errorf("process %d: %v", i, err)
			return
		}
		s.mu.Lock()
		s.running[i] = c
		s.mu.Unlock()
		err = c.Wait()
		s.mu.Lock()
		delete(s.running, i)
		s.mu.Unlock()
		var exit *exec.ExitError
		switch {
		case err == nil:
			return
		// A master is down: start the process again.
		case strings.Contains(stderr.String(), "cannot open the state of the crawl"):
		case !errors.As(err, &exit) || exit.Exited():
			s.t.Errorf("process %d: %v\n%s", i, err, stderr)
			return
		}
	}
}

// pickProcess returns one of the running processes, or nil if all have finished.
func (s *faultInjector) pickProcess() *exec.Cmd {
	s.mu.Lock()
	defer s.mu.Unlock()
	var running []int
	for i := range s.running {
		running = append(running, i)
	}
	if len(running) == 0 {
		return nil
	}
	slices.Sort(running)
	return s.running[running[s.rnd.IntN(len(running))]]
}

// injectFaults injects the given number of faults, of all kinds in turn.
func (s *faultInjector) injectFaults(rounds int) {
	s.injected = map[string]int{}
	for round := range rounds {
		time.Sleep(time.Duration(s.rnd.Int64N(int64(time.Second)))) // hit the crawl at a random moment
		p := s.pickProcess()
		switch {
		case p == nil:
			return
		case round%8 == 3:
			s.injected["masters killed"]++
			s.killMaster()
		case round%4 == 1:
			s.injected["processes stopped"]++
			p.Process.Signal(syscall.SIGSTOP)
			time.Sleep(s.lease + s.lease/2)
			p.Process.Signal(syscall.SIGCONT)
		default:
			s.injected["processes killed"]++
			p.Process.Signal(syscall.SIGKILL) // it may have ended just now
		}
	}
}

// killMaster kills a master, waits until its replica has taken over, and starts it again as a replica.
func (s *faultInjector) killMaster() {
	var masters []*redistest.Node
	for _, n := range s.cluster.Nodes() {
		if n.IsMaster(s.t.Context()) {
			masters = append(masters, n)
		}
	}
	victim := masters[s.rnd.IntN(len(masters))]
	s.cluster.KillNode(victim)
	s.cluster.AwaitMasters(len(masters))
	s.cluster.StartKilledNode(victim)
	s.cluster.WaitReady()
}
