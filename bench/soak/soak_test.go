package main

import (
	"bytes"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/web"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// TestMain makes the test binary run as the daemon that the program starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serveArg {
		runDaemon()
	}
	os.Exit(m.Run())
}

// TestRun runs the program for some seconds. The program itself checks that the daemon's counts
// agree with the servers' and that no rule is violated; the test checks that the output has every
// kind of count.
func TestRun(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("requires /proc")
	}
	var out, log bytes.Buffer
	p := soakOptions{
		Web: endlessWeb{Hosts: 24, CrawlerDelay: 100 * time.Millisecond}, Duration: 4 * time.Second,
		SampleInterval: 200 * time.Millisecond,
		Dir:            t.TempDir(), Log: &log,
	}
	if err := run(p, &out); err != nil {
		t.Fatalf("%v\n%s\n%s", err, &out, &log)
	}
	for _, kind := range []string{"requests ", "answers 2xx ", "answers 3xx ", "answers 5xx ", "answers none ",
		"robots.txt: rules ", "robots.txt: disallow_all "} {
		if !strings.Contains(out.String(), kind) {
			t.Errorf("the output has no %s", kind)
		}
	}
	t.Logf("%s", &out)
}

// TestTrend: a series that goes up and down is flat, and a series that grows by 3 % in ten minutes
// is not.
func TestTrend(t *testing.T) {
	const samples, run = 180, 30 * time.Minute
	for _, tt := range []struct {
		name string
		of   func(i int) float64
		flat bool
	}{
		{"constant", func(int) float64 { return 5 }, true},
		{"nothing", func(int) float64 { return 0 }, true},
		{"warming up", func(i int) float64 { return 100 - 90*math.Exp(-float64(i)/12) }, true},
		{"a saw between collections", func(i int) float64 { return 100 + 40*float64(i%4) }, true},
		{"a dip now and then", func(i int) float64 { return 100 - 80*float64(i%30/29) }, true},
		{"falling", func(i int) float64 { return 1000 - float64(i) }, true},
		{"3 % in ten minutes", func(i int) float64 { return 100 + 3*float64(i)/60 }, false},
		{"3 % in ten minutes on a saw", func(i int) float64 {
			return 100 + 40*float64(i%4) + 4.8*float64(i)/60
		}, false},
		{"a step in each quarter", func(i int) float64 { return 100 + 3*float64(i/45) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			values := make([]float64, samples)
			for i := range values {
				values[i] = tt.of(i)
			}
			if got := newTrend(values, run); got.isNotGrowing() != tt.flat {
				t.Errorf("%+v: flat %v, want %v", got, got.isNotGrowing(), tt.flat)
			}
		})
	}
	rising := make([]float64, samples)
	for i := range rising {
		rising[i] = 100 + float64(i)/6 // 10 in ten minutes
	}
	if got := newTrend(rising, run); math.Abs(got.RelativeSlope-10.0/120) > 0.001 ||
		math.Abs(got.FirstThirdMean-104.9) > 0.1 || math.Abs(got.LastThirdMean-124.9) > 0.1 {
		t.Errorf("%+v", got)
	}
}

