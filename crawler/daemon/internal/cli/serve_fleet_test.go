package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// A daemonGroup is several daemons, each a separate process, that run one project in Redis.
type daemonGroup struct {
	*fleet
	hostIP          string // address of the cluster: no other process takes a port of it while a daemon starts
	projectFilesDir string
	daemons         []*exec.Cmd
	stderr          []*bytes.Buffer
	clients         []*api.Client
}

// startDaemonGroup starts the given number of daemons, which run the project "shop" on a web. They end
// with the test.
func startDaemonGroup(t *testing.T, n int, web *crawltest.Web, c *redistest.Cluster, redis string,
	more ...string) *daemonGroup {
	t.Helper()
	ip, _, err := net.SplitHostPort(c.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	s := &daemonGroup{fleet: newFleet(t, web, ""), hostIP: ip, projectFilesDir: t.TempDir()}
	f := &daemontest.WebFixture{Web: web, Addr: s.addr, Dir: s.dir}
	text := f.ProjectYAML("'"+strings.Join(web.CrawlSettings.Seeds, "', '")+"'",
		append([]string{daemontest.RedisField(c, redis), "scope: {max_depth: 100000}",
			fmt.Sprintf("politeness: {delay: %v, adaptive: 0}", fleetDelay)}, more...)...)
	if err := os.WriteFile(filepath.Join(s.projectFilesDir, "shop.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stopAll)
	for i := range n {
		s.startDaemon(i)
	}
	s.doAll(api.ActionStart)
	return s
}

// doAll makes all daemons do an action on the project.
func (s *daemonGroup) doAll(a api.ProjectAction) {
	s.t.Helper()
	for i, c := range s.clients {
		if err := c.ControlProject(s.t.Context(), "shop", a); err != nil {
			s.t.Fatalf("daemon %d: %v", i, err)
		}
	}
}

// startDaemon starts a daemon and returns when it answers.
func (s *daemonGroup) startDaemon(i int) {
	s.t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(s.hostIP, "0"))
	if err != nil {
		s.t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	c, stderr := newCommandProcess(s.t, "serve", "--listen", addr, "--data", s.dataDir(i), "--projects",
		s.projectFilesDir, "--log-level=error")
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	var token []byte
	daemontest.WaitUntil(s.t, "the daemon answers", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			token, err = os.ReadFile(filepath.Join(s.dataDir(i), "token"))
		}
		return err == nil
	})
	s.daemons, s.stderr = append(s.daemons, c), append(s.stderr, stderr)
	s.clients = append(s.clients, &api.Client{Server: "http://" + addr, Token: strings.TrimSpace(string(token))})
}

// stopAll stops the daemons one after the other.
func (s *daemonGroup) stopAll() {
	for _, d := range s.daemons {
		d.Process.Signal(syscall.SIGTERM) // it may have ended already
	}
	for i, d := range s.daemons {
		err := d.Wait()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != command.ExitStopped {
			s.t.Errorf("daemon %d ended with %v:\n%s", i, err, s.stderr[i])
		}
	}
	s.daemons = nil
}

// getProject returns the project as one daemon reports it.
func (s *daemonGroup) getProject(i int) api.Project {
	s.t.Helper()
	all, err := s.clients[i].Projects(s.t.Context())
	if err != nil || len(all) != 1 {
		s.t.Fatalf("daemon %d: %d projects, %v", i, len(all), err)
	}
	return all[0]
}

// readyStatus returns the status of a daemon's /readyz.
func (s *daemonGroup) readyStatus(i int) int {
	s.t.Helper()
	res, err := http.Get(s.clients[i].Server + "/readyz")
	if err != nil {
		s.t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// waitForState waits until the project is in the given state in all daemons.
func (s *daemonGroup) waitForState(state api.ProjectState) {
	s.t.Helper()
	for i := range s.clients {
		daemontest.WaitUntil(s.t, fmt.Sprintf("the project is %s in daemon %d", state, i), func() bool {
			return s.getProject(i).State == state
		})
	}
}

// visitCounts returns how often each page was recorded, and how many by each daemon.
func (s *daemonGroup) visitCounts() (visitsByURL map[string]int, visitsByProcess []int) {
	visitsByURL = map[string]int{}
	for i := range s.clients {
		rs := daemontest.ReadRecords(s.t, filepath.Join(s.dataDir(i), datadir.ProjectsDir, "shop", datadir.OutputFile))
		visitsByProcess = append(visitsByProcess, len(rs))
		for _, r := range rs {
			visitsByURL[r.URL]++
		}
	}
	return visitsByURL, visitsByProcess
}

// checkVisitedOnce checks that each page of the web was visited once.
func (s *daemonGroup) checkVisitedOnce() {
	s.t.Helper()
	visitsByURL, visitsByProcess := s.visitCounts()
	for u, n := range visitsByURL {
		if n != 1 {
			s.t.Errorf("%s was visited %d times", u, n)
		}
	}
	pages := len(s.web.ReachablePages())
	if len(visitsByURL) != pages {
		s.t.Errorf("%d pages were visited, want %d", len(visitsByURL), pages)
	}
	if r := s.web.Judge(crawltest.JudgeOptions{MinDelay: fleetDelay, RequiredProductToken: "decorum"}); !r.OK() {
		s.t.Error(r)
	}
	s.t.Logf("%d pages, by daemon: %v", len(visitsByURL), visitsByProcess)
}

// Four daemons run one project: every page is visited once, every host at the pace of one crawl. All
// of them see its end. URLs added through one daemon restart the project in all, and each daemon
// visits a part of them, even if another is much faster.
func TestServeFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("the daemons are separate processes")
	}
	t.Parallel() // it mostly waits
	c := redistest.StartClusterForTest(t, 3, 1)
	s := startDaemonGroup(t, 4, fleetWeb(100, 4), c, "")
	s.waitForState(api.StateDone)
	s.checkVisitedOnce()
	given := s.addURLsUntilShared(20, 10)
	s.waitForState(api.StateDone)
	visits := map[string]int{}
	for _, u := range daemontest.RequestedPages(s.web.Log()) {
		visits[u]++
	}
	for _, u := range given {
		if visits[u] != 1 {
			t.Errorf("%s was visited %d times", u, visits[u])
		}
	}
}

// addURLsUntilShared adds URLs of the given number of hosts through the first daemon, and more until
// every daemon has visited the given number of pages since. It returns the URLs.
func (s *daemonGroup) addURLsUntilShared(hosts, pages int) (given []string) {
	s.t.Helper()
	var before []int64
	for i := range s.clients {
		before = append(before, s.getProject(i).Stats.Pages)
	}
	daemontest.WaitUntil(s.t, "each daemon visits some of what one is given", func() bool {
		recorded := 0
		for _, u := range daemontest.RequestedPages(s.web.Log()) {
			if strings.Contains(u, "/more/") {
				recorded++
			}
		}
		if len(given)-recorded < 5*hosts {
			first := len(given)
			for i := range 10 * hosts {
				given = append(given, fmt.Sprintf("http://h%d.example/more/%d", i%hosts, first+i))
			}
			s.postURLs(0, strings.Join(given[first:], "\n"))
		}
		for i, n := range before {
			if s.getProject(i).Stats.Pages < n+int64(pages) {
				return false
			}
		}
		return true
	})
	s.t.Logf("%d URLs were given until each daemon had visited %d", len(given), pages)
	return given
}

// postURLs adds URLs, one a line, through a daemon.
func (s *daemonGroup) postURLs(i int, lines string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost,
		s.clients[i].Server+"/api/v1/projects/shop/urls", strings.NewReader(lines))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.clients[i].Token)
	req.Header.Set("Content-Type", "text/plain")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		s.t.Fatalf("daemon %d: %s", i, res.Status)
	}
}

