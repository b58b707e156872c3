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

// compareVisit compares what permitted a visit with what the ledger says of it.
func (p *LedgerReplayer) compareVisit(v *crawler.Visit) {
	recorded := p.currentVisit.ledgerRequest
	if recorded == nil {
		return
	}
	url := v.URL().String()
	if kind := p.currentVisit.ticket.Kind().Ledger(); kind != recorded.Kind {
		p.reportDifference(recorded.recordNumber, url, "it was asked for as %s, and would be as %s", recorded.Kind, kind)
	}
	if v.ContentWithheld() && v.BodyLen() > 0 {
		p.reportDifference(recorded.recordNumber, url, "its content was used, and would be kept back")
	}
	if source := v.Lease.Source.String(); recorded.Kind != ledger.KindRobotsTXT && source != recorded.URLSource {
		p.reportDifference(recorded.recordNumber, url, "it was found as %s, and would be as %s", recorded.URLSource, source)
	}
	if recorded.Kind != ledger.KindRobotsTXT && v.Lease.Referrer != recorded.Referrer {
		p.reportDifference(recorded.recordNumber, url, "it was found on %q, and would be on %q", recorded.Referrer, v.Lease.Referrer)
	}
	// What the ledger knows of durations is a moment less than the crawl knew, so
	// that rests which depend on them may have been longer, but no shorter.
	if required := v.RequiredDelay() - time.Millisecond; required.Milliseconds() > recorded.RequiredDelayMS {
		p.reportDifference(recorded.recordNumber, url, "its host was owed %d ms, and would be %d", recorded.RequiredDelayMS, v.RequiredDelay().Milliseconds())
	}
	if !v.Clearance.IsForRobots() {
		p.compareVerdict(recorded.recordNumber, url, recorded.RobotsVerdict, ledger.NewRobotsVerdict(v.Clearance.Verdict(), v.Clearance.FetchSummary()))
	}
}

// compareRunSettings compares what the crawl works by with what the recorded one did, as far
// as verdicts rest on it.
func (p *LedgerReplayer) compareRunSettings(r *ledger.Record) {
	for _, by := range []struct{ what, was, is string }{
		{"the agent", r.RunStart.ProductToken, p.CurrentRunSettings.ProductToken},
		{"what stands in for it", joinOrNone(r.RunStart.FallbackTokens), joinOrNone(p.CurrentRunSettings.FallbackTokens)},
		{"exemption from rules for *", strconv.FormatBool(r.RunStart.IgnoresStarRules), strconv.FormatBool(p.CurrentRunSettings.IgnoresStarRules)},
		{"the dialect", r.RunStart.RobotsDialect, p.CurrentRunSettings.RobotsDialect},
		{"reading of extensions", strconv.FormatBool(r.RunStart.RobotsExtensions), strconv.FormatBool(p.CurrentRunSettings.RobotsExtensions)},
		{"the purpose", purposesText(r.RunStart), purposesText(&p.CurrentRunSettings)},
	} {
		if by.was != by.is {
			p.reportDifference(r.Number, "the project", "%s was %s, and is %s", by.what, by.was, by.is)
		}
	}
}

// purposesText returns what a run is for; in which order they stand does not matter.
func purposesText(r *ledger.RunStart) string {
	return joinOrNone(slices.Sorted(slices.Values(r.Purposes)))
}

func joinOrNone(list []string) string { return cmp.Or(strings.Join(list, ", "), "none") }

// compareRefusal compares a refusal with the recorded one. Of one by tdmrep.json,
// which the ledger does not keep, it has the words alone.
func (p *LedgerReplayer) compareRefusal(r *ledger.Record, l storage.Lease, d decorum.Decision) bool {
	refusal, byRules := errors.AsType[*gate.Refusal](d.Cause)
	if !byRules && d.Reason != decorum.ReasonScope {
		return false
	}
	recorded, reason := r.Refusal, ledger.TruncateText(d.Err().Error())
	u := l.URL
	if l.UseUncleanedURL {
		u = l.UncleanedURL
	}
	switch {
	case u.String() != recorded.URL:
		p.reportDifference(r.Number, recorded.URL, "it was refused, and in its place would be %s", u)
	case d.Reason == decorum.ReasonRobots && recorded.RobotsVerdict != nil:
		p.compareVerdict(r.Number, recorded.URL, recorded.RobotsVerdict, ledger.NewRobotsVerdict(refusal.Verdict, refusal.FetchSummary))
	case byRules && reason != recorded.Reason:
		p.reportDifference(r.Number, recorded.URL, "it was refused by %q, and would be by %q", recorded.Reason, reason)
	case byRules:
		p.report.MatchingVerdicts++
	}
	return true
}

// compareVerdict compares two verdicts. When the file was fetched is left out: that
// is in the order of requests.
func (p *LedgerReplayer) compareVerdict(n int64, url string, was, is *ledger.RobotsVerdict) {
	if was == nil {
		p.reportDifference(n, url, "it has no verdict, and would have one")
		return
	}
	was, is = clearFetchedAt(was), clearFetchedAt(is)
	if *was != *is {
		p.reportDifference(n, url, "its verdict was %s, and would be %s", verdictText(was), verdictText(is))
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

// reportUnreplayed tells of the requests that were not made again.
func (p *LedgerReplayer) reportUnreplayed() {
	all := slices.Concat(slices.Collect(maps.Values(p.unreplayedRequests))...)
	slices.SortFunc(all, func(a, b *ledgerRequest) int { return cmp.Compare(a.recordNumber, b.recordNumber) })
	for _, a := range all {
		p.reportDifference(a.recordNumber, a.URL, "it was asked for, and would never be")
	}
}
