package lint

import (
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/match"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// FileChanges are the differences between two versions of a robots.txt.
type FileChanges struct {
	// AgentChanges are the agents whose rules or delays differ, among the result of ComparedAgents
	// and in that order.
	AgentChanges    []AgentChange `json:"agents,omitempty"`
	SitemapsAdded   []string      `json:"sitemaps_added,omitempty"`   // sitemaps that only the new file names
	SitemapsRemoved []string      `json:"sitemaps_removed,omitempty"` // sitemaps that only the old file names
	// AgentsNotComparedCount is how many agents were not compared. Only the first 100 are compared.
	AgentsNotComparedCount int `json:"agents_not_compared,omitempty"`
}

// An AgentChange is what changes for one agent. It compares the rules that bind the agent, which are
// those of "*" if no group names it.
type AgentChange struct {
	Agent                    string        `json:"agent"`             // its product token in lower case, or "*"
	AddedRules               []RuleLine    `json:"added,omitempty"`   // rules that only the new file has, by line
	RemovedRules             []RuleLine    `json:"removed,omitempty"` // rules that only the old file has, by line
	OldDelay                 OptionalDelay `json:"old_delay"`
	NewDelay                 OptionalDelay `json:"new_delay"`
	OldRateAndVisitTimeLines []string      `json:"old_pace,omitempty"` // from Rules.RateAndVisitTimeLines
	NewRateAndVisitTimeLines []string      `json:"new_pace,omitempty"`
}

// A RuleLine is a rule and its line.
type RuleLine struct {
	Rule string `json:"rule"` // as in Verdict.Rule
	Line int    `json:"line"` // its line number in the file, from 1
}

// An OptionalDelay is a Crawl-delay that a file may or may not set.
type OptionalDelay struct {
	Duration time.Duration // between two visits; 0 unless Given
	Given    bool          // the file sets the delay, perhaps to 0
}

// MarshalText returns what String returns. The error is always nil.
func (d OptionalDelay) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String returns the delay in the form of time.Duration, or "none" if the file does not set it.
func (d OptionalDelay) String() string {
	if !d.Given {
		return "none"
	}
	return d.Duration.String()
}

// IsEmpty reports whether there are no differences.
func (c FileChanges) IsEmpty() bool {
	return len(c.AgentChanges)+len(c.SitemapsAdded)+len(c.SitemapsRemoved) == 0
}

// isEmpty reports whether nothing changes for the agent.
func (c *AgentChange) isEmpty() bool {
	return len(c.AddedRules)+len(c.RemovedRules) == 0 && c.OldDelay == c.NewDelay &&
		slices.Equal(c.OldRateAndVisitTimeLines, c.NewRateAndVisitTimeLines)
}

// Diff compares the effects of two versions of a file. Order, comments and spelling do not matter. Its
// time is linear in the number of compared agents times the number of lines.
func Diff(old, new *robots.File) FileChanges {
	var c FileChanges
	tokens, omitted := ComparedAgents(old, new)
	c.AgentsNotComparedCount = omitted
	for _, token := range tokens {
		if change := diffRules(old, new, token); !change.isEmpty() {
			c.AgentChanges = append(c.AgentChanges, change)
		}
	}
	before, after := sortedSitemaps(old), sortedSitemaps(new)
	c.SitemapsAdded, c.SitemapsRemoved = sortedDifference(after, before), sortedDifference(before, after)
	return c
}

// diffRules compares the rules of two files for the agent with the token. Another spelling of a rule
// with the same meaning is not a change.
func diffRules(oldFile, newFile *robots.File, token string) AgentChange {
	a := robots.AgentFromName(token)
	old, new := oldFile.RulesFor(a), newFile.RulesFor(a)
	c := AgentChange{Agent: token}
	c.OldDelay.Duration, c.OldDelay.Given = old.CrawlDelay()
	c.NewDelay.Duration, c.NewDelay.Given = new.CrawlDelay()
	c.OldRateAndVisitTimeLines, c.NewRateAndVisitTimeLines = old.RateAndVisitTimeLines(), new.RateAndVisitTimeLines()
	oldRules, newRules := canonicalRules(old.Lines(), oldFile.Dialect()), canonicalRules(new.Lines(), newFile.Dialect())
	c.AddedRules, c.RemovedRules = rulesNotIn(newRules, oldRules), rulesNotIn(oldRules, newRules)
	return c
}

// ComparedAgents returns the agents that Diff compares, without repetitions: "*", then the tokens that
// the new file names, then those that the old file names, in lower case. It returns at most 100;
// omitted is the number of further agents.
func ComparedAgents(old, new *robots.File) (tokens []string, omitted int) {
	tokens = slices.Concat([]string{"*"}, new.AgentTokens(), old.AgentTokens())
	seen := make(map[string]bool)
	tokens = slices.DeleteFunc(tokens, func(t string) bool {
		duplicate := seen[t]
		seen[t] = true
		return duplicate
	})
	compared := min(len(tokens), maxComparedAgents)
	return tokens[:compared], len(tokens) - compared
}

// A canonicalRule is the meaning of a rule: two rules with equal meanings always have the same effect.
type canonicalRule struct {
	allow         bool
	length        int
	canonicalPath string
}

// A comparedRule is a rule with its meaning.
type comparedRule struct {
	RuleLine
	meaning canonicalRule
}

// canonicalRules returns the rules of an agent with their meanings, in the same order.
func canonicalRules(lines []robots.Line, d robots.Dialect) []comparedRule {
	rules := make([]comparedRule, len(lines))
	for i, l := range lines {
		p := match.CompilePattern(l.Value)
		meaning := canonicalRule{l.Field == syntax.Allow.String(), p.Length, p.Skeleton()}
		if d == robots.GoogleOSS {
			escaped := match.EscapeGoogleOSS(l.Value)
			meaning.length, meaning.canonicalPath = len(escaped), escaped
		}
		rules[i] = comparedRule{RuleLine{l.Field + ": " + l.Value, l.Number}, meaning}
	}
	return rules
}

// rulesNotIn returns the rules whose meaning no rule in others has, in the order of the file and one
// for each meaning.
func rulesNotIn(rules, others []comparedRule) []RuleLine {
	has := make(map[canonicalRule]bool, len(others))
	for _, o := range others {
		has[o.meaning] = true
	}
	var lines []RuleLine
	for _, r := range rules {
		if !has[r.meaning] {
			has[r.meaning] = true
			lines = append(lines, r.RuleLine)
		}
	}
	return lines
}

// sortedSitemaps returns the sitemaps that f names, sorted.
func sortedSitemaps(f *robots.File) []string {
	var all []string
	for _, u := range f.Sitemaps() {
		all = append(all, u.String())
	}
	slices.SortFunc(all, strings.Compare)
	return all
}

// sortedDifference returns the strings in all that are not in others. Both are sorted.
func sortedDifference(all, others []string) []string {
	var rest []string
	for _, s := range all {
		if _, ok := slices.BinarySearch(others, s); !ok {
			rest = append(rest, s)
		}
	}
	return rest
}
