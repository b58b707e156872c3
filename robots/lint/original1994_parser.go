package lint

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum/robots/internal/match"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// An original1994File is a file as a robot of the 1994 standard reads it. It serves to warn authors
// (LINT-04); a crawl does not use it.
type original1994File struct {
	records          []original1994Record
	recordOfRuleLine map[int]int // by number of a disallow line that belongs to a record: its index in records
}

// An original1994Record is a record of the 1994 standard: agents and what they must not visit.
type original1994Record struct {
	agents     []string
	disallowed []match.Pattern // the standard has no allow rules (COMPAT-01)
}

// parseOriginal1994 parses text by the 1994 standard: blank lines separate records, lines that consist
// of a comment do not, and a user-agent line after rules is ignored unless a blank line precedes it
// (COMPAT-04, COMPAT-05).
func parseOriginal1994(text string) original1994File {
	c := original1994File{recordOfRuleLine: make(map[int]int)}
	var r original1994Record
	hasRule := false // r has a rule, perhaps one without a path
	endRecord := func() {
		if len(r.agents) > 0 {
			c.records = append(c.records, r)
		}
		r, hasRule = original1994Record{}, false
	}
	for number := 1; text != ""; number++ {
		var raw string
		raw, text = syntax.CutLine(text)
		if strings.Trim(raw, syntax.BlankChars) == "" {
			endRecord()
			continue
		}
		l, ok := syntax.ParseLine(raw)
		switch {
		case !ok:
		case l.Field == syntax.UserAgent && !hasRule:
			r.agents = append(r.agents, l.Value)
		case l.Field == syntax.Disallow && len(r.agents) > 0:
			hasRule = true
			c.recordOfRuleLine[number] = len(c.records) // where endRecord puts r
			if l.Value != "" {
				// "*" and "$" are ordinary characters (COMPAT-02, COMPAT-03).
				r.disallowed = append(r.disallowed, match.CompileLiteral(l.Value))
			}
		}
	}
	endRecord()
	return c
}

// allows reports whether the agent may visit path: by the first record that names the agent, otherwise
// by the first record for "*".
func (c original1994File) allows(agent, path string) bool {
	r := c.recordFor(agent)
	if r == nil {
		r = c.recordFor("*")
	}
	if r == nil {
		return true
	}
	return !slices.ContainsFunc(r.disallowed, func(p match.Pattern) bool { return p.Matches(path) })
}

// recordFor returns the first record that names the agent, nil if no record does.
func (c original1994File) recordFor(agent string) *original1994Record {
	for i := range c.records {
		if c.records[i].names(agent) {
			return &c.records[i]
		}
	}
	return nil
}

// isInAnotherRecord reports whether the rule on line is in a record that does not name the agent. It
// is false for a rule that is in no record, because of a blank line above it.
func (c original1994File) isInAnotherRecord(line int, agent string) bool {
	i, ok := c.recordOfRuleLine[line]
	return ok && !c.records[i].names(agent)
}

// names reports whether a user-agent line of the record has the agent's name as a whole word.
func (r original1994Record) names(agent string) bool {
	isSeparator := func(c rune) bool { return c != '*' && (c >= utf8.RuneSelf || !syntax.IsTokenByte(byte(c))) }
	return slices.ContainsFunc(r.agents, func(value string) bool {
		return slices.ContainsFunc(strings.FieldsFunc(value, isSeparator), func(word string) bool {
			return strings.EqualFold(word, agent)
		})
	})
}