func TestSparkline(t *testing.T) {
	if got, want := sparkline([]float64{0, 10, 20, 35, 70}, 60), "▁▂▃▅█ 0..70"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCounts: the servers' counts come from every kind of exchange in the log, and counts that
// differ by more than their tolerance are an error.
func TestCounts(t *testing.T) {
	page := pageHTML(7, 4)
	log := []crawltest.Exchange{
		{URL: "http://www.site-7.example/robots.txt", Status: 200, BodyBytes: 50},
		{URL: "http://www.site-3.example/robots.txt", Status: 404, BodyBytes: 10},
		{URL: "http://www.site-5.example/robots.txt", Status: 503, BodyBytes: 20},
		{URL: "http://www.site-7.example" + web.PagePath(4), Status: 200, BodyBytes: 100}, // compressed
		{URL: "http://www.site-7.example" + web.PagePath(5), Status: 200, BodyBytes: 100, Incomplete: true},
		{URL: "http://www.site-7.example" + web.PagePath(6)},
	}
	serverCount := func(all []countPair) map[string]float64 {
		seen := map[string]float64{}
		for _, c := range all {
			seen[c.name] = c.serverCount
		}
		return seen
	}(collectCountPairs(metricFamilies{}, log, &operator{}))
	for what, want := range map[string]float64{
		"requests": 6, "answers 2xx": 2, "answers 4xx": 1, "answers 5xx": 1, "answers none": 2,
		"robots.txt: rules": 1, "robots.txt: allow_all": 1, "robots.txt: disallow_all": 1,
		"bytes of bodies": float64(80 + len(page)),
	} {
		if serverCount[what] != want {
			t.Errorf("%s: %v, want %v", what, serverCount[what], want)
		}
	}
	if err := checkCountPairs(&bytes.Buffer{}, []countPair{{"requests", 6, 6, 0}, {"bytes", 5, 6, 1}}); err != nil {
		t.Error(err)
	}
	if err := checkCountPairs(&bytes.Buffer{}, []countPair{{"requests", 6, 6, 0}, {"bytes", 5, 6, 0}}); err == nil {
		t.Error("no error for counts that differ")
	}
}

// TestQuietPeriods: a request to a host with a brake is an error, and a request near the time when
// the brake was set may have been cut by it.
func TestQuietPeriods(t *testing.T) {
	now := time.Now()
	o := operator{hostQuietPeriods: []quietPeriod{{"a brake was on", []string{"www.site-1.example"}, now,
		now.Add(time.Second), now.Add(-time.Millisecond)}}}
	at := func(after time.Duration, host int) crawltest.Exchange {
		return crawltest.Exchange{URL: "http://" + web.Host(host) + "/", Start: now.Add(after)}
	}
	if err := o.checkQuietPeriods([]crawltest.Exchange{at(-1, 1), at(time.Millisecond, 2),
		at(2*time.Second, 1)}); err != nil {
		t.Error(err)
	}
	if err := o.checkQuietPeriods([]crawltest.Exchange{at(time.Millisecond, 1)}); err == nil {
		t.Error("no error for a request to a host with a brake")
	}
	if got := []float64{o.maxRequestsCutByBrakes(-1), o.maxRequestsCutByBrakes(0), o.maxRequestsCutByBrakes(1),
		o.maxRequestsCutByBrakes(2)}; !slices.Equal(got, []float64{0, 0, 1, 1}) {
		t.Errorf("with one brake, %v requests may have been cut before they reached the server", got)
	}
	for _, tt := range []struct {
		host        int
		start, took time.Duration
		mayBeBraked bool
	}{
		{1, -time.Second, 999 * time.Millisecond, true},
		{1, -time.Second, 5 * time.Second, true},
		{1, -time.Minute, time.Second, false},
		{1, time.Second, time.Second, false},
		{2, -time.Second, 999 * time.Millisecond, false},
	} {
		x := at(tt.start, tt.host)
		x.End = x.Start.Add(tt.took)
		if got := o.mayHaveBeenCutByBrake(x); got != tt.mayBeBraked {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// TestWeb: every special kind of page occurs, and at most a tenth of the pages is special.
func TestWeb(t *testing.T) {
	const pages = 10_000
	kinds := map[int]int{}
	special := 0
	for n := range pages {
		kind := pageResponseKind(n%100, n/100)
		kinds[kind]++
		if 1 <= kind && kind <= 7 {
			special++
		}
		if got, ok := pageNumber(web.PagePath(n)); !ok || got != n {
			t.Fatalf("%s is page %d, want %d", web.PagePath(n), got, n)
		}
	}
	if special > pages/10 {
		t.Errorf("%d of %d pages are special", special, pages)
	}
	for kind := 1; kind <= 7; kind++ {
		if kinds[kind] < pages/200 {
			t.Errorf("%d of %d pages are of kind %d", kinds[kind], pages, kind)
		}
	}
}
