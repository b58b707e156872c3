package robots

import "strings"

// A classic is a file as a robot of the 1994 standard reads it. It serves to
// warn authors (LINT-04) and never to crawl.
type classic struct {
	records []original1994Record
}

type original1994Record struct {
	agents     []string
	disallowed []literal // paths; the standard has no other rules (COMPAT-01)
}

// parseClassic reads text as the standard of 1994 asks: blank lines separate
// records, lines with a comment alone do not, and a user-agent line after rules
// is ignored unless a blank line stands before it (COMPAT-04, COMPAT-05).
func parseClassic(text string) classic {
	var c classic
	var r original1994Record
	ruled := false // r has a rule, if only one that closes nothing
	end := func() {
		if len(r.agents) > 0 {
			c.records = append(c.records, r)
		}
		r, ruled = original1994Record{}, false
	}
	for text != "" {
		var raw string
		raw, text = cutLine(text)
		if strings.Trim(raw, blank) == "" {
			end()
			continue
		}
		l, ok := parseLine(raw)
		switch {
		case !ok:
		case l.field == userAgent && !ruled:
			r.agents = append(r.agents, l.value)
		case l.field == disallow && len(r.agents) > 0:
			ruled = true
			if l.value != "" {
				path, _ := newLiteral(l.value) // "*" and "$" are characters (COMPAT-02, COMPAT-03)
				r.disallowed = append(r.disallowed, path)
			}
		}
	}
	end()
	return c
}

// allows reports whether the agent may visit path: as the first record that
// names it says, else as the first one for "*" does.
func (c *classic) allows(agent, path string) bool {
	r := c.recordFor(agent)
	if r == nil {
		r = c.recordFor("*")
	}
	if r == nil {
		return true
	}
	for i := range r.disallowed {
		if r.disallowed[i].at(path) >= 0 {
			return false
		}
	}
	return true
}

func (c *classic) recordFor(agent string) *original1994Record {
	for i := range c.records {
		for _, value := range c.records[i].agents {
			if value == agent || strings.EqualFold(leadingToken(value), agent) {
				return &c.records[i]
			}
		}
	}
	return nil
}
