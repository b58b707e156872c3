package robots

import (
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/match"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// RulesFor compiles the rules for one agent: those of all groups that name it most specifically, and
// no others (GRP-06, GRP-07, AGENT-01).
func (f *File) RulesFor(a Agent) *Rules {
	r := f.compileRulesFor(a)
	if indexing, ok := presetAgents[a.indexingPreset]; ok && f.dialect != GoogleOSS {
		r.indexingRobotRules = f.compileRulesFor(indexing)
	}
	return r
}

// compileRulesFor compiles the rules of a, without those of its main robot. They do not keep the text
// of the file in memory: a crawl holds rules for many hosts, and files consist mostly of comments and
// of groups for other agents.
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

// LinesFor returns the lines that address an agent and have one of the given fields, named in lower
// case, in the order of the file. It serves extensions of the format that do not shape groups
// (GRP-08), such as Content-Usage. Unknown fields are ignored.
//
// A record is one or more consecutive user-agent lines and the lines that follow them. A rule, a
// Crawl-delay or one of the given fields ends a run of user-agent lines. LinesFor reads the records
// that name the agent most specifically. If no record names an agent that IgnoresStarRules, it reads
// the records for "*".
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

// recordLines returns the lines of the given kinds from the records that name a with the rank best.
// LinesFor defines a record.
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

// bestMatchRank returns the rank of the user-agent line that names a most specifically, rankNoMatch
// if no line names it.
func (f *File) bestMatchRank(a Agent) agentRank {
	best := rankNoMatch
	for _, l := range f.lines {
		if l.Field == syntax.UserAgent {
			best = min(best, f.agentMatchRank(a, l.Value))
		}
	}
	return best
}

// agentMatchRank returns the rank of a user-agent value for a in the dialect of the file.
func (f *File) agentMatchRank(a Agent, value string) agentRank {
	switch f.dialect {
	case Yandex:
		return a.yandexMatchRank(value)
	case GoogleOSS:
		return a.googleOSSMatchRank(value)
	}
	return a.matchRank(value)
}

// compileCombinedGroup stores in r the rules and the delay that follow the user-agent lines of rank
// best. A run of user-agent lines ends at the next rule. For the delay it also ends at a Crawl-delay
// line, so that each record keeps its own delay (DELAY-09), although only rules shape groups
// (GRP-08, GRP-16).
func (f *File) compileCombinedGroup(r *Rules, a Agent, best agentRank) {
	var agentValues []string                      // user-agent values that name the agent
	rules := make([]syntax.Line, 0, len(f.lines)) // allow and disallow lines, without invalid ones
	// group is the run that the next rule belongs to, record that of the next Crawl-delay.
	var group, record userAgentRun
	for _, l := range f.lines {
		switch l.Field {
		case syntax.UserAgent:
			named := f.agentMatchRank(a, l.Value) == best
			if named {
				agentValues, r.groupAgentLineNumbers =
					append(agentValues, l.Value), append(r.groupAgentLineNumbers, int(l.Number))
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

// A userAgentRun is a run of user-agent lines, which share the lines that follow.
type userAgentRun struct {
	isOpen     bool // the next user-agent line still belongs to it
	namesAgent bool // one of its lines names the agent
}

// addAgentLine adds a user-agent line to the run, or begins a new run if it is closed. named says
// that the line names the agent.
func (r *userAgentRun) addAgentLine(named bool) {
	r.namesAgent = named || r.namesAgent && r.isOpen
	r.isOpen = true
}
