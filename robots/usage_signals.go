package robots

import (
	"cmp"
	"slices"

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
// disallowed. Its time grows with the number of paths that the file names, not with
// that of its lines.
func (r *Rules) Usage(u decorum.URL) Signals {
	var found Signals
	for i, f := range signalFields {
		found = append(found, r.signals[i].of(u.Path(), Signal{Source: InRobots, Field: f.String()})...)
	}
	slices.SortStableFunc(found, func(a, b Signal) int { return a.Line - b.Line })
	return found
}

// A union is what several statements ask, a category once: where two name it
// the stricter one stays, and of two as strict the one that a file has first.
type union struct {
	all   Signals
	place map[string]int // in all, by category
}

// add adds what a further statement asks.
func (un *union) add(more ...Signal) {
	if un.place == nil {
		un.place = make(map[string]int, len(more))
	}
	for _, m := range more {
		i, known := un.place[m.Category]
		switch {
		case !known && len(un.all) < maxCategories:
			un.place[m.Category] = len(un.all)
			un.all = append(un.all, m)
		case known && cmp.Or(m.Preference.strictness()-un.all[i].Preference.strictness(), un.all[i].Line-m.Line) > 0:
			un.all[i] = m
		}
	}
}

// byStrictness are the preferences, the strictest last.
var byStrictness = [...]Preference{UseUnset, UseAllowed, UseDisallowed}

func (p Preference) strictness() int { return slices.Index(byStrictness[:], p) }

// signalFields are the fields that speak of the use of content.
var signalFields = [...]field{contentUsage, contentSignal}

// signalsFor returns what the signal lines ask of the records that name a with
// the given rank, by signalFields. A record is a run of user-agent lines and what
// follows it; a signal line ends the run here and nowhere else, as it shapes no
// group (GRP-08).
func (f *File) signalsFor(a Agent, best rank) (asked [len(signalFields)]statements) {
	var found [len(signalFields)][]line
	var record run
	for _, l := range f.lines {
		switch l.field {
		case userAgent:
			record.add(f.rank(a, l.value) == best)
		case allow, disallow, crawlDelay:
			record.open = false
		}
		if i := slices.Index(signalFields[:], l.field); i >= 0 {
			record.open = false
			if record.named {
				found[i] = append(found[i], l)
			}
		}
	}
	for i, lines := range found {
		asked[i] = newStatements(lines)
	}
	return asked
}
