package reporttext

import (
	"cmp"
	"fmt"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/plaintext"
)

func (p *Builder) WriteRefusalCounts(title string, list []frontier.RefusalCount) {
	if len(list) == 0 {
		return
	}
	p.WriteLine("")
	p.WriteLine("%s", title)
	p.WriteTable(func(row func(...any)) {
		for _, r := range list {
			row(fmt.Sprintf("%8d", r.Count), r.Reason, cmp.Or(r.Host, "various hosts"), plaintext.ReplaceControlChars(r.Why), "such as "+r.Example)
		}
	})
}

func DelayShortfallText(shortfall api.Milliseconds) string {
	if shortfall == 0 {
		return "no rest was cut short"
	}
	return fmt.Sprintf("a rest was cut short by %v", inspect.DelayText(shortfall))
}

// WriteParkedReasons writes why URLs are parked.
func (p *Builder) WriteParkedReasons(title string, rs []api.RefusalSummary, limit int) {
	if len(rs) == 0 {
		return
	}
	p.WriteLine("")
	p.WriteLine("%s", title)
	p.WriteTable(func(row func(...any)) {
		for i, r := range rs {
			if i == limit && limit > 0 {
				break
			}
			row(fmt.Sprintf("%8d %s", r.URLCount, URLNoun(r.URLCount)), inspect.RefusalText(r), inspect.RuleLocationText(r))
		}
	})
}

func URLNoun(urls int) string {
	if urls == 1 {
		return "URL"
	}
	return "URLs"
}
