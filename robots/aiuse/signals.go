package aiuse

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
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
	TDMPolicy  string     `json:"policy,omitempty"` // where a licence is offered: the tdm-policy, as it was written
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
	Allowed    Preference = "allow"
	Disallowed Preference = "disallow"
	Unset      Preference = "unset" // named, but with a value that says neither
)

// A strictestSignals is what several statements ask, a category once: where two name it
// the stricter one stays, and of two as strict the one that a file has first.
type strictestSignals struct {
	signals         Signals
	indexByCategory map[string]int // in all, by category
}

// add adds what a further statement asks.
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
		case known && cmp.Or(m.Preference.strictness()-un.signals[i].Preference.strictness(), un.signals[i].Line-m.Line) > 0:
			un.signals[i] = m
		}
	}
}

// preferencesByStrictness are the preferences, the strictest last: by wish, too.
var preferencesByStrictness = [...]Preference{Unset, Allowed, Disallowed}

func (p Preference) strictness() int { return slices.Index(preferencesByStrictness[:], p) }

// HeaderSignals returns what the header of an answer asks of the use of its
// content by Content-Usage, Content-Signal and tdm-reservation. Each field line
// is a statement: where they disagree the stricter one stays. Of a field that is
// not well formed counts what can be read.
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

// signalsOfList reads "category=y, category=n", each as the signal template.
func signalsOfList(list string, template Signal) Signals {
	var all Signals
	for _, p := range syntax.ParsePreferences(list) {
		template.Category, template.Preference = p.Category, preferencesByStrictness[p.Value]
		all = append(all, template)
	}
	return all
}

// NoImageAI is the directive that speaks of images alone.
const NoImageAI = "noimageai"

// NewDirectiveSignal returns what a directive to robots asks, as a signal: of an
// X-Robots-Tag field, or of a page's meta elements.
func NewDirectiveSignal(in Source, directive string) Signal {
	field := "robots"
	if in == InHeader {
		field = "x-robots-tag"
	}
	return Signal{Source: in, Field: field, Category: strings.ToLower(directive), Preference: Disallowed}
}
