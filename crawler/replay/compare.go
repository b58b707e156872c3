package replay

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// compare compares what permitted a visit with what the ledger says of it.
func (p *Player) compare(v *crawler.Visit) {
	was := p.calling.asked
	if was == nil {
		return
	}
	url := v.URL().String()
	if kind := p.calling.ticket.LedgerKind(); kind != was.Kind {
		p.differ(was.n, url, "it was asked for as %s, and would be as %s", was.Kind, kind)
	}
	if v.Withheld() && v.BodyLen() > 0 {
		p.differ(was.n, url, "its content was used, and would be kept back")
	}
	if source := v.Lease.Source.String(); was.Kind != ledger.KindRobotsTXT && source != was.Source {
		p.differ(was.n, url, "it was found as %s, and would be as %s", was.Source, source)
	}
	if was.Kind != ledger.KindRobotsTXT && v.Lease.Referrer != was.Referrer {
		p.differ(was.n, url, "it was found on %q, and would be on %q", was.Referrer, v.Lease.Referrer)
	}
	// What the ledger knows of durations is a moment less than the crawl knew, so
	// that rests which depend on them may have been longer, but no shorter.
	if owed := v.RequiredDelay() - time.Millisecond; owed.Milliseconds() > was.RequiredDelayMS {
		p.differ(was.n, url, "its host was owed %d ms, and would be %d", was.RequiredDelayMS, v.RequiredDelay().Milliseconds())
	}
	if !v.Clearance.ForRobots() {
		p.compareVerdict(was.n, url, was.RobotsVerdict, ledger.NewVerdict(v.Clearance.Verdict(), v.Clearance.File()))
	}
}

// compareRun compares what the crawl works by with what the recorded one did, as far
// as verdicts rest on it.
func (p *Player) compareRun(r *ledger.Record) {
	for _, by := range []struct{ what, was, is string }{
		{"the agent", r.Run.ProductToken, p.Run.ProductToken},
		{"what stands in for it", inWords(r.Run.FallbackTokens), inWords(p.Run.FallbackTokens)},
		{"exemption from rules for *", strconv.FormatBool(r.Run.NamedOnly), strconv.FormatBool(p.Run.NamedOnly)},
		{"the dialect", r.Run.RobotsDialect, p.Run.RobotsDialect},
		{"reading of extensions", strconv.FormatBool(r.Run.RobotsExtensions), strconv.FormatBool(p.Run.RobotsExtensions)},
		{"the purpose", purposes(r.Run), purposes(&p.Run)},
	} {
		if by.was != by.is {
			p.differ(r.Number, "the project", "%s was %s, and is %s", by.what, by.was, by.is)
		}
	}
}

// purposes returns what a run is for; in which order they stand does not matter.
func purposes(r *ledger.Run) string { return inWords(slices.Sorted(slices.Values(r.Purposes))) }

func inWords(list []string) string { return cmp.Or(strings.Join(list, ", "), "none") }

// compareRefusal compares a refusal with the recorded one. Of one by tdmrep.json,
// which the ledger does not keep, it has the words alone.
func (p *Player) compareRefusal(r *ledger.Record, l storage.Lease, why error) bool {
	refusal, byRobots := errors.AsType[*robots.Refusal](why)
	was, says := r.Refusal, ledger.TruncateText(why.Error())
	u := l.URL
	if l.AsFound {
		u = l.Found
	}
	switch {
	case !byRobots && !errors.Is(why, decorum.OutOfScope):
		return false
	case u.String() != was.URL:
		p.differ(r.Number, was.URL, "it was refused, and in its place would be %s", u)
	case byRobots && refusal.TDMRep == "" && was.RobotsVerdict != nil:
		p.compareVerdict(r.Number, was.URL, was.RobotsVerdict, ledger.NewVerdict(refusal.Verdict, refusal.File))
	case byRobots && says != was.Reason:
		p.differ(r.Number, was.URL, "it was refused by %q, and would be by %q", was.Reason, says)
	case byRobots:
		p.report.Verdicts++
	}
	return true
}

// compareVerdict compares two verdicts. When the file was fetched is left out: that
// is in the order of requests.
func (p *Player) compareVerdict(n int64, url string, was, is *ledger.Verdict) {
	if was == nil {
		p.differ(n, url, "it has no verdict, and would have one")
		return
	}
	was, is = undated(was), undated(is)
	if *was != *is {
		p.differ(n, url, "its verdict was %s, and would be %s", words(was), words(is))
		return
	}
	p.report.Verdicts++
}

func undated(v *ledger.Verdict) *ledger.Verdict {
	u := *v
	u.FetchedAt = time.Time{}
	return &u
}

func words(v *ledger.Verdict) string {
	text := "no"
	if v.Allowed {
		text = "yes"
	}
	if v.NotForIndexing {
		text += ", not for indexing,"
	}
	rule := v.Rule
	if rule == "" {
		rule = "no rule"
	}
	return text + " by " + rule + " of the file " + v.FileSHA256 + " (" + v.Outcome + ")"
}
