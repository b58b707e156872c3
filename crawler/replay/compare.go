package replay

import (
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// compare compares what permitted a visit with what the ledger says of it.
func (p *Player) compare(v *crawler.Visit) {
	was := p.calling.asked
	if was == nil {
		return
	}
	url := v.URL().String()
	if source := v.Lease.Source.String(); was.Kind != ledger.RobotsTXT && source != was.Source {
		p.differ(was.n, url, "it was found as %s, and would be as %s", was.Source, source)
	}
	if was.Kind != ledger.RobotsTXT && v.Lease.Referrer != was.Referrer {
		p.differ(was.n, url, "it was found on %q, and would be on %q", was.Referrer, v.Lease.Referrer)
	}
	// What the ledger knows of durations is a moment less than the crawl knew, so
	// that rests which depend on them may have been longer, but no shorter.
	if owed := v.Required() - time.Millisecond; owed.Milliseconds() > was.RequiredMS {
		p.differ(was.n, url, "its host was owed %d ms, and would be %d", was.RequiredMS, v.Required().Milliseconds())
	}
	if !v.Clearance.ForRobots() {
		p.compareVerdict(was.n, url, was.Robots, ledger.NewVerdict(v.Clearance.Verdict(), v.Clearance.File()))
	}
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
	u.Fetched = time.Time{}
	return &u
}

func words(v *ledger.Verdict) string {
	text := "no"
	if v.Allowed {
		text = "yes"
	}
	rule := v.Rule
	if rule == "" {
		rule = "no rule"
	}
	return text + " by " + rule + " of the file " + v.SHA256 + " (" + v.Outcome + ")"
}
