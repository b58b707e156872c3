package inspectcmd

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/internal/plaintext"
)

// writeURLExplanation writes the explanation for people.
func writeURLExplanation(w io.Writer, e *api.URLExplanation) error {
	var p reporttext.Builder
	p.WriteLine("%s", plaintext.ReplaceControlChars(e.Input))
	p.WriteTable(func(row func(...any)) {
		rows := func(label string, lines []string) {
			for _, line := range lines {
				row(label, line)
				label = "" // stands before the first line only
			}
		}
		for _, s := range e.RewriteSteps {
			row("  "+strings.ReplaceAll(s.Step, "_", "-"), cmp.Or(strings.Join(s.Changes, "; "), "nothing is changed"))
			if len(s.Changes) > 0 {
				row("", "→ "+s.URL)
			}
		}
		row("  scope", explainedScopeText(&e.Scope))
		rows("  robots.txt", explainedRulesLines(&e.Robots))
		row("  state", explainedStateText(&e.FrontierState))
		rows("  host", explainedHostLines(e.Host))
		row("  visit", explainedNextVisitText(&e.Visit))
	})
	return p.PrintTo(w)
}

func explainedScopeText(s *api.ExplainedScope) string {
	text := "within"
	switch {
	case !s.InScope:
		text = fmt.Sprintf("refused: %s (%s)", s.Detail, s.Reason)
	case s.Detail != "":
		text = s.Detail
	}
	return text + inspect.PrefixIfSet("; counts as ", s.CountedPattern)
}

func explainedRulesLines(r *api.ExplainedRules) (lines []string) {
	file := "it is not known"
	if !r.FetchedAt.IsZero() {
		file = fmt.Sprintf("%s, fetched at %s", strings.ReplaceAll(r.Outcome, "_", " "), inspect.FormatTime(r.FetchedAt))
	}
	file += inspect.PrefixIfSet(", SHA-256 ", r.SHA256)
	if r.MayVisit == nil {
		return append(lines, file, "it must be fetched first: --fetch asks for it now")
	}
	verdict := "disallowed"
	if *r.MayVisit {
		verdict = "allowed"
	}
	lines = append(lines, verdict+": "+r.Reason, file)
	if r.IndexingVerdict != nil {
		lines = append(lines, reporttext.DisallowedForMainRobotText(*r.IndexingVerdict))
	}
	if r.OriginPostponedReason != "" {
		lines = append(lines, fmt.Sprintf("closed until %s: %s", inspect.FormatTime(r.OriginPostponedUntil), r.OriginPostponedReason))
	}
	for _, m := range r.Matches[min(1, len(r.Matches)):] {
		lines = append(lines, fmt.Sprintf("%s (line %d) loses%s", plaintext.ReplaceControlChars(m.Rule), m.Line, reporttext.LostRuleReasonText(m, r.Matches[0])))
	}
	for _, s := range r.UsageSignals {
		lines = append(lines, "asks "+sinks.UsageSignalText(s))
	}
	return lines
}

func explainedStateText(s *api.ExplainedFrontierState) string {
	order := fmt.Sprintf("class %d, rank %d", s.PriorityClass, s.PriorityRank)
	switch {
	case s.Entry == nil && s.KnownAs != "":
		return "unknown, but for " + s.KnownAs
	case s.Entry == nil && s.State == inspect.HostUnknown:
		return "unknown; as a link of a seed: " + order
	case s.Entry == nil:
		return s.State
	}
	return fmt.Sprintf("%s%s, found as %s at depth %d, %s%s", s.State, inspect.PrefixIfSet(" as ", s.KnownAs),
		s.Entry.Source, s.Entry.Depth, order, inspect.PrefixIfSet(", on ", s.Entry.Referrer))
}

// explainedHostLines says what the crawl knows of the URL's host.
func explainedHostLines(h *api.Host) []string {
	if h == nil {
		return []string{"not met yet"}
	}
	return []string{
		h.Host + " is " + hostStateText(h),
		fmt.Sprintf("delay: declared %v, configured %v, owed after the last request %v; slots %d, failures in a row %d",
			inspect.DelayText(h.CrawlDelay), inspect.DelayText(h.ConfiguredDelay), inspect.DelayText(h.RequiredDelay), h.Slots, h.ConsecutiveFailures),
	}
}

func explainedNextVisitText(v *api.ExplainedNextVisit) string {
	switch v.When {
	case "now":
		return "now: " + v.Reason
	case "at":
		return fmt.Sprintf("not before %s: %s", inspect.FormatTime(v.NotBefore), v.Reason)
	case "after":
		return fmt.Sprintf("not before %s, about: %s", inspect.FormatTime(v.NotBefore), v.Reason)
	}
	return "no: " + v.Reason
}
