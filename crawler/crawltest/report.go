package crawltest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A JudgeRule is a rule that the judge checks, as a report names it.
type JudgeRule string

// The rules. Web.JudgeLog defines each of them.
const (
	Disallowed        JudgeRule = "disallowed by robots.txt"
	BeforeRobots      JudgeRule = "requested before robots.txt"
	RobotsUnreachable JudgeRule = "requested while robots.txt was unreachable"
	RobotsStale       JudgeRule = "requested with rules too old"
	RobotsConditional JudgeRule = "robots.txt requested conditionally"
	ShortGap          JudgeRule = "gap too short"
	Overlap           JudgeRule = "too many requests at a time"
	Duplicate         JudgeRule = "requested again"
	Anonymous         JudgeRule = "User-Agent without product or contact"
)

// allJudgeRules holds all rules in the order of a report.
var allJudgeRules = [...]JudgeRule{
	Disallowed, BeforeRobots, RobotsUnreachable, RobotsStale, RobotsConditional, ShortGap,
	Overlap, Duplicate, Anonymous,
}

// A Violation is one rule broken by one request.
type Violation struct {
	Rule     JudgeRule
	Exchange Exchange
	Detail   string // the measured numbers; may be empty
}

// A HostReport is what the judge found at one host.
type HostReport struct {
	Host             string
	Requests         int
	PageRequests     int           // requests other than for robots.txt and its redirects
	MinGap           time.Duration // the shortest gap between two requests; 0 if there were fewer than two
	MaxRequiredDelay time.Duration // the longest gap that was required before a request
	ViolationCount   int           // violations by these requests
}

// A JudgeReport is what the judge found in a log.
type JudgeReport struct {
	Hosts            []HostReport // by name
	Requests         int
	PageRequests     int           // requests other than for robots.txt and its redirects
	DistinctPages    int           // different pages that were requested
	BodyBytes        int64         // of bodies, as sent
	Duration         time.Duration // from the first request to the end of the last
	Retries          int           // requests for a page after an answer that allows a retry
	RestartRefetches int           // requests for a page that was requested before a restart, too
	LostPauses       int           // pauses excused by JudgeOptions.CrashLossWindow
	UnloggedRequests int           // requests beyond Web.MaxLogEntries, which are not judged
	Violations       []Violation   // in the order of the requests, host by host
	firstRequestAt   time.Time
}

// OK reports whether every request is in the log and broke no rule.
func (r JudgeReport) OK() bool { return len(r.Violations) == 0 && r.UnloggedRequests == 0 }

// CountViolationsOfRule returns the number of violations of a rule.
func (r JudgeReport) CountViolationsOfRule(rule JudgeRule) int {
	n := 0
	for _, o := range r.Violations {
		if o.Rule == rule {
			n++
		}
	}
	return n
}

// The limits of a report for people.
const (
	maxShownHosts      = 25
	maxShownViolations = 5 // of each rule
)

// String returns the report for people: a line of totals, a table of hosts (those with the most
// violations first if there are more than maxShownHosts), and the number of violations of each rule
// with the first of them.
func (r JudgeReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests to %d hosts in %v: %d for pages and sitemaps (%s), %d for robots.txt; %d bytes\n\n",
		r.Requests, len(r.Hosts), r.Duration.Round(time.Millisecond), r.PageRequests, r.pageRequestsText(),
		r.Requests-r.PageRequests, r.BodyBytes)
	r.writeHosts(&b)
	b.WriteString("\n")
	r.writeViolations(&b)
	return b.String()
}

// pageRequestsText says what the PageRequests are made up of. Its numbers add up to PageRequests.
func (r JudgeReport) pageRequestsText() string {
	text := fmt.Sprintf("%d different, %d retries", r.DistinctPages, r.Retries)
	if r.RestartRefetches > 0 {
		text += fmt.Sprintf(", %d repeated after a restart", r.RestartRefetches)
	}
	if repeats := r.PageRequests - r.DistinctPages - r.Retries - r.RestartRefetches; repeats > 0 {
		text += fmt.Sprintf(", %d other repetitions", repeats)
	}
	return text
}

func (r JudgeReport) writeHosts(b *strings.Builder) {
	hosts := slices.Clone(r.Hosts)
	if len(hosts) > maxShownHosts {
		slices.SortStableFunc(hosts, func(x, y HostReport) int {
			return cmp.Or(cmp.Compare(y.ViolationCount, x.ViolationCount), cmp.Compare(y.Requests, x.Requests))
		})
		hosts = hosts[:maxShownHosts]
	}
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "requests\tpages\tshortest gap\trequired\tviolations\t  host")
	for _, h := range hosts {
		minGap := "-"
		if h.Requests > 1 {
			minGap = formatSeconds(h.MinGap)
		}
		fmt.Fprintf(tw, "%d\t%d\t%s\t%s\t%d\t  %s\n", h.Requests, h.PageRequests, minGap,
			formatSeconds(h.MaxRequiredDelay), h.ViolationCount, h.Host)
	}
	tw.Flush() // a write to a strings.Builder cannot fail
	if more := len(r.Hosts) - len(hosts); more > 0 {
		fmt.Fprintf(b, "and %d more hosts\n", more)
	}
}

func (r JudgeReport) writeViolations(b *strings.Builder) {
	if r.UnloggedRequests > 0 {
		fmt.Fprintf(b, "%d requests were not logged and are not judged\n", r.UnloggedRequests)
	}
	for _, rule := range allJudgeRules {
		r.writeViolationsOfRule(b, rule)
	}
}

// writeViolationsOfRule writes the number of violations of a rule, and the first of them.
func (r JudgeReport) writeViolationsOfRule(b *strings.Builder, rule JudgeRule) {
	total, shown := r.CountViolationsOfRule(rule), 0
	fmt.Fprintf(b, "%6d %s\n", total, rule)
	for _, o := range r.Violations {
		if o.Rule != rule {
			continue
		}
		if shown == maxShownViolations {
			fmt.Fprintf(b, "         and %d more\n", total-shown)
			return
		}
		shown++
		line := fmt.Sprintf("         at %s  %s %s  %s",
			formatSeconds(o.Exchange.Start.Sub(r.firstRequestAt)), o.Exchange.Method, o.Exchange.URL, o.Detail)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// formatSeconds formats a duration in seconds with up to nine decimals, in groups of three.
func formatSeconds(d time.Duration) string {
	s := fmt.Sprintf("%.9f", d.Seconds())
	return strings.TrimSuffix(strings.TrimSuffix(s, "000"), "000") + " s"
}
