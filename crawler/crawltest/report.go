package crawltest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A Rule is something the judge looks for.
type Rule string

// The rules. Web.Judge says what is measured.
const (
	Disallowed        Rule = "disallowed by robots.txt"
	RobotsLate        Rule = "asked before robots.txt"
	RobotsUnreachable Rule = "asked while robots.txt was unreachable"
	RobotsStale       Rule = "asked with rules too old"
	RobotsIfNew       Rule = "robots.txt asked for conditionally"
	ShortGap          Rule = "gap too short"
	Overlap           Rule = "too many requests at a time"
	Duplicate         Rule = "asked for again"
	Anonymous         Rule = "User-Agent without product or contact"
)

// rules are all of them, as a report lists them.
var rules = [...]Rule{Disallowed, RobotsLate, RobotsUnreachable, RobotsStale, RobotsIfNew, ShortGap, Overlap, Duplicate, Anonymous}

// An Offence is one rule broken by one request.
type Offence struct {
	Rule     Rule
	Exchange Exchange
	Detail   string // in numbers, where there are any
}

// A HostReport is what one host saw.
type HostReport struct {
	Host     string
	Requests int
	Pages    int           // requests other than for robots.txt and its redirects
	MinGap   time.Duration // shortest rest between two requests; 0 if there were not two
	Owed     time.Duration // longest rest that was owed before a request
	Offences int           // rules broken by these requests
}

// A Report is what the judge found.
type Report struct {
	Hosts    []HostReport // by name
	Requests int
	Pages    int           // requests other than for robots.txt and its redirects
	Distinct int           // different pages
	Bytes    int64         // of bodies, as sent
	Time     time.Duration // from the first request to the end of the last
	Retries  int           // pages asked for again after an answer that invites it
	Redone   int           // pages asked for again after a restart
	Lost     int           // pauses not made that were asked for in Options.Unflushed
	Unlogged int           // requests that the log had no room for
	Offences []Offence     // in the order of the requests, host by host
	began    time.Time
}

// OK reports whether every request is in the log and broke no rule.
func (r Report) OK() bool { return len(r.Offences) == 0 && r.Unlogged == 0 }

// Count returns how often a rule was broken.
func (r Report) Count(rule Rule) int {
	n := 0
	for _, o := range r.Offences {
		if o.Rule == rule {
			n++
		}
	}
	return n
}

// How much of a long report is shown.
const (
	shownHosts    = 25
	shownOffences = 5 // of each rule
)

// String returns the report for people to read: a line of sums, a table of
// hosts (the worst, if there are many), and for each rule how often it was
// broken, with the first offences.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests to %d hosts in %v: %d pages (%d different), %d for robots.txt, %d bytes; %d retries, %d redone\n\n",
		r.Requests, len(r.Hosts), r.Time.Round(time.Millisecond), r.Pages, r.Distinct, r.Requests-r.Pages, r.Bytes, r.Retries, r.Redone)
	r.writeHosts(&b)
	b.WriteString("\n")
	r.writeOffences(&b)
	return b.String()
}

func (r Report) writeHosts(b *strings.Builder) {
	hosts := slices.Clone(r.Hosts)
	if len(hosts) > shownHosts {
		slices.SortStableFunc(hosts, func(x, y HostReport) int {
			return cmp.Or(cmp.Compare(y.Offences, x.Offences), cmp.Compare(y.Requests, x.Requests))
		})
		hosts = hosts[:shownHosts]
	}
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "requests\tpages\tleast gap\towed\toffences\t  host")
	for _, h := range hosts {
		minGap := "-"
		if h.Requests > 1 {
			minGap = seconds(h.MinGap)
		}
		fmt.Fprintf(tw, "%d\t%d\t%s\t%s\t%d\t  %s\n", h.Requests, h.Pages, minGap, seconds(h.Owed), h.Offences, h.Host)
	}
	tw.Flush() // a strings.Builder refuses nothing
	if more := len(r.Hosts) - len(hosts); more > 0 {
		fmt.Fprintf(b, "and %d more hosts\n", more)
	}
}

func (r Report) writeOffences(b *strings.Builder) {
	if r.Unlogged > 0 {
		fmt.Fprintf(b, "%d requests were not logged: no verdict on them\n", r.Unlogged)
	}
	for _, rule := range rules {
		r.writeRule(b, rule)
	}
}

// writeRule says how often one rule was broken, and lists the first offences.
func (r Report) writeRule(b *strings.Builder, rule Rule) {
	total, shown := r.Count(rule), 0
	fmt.Fprintf(b, "%6d %s\n", total, rule)
	for _, o := range r.Offences {
		if o.Rule != rule {
			continue
		}
		if shown == shownOffences {
			fmt.Fprintf(b, "         and %d more\n", total-shown)
			return
		}
		shown++
		line := fmt.Sprintf("         at %s  %s %s  %s", seconds(o.Exchange.Start.Sub(r.began)), o.Exchange.Method, o.Exchange.URL, o.Detail)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// seconds returns a duration in seconds, with its nanoseconds if there are any.
func seconds(d time.Duration) string {
	s := fmt.Sprintf("%.9f", d.Seconds())
	return strings.TrimSuffix(strings.TrimSuffix(s, "000"), "000") + " s"
}
