package robots

import (
	"slices"
	"strings"
	"time"
)

// Changes are how two versions of a robots.txt differ.
type Changes struct {
	// Agents are those that either file names, and "*", that now have other
	// rules or another delay: "*", then in the order of the new file and the old.
	Agents          []AgentChange `json:"agents,omitempty"`
	SitemapsAdded   []string      `json:"sitemaps_added,omitempty"`   // that only the new file names
	SitemapsRemoved []string      `json:"sitemaps_removed,omitempty"` // that only the old file names
	// Left is how many agents were not compared: only the first 100 are.
	Left int `json:"agents_not_compared,omitempty"`
}

// An AgentChange is what changes for the agent with a token. What counts is
// what binds it: an agent without a group of its own has the rules of "*".
type AgentChange struct {
	Agent string `json:"agent"` // product token in lower case, or "*"
	RulesChange
}

// A RulesChange is how one set of rules differs from another.
type RulesChange struct {
	Added    []RuleLine `json:"added,omitempty"`   // as in the new file
	Removed  []RuleLine `json:"removed,omitempty"` // as in the old file
	OldDelay Delay      `json:"old_delay"`
	NewDelay Delay      `json:"new_delay"`
	OldPace  []string   `json:"old_pace,omitempty"` // as Rules.PaceLines
	NewPace  []string   `json:"new_pace,omitempty"`
}

// A RuleLine is a rule and where it stands.
type RuleLine struct {
	Rule string `json:"rule"` // as Verdict.Rule
	Line int    `json:"line"` // counted from 1
}

// A Delay is a pause that rules may ask for.
type Delay struct {
	Pause time.Duration // between visits; 0 unless Given
	Given bool          // the file says so, though it may be 0
}

// MarshalText writes the pause as time.Duration does, "none" if none is given.
func (d Delay) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String returns what MarshalText writes.
func (d Delay) String() string {
	if !d.Given {
		return "none"
	}
	return d.Pause.String()
}

// Empty reports whether nothing differs.
func (c Changes) Empty() bool {
	return len(c.Agents)+len(c.SitemapsAdded)+len(c.SitemapsRemoved) == 0
}

// Empty reports whether nothing differs.
func (c RulesChange) Empty() bool {
	return len(c.Added)+len(c.Removed) == 0 && c.OldDelay == c.NewDelay && slices.Equal(c.OldPace, c.NewPace)
}

// Diff compares two versions of a file by what they mean: order, comments and
// spelling make no difference. Its time grows with the number of agents that
// are named times the number of lines.
func Diff(old, new *File) Changes {
	var c Changes
	tokens, left := DiffAgents(old, new)
	c.Left = left
	for _, token := range tokens {
		a := Named(token)
		if change := DiffRules(old.For(a), new.For(a)); !change.Empty() {
			c.Agents = append(c.Agents, AgentChange{token, change})
		}
	}
	before, after := sitemapSet(old), sitemapSet(new)
	c.SitemapsAdded, c.SitemapsRemoved = without(after, before), without(before, after)
	return c
}

// DiffRules compares what two files say to one agent. A rule that is spelt
// otherwise and means the same is no change.
func DiffRules(old, new *Rules) RulesChange {
	c := RulesChange{Added: new.beyond(old), Removed: old.beyond(new)}
	c.OldDelay.Pause, c.OldDelay.Given = old.CrawlDelay()
	c.NewDelay.Pause, c.NewDelay.Given = new.CrawlDelay()
	c.OldPace, c.NewPace = old.PaceLines(), new.PaceLines()
	return c
}

// DiffAgents returns the agents that Diff compares: the tokens that either file
// names, in lower case, and "*", each once: "*", then in the order of the new
// file and the old. There are at most 100; left is how many more there were.
func DiffAgents(old, new *File) (tokens []string, left int) {
	tokens = slices.Concat([]string{"*"}, new.Agents(), old.Agents())
	seen := make(map[string]bool)
	tokens = slices.DeleteFunc(tokens, func(t string) bool {
		again := seen[t]
		seen[t] = true
		return again
	})
	compared := min(len(tokens), maxComparedAgents)
	return tokens[:compared], len(tokens) - compared
}

// meaning is what two rules have in common that always do the same.
type meaning struct {
	allow    bool
	length   int
	skeleton string
}

func (r *Rules) meaning(made *rule) meaning {
	if r.verbatim {
		return meaning{made.allow, made.length, ossEscape(made.path())}
	}
	return meaning{made.allow, made.length, made.skeleton()}
}

// beyond returns the rules of r that o does not have, in the order of the file.
func (r *Rules) beyond(o *Rules) []RuleLine {
	has := make(map[meaning]bool, len(o.all))
	for i := range o.all {
		has[o.meaning(&o.all[i])] = true
	}
	var lines []RuleLine
	for i := range r.all {
		made := &r.all[i]
		if m := r.meaning(made); !has[m] {
			has[m] = true // once is enough
			lines = append(lines, RuleLine{made.text, made.line})
		}
	}
	return lines
}

func sitemapSet(f *File) []string {
	var all []string
	for _, u := range f.Sitemaps() {
		all = append(all, u.String())
	}
	slices.SortFunc(all, strings.Compare)
	return all
}

// without returns what sorted all has and sorted others has not.
func without(all, others []string) []string {
	var left []string
	for _, s := range all {
		if _, ok := slices.BinarySearch(others, s); !ok {
			left = append(left, s)
		}
	}
	return left
}
