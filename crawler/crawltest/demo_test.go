package crawltest

import (
	"net/http"
	"slices"
	"testing"
)

// expectedFailureStatus holds the pages of the demo web that never answer 2xx or 3xx.
var expectedFailureStatus = map[string]int{
	"http://meadow.example/butterflies": http.StatusNotFound,
	"http://meadow.example/skylark":     http.StatusGone,
	"http://workshop.example/repairs":   http.StatusInternalServerError,
	"http://radio.example/static":       0,
	"http://harbour.example/wreck":      0,
}

func TestDemoIsAsLargeAsItSays(t *testing.T) {
	reach := DemoWeb().FindReachableURLs(DemoWeb().CrawlSettings)
	hosts := map[string]int{}
	for _, page := range reach.Pages {
		hosts[hostOf(page)]++
	}
	if len(hosts) < 12 || len(reach.Pages) < 300 {
		t.Errorf("%d pages on %d hosts, want at least 300 on 12", len(reach.Pages), len(hosts))
	}
	for host, n := range hosts {
		if n > 60 {
			t.Errorf("%s has %d pages, want at most 60", host, n)
		}
	}
}

// Every link leads to a page or to an intended failure.
func TestDemoHasNoDeadLinks(t *testing.T) {
	w := DemoWeb()
	reach := w.FindReachableURLs(w.CrawlSettings)
	failing := map[string]int{}
	for _, page := range slices.Concat(reach.Pages, reach.Sitemaps) {
		if a, whole := thirdResponse(w, page); !whole || a.Status >= 400 {
			failing[page] = a.Status
		}
	}
	for page, status := range failing {
		if want, ok := expectedFailureStatus[page]; !ok || want != status {
			t.Errorf("%s answers %d", page, status)
		}
	}
	for page := range expectedFailureStatus {
		if _, ok := failing[page]; !ok {
			t.Errorf("%s is linked from nowhere, or does not fail", page)
		}
	}
}

// thirdResponse returns the last of three answers for a page, and whether it is complete.
func thirdResponse(w *Web, page string) (Response, bool) {
	_, path := splitOriginAndPath(page)
	a := w.sites[hostOf(page)].respond(PageRequest{Method: "GET", Host: hostOf(page), Path: path, NthForURL: 3})
	return a, a.Fault == NoFault
}

func TestDemoExplore(t *testing.T) {
	w := DemoWeb()
	reach := w.FindReachableURLs(w.CrawlSettings)
	t.Run("closed to all", func(t *testing.T) {
		want := []string{
			"http://annex.example/loans/maps.html",
			"http://annex.example/maps/?sort=scale",
			"http://garden.example/beds/pond/nursery/",
			"http://garden.example/beds/rocks/nursery/",
			"http://garden.example/beds/shade/nursery/",
			"http://garden.example/beds/sun/nursery/",
			"http://library.example/catalogue.bak",
			"http://library.example/catalogue?sort=author",
			"http://library.example/catalogue?sort=year",
			"http://library.example/loans/1042",
			"http://library.example/loans/staff.html",
			"http://lighthouse.example/",
			"http://museum.example/store/sealed",
			"http://timetable.example/drivers/",
			"http://weather.example/",
		}
		if !slices.Equal(reach.Disallowed, want) {
			t.Errorf("got %q, want %q", reach.Disallowed, want)
		}
	})
	t.Run("sitemaps", func(t *testing.T) {
		want := []string{"http://museum.example/sitemap-rooms.xml", "http://museum.example/sitemap-store.xml",
			"http://museum.example/sitemap.xml"}
		if !slices.Equal(reach.Sitemaps, want) {
			t.Errorf("got %q, want %q", reach.Sitemaps, want)
		}
	})
	for name, page := range map[string]string{
		"known to a sitemap only":       "http://museum.example/store/tin-whistle",
		"known to a feed only":          "http://radio.example/tomorrow",
		"at the end of redirects":       "http://post.example/forward/3?care=of",
		"in a loop of redirects":        "http://post.example/round/b",
		"by BASE":                       "http://garden.example/beds/pond/",
		"by a path that goes up":        "http://garden.example/map/key",
		"Allow inside a Disallow":       "http://garden.example/beds/pond/nursery/visit",
		"the parameter that matters":    "http://market.example/stalls/apples?day=saturday",
		"beyond ASCII":                  "http://cafe.example/menu/cr%C3%A8me-caramel",
		"linked from a page in Latin-1": "http://archive.example/papers/",
	} {
		if !slices.Contains(reach.Pages, page) {
			t.Errorf("%s: %s is not reached", name, page)
		}
	}
	for name, page := range map[string]string{
		"nofollow":               "http://archive.example/visitors/spam",
		"in plain text":          "http://archive.example/not-a-link",
		"beyond the depth":       "http://almanac.example/2028/01",
		"parameters that do not": "http://market.example/stalls/?ref=home",
	} {
		if slices.Contains(reach.Pages, page) {
			t.Errorf("%s: %s is reached", name, page)
		}
	}
}

// Only the almanac is endless: at other sites the pages found do not depend on the order of the
// search.
func TestDemoDepthMattersToTheAlmanacOnly(t *testing.T) {
	w := DemoWeb()
	shallow, deep := w.CrawlSettings, w.CrawlSettings
	shallow.MaxDepth, deep.MaxDepth = w.CrawlSettings.MaxDepth/2, w.CrawlSettings.MaxDepth*2
	for _, page := range difference(w.FindReachableURLs(deep).Pages, w.FindReachableURLs(shallow).Pages) {
		if hostOf(page) != "almanac.example" {
			t.Errorf("%s is more than %d links deep", page, shallow.MaxDepth)
		}
	}
}

// The RobotsSpecs of the demo web state correctly which paths their robots.txt files close.
func TestDemoRules(t *testing.T) {
	tests := []struct {
		host, path string
		closed     bool
	}{
		{"library.example", "/", false},
		{"library.example", "/loans/", true},
		{"library.example", "/loans/1042", true},
		{"library.example", "/loans/rules.html", false},
		{"library.example", "/loans/rules.html?sort=x", false}, // the longer rule wins
		{"library.example", "/catalogue?sort=year", true},
		{"library.example", "/catalogue?page=2", false},
		{"library.example", "/catalogue.bak", true},
		{"library.example", "/catalogue.bak?x", false},
		{"annex.example", "/loans/maps.html", true},
		{"garden.example", "/beds/", false},
		{"garden.example", "/beds/sun/", false},
		{"garden.example", "/beds/sun/nursery/", true},
		{"garden.example", "/beds/sun/nursery/visit", false},
		{"garden.example", "/beds/sun/nursery/visit?x", true},
		{"museum.example", "/store/sealed", true},
		{"museum.example", "/store/tin-whistle", false},
		{"timetable.example", "/drivers/", true},
		{"timetable.example", "/drivers", false},
	}
	w := DemoWeb()
	for _, tt := range tests {
		if got := w.sites[tt.host].robotsAt(noon).IsDisallowed(tt.path); got != tt.closed {
			t.Errorf("%s%s: closed is %v, want %v", tt.host, tt.path, got, tt.closed)
		}
	}
}

func TestDemoCleanParam(t *testing.T) {
	for path, want := range map[string]string{
		"/stalls/":                          "/stalls/",
		"/stalls/?ref=home":                 "/stalls/",
		"/stalls/plums?visit=3":             "/stalls/plums",
		"/stalls/apples?ref=a&day=b&visit=": "/stalls/apples?day=b",
		"/other?ref=home":                   "/other?ref=home",
	} {
		if got := removeNoiseParams(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
