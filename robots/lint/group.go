package lint

import (
	"fmt"
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// lintGroups checks how lines form groups.
func (l *linter) lintGroups() {
	var g groupLintState
	g.firstLineOfToken = make(map[string]int)
	for i := range l.lines {
		s := &l.lines[i]
		switch {
		case s.isUserAgent():
			l.lintAgentInGroup(&g, s)
		case s.isRule():
			l.lintOrphanAndDisallowAllRule(&g, s)
		case s.fieldName == "crawl-delay":
			l.lintCrawlDelayPlacement(&g, s)
		}
	}
	if g.inAgentRun && g.sawAgentLine {
		l.addFinding(g.lastAgentLine, Hint, "GRP-04",
			fmt.Sprintf("the last group, of %q, has no rules", truncateForMessage(g.lastAgent)),
			"its agents may fetch everything",
			"\"Allow: /\" says so explicitly")
	}
}

// A groupLintState is the state of lintGroups after some of the lines.
type groupLintState struct {
	sawAgentLine        bool           // there was a user-agent line
	inAgentRun          bool           // the next user-agent line joins the group
	lastAgent           string         // the value of the last user-agent line
	lastAgentLine       int            // the number of that line
	crawlDelayLine      int            // the line of a Crawl-delay in this run of user-agent lines, 0 if none
	firstLineOfToken    map[string]int // by token in lower case: the line that first names it
	namesStar           bool           // the group names "*", perhaps among others
	reportedOrphanRule  bool           // a rule before the first group was reported
	reportedDisallowAll bool           // a rule that closes the site to all crawlers was reported
}

// lintAgentInGroup checks a user-agent line. It reports a group that a Crawl-delay does not end
// and an agent that an earlier line names.
func (l *linter) lintAgentInGroup(g *groupLintState, s *lintLine) {
	if g.inAgentRun && g.crawlDelayLine > 0 && !l.opts.CrawlDelaySplitsGroups && !l.usesYandexDialect() {
		l.addFinding(g.crawlDelayLine, Warning, "LINT-04",
			fmt.Sprintf("crawl-delay does not end the group of %q", truncateForMessage(g.lastAgent)),
			fmt.Sprintf("Google gives it the rules after line %d, Yandex does not (GRP-15, GRP-16); the delay "+
				"itself is only for %q", s.number, truncateForMessage(g.lastAgent)),
			"put the rules of a group before its crawl-delay, or \"Disallow:\" if it has none")
	}
	// The line continues the group, or begins another one.
	if !g.inAgentRun {
		g.namesStar = false
	}
	g.sawAgentLine, g.inAgentRun, g.crawlDelayLine, g.lastAgent, g.lastAgentLine = true, true, 0, s.value, s.number
	g.namesStar = g.namesStar || s.value == "*"
	// Google joins the groups of an agent; other crawlers may not.
	token := strings.ToLower(syntax.LeadingToken(s.value))
	if s.value == "*" {
		token = "*"
	}
	if token == "" {
		return
	}
	if line, ok := g.firstLineOfToken[token]; ok {
		l.addFinding(s.number, Warning, "GRP-06", fmt.Sprintf("%q is named on line %d already", token, line),
			"Google joins the groups; a simpler crawler reads only the first", "one group for each crawler")
		return
	}
	g.firstLineOfToken[token] = s.number
}

// lintOrphanAndDisallowAllRule checks a rule. It reports a rule before the first group, and explains
// the effect of a rule that closes the site to all crawlers (LINT-07, LINT-08).
func (l *linter) lintOrphanAndDisallowAllRule(g *groupLintState, s *lintLine) {
	if !g.sawAgentLine && !g.reportedOrphanRule {
		g.reportedOrphanRule = true
		l.addFinding(s.number, Error, "GRP-12", "a rule before the first user-agent line", effectIgnored,
			"probably \"User-agent: *\" is missing above it")
	}
	if g.namesStar && !g.reportedDisallowAll && s.fieldName == "disallow" && (s.value == "/" || s.value == "/*") {
		g.reportedDisallowAll = true
		l.addFinding(s.number, Hint, "LINT-08", "the site is closed to all crawlers",
			"crawlers fetch only pages that an allow rule opens; other URLs may stay in search",
			"to pause crawling for a while, answer 503 to every URL, not 401 or 403 (LINT-07)")
	}
	g.inAgentRun, g.crawlDelayLine = false, 0
}

// lintCrawlDelayPlacement checks the position of a Crawl-delay line. It records a Crawl-delay in a run
// of user-agent lines for lintAgentInGroup.
func (l *linter) lintCrawlDelayPlacement(g *groupLintState, s *lintLine) {
	switch {
	case !g.sawAgentLine:
		l.addFinding(s.number, Error, "DELAY-09", "a crawl-delay before the first user-agent line", effectIgnored,
			"put it into a group, after its rules")
	case g.inAgentRun:
		g.crawlDelayLine = s.number
	}
}
