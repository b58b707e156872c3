package crawler_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/storage"
)

// Sizes and seeds of the tests at scale.
var (
	fullSize   = flag.Bool("full", false, "run the proofs at scale at their full size")
	randomSeed = flag.Uint64("seed", 1, "seed of what the proofs at scale leave to chance")
)

// A directFetcher is a Fetcher that reads from a web in memory without net/http, so that a crawl of
// 200,000 requests takes seconds. The real fetchers have their own tests.
type directFetcher struct {
	web     *crawltest.Web
	timeout time.Duration
}

func (d directFetcher) Fetch(ctx context.Context, t crawler.Ticket) (*decorum.Response, error) {
	url := t.URL().String()
	if err := t.Redeem(url); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "testbot/1.0 (+https://bot.test/)")
	start := time.Now()
	res, err := d.web.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	return &decorum.Response{URL: t.URL(), Status: res.StatusCode, Header: res.Header, Body: body,
		Start: start, End: time.Now()}, nil
}

// newDirectCrawl is newCrawl with a directFetcher.
func newDirectCrawl(t *testing.T, web *crawltest.Web, store storage.Store, seeds ...string) *crawler.Crawler {
	t.Helper()
	c := newCrawl(t, web, store, seeds...)
	c.Fetcher = directFetcher{web: web, timeout: 30 * time.Second}
	return c
}

// A randomWeb is a web of hosts with random delays and latencies, and the least time in which it
// can be crawled, computed from what its sites ask for and how long they take, not from anything
// that the crawler computes.
type randomWeb struct {
	web       *crawltest.Web
	seeds     []string
	requests  int
	hostTimes map[string]time.Duration // per host: its answers, and the rests between them
	totalTime time.Duration            // the answers of all hosts
}

// A durationRange bounds a random duration.
type durationRange struct{ min, max time.Duration }

func (s durationRange) random(rng *rand.Rand) time.Duration { return randomDuration(rng, s.min, s.max) }

func randomDuration(rng *rand.Rand, lo, hi time.Duration) time.Duration {
	return lo + time.Duration(rng.Int64N(int64(hi-lo)))
}

// newRandomWeb returns hosts with the given number of requests each, robots.txt included. Every
// second host asks for a Crawl-delay. All answers of a host take the same time, so that their order
// makes no difference.
func newRandomWeb(rng *rand.Rand, hosts, requests int, minDelay time.Duration, delays,
	latencies durationRange) *randomWeb {
	c := &randomWeb{requests: hosts * requests, hostTimes: map[string]time.Duration{}}
	sites := make([]crawltest.Site, hosts)
	for i := range sites {
		host := fmt.Sprintf("h%d.test", i)
		latency := latencies.random(rng)
		text, delay := "User-agent: *\nDisallow: /shut\n", time.Duration(0)
		if rng.IntN(2) == 0 {
			delay = delays.random(rng).Truncate(time.Millisecond)
			text += fmt.Sprintf("Crawl-delay: %.3f\n", delay.Seconds())
		}
		links := []string{"/shut"}
		for n := range requests - 1 {
			links = append(links, fmt.Sprintf("/%d", n))
		}
		sites[i] = crawltest.Site{
			Host: host, Latency: crawltest.Latency{Base: latency},
			Robots:   robotsText(text, delay, func(p string) bool { return p == "/shut" }),
			Pages:    map[string]crawltest.PageFunc{"/0": pageWithLinks(links...)},
			Fallback: crawltest.StaticPage(crawltest.HTML("a page")),
		}
		rest := max(minDelay, delay, latency) // by default at least as long as the answer took
		c.hostTimes[host] = time.Duration(requests)*latency + time.Duration(requests-1)*rest
		c.totalTime += time.Duration(requests) * latency
		c.seeds = append(c.seeds, "http://"+host+"/0")
	}
	c.web = crawltest.New(sites...)
	return c
}

// minTime returns a lower bound for the time of a polite crawl with so many workers: no host ends
// before its own chain of answers and rests, and no worker makes two visits at a time.
func (c *randomWeb) minTime(workers int) time.Duration {
	return max(c.maxHostTime(), c.totalTime/time.Duration(workers))
}

