package page_test

import (
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/page"
)

// An identifiedDaemon is a Daemon that implements only CrawlerIdentities.
type identifiedDaemon struct{ api.Daemon }

func (identifiedDaemon) CrawlerIdentities() api.CrawlerIdentities {
	return api.CrawlerIdentities{Version: "1.0", Identities: []api.CrawlerIdentity{{
		ProductToken: "examplebot", UserAgent: "examplebot/1.0", Contact: "https://example.org/bot",
	}}}
}

// The page for site owners says which robots.txt rules stop the crawler.
func ExampleNew() {
	d := identifiedDaemon{}
	handler := api.BotPageHandler(d, page.New(d, nil))

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/bot", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	fmt.Println(strings.Contains(w.Body.String(), "User-agent: examplebot\nDisallow: /"))
	// Output:
	// 200 text/html; charset=utf-8
	// true
}
