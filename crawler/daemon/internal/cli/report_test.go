package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
)

// crawlTown crawls the test web until it is idle: a while after the requests for the last page of the
// shop and for every robots.txt.
func crawlTown(t *testing.T) *daemontest.WebFixture {
	t.Helper()
	v := daemontest.NewWebFixture(t, daemontest.TownSites()...)
	signals := make(chan os.Signal, 1)
	go func() {
		for len(v.Web.Log()) < len(daemontest.ShopURLs)+len(daemontest.TownSites()) && t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		signals <- os.Interrupt
	}()
	runCommandWithSignals(t, signals, v.CrawlArgs("--delay=20ms", "http://shop.example/", "http://slow.example/",
		"http://broken.example/")...).
		want(t, command.ExitStopped)
	return v
}

// decodeJSON decodes one JSON value.
func decodeJSON[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return v
}

// Every field of the report is right, by the log of the servers.
func TestReport(t *testing.T) {
	t.Parallel()
	v := crawlTown(t)
	r := runCommand(t, "report", "--data", v.DataDir(), "--format=json")
	r.want(t, command.ExitDone)
	got := decodeJSON[map[string]any](t, r.stdout)
	hosts := map[string]map[string]any{}
	for _, h := range got["hosts"].([]any) {
		h := h.(map[string]any)
		hosts[h["host"].(string)] = h
	}
	var spent, requests, minDelay float64 = 0, 0, 1e9
	var end time.Time
	for _, x := range v.Web.Log() {
		if !strings.HasPrefix(x.URL, "http://shop.example/") {
			continue
		}
		if delay := x.Start.Sub(end).Seconds() * 1000; !end.IsZero() {
			minDelay = min(minDelay, delay)
		}
		requests, end = requests+1, x.End
		spent += x.End.Sub(x.Start).Seconds()
	}
	h := hosts["shop.example"]
	number := func(field string) float64 { return h[field].(float64) }
	// Fields that depend on the clock are compared with the server's log.
	if n := number("least_gap_ms"); n < 20 || n > minDelay+10 {
		t.Errorf("least gap %v ms, the server saw %v", n, minDelay)
	}
	if n := number("median_gap_ms"); n < number("least_gap_ms") || n > 500 {
		t.Errorf("median gap %v ms", n)
	}
	if n := number("spent_ms"); n < spent*1000 {
		t.Errorf("%v ms in requests, the server was busy for %v s", n, spent)
	}
	if at, err := time.Parse(time.RFC3339Nano, h["last_visit"].(string)); err != nil || at.Before(end) ||
		time.Since(at) > time.Minute {
		t.Errorf("last visit %v, %v; the server's was at %v", at, err, end)
	}
	if n := number("owed_ms"); n < 20 {
		t.Errorf("owed %v ms", n)
	}
	if sent, received := number("wire_bytes_sent"), number("wire_bytes_received"); sent < 100*requests ||
		received < number("bytes")+100*requests {
		t.Errorf("%v bytes sent and %v received on the wire, for %v requests", sent, received, requests)
	}
	if n := number("connections"); n < 1 || n > requests {
		t.Errorf("%v connections", n)
	}
	for _, field := range []string{"wire_bytes_sent", "wire_bytes_received", "connections"} {
		sum := 0.0
		for _, h := range hosts {
			sum += h[field].(float64)
		}
		if got[field] != sum {
			t.Errorf("%s: %v in all, the sum of the hosts is %v", field, got[field], sum)
		}
	}
	for _, field := range []string{"least_gap_ms", "median_gap_ms", "spent_ms", "last_visit",
		"owed_ms", "bytes", "last_status", "wire_bytes_sent", "wire_bytes_received", "connections"} {
		delete(h, field)
	}
	till := map[string]any{"urls": 1.0, "why": "robots",
		"robots": "http://shop.example/robots.txt", "rule": "disallow: /till",
		"line": 3.0, "example": "http://shop.example/till"}
	if diff := cmp.Diff(map[string]any{
		"host": "shop.example", "state": "done", "declared_delay_ms": 0.0, "configured_delay_ms": 20.0,
		"gaps": requests - 1, "shortfall_ms": 0.0, "strikes": 0.0, "slots": 1.0,
		"requests": requests, "pages": 5.0, "failures": 0.0, "full_handshakes": 0.0, "resumed_handshakes": 0.0,
		"not_modified": 0.0, "saved_by_compression": 0.0, "saved_by_revalidation": 0.0,
		"known": 6.0, "done": 5.0, "queued": 0.0, "resting": 0.0, "parked": 1.0, "blocked_by_robots": 1.0,
		"blocked_by_tdmrep": 0.0, "withheld": 0.0, "out_of_scope": 0.0,
		"coverage": 5.0 / 6, "address": "127.0.0.1", "origins": []any{"http://shop.example"}, "refusals": []any{till},
	}, h); diff != "" {
		t.Errorf("shop.example (-want +got):\n%s", diff)
	}
	for host, want := range map[string][2]string{
		"slow.example":   {"set aside", "its Crawl-delay of 2h is longer than max_crawl_delay, 1h"},
		"broken.example": {"held", "robots.txt: status 503"},
	} {
		h := hosts[host]
		if h["state"] != want[0] || h["why"] != want[1] || h["queued"] != 1.0 ||
			h["coverage"] != 0.0 || h["held_until"] == nil {
			t.Errorf("%s: %v, want %q", host, h, want)
		}
	}
	if hosts["slow.example"]["declared_delay_ms"] != 7_200_000.0 || hosts["broken.example"]["failures"] != 1.0 {
		t.Errorf("slow %v, broken %v", hosts["slow.example"], hosts["broken.example"])
	}
	at := got["at"].(string)
	for _, field := range []string{"at", "hosts", "bytes", "spent_ms", "wire_bytes_sent", "wire_bytes_received",
		"connections"} {
		delete(got, field)
	}
	if diff := cmp.Diff(map[string]any{
		"host_count": 3.0, "origin_count": 3.0, "states": map[string]any{"done": 1.0, "held": 1.0, "set aside": 1.0},
		"max_crawl_delay_ms": 3_600_000.0, "requests": requests + 2, "pages": 5.0, "failures": 1.0, "shortfall_ms": 0.0,
		"full_handshakes": 0.0, "resumed_handshakes": 0.0, "not_modified": 0.0, "saved_by_compression": 0.0,
		"saved_by_revalidation": 0.0, "known": 8.0,
		"done": 5.0, "queued": 2.0, "resting": 0.0, "parked": 1.0, "blocked_by_robots": 1.0,
		"blocked_by_tdmrep": 0.0, "withheld": 0.0, "out_of_scope": 0.0,
		"coverage": 5.0 / 8, "refusals": []any{till},
		"refused": []any{map[string]any{"host": "", "reason": "within", "count": 1.0,
			"why":     "another host than the seeds'",
			"example": "http://elsewhere.example/"}},
	}, got); diff != "" {
		t.Errorf("totals at %s (-want +got):\n%s", at, diff)
	}
}

