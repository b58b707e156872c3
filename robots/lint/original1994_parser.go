package lint

import (
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/match"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// An original1994File is a file as a robot of the 1994 standard reads it. It serves to
// warn authors (LINT-04) and never to crawl.
type original1994File []original1994Record

type original1994Record struct {
	agents     []string
	disallowed []match.Pattern // paths; the standard has no other rules (COMPAT-01)
}

// parseOriginal1994 reads text as the standard of 1994 asks: blank lines separate
// records, lines with a comment alone do not, and a user-agent line after rules
// is ignored unless a blank line stands before it (COMPAT-04, COMPAT-05).
func parseOriginal1994(text string) original1994File {
	var c original1994File
	var r original1994Record
	hasRule := false // r has a rule, if only one that closes nothing
	endRecord := func() {
		if len(r.agents) > 0 {
			c = append(c, r)
		}
		r, hasRule = original1994Record{}, false
	}
	for text != "" {
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
			if l.Value != "" {
				r.disallowed = append(r.disallowed, match.CompileLiteral(l.Value)) // "*" and "$" are characters (COMPAT-02, COMPAT-03)
			}
		}
	}
	endRecord()
	return c
}

// allows reports whether the agent may visit path: as the first record that
// names it says, else as the first one for "*" does.
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

func (c original1994File) recordFor(agent string) *original1994Record {
	named := func(value string) bool { return value == agent || strings.EqualFold(syntax.LeadingToken(value), agent) }
	for i := range c {
		if slices.ContainsFunc(c[i].agents, named) {
			return &c[i]
		}
	}
	return nil
}
