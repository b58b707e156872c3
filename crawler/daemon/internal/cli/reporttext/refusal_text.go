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
			row(fmt.Sprintf("%8d %s", r.URLCount, URLNoun(r.URLCount)), RefusalText(r), RuleLocationText(r))
		}
	})
}

// RefusalText says why URLs are parked.
func RefusalText(r api.RefusalSummary) string {
	if r.RefusedBy == inspect.ParkedByScope {
		return "out of scope: " + r.Rule
	}
	return r.Rule
}

// RuleLocationText says where the rule stands.
func RuleLocationText(r api.RefusalSummary) string {
	switch {
	case r.RuleFileURL == "":
		return ""
	case r.RuleLine == 0:
		return r.RuleFileURL
	}
	return fmt.Sprintf("%s (line %d)", r.RuleFileURL, r.RuleLine)
}

func URLNoun(urls int) string {
	if urls == 1 {
		return "URL"
	}
	return "URLs"
}