func TestReportForms(t *testing.T) {
	t.Parallel()
	v := crawlTown(t)
	report := func(args ...string) commandResult {
		return runCommand(t, append([]string{"report", "--data", v.DataDir()}, args...)...)
	}
	report().want(t, command.ExitDone, "hosts     3 (1 held, 1 set aside, 1 done)", "no delay was cut short",
		"slow.example is set aside until ", "1 URL  disallow: /till  http://shop.example/robots.txt (line 3)")
	r := report("--limit=1")
	r.want(t, command.ExitDone, "… and 2 more hosts")
	if strings.Contains(r.stdout, "\nshop.example") {
		t.Error("the stalled host does not come first")
	}
	report("--host=Shop.Example").want(t, command.ExitDone, "state     done", "declared -, configured 20ms",
		" sent on the wire, connections: ", " (TLS handshakes: 0 full, 0 resumed)",
		"0 B by compression, 0 B by answers 304 (0)",
		"coverage  83.3 % of the known URLs in scope are done; failed requests: 0\n", "disallow: /till")
	report("--host=slow.example").want(t, command.ExitDone, "set aside until ", ": its Crawl-delay of 2h is longer")

	runExplain(t, v, "--data", v.DataDir(), "http://slow.example/").want(t, command.ExitDone,
		"slow.example is set aside until ",
		": its Crawl-delay of 2h is longer than max_crawl_delay, 1h")

	lines := strings.Split(strings.TrimSpace(report("--format=jsonl").stdout), "\n")
	var names []string
	for _, line := range lines {
		l := decodeJSON[struct{ Type, Host string }](t, line)
		names = append(names, l.Type+" "+l.Host)
	}
	if strings.Contains(lines[0], `"hosts":`) {
		t.Errorf("the totals name the hosts: %s", lines[0])
	}
	slices.Sort(names[1:])
	if want := []string{"totals ", "host broken.example", "host shop.example",
		"host slow.example"}; !slices.Equal(names, want) {
		t.Errorf("lines %q, want %q", names, want)
	}
	report("--host=none.example").want(t, command.ExitFailed, "knows no host none.example")
	report("--host=a/b").want(t, command.ExitUsage, `--host: "a/b" is not a host name such as example.com`)
	report("--format=xml").want(t, command.ExitUsage, `--format: "xml" is not one of table, json, jsonl`)
	report("--limit=-1").want(t, command.ExitUsage, "--limit: -1")
}

// The report distinguishes URLs parked by a narrower scope from URLs that robots.txt disallows.
func TestReportSeparatesScopeFromRobots(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	runCommand(t, v.CrawlArgs("http://shop.example/", "--max-pages=1")...).want(t, command.ExitDone)
	runCommand(t, v.CrawlArgs("--resume", "--max-pages=0", "--max-depth=0")...).want(t, command.ExitDone)
	r := runCommand(t, "report", "--data", v.DataDir(), "--format=json")
	got := decodeJSON[struct {
		OutOfScope int `json:"out_of_scope"`
		Blocked    int `json:"blocked_by_robots"`
		Coverage   float64
		Refusals   []api.RefusalSummary
	}](t, r.stdout)
	if len(got.Refusals) != 1 || got.Refusals[0].URLCount != 4 || got.Refusals[0].RefusedBy != "scope" ||
		got.Refusals[0].Rule != "deeper than 0 links" {
		t.Errorf("refusals %+v", got.Refusals)
	}
	if got.OutOfScope != 4 || got.Blocked != 0 || got.Coverage != 1 {
		t.Errorf("%+v", got)
	}
}

