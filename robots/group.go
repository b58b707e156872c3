package robots

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// For compiles what the file says to one agent: the rules of all groups that
// name it most specifically, and of no other (GRP-06, GRP-07, AGENT-01).
func (f *File) For(a Agent) *Rules {
	r := f.rulesFor(a)
	if main, ok := Preset(a.indexer); ok && f.dialect != GoogleOSS {
		r.indexer = f.rulesFor(main)
	}
	return r
}

func (f *File) rulesFor(a Agent) *Rules {
	best := unnamed
	for _, l := range f.lines {
		if l.field == userAgent {
			best = min(best, f.rank(a, l.value))
		}
	}
	if best == unnamed {
		rules := &Rules{verbatim: f.dialect == GoogleOSS}
		if a.namedOnly {
			everybody := f.rulesFor(Agent{}) // EXC-09
			rules.delay, rules.slow, rules.pace = everybody.delay, everybody.slow, everybody.pace
			rules.signals = everybody.signals
		}
		return rules
	}
	r := compile(f.chosen(a, best), f.dialect)
	if f.signals {
		r.signals = f.signalsFor(a, best)
	}
	if f.paced {
		r.pace = f.paceFor(a, best)
	}
	return r
}

// rank returns how specifically a user-agent value names a in the dialect.
func (f *File) rank(a Agent, value string) rank {
	switch f.dialect {
	case Yandex:
		return a.rankWithin(value)
	case GoogleOSS:
		return a.ossRank(value)
	}
	return a.rank(value)
}

// A choice is what a file says to one agent, in the order of the file.
type choice struct {
	names []string // user-agent values that name the agent
	lines []int    // where they stand
	rules []line   // allow and disallow, void ones left out
	delay time.Duration
	slow  bool // a delay is given, if only of zero
}

// chosen collects what follows the user-agent lines of the given rank. A run
// of such lines ends at the next rule. For the delay it ends at a Crawl-delay
// line, too, so that each record keeps its own (DELAY-09), though only rules
// shape groups (GRP-08, GRP-16).
func (f *File) chosen(a Agent, best rank) choice {
	c := choice{rules: make([]line, 0, len(f.lines))}
	var group, record run
	for _, l := range f.lines {
		switch l.field {
		case userAgent:
			named := f.rank(a, l.value) == best
			if named {
				c.names, c.lines = append(c.names, l.value), append(c.lines, int(l.number))
			}
			group.add(named)
			record.add(named)
		case allow, disallow:
			group.open, record.open = false, false
			if group.named && validPath(l.value) {
				c.rules = append(c.rules, l)
			}
		case crawlDelay:
			record.open, group.open = false, group.open && !f.delayEndsRun
			if d, ok := parseDelay(l.value); ok && record.named {
				c.delay, c.slow = max(c.delay, d), true // DELAY-10
			}
		}
	}
	return c
}

// A run is one or more user-agent lines that share what follows.
type run struct {
	open  bool // the next user-agent line still belongs to it
	named bool // one of its lines names the agent
}

func (r *run) add(named bool) {
	r.named = named || r.named && r.open
	r.open = true
}

// label returns the names, those repeated one after the other once.
func (c *choice) label() string {
	return strings.Join(slices.Compact(c.names), ", ")
}

// validPath reports whether a rule with this path has an effect: the path
// begins with the root or a wildcard (SYN-09 to SYN-11).
func validPath(path string) bool {
	return path != "" && (path[0] == '/' || path[0] == '*')
}

// maxDelay bounds what a file can ask for, so that nobody's sums overflow.
const maxDelay = 365 * 24 * time.Hour

// parseDelay reads a number of seconds, with a point or without (DELAY-02,
// DELAY-11).
func parseDelay(s string) (time.Duration, bool) {
	if strings.Trim(s, digits+".") != "" {
		return 0, false // strconv reads signs, exponents and words as well
	}
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(seconds, 1) {
		return 0, false
	}
	if seconds >= maxDelay.Seconds() {
		return maxDelay, true
	}
	return time.Duration(math.Round(seconds * float64(time.Second))), true
}
