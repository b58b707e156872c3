package robots

import (
	"fmt"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
)

// purposes are the uses of content that a crawl can state, each with the
// categories of Content-Usage and Content-Signal lines that speak of it.
var purposes = map[string][]string{
	"search":   {"search"},
	"ai-input": {"ai-input", "ai-use"},
	"ai-train": {"ai-train", "train-ai", "train-genai"},
}

// checkPurposes reports a purpose that is not one of those known.
func checkPurposes(stated []string) error {
	for _, p := range stated {
		if purposes[p] == nil {
			return fmt.Errorf("purpose %q is not one of search, ai-input, ai-train", p)
		}
	}
	return nil
}

// CheckFor judges u as Check does, for a crawl that states what it is for: where
// the file asks that u's content not be used for one of the purposes, u is
// disallowed. See GateConfig.Purposes.
func (r *Rules) CheckFor(u decorum.URL, purposes []string) Verdict {
	v := r.Check(u)
	if no, ok := r.forbids(u, purposes); v.Allowed && ok && u != u.Origin().RobotsURL() {
		return no
	}
	return v
}

// forbids returns the verdict of the line by which the file asks that u's
// content not be used for one of the stated purposes, and false if there is
// none. A purpose that no line names is not forbidden.
func (r *Rules) forbids(u decorum.URL, stated []string) (Verdict, bool) {
	if len(stated) == 0 || len(r.signals) == 0 {
		return Verdict{}, false
	}
	for _, s := range r.Usage(u) {
		if s.Preference == UseDisallowed && slices.ContainsFunc(stated, func(p string) bool {
			return slices.Contains(purposes[p], s.Category)
		}) {
			return Verdict{Rule: strings.Join([]string{s.Field, s.Category + "=n"}, ": "), Line: s.Line, Group: r.group}, true
		}
	}
	return Verdict{}, false
}
