package inspect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// TestURLKindSettings: the settings that leave out sort links and feeds leave out nothing else.
func TestURLKindSettings(t *testing.T) {
	feed := `{"url": "http://a.test%s", "content_type": "application/atom+xml", "source": "feed"}`
	link := `{"url": "http://a.test%s", "referrer": "http://a.test/list?page=2", "source": "link"}`
	for _, tt := range []struct {
		name, record, urlForm string
		values                string // of urlForm
		want                  string // empty: no setting
	}{
		{"feeds of pages", feed, "/post/%s/feed/", "a b c d e",
			`scope: {exclude: ['^https?://a\.test(:\d+)?/.+/feed/$']}`},
		{"feeds by a query, on the path of the pages", feed, "/wiki/index.php?title=%s&feed=atom", "a b c d e",
			`discover: {max_feeds: 1}`},
		{"feeds of several paths", feed, "/post/%s.atom", "a b c d e", `discover: {max_feeds: 1}`},
		{"sort links", link, "/list?sort=%s", "name p.price -date price+desc size",
			`scope: {exclude: ['^https?://a\.test(:\d+)?/[^?]*\?((sort=-date|sort=name|sort=p\.price|` +
				`sort=price\+desc|sort=size)([&;]|$))+$']}`},
		{"sorted lists that other pages link to", link, "/shoes?sort=%s", "name price date size age", ""},
		{"animals of an order", link, "/list?order=%s", "Rodentia Carnivora Primates Chiroptera Cetacea", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var lines strings.Builder
			for value := range strings.FieldsSeq(tt.values) {
				fmt.Fprintf(&lines, tt.record+"\n", fmt.Sprintf(tt.urlForm, value))
			}
			s, err := inspect.AnalyzeParams(t.Context(), testfile.Write(t, "pages.jsonl", lines.String()), "")
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, c := range s.Report().URLKindCosts {
				if c.Requests != 5 || c.Kind != frontier.TooManyFeeds && c.Kind != frontier.TooManySortLinks {
					t.Errorf("%d requests of kind %s", c.Requests, c.Kind)
				}
				got += c.Setting
			}
			if got != tt.want {
				t.Errorf("setting %s\nwant %s", got, tt.want)
			}
		})
	}
}