func (c *randomWeb) maxHostTime() (maxTime time.Duration) {
	for _, hostTime := range c.hostTimes {
		maxTime = max(maxTime, hostTime)
	}
	return maxTime
}

// TestCrawlAtScale: at the size of a real crawl no host is visited too early, and hardly any time
// is lost, whether the delays or the workers are the bottleneck. Where both are just sufficient,
// the least time is unknown, so the crawl is judged but not timed.
func TestCrawlAtScale(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // the log is large and stays in memory
	rng := rand.New(rand.NewPCG(*randomSeed, 0))
	for _, tt := range []struct {
		name     string
		hosts    int     // at full size
		always   int     // otherwise
		workers  float64 // as a fraction of the workers that the delays could keep busy
		measured bool
	}{
		{"delays rule", 10_000, 1_000, 2 + 6*rng.Float64(), true},
		{"workers rule", 10_000, 500, 0.5 / (1 + 3*rng.Float64()), true},
		{"neither rules", 10_000, 500, 0.5 + 1.5*rng.Float64(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hosts := tt.always
			switch {
			case *fullSize:
				hosts = tt.hosts
			case raceEnabled:
				hosts = tt.always / 5
			}
			synctest.Test(t, func(t *testing.T) {
				const minDelay = time.Second
				generated := newRandomWeb(rand.New(rand.NewPCG(*randomSeed, 1)), hosts, 20, minDelay,
					durationRange{0, 5 * time.Second}, durationRange{time.Millisecond, 3 * time.Second})
				busy := float64(generated.totalTime) / float64(generated.maxHostTime())
				crawl := newDirectCrawl(t, generated.web, newMemoryStore(), generated.seeds...)
				crawl.Settings.Workers = max(1, int(tt.workers*busy))
				ratio := generated.crawl(t, crawl, minDelay)
				if tt.measured && ratio > 1.02 {
					t.Errorf("it took %.4f of the least time, want at most 1.02", ratio)
				}
			})
		})
	}
}

// crawl crawls the web, asks the judge, and returns the time it took as a multiple of minTime.
func (c *randomWeb) crawl(t *testing.T, crawl *crawler.Crawler, minDelay time.Duration) (ratio float64) {
	t.Helper()
	if err := crawl.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := c.web.Judge(crawltest.JudgeOptions{MinDelay: minDelay, RequiredProductToken: "testbot"})
	if !r.OK() || r.Requests != c.requests {
		t.Errorf("%d requests, want %d; the judge says:\n%v", r.Requests, c.requests, r)
	}
	workers := crawl.Settings.Workers
	minTime := c.minTime(workers)
	ratio = float64(r.Duration) / float64(minTime)
	t.Logf("seed %d: %d hosts, %d workers: %d requests in %v, at least %v: ratio %.5f, %d offences",
		*randomSeed, len(r.Hosts), workers, r.Requests, r.Duration, minTime, ratio, len(r.Violations))
	return ratio
}

// TestCrawlAtScaleOverSockets: the same with the real fetcher and net/http, to a server on
// loopback. The time is checked only at full size, where a busy machine makes little difference.
func TestCrawlAtScaleOverSockets(t *testing.T) {
	hosts, requests, minDelay := 50, 20, 100*time.Millisecond
	if *fullSize {
		hosts, requests, minDelay = 500, 100, 500*time.Millisecond
	}
	generated := newRandomWeb(rand.New(rand.NewPCG(*randomSeed, 3)), hosts, requests, minDelay,
		durationRange{0, minDelay * 3 / 2}, durationRange{time.Millisecond, 20 * time.Millisecond})
	server, err := generated.web.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	crawl := newCrawl(t, generated.web, newMemoryStore(), generated.seeds...)
	crawl.Fetcher, err = httpfetch.New(httpfetch.Config{UserAgent: "testbot/1.0 (+https://bot.test/)",
		ConnectToRules: []string{"::" + server.Addr}, AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	crawl.Policy.Delay = minDelay
	crawl.Settings.Workers = 2 * hosts
	if ratio := generated.crawl(t, crawl, minDelay); *fullSize && ratio > 1.02 {
		t.Errorf("it took %.4f of the least time, want at most 1.02", ratio)
	}
}
