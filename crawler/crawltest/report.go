package crawltest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A JudgeRule is something the judge looks for.
type JudgeRule string

// The rules. Web.Judge says what is measured.
const (
	Disallowed        JudgeRule = "disallowed by robots.txt"
	BeforeRobots      JudgeRule = "asked before robots.txt"
	RobotsUnreachable JudgeRule = "asked while robots.txt was unreachable"
	RobotsStale       JudgeRule = "asked with rules too old"
	RobotsConditional JudgeRule = "robots.txt asked for conditionally"
	ShortGap          JudgeRule = "gap too short"
	Overlap           JudgeRule = "too many requests at a time"
	Duplicate         JudgeRule = "asked for again"
	Anonymous         JudgeRule = "User-Agent without product or contact"
)

// allJudgeRules are all of them, as a report lists them.
var allJudgeRules = [...]JudgeRule{Disallowed, BeforeRobots, RobotsUnreachable, RobotsStale, RobotsConditional, ShortGap, Overlap, Duplicate, Anonymous}

// A Violation is one rule broken by one request.
type Violation struct {
	Rule     JudgeRule
	Exchange Exchange
	Detail   string // in numbers, where there are any
}

// A HostReport is what one host saw.
type HostReport struct {
	Host             string
	Requests         int
	PageRequests     int           // requests other than for robots.txt and its redirects
	MinGap           time.Duration // shortest rest between two requests; 0 if there were not two
	MaxRequiredDelay time.Duration // longest rest that was owed before a request
	ViolationCount   int           // rules broken by these requests
}

// A JudgeReport is what the judge found.
type JudgeReport struct {
	Hosts            []HostReport // by name
	Requests         int
	PageRequests     int           // requests other than for robots.txt and its redirects
	DistinctPages    int           // different pages
	BodyBytes        int64         // of bodies, as sent
	Duration         time.Duration // from the first request to the end of the last
	Retries          int           // pages asked for again after an answer that invites it
	RestartRefetches int           // pages asked for again after a restart
	LostPauses       int           // pauses not made that were asked for in JudgeOptions.CrashLossWindow
	UnloggedRequests int           // requests that the log had no room for
	Violations       []Violation   // in the order of the requests, host by host
	firstRequestAt   time.Time
}

// OK reports whether every request is in the log and broke no rule.
func (r JudgeReport) OK() bool { return len(r.Violations) == 0 && r.UnloggedRequests == 0 }

// CountViolationsOfRule returns how often a rule was broken.
func (r JudgeReport) CountViolationsOfRule(rule JudgeRule) int {
	n := 0
	for _, o := range r.Violations {
		if o.Rule == rule {
			n++
		}
	}
	return n
}

// How much of a long report is shown.
const (
	maxShownHosts      = 25
	maxShownViolations = 5 // of each rule
)

// String returns the report for people to read: a line of sums, a table of
// hosts (the worst, if there are many), and for each rule how often it was
// broken, with the first offences.
func (r JudgeReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests to %d hosts in %v: %d pages (%d different), %d for robots.txt, %d bytes; %d retries, %d redone\n\n",
		r.Requests, len(r.Hosts), r.Duration.Round(time.Millisecond), r.PageRequests, r.DistinctPages, r.Requests-r.PageRequests, r.BodyBytes, r.Retries, r.RestartRefetches)
	r.writeHosts(&b)
	b.WriteString("\n")
	r.writeViolations(&b)
	return b.String()
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
	fmt.Fprintln(tw, "requests\tpages\tleast gap\towed\toffences\t  host")
	for _, h := range hosts {
		minGap := "-"
		if h.Requests > 1 {
			minGap = formatSeconds(h.MinGap)
		}
		fmt.Fprintf(tw, "%d\t%d\t%s\t%s\t%d\t  %s\n", h.Requests, h.PageRequests, minGap, formatSeconds(h.MaxRequiredDelay), h.ViolationCount, h.Host)
	}
	tw.Flush() // a strings.Builder refuses nothing
	if more := len(r.Hosts) - len(hosts); more > 0 {
		fmt.Fprintf(b, "and %d more hosts\n", more)
	}
}

func (r JudgeReport) writeViolations(b *strings.Builder) {
	if r.UnloggedRequests > 0 {
		fmt.Fprintf(b, "%d requests were not logged: no verdict on them\n", r.UnloggedRequests)
	}
	for _, rule := range allJudgeRules {
		r.writeViolationsOfRule(b, rule)
	}
}

// writeViolationsOfRule says how often one rule was broken, and lists the first offences.
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
		line := fmt.Sprintf("         at %s  %s %s  %s", formatSeconds(o.Exchange.Start.Sub(r.firstRequestAt)), o.Exchange.Method, o.Exchange.URL, o.Detail)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// formatSeconds returns a duration in seconds, with its nanoseconds if there are any.
func formatSeconds(d time.Duration) string {
	s := fmt.Sprintf("%.9f", d.Seconds())
	return strings.TrimSuffix(strings.TrimSuffix(s, "000"), "000") + " s"
}
