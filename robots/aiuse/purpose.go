package aiuse

import (
	"fmt"
	"slices"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
)

// KnownPurposes are the uses of content that a crawl can state.
const KnownPurposes = "search, ai-input, ai-train, archive"

// purposeTerms says which categories and directives speak of each purpose, in the
// words of Content-Usage and its earlier drafts, of Content-Signal, of the TDM
// Reservation Protocol, and of directives to robots. Mining text and data
// includes what models are trained on and what they are given to read. Of
// noimageai it is for the caller to say whether the content is an image.
var purposeTerms = map[string][]string{
	"search":   {"search", "noindex"},
	"ai-input": {"ai-input", "ai-use", "ai-output", categoryTDM, "noai", NoImageAI},
	"ai-train": {"ai-train", "train-ai", "train-genai", categoryTDM, "noai", NoImageAI},
	"archive":  {"noarchive"},
}

// categoryBots is the category that earlier drafts of Content-Usage have for all
// automated processing. It speaks of what the same statement does not name.
const categoryBots = "bots"

// ValidatePurposes reports a purpose that is not one of those known.
func ValidatePurposes(purposes []string) error {
	for _, p := range purposes {
		if purposeTerms[p] == nil {
			return fmt.Errorf("purpose %q is not one of %s", p, KnownPurposes)
		}
	}
	return nil
}

// Check judges u by rules, for a crawl that states what it is for: where usage,
// of the same file, asks that u's content not be used for one of the purposes, u is
// disallowed; but not what is read to know what a site asks: robots.txt and
// tdmrep.json. See gate.Config.Purposes.
func Check(rules *robots.Rules, usage *Rules, u decorum.URL, purposes []string) robots.Verdict {
	v := rules.Check(u)
	if !v.Allowed || len(purposes) == 0 {
		return v
	}
	conflict := usage.SignalsForURL(u).ConflictWithPurposes(purposes)
	if conflict == nil || u == u.Origin().RobotsURL() || u == TDMRepURL(u.Origin()) {
		return v
	}
	return conflict.verdict(v.Group)
}

// A DisallowedPurposeError is a signal that asks not to use content for a purpose.
type DisallowedPurposeError struct {
	Purpose string `json:"purpose"` // one of the constant KnownPurposes
	Signal
}

// Error says what asks for it, and where.
func (o *DisallowedPurposeError) Error() string {
	return fmt.Sprintf("not to be used for %s: %s (%s)", o.Purpose, o.ruleText(), o.Source)
}

// ruleText writes a signal against a use as a rule of a Verdict.
func (s Signal) ruleText() string {
	switch {
	case s.Category == categoryTDM:
		return s.Field + ": 1"
	case slices.Contains(signalFields[:], s.Field):
		return s.Field + ": " + s.Category + "=n"
	}
	return s.Field + ": " + s.Category
}

// ConflictWithPurposes returns the first signal that asks not to use the content for one of
// the purposes, nil if none does. A purpose that nothing speaks of is not
// objected to, and no signal takes back what another asks.
func (s Signals) ConflictWithPurposes(purposes []string) *DisallowedPurposeError {
	for _, o := range s {
		if o.Preference != Disallowed {
			continue
		}
		for _, p := range purposes {
			if slices.Contains(purposeTerms[p], o.Category) || o.Category == categoryBots && !s.statementNamesPurpose(o, p) {
				return &DisallowedPurposeError{p, o}
			}
		}
	}
	return nil
}

// statementNamesPurpose reports whether the statement that o is of says something of a purpose
// by its own name.
func (s Signals) statementNamesPurpose(o Signal, purpose string) bool {
	return slices.ContainsFunc(s, func(x Signal) bool {
		return x.Source == o.Source && x.Field == o.Field && x.Preference != Unset && slices.Contains(purposeTerms[purpose], x.Category)
	})
}

// verdict returns the verdict that a file's objection is.
func (o *DisallowedPurposeError) verdict(group string) robots.Verdict {
	return robots.Verdict{Rule: o.ruleText(), Line: o.Line, Group: group}
}

// PurposesIncludeTDM reports whether one of the purposes is what the TDM Reservation Protocol
// speaks of: only then is a site's tdmrep.json of use.
func PurposesIncludeTDM(purposes []string) bool {
	return slices.ContainsFunc(purposes, func(p string) bool { return slices.Contains(purposeTerms[p], categoryTDM) })
}