// While the Redis servers are stopped, four working daemons report it, make no visits, and continue by
// themselves afterwards.
func TestServeFleetWithoutRedis(t *testing.T) {
	if testing.Short() {
		t.Skip("the daemons are separate processes")
	}
	t.Parallel() // it mostly waits
	c := redistest.StartClusterForTest(t, 1, 0)
	s := startDaemonGroup(t, 2, fleetWeb(20, 40), c, ", durability: none, lease: 2s")
	daemontest.WaitUntil(t, "both visit pages", func() bool {
		return s.getProject(0).Stats.Pages > 5 && s.getProject(1).Stats.Pages > 5
	})
	if err := c.Nodes()[0].Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stoppedAt := time.Now()
	for i := range s.clients {
		daemontest.WaitUntil(t, "it is said that Redis is away", func() bool {
			p := s.getProject(i)
			return p.State == api.StateRunning && strings.Contains(p.StateReason, "do not answer")
		})
		if ready := s.readyStatus(i); ready != 503 {
			t.Errorf("readyz of daemon %d: %d", i, ready)
		}
		var problem *api.Problem
		if _, err := s.clients[i].Hosts(t.Context(), "shop", api.HostQuery{}); !errors.As(err, &problem) ||
			problem.Status != 503 {
			t.Errorf("hosts of daemon %d: %v, want a problem of status 503", i, err)
		}
	}
	for _, x := range s.web.Log() {
		if late := x.Start.Sub(stoppedAt); late > engine.SharedBrakesMaxAge {
			t.Errorf("%s was requested when Redis had been away for %v", x.URL, late)
		}
	}
	// Read the counts while no daemon makes a visit: afterwards one may visit all pages that are left
	// before the count of the other is read.
	var before []int64
	for i := range s.clients {
		before = append(before, s.getProject(i).Stats.Pages)
	}
	if err := c.Nodes()[0].Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for i := range s.clients {
		daemontest.WaitUntil(t, "the crawl continues", func() bool {
			p := s.getProject(i)
			return p.StateReason == "" && p.Stats.Pages > before[i] && s.readyStatus(i) == 200
		})
	}
}

