package aiuse

import (
	"fmt"
	"slices"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
)

// KnownPurposes lists the purposes that a crawl can state.
const KnownPurposes = "search, ai-input, ai-train, archive"

// purposeTerms maps each purpose to the categories and directives that apply to it. The terms come
// from Content-Usage and its earlier drafts, Content-Signal, the TDM Reservation Protocol, and
// directives to robots. Text and data mining includes both the training data and the input of
// models. NoImageAI applies only to images; the caller must leave it out for other content.
var purposeTerms = map[string][]string{
	"search":   {"search", "noindex"},
	"ai-input": {"ai-input", "ai-use", "ai-output", categoryTDM, "noai", NoImageAI},
	"ai-train": {"ai-train", "train-ai", "train-genai", categoryTDM, "noai", NoImageAI},
	"archive":  {"noarchive"},
}

// categoryBots is the category of earlier drafts of Content-Usage for all automated processing. It
// applies to the purposes that the same statement does not name.
const categoryBots = "bots"

// ValidatePurposes returns an error if a purpose is not one of KnownPurposes.
func ValidatePurposes(purposes []string) error {
	for _, p := range purposes {
		if purposeTerms[p] == nil {
			return fmt.Errorf("purpose %q is not one of %s", p, KnownPurposes)
		}
	}
	return nil
}

// Check returns the verdict for u by the rules and the usage preferences of one robots.txt. u is
// disallowed if the rules disallow it, or if usage forbids the use of its content for one of the
// purposes of the crawl. Preferences do not disallow robots.txt and tdmrep.json, which a crawl has to
// read to know them. See gate.Config.Purposes.
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

// A DisallowedPurposeError is a signal that forbids the use of content for a purpose.
type DisallowedPurposeError struct {
	Purpose string `json:"purpose"` // one of KnownPurposes
	Signal
}

// Error returns the purpose, the signal and its source.
func (o *DisallowedPurposeError) Error() string {
	return fmt.Sprintf("not to be used for %s: %s (%s)", o.Purpose, o.ruleText(), o.Source)
}

// ruleText returns a signal that forbids a use in the form of robots.Verdict.Rule.
func (s Signal) ruleText() string {
	switch {
	case s.Category == categoryTDM:
		return s.Field + ": 1"
	case slices.Contains(signalFields[:], s.Field):
		return s.Field + ": " + s.Category + "=n"
	}
	return s.Field + ": " + s.Category
}

// ConflictWithPurposes returns the first signal that forbids the use of the content for one of the
// purposes, nil without a conflict. A purpose that no signal names is permitted. A signal that permits
// a use does not override one that forbids it.
func (s Signals) ConflictWithPurposes(purposes []string) *DisallowedPurposeError {
	for _, o := range s {
		if o.Preference != Disallowed {
			continue
		}
		for _, p := range purposes {
			if slices.Contains(purposeTerms[p], o.Category) || o.Category == categoryBots &&
				!s.statementNamesPurpose(o, p) {
				return &DisallowedPurposeError{p, o}
			}
		}
	}
	return nil
}

// statementNamesPurpose reports whether the statement that contains o has a preference about a
// category or directive of the purpose.
func (s Signals) statementNamesPurpose(o Signal, purpose string) bool {
	return slices.ContainsFunc(s, func(x Signal) bool {
		return x.Source == o.Source && x.Field == o.Field && x.Preference != Unset &&
			slices.Contains(purposeTerms[purpose], x.Category)
	})
}

// verdict returns the verdict that disallows a URL because of o, for the group of its file.
func (o *DisallowedPurposeError) verdict(group string) robots.Verdict {
	return robots.Verdict{Rule: o.ruleText(), Line: o.Line, Group: group}
}

// PurposesIncludeTDM reports whether the TDM Reservation Protocol applies to one of the purposes, so
// that the crawl has to read tdmrep.json.
func PurposesIncludeTDM(purposes []string) bool {
	return slices.ContainsFunc(purposes, func(p string) bool { return slices.Contains(purposeTerms[p], categoryTDM) })
}
