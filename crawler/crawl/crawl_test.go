package crawl_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawl"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// quietConfig returns a Config for a web in memory, without a log.
func quietConfig(web *crawltest.Web) crawl.Config {
	return crawl.Config{Agent: "testbot/1.0", Contact: "mailto:bot@example.com",
		Seeds: []string{"http://library.example/"}, FetchConfig: httpfetch.Config{Transport: web},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

// TestResume: a crawl that a limit ended resumes from its directory, visits no page twice, and keeps a
// ledger that can be verified.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := libraryWeb()
		var titles []string
		cfg := quietConfig(web)
		cfg.StateDir, cfg.KeepLedger = filepath.Join(t.TempDir(), "new", "state"), true
		cfg.OnPage = func(_ context.Context, v *crawler.Visit) error {
			titles = append(titles, v.Title())
			return nil
		}
		for _, want := range []error{crawler.ErrPages, nil, nil} {
			cfg.Settings.MaxPages = 1
			if want == nil {
				cfg.Settings.MaxPages = 0
			}
			if err := crawl.Run(t.Context(), cfg); !errors.Is(err, want) {
				t.Errorf("Run returned %v, want %v", err, want)
			}
		}
		if want := []string{"Library", "Hours"}; !slices.Equal(titles, want) {
			t.Errorf("OnPage got %q, want %q", titles, want)
		}
		report, err := ledger.Verify(filepath.Join(cfg.StateDir, "ledger"), ledger.VerifyOptions{})
		if err != nil || !report.OK() {
			t.Errorf("the ledger: %v, %+v", err, report)
		}
		if r := web.Judge(crawltest.JudgeOptions{RequiredProductToken: "testbot"}); !r.OK() {
			t.Error(r)
		}
	})
}

// TestOnPage: an error of OnPage has the meaning of a Handler's, calls do not overlap, and a page that is
// not 2xx is not passed.
// TestOtherSeeds: runs with other seeds, and with none, keep the URLs that an earlier run has queued.
func TestOtherSeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := libraryWeb()
		cfg := quietConfig(web)
		cfg.StateDir, cfg.Settings.MaxPages = t.TempDir(), 1
		for _, run := range []struct {
			seeds []string
			pages int
		}{{cfg.Seeds, 1}, {[]string{"http://none.test/"}, 0}, {nil, 0}, {cfg.Seeds, 1}} {
			c := cfg
			c.Seeds = run.seeds
			pages := 0
			c.OnPage = func(context.Context, *crawler.Visit) error { pages++; return nil }
			err := crawl.Run(t.Context(), c)
			if pages != run.pages {
				t.Errorf("a run with the seeds %v had %d pages, want %d (%v)", run.seeds, pages, run.pages, err)
			}
		}
		if r := web.Judge(crawltest.JudgeOptions{RequiredProductToken: "testbot"}); !r.OK() {
			t.Error(r)
		}
	})
}

func TestOnPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, isRunning := 0, false
		web := crawltest.New(crawltest.Site{Host: "library.example"}, crawltest.Site{Host: "other.example",
			Fallback: crawltest.StaticPage(crawltest.HTML("<a href=/2>"))})
		cfg := quietConfig(web)
		cfg.Seeds = append(cfg.Seeds, "http://other.example/1", "http://other.example/3")
		cfg.OnPage = func(_ context.Context, v *crawler.Visit) error {
			if isRunning {
				t.Error("OnPage is called while it runs")
			}
			isRunning = true
			defer func() { isRunning = false }()
			calls++
			if v.URL().PathAndQuery() == "/1" {
				return fmt.Errorf("not now")
			}
			return nil
		}
		c, err := crawl.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.Run(t.Context()), c.Close()); err != nil {
			t.Error(err)
		}
		if calls != 5 { // /1 three times, /2 and /3
			t.Errorf("OnPage was called %d times for %d pages, want 5", calls, c.Stats().Pages)
		}
	})
}

