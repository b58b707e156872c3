package reporttext

import (
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/frontier"
)

func TestBuilder(t *testing.T) {
	var b Builder
	b.WriteParkedReasons("Parked:", nil, 0) // an empty list writes no title
	b.WriteRefusalCounts("Refused:", nil)
	b.WriteLine("%d hosts", 2)
	b.WriteTable(func(row func(...any)) {
		row("HOST", "PAGES")
		row("a.example", 7)
	})
	b.WriteParkedReasons("Parked:", []api.RefusalSummary{
		{URLCount: 2, Rule: "disallow: /a", RuleFileURL: "http://a.example/robots.txt", RuleLine: 3},
		{URLCount: 1, Rule: "depth", RefusedBy: inspect.ParkedByScope},
		{URLCount: 1, Rule: "beyond the limit"},
	}, 2)
	b.WriteRefusalCounts("Refused:", []frontier.RefusalCount{{Reason: "depth", Why: "a\x1bb", Count: 4,
		Example: "http://a.example/1"}})
	want := `2 hosts
HOST       PAGES
a.example  7

Parked:
       2 URLs  disallow: /a         http://a.example/robots.txt (line 3)
       1 URL   out of scope: depth

Refused:
       4  depth  various hosts  a�b  such as http://a.example/1
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
