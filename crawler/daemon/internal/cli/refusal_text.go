package cli

import (
	"cmp"
	"fmt"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/plaintext"
)

func (p *textBuilder) writeRefusalCounts(title string, list []frontier.RefusalCount) {
	if len(list) == 0 {
		return
	}
	p.writeLine("")
	p.writeLine("%s", title)
	p.writeTable(func(row func(...any)) {
		for _, r := range list {
			row(fmt.Sprintf("%8d", r.Count), r.Reason, cmp.Or(r.Host, "various hosts"), plaintext.ReplaceControlChars(r.Why), "such as "+r.Example)
		}
	})
}

func delayShortfallText(shortfall api.Milliseconds) string {
	if shortfall == 0 {
		return "no rest was cut short"
	}
	return fmt.Sprintf("a rest was cut short by %v", inspect.DelayText(shortfall))
}

// writeParkedReasons writes why URLs are parked.
func (p *textBuilder) writeParkedReasons(title string, rs []api.RefusalSummary, limit int) {
	if len(rs) == 0 {
		return
	}
	p.writeLine("")
	p.writeLine("%s", title)
	p.writeTable(func(row func(...any)) {
		for i, r := range rs {
			if i == limit && limit > 0 {
				break
			}
			row(fmt.Sprintf("%8d %s", r.URLCount, urlNoun(r.URLCount)), refusalText(r), ruleLocationText(r))
		}
	})
}

// refusalText says why URLs are parked.
func refusalText(r api.RefusalSummary) string {
	if r.RefusedBy == inspect.ParkedByScope {
		return "out of scope: " + r.Rule
	}
	return r.Rule
}

// ruleLocationText says where the rule stands.
func ruleLocationText(r api.RefusalSummary) string {
	switch {
	case r.RuleFileURL == "":
		return ""
	case r.RuleLine == 0:
		return r.RuleFileURL
	}
	return fmt.Sprintf("%s (line %d)", r.RuleFileURL, r.RuleLine)
}

func urlNoun(urls int) string {
	if urls == 1 {
		return "URL"
	}
	return "URLs"
}
