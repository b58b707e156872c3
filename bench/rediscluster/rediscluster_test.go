package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"testing"
	"time"
)

// TestMain makes the test binary run as the workers that the program starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == crawlArg {
		runWorker()
	}
	os.Exit(m.Run())
}

// TestRun: the program prints every row of small tables. The program itself checks that all URLs are
// leased and acked, and that workers visit no host too early.
func TestRun(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil || runtime.GOOS != "linux" || testing.Short() {
		t.Skip("requires Linux, redis-server, and some seconds")
	}
	var out bytes.Buffer
	p := benchmarkOptions{ClusterLayouts: "1+0", CallerCounts: "1,20", MemoryBenchmarkHostCounts: "50",
		WorkerCounts: "2", URLs: 500, Hosts: 50, TempDir: t.TempDir(),
		WorkerBenchmarkConfig: workerBenchmarkConfig{Hosts: 40, ConcurrentRequestsPerWorker: 4,
			Latency: 20 * time.Millisecond, Delay: 100 * time.Millisecond, MeasureDuration: 500 * time.Millisecond}}
	if err := run(p, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, row := range []string{
		`1\+0 +1 +discover scattered +\d+ `, `1\+0 +20 +discover paged +\d+ `,
		`1\+0 +20 +lease +\d+ `, `1\+0 +20 +ack +\d+ `,
		`50 +500 +\d+ +\d+ `, `2 +\d+\.\d +1\.00 `,
	} {
		if !regexp.MustCompile(`(?m)^ *` + row).MatchString(out.String()) {
			t.Errorf("no row %q in\n%s", row, &out)
		}
	}
}

// TestLayouts: a layout is valid only if every master has equally many replicas.
func TestLayouts(t *testing.T) {
	if masters, replicas, err := parseLayout("3+6"); masters != 3 || replicas != 6 || err != nil {
		t.Errorf("3+6: %d+%d (%v)", masters, replicas, err)
	}
	for _, bad := range []string{"", "3", "0+0", "3+1", "1+-1", "a+b"} {
		if _, _, err := parseLayout(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

// TestOrders: the orders have as many links of one host on a page as the program's documentation
// says.
func TestOrders(t *testing.T) {
	const hosts = 1000
	for _, o := range orders {
		maxPerHost := 0
		urls, linksByHost := map[string]bool{}, map[string]int{}
		for n := range 2 {
			clear(linksByHost)
			for _, e := range o.pageLinks(n, hosts) {
				urls[e.URL.String()] = true
				linksByHost[e.URL.Origin().Host()]++
				maxPerHost = max(maxPerHost, linksByHost[e.URL.Origin().Host()])
			}
		}
		if want := map[string]int{"scattered": 1, "paged": linksPerPage * 4 / 5}[o.name]; maxPerHost < want ||
			maxPerHost > want+1 || len(urls) != 2*linksPerPage {
			t.Errorf("%s: %d URLs of two pages, at most %d of a host, want %d", o.name, len(urls), maxPerHost, want)
		}
	}
}
