package robots

import (
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
)

// Signals are what is asked of the use of a page's content, in the order in
// which it was read. They say nothing of whether it may be fetched.
type Signals []Signal

// A Signal is one preference, of whatever a site writes down preferences in:
// Content-Usage (draft-ietf-aipref-attach), Content-Signal (contentsignals.org),
// the TDM Reservation Protocol (W3C Community Group Report of 10 May 2024), or a
// directive to robots that speaks of use.
type Signal struct {
	Source Source `json:"source"`
	// Field is the field, meta element or property that says it, in lower case,
	// as in "content-usage", "x-robots-tag" or "tdm-reservation".
	Field      string     `json:"field"`
	Category   string     `json:"category"` // of use, in lower case, as in "train-ai"; or a directive, as in "noai"
	Preference Preference `json:"preference"`
	Line       int        `json:"line,omitempty"`   // in the file, counted from 1; 0 if it is of none
	Policy     string     `json:"policy,omitempty"` // where a licence is offered: the tdm-policy, as it was written
}

// A Source is where a signal stands.
type Source string

// The sources.
const (
	InRobots Source = "robots.txt"
	InTDMRep Source = "tdmrep.json"
	InHeader Source = "header" // of the answer
	InPage   Source = "page"   // a meta element
)

// A Preference is what is wished of a category of use.
type Preference string

// The preferences.
const (
	UseAllowed    Preference = "allow"
	UseDisallowed Preference = "disallow"
	UseUnset      Preference = "unset" // named, but with a value that says neither
)

// Usage returns the preferences for u, raw: what a category means, and what
// follows if it is not named, is for who uses the content. As with rules the
// longest path that matches counts, for each of the two fields on its own; of
// lines with equal paths all do, and a category that one of them disallows is
// disallowed.
func (r *Rules) Usage(u decorum.URL) Signals {
	path := u.Path()
	var found Signals
	for _, f := range []field{contentUsage, contentSignal} {
		longest := -1
		var deciding Signals
		for i := range r.signals {
			s := &r.signals[i]
			if s.field != f || s.pattern.length < longest || !s.pattern.match(path) {
				continue
			}
			if s.pattern.length > longest {
				longest, deciding = s.pattern.length, nil
			}
			deciding = deciding.merge(wishes(s.list, Signal{Source: InRobots, Field: s.field.String(), Line: s.line}))
		}
		found = append(found, deciding...)
	}
	slices.SortStableFunc(found, func(a, b Signal) int { return a.Line - b.Line })
	return found
}

// merge adds more to s. Where both name a category the stricter one stays.
func (s Signals) merge(more Signals) Signals {
	for _, m := range more {
		i := slices.IndexFunc(s, func(o Signal) bool { return o.Category == m.Category })
		switch {
		case i < 0 && len(s) < maxCategories:
			s = append(s, m)
		case i >= 0 && m.Preference.strictness() > s[i].Preference.strictness():
			s[i] = m
		}
	}
	return s
}

func (p Preference) strictness() int {
	return slices.Index([]Preference{UseUnset, UseAllowed, UseDisallowed}, p)
}

// A signalRule is a Content-Usage or Content-Signal line of the chosen group.
type signalRule struct {
	field   field
	line    int
	pattern pattern
	list    string // of preferences
}

// signalsFor returns the signal lines of the records that name a with the
// given rank. A record is a run of user-agent lines and what follows it; a
// signal line ends the run here and nowhere else, as it shapes no group (GRP-08).
func (f *File) signalsFor(a Agent, best rank) []signalRule {
	var found []signalRule
	var record run
	for _, l := range f.lines {
		switch l.field {
		case userAgent:
			record.add(f.rank(a, l.value) == best)
		case contentUsage, contentSignal:
			record.open = false
			if record.named {
				found = append(found, newSignalRule(l))
			}
		case allow, disallow, crawlDelay:
			record.open = false
		}
	}
	return found
}

// newSignalRule reads "[path] preferences". Without a path the line speaks of
// the whole site.
func newSignalRule(l line) signalRule {
	path, list := "/", l.value
	if validPath(list) {
		path = list
		if i := strings.IndexAny(list, blank); i >= 0 {
			path = list[:i]
		}
		list = list[len(path):]
	}
	return signalRule{l.field, int(l.number), compilePattern(strings.Clone(path)), strings.Clone(list)}
}