// The report of a host has the project's overrides for it.
func TestReportShowsOverrides(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	runCommand(t, v.CrawlArgs("http://shop.example/", "--max-pages=1")...).want(t, command.ExitDone)
	file := filepath.Join(v.DataDir(), datadir.ProjectFile)
	d, err := project.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(d.Project)
	if err != nil {
		t.Fatal(err)
	}
	with := strings.Replace(string(text), "  hosts: {}\n", "  hosts: {shop.example: {delay: 5s}}\n", 1)
	if err := os.WriteFile(file, []byte(with), 0o600); err != nil {
		t.Fatal(err)
	}
	runCommand(t, "report", "--data", v.DataDir(), "--host=shop.example").want(t,
		command.ExitDone, "override  delay: 5s")
	r := runCommand(t, "report", "--data", v.DataDir(), "--format=json")
	got := decodeJSON[struct {
		Hosts []struct{ Override map[string]any }
	}](t, r.stdout)
	if len(got.Hosts) != 1 || got.Hosts[0].Override["delay"] != "5s" {
		t.Errorf("%+v", got)
	}
}

// report and the frontier commands do not change the crawl, and reject one that is in use.
func TestInspectionChangesNothing(t *testing.T) {
	t.Parallel()
	v := crawlTown(t)
	looks := [][]string{
		{"report"}, {"frontier", "stats"}, {"frontier", "list"}, {"frontier", "export"},
		{"frontier", "add", "http://shop.example/new"},
	}
	export := func() (lines []string) {
		r := runCommand(t, "frontier", "export", "--data", v.DataDir())
		r.want(t, command.ExitDone)
		return strings.Split(r.stdout, "\n")[1:] // the first line has the time
	}
	before, files := export(), readTree(t, v.DataDir())
	for _, args := range looks[:4] {
		runCommand(t, append(args, "--data", v.DataDir())...).want(t, command.ExitDone)
	}
	if diff := cmp.Diff(before, export()); diff != "" {
		t.Errorf("the state has changed:\n%s", diff)
	}
	for name, text := range readTree(t, v.DataDir()) {
		if text != files[name] && !strings.HasSuffix(name, ".db") {
			t.Errorf("%s has changed", name)
		}
	}
	lock, err := datadir.StateDir(v.DataDir()).Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	none := filepath.Join(v.Dir, "none")
	for _, args := range looks {
		runCommand(t, append(args, "--data", v.DataDir())...).want(t, command.ExitFailed,
			fmt.Sprintf("in use by process %d: %s; stop it first", os.Getpid(), v.DataDir()))
		runCommand(t, append(args, "--data", none)...).want(t, command.ExitUsage, none+" holds no crawl")
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("the command created a data directory")
	}
}

// A report between a kill and --resume does not shorten the delays that the hosts are owed after a
// crash.
func TestReportAfterKill(t *testing.T) {
	t.Parallel()
	const delay = 800 * time.Millisecond
	var sites []crawltest.Site
	for _, host := range []string{"a.example", "b.example", "c.example"} {
		sites = append(sites, crawltest.Site{Host: host,
			Fallback: crawltest.StaticPage(crawltest.HTML("<a href=/1>1</a><a href=/2>2</a>"))})
	}
	v := daemontest.NewWebFixture(t, sites...)
	v.Web.CrawlSettings.Seeds = []string{"http://a.example/", "http://b.example/", "http://c.example/"}
	flags := []string{"--data", v.DataDir(), "--contact=mailto:bot@example.com", "--allow-private",
		"--connect-to=::" + v.Addr,
		"--delay", delay.String(), "--progress=none"}
	c, stderr := newCommandProcess(t, append(append([]string{"crawl"}, flags...), v.Web.CrawlSettings.Seeds...)...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	// Killed right after answers that are not on disk yet.
	for n := 0; n < 6; n = len(v.Web.Log()) {
		time.Sleep(5 * time.Millisecond)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil || c.ProcessState.Exited() {
		t.Fatalf("the process ended before its kill: %v\n%s", err, stderr)
	}
	if err := v.Server.AwaitDisconnects(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		runCommand(t, "report", "--data", v.DataDir()).want(t, command.ExitDone)
	}
	restart := time.Now()
	runCommand(t, append([]string{"crawl", "--resume"}, flags...)...).want(t, command.ExitDone)
	if r := v.Web.Judge(crawltest.JudgeOptions{MinDelay: delay, RequiredProductToken: "decorum",
		RestartTimes: []time.Time{restart}}); !r.OK() {
		t.Errorf("the judge says:\n%s", r)
	}
}