// slowWeb returns a web with hosts whose answers take so long that one is always in flight, and other
// hosts.
func slowWeb(hosts int, latency time.Duration) *crawltest.Web {
	var sites []crawltest.Site
	var seeds []string
	for h := range hosts {
		for _, domain := range []string{"braked.example", "free.example"} {
			site := crawltest.Site{Host: fmt.Sprintf("h%d.%s", h, domain),
				Fallback: crawltest.StaticPage(crawltest.HTML("a page"))}
			if domain == "braked.example" {
				site.Latency.Base = latency
			}
			sites = append(sites, site)
			for i := range 200 {
				seeds = append(seeds, fmt.Sprintf("http://%s/%d", site.Host, i))
			}
		}
	}
	web := crawltest.New(sites...)
	web.CrawlSettings.Seeds = seeds
	return web
}

// A brake set on one daemon holds in all, and in a crawl in the foreground: requests in flight are
// aborted, and after SharedBrakesMaxAge no process starts one. When it is lifted or expires, it holds
// nowhere.
func TestServeFleetBrakes(t *testing.T) {
	if testing.Short() {
		t.Skip("the daemons are separate processes")
	}
	t.Parallel() // it mostly waits
	const latency, brakedHosts = 3 * time.Second, 6
	c := redistest.StartClusterForTest(t, 1, 1)
	s := startDaemonGroup(t, 3, slowWeb(brakedHosts, latency), c, "")
	s.project = filepath.Join(s.projectFilesDir, "shop.yaml")
	crawl, stderr, err := s.startProcess(9)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		crawl.Process.Signal(syscall.SIGINT)
		if err := crawl.Wait(); err == nil || crawl.ProcessState.ExitCode() != command.ExitStopped {
			t.Errorf("the crawl ended with %v:\n%s", err, stderr)
		}
	})
	daemontest.WaitUntil(t, "all hosts are visited", func() bool {
		return len(s.openRequests("braked.example")) == brakedHosts
	})
	brakeRequest := api.BrakeRequest{WithSubdomains: true, Stop: true, Reason: "its owner asked"}
	if _, err := s.clients[0].SetBrake(t.Context(), "braked.example", brakeRequest); err != nil {
		t.Fatal(err)
	}
	on := time.Now()
	daemontest.WaitUntil(t, "all requests are broken off", func() bool {
		return len(s.openRequests("braked.example")) == 0
	})
	broken := time.Since(on)
	if broken > latency/2 {
		t.Errorf("requests were broken off after %v", broken)
	}
	for i := range s.clients {
		daemontest.WaitUntil(t, "the brake is on everywhere", func() bool { return len(s.listBrakes(i)) == 1 })
	}
	s.waitForRequests(50) // to other hosts
	for _, x := range s.web.Log() {
		if late := x.Start.Sub(on); strings.Contains(x.URL, "braked.example") && late > engine.SharedBrakesMaxAge {
			t.Errorf("%s was requested %v after the brake was set", x.URL, late)
		}
	}
	t.Logf("requests were broken off within %v", broken)
	if err := s.clients[1].LiftBrake(t.Context(), "braked.example", "it may be visited"); err != nil {
		t.Fatal(err)
	}
	for i := range s.clients {
		daemontest.WaitUntil(t, "the brake is lifted everywhere", func() bool { return len(s.listBrakes(i)) == 0 })
	}
	daemontest.WaitUntil(t, "all hosts are visited again", func() bool {
		return len(s.openRequests("braked.example")) == brakedHosts
	})

	brakeRequest.Expires = time.Now().Add(2 * time.Second)
	if _, err := s.clients[2].SetBrake(t.Context(), "braked.example", brakeRequest); err != nil {
		t.Fatal(err)
	}
	daemontest.WaitUntil(t, "all requests are broken off", func() bool {
		return len(s.openRequests("braked.example")) == 0
	})
	daemontest.WaitUntil(t, "all hosts are visited again", func() bool {
		return len(s.openRequests("braked.example")) == brakedHosts
	})
	for i := range s.clients {
		daemontest.WaitUntil(t, "the brake has expired everywhere", func() bool { return len(s.listBrakes(i)) == 0 })
	}
}

