package lint

import (
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/match"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// FileChanges are how two versions of a robots.txt differ.
type FileChanges struct {
	// AgentChanges are those that either file names, and "*", that now have other
	// rules or another delay: "*", then in the order of the new file and the old.
	AgentChanges    []AgentChange `json:"agents,omitempty"`
	SitemapsAdded   []string      `json:"sitemaps_added,omitempty"`   // that only the new file names
	SitemapsRemoved []string      `json:"sitemaps_removed,omitempty"` // that only the old file names
	// AgentsNotComparedCount is how many agents were not compared: only the first 100 are.
	AgentsNotComparedCount int `json:"agents_not_compared,omitempty"`
}

// An AgentChange is what changes for the agent with a token. What counts is
// what binds it: an agent without a group of its own has the rules of "*".
type AgentChange struct {
	Agent                    string        `json:"agent"`             // product token in lower case, or "*"
	AddedRules               []RuleLine    `json:"added,omitempty"`   // as in the new file
	RemovedRules             []RuleLine    `json:"removed,omitempty"` // as in the old file
	OldDelay                 OptionalDelay `json:"old_delay"`
	NewDelay                 OptionalDelay `json:"new_delay"`
	OldRateAndVisitTimeLines []string      `json:"old_pace,omitempty"` // as Rules.RateAndVisitTimeLines
	NewRateAndVisitTimeLines []string      `json:"new_pace,omitempty"`
}

// A RuleLine is a rule and where it stands.
type RuleLine struct {
	Rule string `json:"rule"` // as Verdict.Rule
	Line int    `json:"line"` // counted from 1
}

// An OptionalDelay is a pause that rules may ask for.
type OptionalDelay struct {
	Duration time.Duration // between visits; 0 unless Given
	Given    bool          // the file says so, though it may be 0
}

// MarshalText writes the pause as time.Duration does, "none" if none is given.
func (d OptionalDelay) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String returns what MarshalText writes.
func (d OptionalDelay) String() string {
	if !d.Given {
		return "none"
	}
	return d.Duration.String()
}

// IsEmpty reports whether nothing differs.
func (c FileChanges) IsEmpty() bool {
	return len(c.AgentChanges)+len(c.SitemapsAdded)+len(c.SitemapsRemoved) == 0
}

// isEmpty reports whether nothing differs.
func (c *AgentChange) isEmpty() bool {
	return len(c.AddedRules)+len(c.RemovedRules) == 0 && c.OldDelay == c.NewDelay && slices.Equal(c.OldRateAndVisitTimeLines, c.NewRateAndVisitTimeLines)
}

// Diff compares two versions of a file by what they mean: order, comments and
// spelling make no difference. Its time grows with the number of agents that
// are named times the number of lines.
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

// diffRules compares what two files say to the agent with a token. A rule that is spelt
// otherwise and means the same is no change.
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

// ComparedAgents returns the agents that Diff compares: the tokens that either file
// names, in lower case, and "*", each once: "*", then in the order of the new
// file and the old. There are at most 100; omitted is how many more there were.
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

// A canonicalRule is what two rules have in common that always do the same.
type canonicalRule struct {
	allow         bool
	length        int
	canonicalPath string
}

// A comparedRule is a rule, and what it means.
type comparedRule struct {
	RuleLine
	meaning canonicalRule
}

// canonicalRules returns what each of the rules of an agent means, in their order.
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

// rulesNotIn returns those of rules that others do not have, in the order of the file,
// each meaning once.
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

func sortedSitemaps(f *robots.File) []string {
	var all []string
	for _, u := range f.Sitemaps() {
		all = append(all, u.String())
	}
	slices.SortFunc(all, strings.Compare)
	return all
}

// sortedDifference returns what sorted all has and sorted others has not.
func sortedDifference(all, others []string) []string {
	var rest []string
	for _, s := range all {
		if _, ok := slices.BinarySearch(others, s); !ok {
			rest = append(rest, s)
		}
	}
	return rest
}
