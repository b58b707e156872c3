package replay

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// compareVisit compares a visit, and what permitted it, with its record in the ledger.
func (p *LedgerReplayer) compareVisit(v *crawler.Visit) {
	recorded := p.currentVisit.ledgerRequest
	if recorded == nil {
		return
	}
	url := v.URL().String()
	if kind := p.currentVisit.ticket.Kind().Ledger(); kind != recorded.Kind {
		p.reportDifference(recorded.recordNumber, url, "it was requested as %s, and would now be requested as %s",
			recorded.Kind, kind)
	}
	if v.ContentWithheld() && v.BodyLen() > 0 {
		p.reportDifference(recorded.recordNumber, url, "its content was used, and would now be withheld")
	}
	if source := v.Lease.Source.String(); recorded.Kind != ledger.KindRobotsTXT && source != recorded.URLSource {
		p.reportDifference(recorded.recordNumber, url, "it was found as %s, and would now be found as %s",
			recorded.URLSource, source)
	}
	if recorded.Kind != ledger.KindRobotsTXT && v.Lease.Referrer != recorded.Referrer {
		p.reportDifference(recorded.recordNumber, url,
			"it was found on %q, and would now be found on %q", recorded.Referrer, v.Lease.Referrer)
	}
	// The durations in the ledger are slightly shorter than those that the crawl measured, so a delay
	// that depends on them may have been longer in the crawl, but not shorter.
	if required := v.RequiredDelay() - time.Millisecond; required.Milliseconds() > recorded.RequiredDelayMS {
		p.reportDifference(recorded.recordNumber, url,
			"its host required a delay of %d ms, and would now require %d ms",
			recorded.RequiredDelayMS, v.RequiredDelay().Milliseconds())
	}
	if !v.Clearance.IsForRobots() {
		p.compareVerdict(recorded.recordNumber, url, recorded.RobotsVerdict,
			ledger.NewRobotsVerdict(v.Clearance.Verdict(), v.Clearance.FetchSummary()))
	}
}

// compareRunSettings compares the settings of the crawl that affect verdicts with those of the
// recorded run.
func (p *LedgerReplayer) compareRunSettings(r *ledger.Record) {
	for _, by := range []struct{ what, was, is string }{
		{"the product token", r.RunStart.ProductToken, p.CurrentRunSettings.ProductToken},
		{"the list of fallback tokens", joinOrNone(r.RunStart.FallbackTokens),
			joinOrNone(p.CurrentRunSettings.FallbackTokens)},
		{"exemption from rules for *", strconv.FormatBool(r.RunStart.IgnoresStarRules),
			strconv.FormatBool(p.CurrentRunSettings.IgnoresStarRules)},
		{"the robots.txt dialect", r.RunStart.RobotsDialect, p.CurrentRunSettings.RobotsDialect},
		{"support of extensions", strconv.FormatBool(r.RunStart.RobotsExtensions),
			strconv.FormatBool(p.CurrentRunSettings.RobotsExtensions)},
		{"the purpose", purposesText(r.RunStart), purposesText(&p.CurrentRunSettings)},
	} {
		if by.was != by.is {
			p.reportDifference(r.Number, "the project", "%s was %s, and is %s", by.what, by.was, by.is)
		}
	}
}

// purposesText returns the purposes of a run, sorted, because their order does not matter.
func purposesText(r *ledger.RunStart) string {
	return joinOrNone(slices.Sorted(slices.Values(r.Purposes)))
}

func joinOrNone(list []string) string { return cmp.Or(strings.Join(list, ", "), "none") }

// compareRefusal compares a refusal with the recorded one. It returns false for a decision that the
// ledger does not record as a refusal. A refusal by tdmrep.json, whose verdict the ledger does not
// keep, is compared by its text.
func (p *LedgerReplayer) compareRefusal(r *ledger.Record, l storage.Lease, d decorum.Decision) bool {
	refusal, byRules := errors.AsType[*gate.Refusal](d.Cause)
	if !byRules && d.Reason != decorum.ReasonScope {
		return false
	}
	recorded, reason := r.Refusal, ledger.TruncateText(d.Err().Error())
	// The ledger has the URL that is visited.
	u := l.URL
	if l.UseUncleanedURL {
		u = l.UncleanedURL
	}
	switch {
	case u.String() != recorded.URL:
		p.reportDifference(r.Number, recorded.URL, "it was refused, and %s would now be refused instead", u)
	case d.Reason == decorum.ReasonRobots && recorded.RobotsVerdict != nil:
		p.compareVerdict(r.Number, recorded.URL, recorded.RobotsVerdict,
			ledger.NewRobotsVerdict(refusal.Verdict, refusal.FetchSummary))
	case byRules && reason != recorded.Reason:
		p.reportDifference(r.Number, recorded.URL,
			"it was refused because of %q, and would now be refused because of %q", recorded.Reason, reason)
	case byRules:
		p.report.MatchingVerdicts++
	}
	return true
}

// compareVerdict compares two verdicts. It ignores when the file was fetched, because the order of
// requests covers that.
func (p *LedgerReplayer) compareVerdict(n int64, url string, was, is *ledger.RobotsVerdict) {
	if was == nil {
		p.reportDifference(n, url, "it had no verdict, and would now have one")
		return
	}
	was, is = clearFetchedAt(was), clearFetchedAt(is)
	if *was != *is {
		p.reportDifference(n, url, "its verdict was %s, and would now be %s", verdictText(was), verdictText(is))
		return
	}
	p.report.MatchingVerdicts++
}

func clearFetchedAt(v *ledger.RobotsVerdict) *ledger.RobotsVerdict {
	u := *v
	u.FetchedAt = time.Time{}
	return &u
}

func verdictText(v *ledger.RobotsVerdict) string {
	text := "no"
	if v.Allowed {
		text = "yes"
	}
	if v.DisallowedForMainRobot {
		text += ", not for indexing,"
	}
	return text + " by " + cmp.Or(v.Rule, "no rule") + " of the file " + v.FileSHA256 + " (" + v.FetchOutcome + ")"
}

// reportUnreplayed reports the recorded requests that the crawl did not make.
func (p *LedgerReplayer) reportUnreplayed() {
	all := slices.Concat(slices.Collect(maps.Values(p.unreplayedRequests))...)
	slices.SortFunc(all, func(a, b *ledgerRequest) int { return cmp.Compare(a.recordNumber, b.recordNumber) })
	for _, a := range all {
		p.reportDifference(a.recordNumber, a.URL, "it was requested, and would now never be requested")
	}
}
