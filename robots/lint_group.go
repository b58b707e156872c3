package robots

import (
	"fmt"
	"strings"
)

// lintGroups looks at how lines form groups.
func (l *linter) lintGroups() {
	var g groupLint
	g.first = make(map[string]int)
	for i := range l.lines {
		s := &l.lines[i]
		switch {
		case s.agent():
			l.lintGroupAgent(&g, s)
		case s.isRule():
			l.lintGroupRule(&g, s)
		case s.name == "crawl-delay":
			l.lintGroupDelay(&g, s)
		}
	}
	if g.inRun && g.started {
		l.say(g.last, LintHint, "GRP-04", fmt.Sprintf("the last group, of %q, has no rules", clip(g.agent)), "it allows everything to its agents",
			"\"Allow: /\" says it to whoever reads the file")
	}
}

// A groupLint is how far groups have been read.
type groupLint struct {
	started bool           // a user-agent line has been seen
	inRun   bool           // the next user-agent line joins the group
	agent   string         // the value of the last user-agent line
	last    int            // its line
	delay   int            // the line of a Crawl-delay in this run, 0 if none
	first   map[string]int // by token in lower case, the line that first names it
	all     bool           // the group is for "*", too
	orphans bool           // rules before any group have been reported
	advised bool           // so has a site that is closed to all
}

// lintGroupAgent looks for groups that Crawl-delay does not end, and for
// agents listed twice.
func (l *linter) lintGroupAgent(g *groupLint, s *source) {
	if g.inRun && g.delay > 0 && !l.o.DelayEndsRun && !l.yandex() {
		l.say(g.delay, LintWarning, "LINT-04", fmt.Sprintf("crawl-delay does not end the group of %q", clip(g.agent)),
			fmt.Sprintf("Google gives it the rules after line %d, Yandex does not (GRP-15, GRP-16); the delay itself is only for %q", s.number, clip(g.agent)),
			"put the rules of a group before its crawl-delay, or \"Disallow:\" if it has none")
	}
	if !g.inRun {
		g.all = false
	}
	g.started, g.inRun, g.delay, g.agent, g.last = true, true, 0, s.value, s.number
	g.all = g.all || s.value == "*"
	token := strings.ToLower(leadingToken(s.value))
	if s.value == "*" {
		token = "*"
	}
	if token == "" {
		return
	}
	if line, ok := g.first[token]; ok {
		l.say(s.number, LintWarning, "GRP-06", fmt.Sprintf("%q is named on line %d already", token, line),
			"Google joins the groups; a simpler crawler reads the first only", "one group for each crawler")
		return
	}
	g.first[token] = s.number
}

// lintGroupRule looks for rules that belong to no group, and tells who closes
// a site what that does (LINT-07, LINT-08).
func (l *linter) lintGroupRule(g *groupLint, s *source) {
	if !g.started && !g.orphans {
		g.orphans = true
		l.say(s.number, LintError, "GRP-12", "a rule before the first user-agent line", ignored, "probably \"User-agent: *\" is missing above it")
	}
	if g.all && !g.advised && s.name == "disallow" && (s.value == "/" || s.value == "/*") {
		g.advised = true
		l.say(s.number, LintHint, "LINT-08", "the site is closed to all crawlers", "pages that no allow rule opens are not fetched; their URLs may stay in search",
			"to pause crawling for a while answer 503 to every URL, neither 401 nor 403 (LINT-07)")
	}
	g.inRun, g.delay = false, 0
}

// lintGroupDelay remembers a Crawl-delay between user-agent lines.
func (l *linter) lintGroupDelay(g *groupLint, s *source) {
	switch {
	case !g.started:
		l.say(s.number, LintError, "DELAY-09", "a crawl-delay before the first user-agent line", ignored, "put it into a group, after its rules")
	case g.inRun:
		g.delay = s.number
	}
}