// TestInvalidConfig: Open returns an error that names the field, and leaves nothing open.
func TestInvalidConfig(t *testing.T) {
	other, err := robots.NewAgent("otherbot")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for want, set := range map[string]func(*crawl.Config){
		"agent":                 func(c *crawl.Config) { c.Agent = "" },
		"contact":               func(c *crawl.Config) { c.Contact = "me" },
		`seed "://"`:            func(c *crawl.Config) { c.Seeds = []string{"://"} },
		"expected a URL":        func(c *crawl.Config) { c.Seeds = []string{"library.example"} },
		"with http or https":    func(c *crawl.Config) { c.Seeds = []string{"ftp://library.example/"} },
		"OnPage and Handler":    func(c *crawl.Config) { c.OnPage, c.Handler = noPage, noHandler },
		"needs a StateDir":      func(c *crawl.Config) { c.StateDir, c.KeepLedger = "", true },
		"must not be negative":  func(c *crawl.Config) { c.Settings.MaxPages = -1 },
		"FetchConfig.UserAgent": func(c *crawl.Config) { c.FetchConfig.UserAgent = "otherbot/1.0 (+https://x.test/)" },
		"From":                  func(c *crawl.Config) { c.FetchConfig.From = "you@x.test" },
		"RobotsConfig.Agent":    func(c *crawl.Config) { c.RobotsConfig.Agent = other },
		"Settings.ProductToken": func(c *crawl.Config) { c.Settings.ProductToken = "otherbot" },
		"":                      func(*crawl.Config) {},
	} {
		cfg := quietConfig(libraryWeb())
		cfg.StateDir = dir
		set(&cfg)
		c, err := crawl.Open(cfg)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Open returned %v, want an error with %q", err, want)
		}
		if err == nil {
			err = c.Close()
		}
		if want == "" && err != nil {
			t.Error(err)
		}
	}
}

// TestNoSeeds: a crawl that has nothing to visit says so.
func TestNoSeeds(t *testing.T) {
	cfg := quietConfig(libraryWeb())
	cfg.Seeds = nil
	if err := crawl.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "Seeds is empty") {
		t.Errorf("Run returned %v, want an error that names Seeds", err)
	}
}

// TestNoPage: Run returns an error if all seeds are missing or disallowed, and nil if earlier runs have
// visited all seeds.
func TestNoPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := quietConfig(libraryWeb())
		cfg.StateDir = t.TempDir()
		cfg.Seeds = []string{"http://library.example/missing", "http://library.example/loans"}
		err := crawl.Run(t.Context(), cfg)
		for _, want := range []string{"no seed led to a page", "http://library.example/missing answers with status 404",
			"http://library.example/loans is closed by robots.txt: disallow: /loans"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Run returned %v, want an error with %q", err, want)
			}
		}
		if err := crawl.Run(t.Context(), cfg); err != nil {
			t.Errorf("the second run returned %v", err)
		}
		cfg.Seeds = append(cfg.Seeds, "http://library.example/hours")
		if err := crawl.Run(t.Context(), cfg); err != nil {
			t.Errorf("a run with a page returned %v", err)
		}
	})
}

// TestNoConnection: Run names the seed and the reason if no visit may connect to its host.
func TestNoConnection(t *testing.T) {
	cfg := quietConfig(nil)
	cfg.FetchConfig.Transport, cfg.Seeds = nil, []string{"http://127.0.0.1:1/"}
	var refused atomic.Int64
	cfg.Hooks.Visited = func(*crawler.Visit) { refused.Add(1) }
	err := crawl.Run(t.Context(), cfg)
	const want = "http://127.0.0.1:1/ cannot be visited: "
	if !errors.Is(err, frontier.ErrOnlySuspendedLeft) || !strings.Contains(err.Error(), want) {
		t.Errorf("Run returned %v, want ErrOnlySuspendedLeft with %q", err, want)
	}
	if refused.Load() == 0 {
		t.Error("the Visited hook of the configuration was not called")
	}
}

// TestSeedRedirects: a seed redirects to another host, whose pages are then visited.
func TestSeedRedirects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(
			crawltest.Site{Host: "library.example",
				Fallback: crawltest.StaticPage(crawltest.Redirect(301, "http://www.library.example/"))},
			crawltest.Site{Host: "www.library.example",
				Fallback: crawltest.StaticPage(crawltest.HTML("<a href=/hours></a><a href=http://other.example/></a>"))})
		cfg := quietConfig(web)
		var pages []string
		cfg.OnPage = func(_ context.Context, v *crawler.Visit) error {
			pages = append(pages, v.URL().String())
			return nil
		}
		if err := crawl.Run(t.Context(), cfg); err != nil {
			t.Error(err)
		}
		if want := []string{"http://www.library.example/", "http://www.library.example/hours"}; !slices.Equal(pages, want) {
			t.Errorf("OnPage got %q, want %q", pages, want)
		}
	})
}

func noPage(context.Context, *crawler.Visit) error { return nil }

func noHandler(context.Context, *crawler.Visit) ([]crawler.LinkToVisit, error) { return nil, nil }
