package robots

import (
	"fmt"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
)

// Purposes are the uses of content that a crawl can state.
const Purposes = "search, ai-input, ai-train, archive"

// spokenOf says which categories and directives speak of each purpose, in the
// words of Content-Usage and its earlier drafts, of Content-Signal, of the TDM
// Reservation Protocol, and of directives to robots. Mining text and data
// includes what models are trained on and what they are given to read. Of
// noimageai it is for the caller to say whether the content is an image.
var spokenOf = map[string][]string{
	"search":   {"search", "noindex"},
	"ai-input": {"ai-input", "ai-use", "ai-output", tdm, "noai", NoImageAI},
	"ai-train": {"ai-train", "train-ai", "train-genai", tdm, "noai", NoImageAI},
	"archive":  {"noarchive"},
}

// NoImageAI is the directive that speaks of images alone.
const NoImageAI = "noimageai"

// everything is the category that earlier drafts of Content-Usage have for all
// automated processing. It speaks of what the same statement does not name.
const everything = "bots"

// checkPurposes reports a purpose that is not one of those known.
func checkPurposes(stated []string) error {
	for _, p := range stated {
		if spokenOf[p] == nil {
			return fmt.Errorf("purpose %q is not one of %s", p, Purposes)
		}
	}
	return nil
}

// CheckFor judges u as Check does, for a crawl that states what it is for: where
// the file asks that u's content not be used for one of the purposes, u is
// disallowed; but not what is read to know what a site asks: robots.txt and
// tdmrep.json. See GateConfig.Purposes.
func (r *Rules) CheckFor(u decorum.URL, purposes []string) Verdict {
	v := r.Check(u)
	if no, ok := r.forbids(u, purposes); v.Allowed && ok && u != u.Origin().RobotsURL() && u != TDMRepURL(u.Origin()) {
		return no
	}
	return v
}

// An Objection is a signal that asks not to use content for a purpose.
type Objection struct {
	Purpose string `json:"purpose"` // one of the constant Purposes
	Signal
}

// Error says what asks for it, and where.
func (o *Objection) Error() string {
	return fmt.Sprintf("not to be used for %s: %s (%s)", o.Purpose, o.rule(), o.Source)
}

// rule writes a signal against a use as a rule of a Verdict.
func (s Signal) rule() string {
	switch {
	case s.Category == tdm:
		return s.Field + ": 1"
	case s.Field == contentUsage.String(), s.Field == contentSignal.String():
		return s.Field + ": " + s.Category + "=n"
	}
	return s.Field + ": " + s.Category
}

// Objection returns the first signal that asks not to use the content for one of
// the purposes, nil if none does. A purpose that nothing speaks of is not
// objected to, and no signal takes back what another asks.
func (s Signals) Objection(purposes []string) *Objection {
	for _, o := range s {
		if o.Preference != UseDisallowed {
			continue
		}
		for _, p := range purposes {
			if slices.Contains(spokenOf[p], o.Category) || o.Category == everything && !s.names(o, p) {
				return &Objection{p, o}
			}
		}
	}
	return nil
}

// names reports whether the statement that o is of says something of a purpose
// by its own name.
func (s Signals) names(o Signal, purpose string) bool {
	return slices.ContainsFunc(s, func(x Signal) bool {
		return x.Source == o.Source && x.Field == o.Field && x.Preference != UseUnset && slices.Contains(spokenOf[purpose], x.Category)
	})
}

// verdict returns the verdict that a file's objection is.
func (o *Objection) verdict(group string) Verdict {
	return Verdict{Rule: o.rule(), Line: o.Line, Group: group}
}

// forbids returns the verdict of the line by which the file asks that u's
// content not be used for one of the stated purposes, and false if there is
// none.
func (r *Rules) forbids(u decorum.URL, stated []string) (Verdict, bool) {
	if len(stated) == 0 {
		return Verdict{}, false
	}
	no := r.Usage(u).Objection(stated)
	if no == nil {
		return Verdict{}, false
	}
	return no.verdict(r.group), true
}

// Mines reports whether one of the purposes is what the TDM Reservation Protocol
// speaks of: only then is a site's tdmrep.json of use.
func Mines(purposes []string) bool {
	return slices.ContainsFunc(purposes, func(p string) bool { return slices.Contains(spokenOf[p], tdm) })
}

// NewDirective returns what a directive to robots asks, as a signal: of an
// X-Robots-Tag field, or of a page's meta elements.
func NewDirective(in Source, directive string) Signal {
	field := "robots"
	if in == InHeader {
		field = "x-robots-tag"
	}
	return Signal{Source: in, Field: field, Category: strings.ToLower(directive), Preference: UseDisallowed}
}
