package robots

import (
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/match"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// RulesFor compiles what the file says to one agent: the rules of all groups that
// name it most specifically, and of no other (GRP-06, GRP-07, AGENT-01).
func (f *File) RulesFor(a Agent) *Rules {
	r := f.compileRulesFor(a)
	if indexing, ok := presetAgents[a.indexingPreset]; ok && f.dialect != GoogleOSS {
		r.indexingRobotRules = f.compileRulesFor(indexing)
	}
	return r
}

// compileRulesFor builds the rules of an agent. They keep nothing of the file's text: a
// crawl holds rules for many hosts, and files are mostly comments and other agents' groups.
func (f *File) compileRulesFor(a Agent) *Rules {
	r := &Rules{isGoogleOSS: f.dialect == GoogleOSS}
	best := f.bestMatchRank(a)
	switch {
	case best != rankNoMatch:
		f.compileCombinedGroup(r, a, best)
		r.rateAndVisitTimes = newRateAndVisitTimes(f.recordLines(a, best, syntax.RequestRate, syntax.VisitTime))
	case a.ignoresStarRules:
		starRules := f.compileRulesFor(Agent{}) // EXC-09
		r.delay, r.hasDelay, r.rateAndVisitTimes = starRules.delay, starRules.hasDelay, starRules.rateAndVisitTimes
	}
	return r
}

// LinesFor returns the lines with one of the fields, named in lower case, that speak to an
// agent, in the order of the file. It is for the extensions of the format that shape no
// groups (GRP-08), such as Content-Usage. They are those of the records that name the
// agent most specifically, or "*" if it IgnoresStarRules and none does. A record is one or
// more user-agent lines and what follows them. A rule, a Crawl-delay or one of the fields
// ends a run of user-agent lines.
func (f *File) LinesFor(a Agent, fields ...string) []Line {
	kinds := make([]syntax.FieldKind, 0, len(fields))
	for _, name := range fields {
		if kind, ok := syntax.ParseFieldKind(name); ok {
			kinds = append(kinds, kind)
		}
	}
	best := f.bestMatchRank(a)
	if best == rankNoMatch && a.ignoresStarRules { // EXC-09
		a = Agent{}
		best = f.bestMatchRank(a)
	}
	var lines []Line
	for _, l := range f.recordLines(a, best, kinds...) {
		lines = append(lines, Line{Field: l.Field.String(), Value: l.Value, Number: int(l.Number)})
	}
	return lines
}

// recordLines returns the lines of the given kinds of the records that name a with the
// given rank. See LinesFor.
func (f *File) recordLines(a Agent, best agentRank, kinds ...syntax.FieldKind) []syntax.Line {
	if best == rankNoMatch || !slices.ContainsFunc(kinds, f.kinds.has) {
		return nil
	}
	var found []syntax.Line
	var record userAgentRun
	for _, l := range f.lines {
		switch isWanted := slices.Contains(kinds, l.Field); {
		case l.Field == syntax.UserAgent:
			record.addAgentLine(f.agentMatchRank(a, l.Value) == best)
		case isWanted, l.Field == syntax.Allow, l.Field == syntax.Disallow, l.Field == syntax.CrawlDelay:
			record.isOpen = false
			if isWanted && record.namesAgent {
				found = append(found, l)
			}
		}
	}
	return found
}

// bestMatchRank returns how specifically the user-agent line that fits a best names it.
func (f *File) bestMatchRank(a Agent) agentRank {
	best := rankNoMatch
	for _, l := range f.lines {
		if l.Field == syntax.UserAgent {
			best = min(best, f.agentMatchRank(a, l.Value))
		}
	}
	return best
}

// agentMatchRank returns how specifically a user-agent value names a in the dialect.
func (f *File) agentMatchRank(a Agent, value string) agentRank {
	switch f.dialect {
	case Yandex:
		return a.yandexMatchRank(value)
	case GoogleOSS:
		return a.googleOSSMatchRank(value)
	}
	return a.matchRank(value)
}

// compileCombinedGroup collects in r what follows the user-agent lines of the given rank. A run
// of such lines ends at the next rule. For the delay it ends at a Crawl-delay
// line, too, so that each record keeps its own (DELAY-09), though only rules
// shape groups (GRP-08, GRP-16).
func (f *File) compileCombinedGroup(r *Rules, a Agent, best agentRank) {
	var agentValues []string                      // that name the agent
	rules := make([]syntax.Line, 0, len(f.lines)) // allow and disallow, void ones left out
	var group, record userAgentRun
	for _, l := range f.lines {
		switch l.Field {
		case syntax.UserAgent:
			named := f.agentMatchRank(a, l.Value) == best
			if named {
				agentValues, r.groupAgentLineNumbers = append(agentValues, l.Value), append(r.groupAgentLineNumbers, int(l.Number))
			}
			group.addAgentLine(named)
			record.addAgentLine(named)
		case syntax.Allow, syntax.Disallow:
			group.isOpen, record.isOpen = false, false
			if group.namesAgent && syntax.BeginsWithSlashOrStar(l.Value) {
				rules = append(rules, l)
			}
		case syntax.CrawlDelay:
			record.isOpen, group.isOpen = false, group.isOpen && !f.crawlDelaySplitsGroups
			if d, ok := syntax.ParseCrawlDelay(l.Value); ok && record.namesAgent {
				r.delay, r.hasDelay = max(r.delay, d), true // DELAY-10
			}
		}
	}
	r.ruleSet = match.NewRuleSet(newRuleList(rules), r.isGoogleOSS)
	r.groupAgents = strings.Clone(strings.Join(slices.Compact(agentValues), ", "))
}

// A userAgentRun is one or more user-agent lines that share what follows.
type userAgentRun struct {
	isOpen     bool // the next user-agent line still belongs to it
	namesAgent bool // one of its lines names the agent
}

func (r *userAgentRun) addAgentLine(named bool) {
	r.namesAgent = named || r.namesAgent && r.isOpen
	r.isOpen = true
}
