package aiuse

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// Signals are preferences about the use of a page's content, in the order in which they were read.
// They do not say whether the page may be fetched.
type Signals []Signal

// A Signal is one preference about the use of content. It comes from Content-Usage
// (draft-ietf-aipref-attach), Content-Signal (contentsignals.org), the TDM Reservation Protocol (W3C
// Community Group Report of 10 May 2024), or a directive to robots about use.
type Signal struct {
	Source Source `json:"source"`
	// Field is the field, meta element or property with the preference, in lower case, as in
	// "content-usage", "x-robots-tag" or "tdm-reservation".
	Field string `json:"field"`
	// Category is a category of use in lower case, as in "train-ai", or a directive, as in "noai".
	Category   string     `json:"category"`
	Preference Preference `json:"preference"`
	Line       int        `json:"line,omitempty"` // its line number in the file, from 1; 0 if it is not from a file
	// The address at which the site offers a licence: the tdm-policy, unchanged.
	TDMPolicy string `json:"policy,omitempty"`
}

// A Source is where a signal was found.
type Source string

// The sources.
const (
	InRobots Source = "robots.txt"
	InTDMRep Source = "tdmrep.json"
	InHeader Source = "header" // the header of the answer
	InPage   Source = "page"   // a meta element
)

// A Preference says whether a site permits a category of use.
type Preference string

// The preferences.
const (
	Allowed    Preference = "allow"
	Disallowed Preference = "disallow"
	Unset      Preference = "unset" // the category is named with a value that is neither
)

// A strictestSignals merges the signals of several statements and keeps one per category: the
// strictest, and of equally strict ones that of the lowest line. It keeps at most
// syntax.MaxCategories signals.
type strictestSignals struct {
	signals         Signals
	indexByCategory map[string]int // the index in signals, by category
}

// add merges the signals of a further statement into un.
func (un *strictestSignals) add(more ...Signal) {
	if un.indexByCategory == nil {
		un.indexByCategory = make(map[string]int, len(more))
	}
	for _, m := range more {
		i, known := un.indexByCategory[m.Category]
		switch {
		case !known && len(un.signals) < syntax.MaxCategories:
			un.indexByCategory[m.Category] = len(un.signals)
			un.signals = append(un.signals, m)
		case known && cmp.Or(m.Preference.strictness()-un.signals[i].Preference.strictness(),
			un.signals[i].Line-m.Line) > 0:
			un.signals[i] = m
		}
	}
}

// preferencesByStrictness are the preferences, the strictest last. The index of each equals the
// syntax.PreferenceValue of the same meaning.
var preferencesByStrictness = [...]Preference{Unset, Allowed, Disallowed}

// strictness returns the index of p in preferencesByStrictness.
func (p Preference) strictness() int { return slices.Index(preferencesByStrictness[:], p) }

// HeaderSignals returns the preferences in the header of an answer: Content-Usage, Content-Signal and
// tdm-reservation. Each field line is a statement. If they disagree, the stricter one counts. Of a
// malformed field, the parts that can be parsed count.
func HeaderSignals(h http.Header) Signals {
	var found Signals
	for _, name := range []string{"Content-Usage", "Content-Signal"} {
		var strictest strictestSignals
		for _, list := range h.Values(name) {
			strictest.add(signalsOfList(list, Signal{Source: InHeader, Field: strings.ToLower(name)})...)
		}
		found = append(found, strictest.signals...)
	}
	var reserved strictestSignals
	for _, value := range h.Values(tdmReservationField) {
		if s, ok := ParseTDMReservation(InHeader, value, h.Get("tdm-policy")); ok {
			reserved.add(s)
		}
	}
	return append(found, reserved.signals...)
}

// signalsOfList parses "category=y, category=n" and returns a copy of template for each preference.
func signalsOfList(list string, template Signal) Signals {
	var all Signals
	for _, p := range syntax.ParsePreferences(list) {
		template.Category, template.Preference = p.Category, preferencesByStrictness[p.Value]
		all = append(all, template)
	}
	return all
}

// NoImageAI is the directive that applies only to images.
const NoImageAI = "noimageai"

// NewDirectiveSignal returns the signal for a directive to robots: in an X-Robots-Tag field if in is
// InHeader, otherwise in a meta element of a page.
func NewDirectiveSignal(in Source, directive string) Signal {
	field := "robots"
	if in == InHeader {
		field = "x-robots-tag"
	}
	return Signal{Source: in, Field: field, Category: strings.ToLower(directive), Preference: Disallowed}
}