// openRequests returns the requests to a domain that are in flight.
func (s *daemonGroup) openRequests(domain string) (urls []string) {
	for _, x := range s.web.Log() {
		if x.End.IsZero() && strings.Contains(x.URL, domain) && !strings.HasSuffix(x.URL, "/robots.txt") {
			urls = append(urls, x.URL)
		}
	}
	return urls
}

func (s *daemonGroup) listBrakes(i int) []api.Brake {
	s.t.Helper()
	all, err := s.clients[i].Brakes(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// waitForRequests waits until the given number of further requests were made.
func (s *daemonGroup) waitForRequests(n int) {
	s.t.Helper()
	before := len(s.web.Log())
	daemontest.WaitUntil(s.t, "there are more visits", func() bool { return len(s.web.Log()) >= before+n })
}

// All daemons together share a limit. The limit on pages is exact, and starts again from zero each time
// that the project is resumed.
func TestServeFleetLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("the daemons are separate processes")
	}
	t.Parallel() // it mostly waits
	c := redistest.StartClusterForTest(t, 1, 1)
	const limit, rate = 151, 25 // rate is in requests a second, so low that delays of a busy machine hardly count
	s := startDaemonGroup(t, 4, fleetWeb(40, 50), c, "",
		fmt.Sprintf("limits: {pages: %d, requests_per_second: %d}", limit, rate))
	s.waitForState(api.StatePaused)
	if n := len(daemontest.RequestedPages(s.web.Log())); n != limit {
		t.Errorf("%d pages were requested, want %d", n, limit)
	}
	visitsByURL, visitsByProcess := s.visitCounts()
	if len(visitsByURL) != limit {
		t.Errorf("%d pages are recorded, want %d", len(visitsByURL), limit)
	}
	s.checkRate(rate)
	if p := s.getProject(2); !strings.Contains(p.StateReason, "limit of pages") {
		t.Errorf("it pauses for %q", p.StateReason)
	}
	s.doAll(api.ActionResume)
	daemontest.WaitUntil(t, "the crawl continues", func() bool {
		return len(daemontest.RequestedPages(s.web.Log())) > limit
	})
	s.waitForState(api.StatePaused)
	if n := len(daemontest.RequestedPages(s.web.Log())); n != 2*limit {
		t.Errorf("%d pages were requested, want %d", n, 2*limit)
	}
	t.Logf("visits by daemon: %v", visitsByProcess)
}

// checkRate checks that in no period there were more requests than the rate a second permits to all
// daemons together, plus one for each daemon.
func (s *daemonGroup) checkRate(rate float64) {
	s.t.Helper()
	log := s.web.Log()
	slices.SortFunc(log, func(a, b crawltest.Exchange) int { return a.Start.Compare(b.Start) })
	for i, first := range log {
		for j := i; j < len(log); j++ {
			limit := rate*log[j].Start.Sub(first.Start).Seconds() + float64(2*len(s.clients))
			if n := j - i + 1; float64(n) > limit {
				s.t.Errorf("%d requests were made in %v, at most %.1f a second are allowed", n,
					log[j].Start.Sub(first.Start), rate)
				return
			}
		}
	}
}
