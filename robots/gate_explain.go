package robots

import (
	"context"

	"github.com/decorum-crawler/decorum"
)

// A GateExplanation is a verdict with all of a robots.txt that led to it.
type GateExplanation struct {
	Explanation
	SHA256       string  `json:"file_sha256,omitempty"` // the hash of the file in hex; empty if there is none
	UsageSignals Signals `json:"signals,omitempty"`     // what the file asks of the use of the content
}

// Explain says how the rules that Rules returns for o judge u, which need not be of that
// origin. Nothing is allowed while none are known. Whether an outage closes the origin is
// for Check to say.
func (g *Gate) Explain(ctx context.Context, o decorum.Origin, u decorum.URL) (GateExplanation, error) {
	s, err := g.lastKnownState(ctx, o)
	if err != nil {
		return GateExplanation{}, err
	}
	if s.rules == nil {
		return GateExplanation{Explanation: DisallowAll().Explain(u)}, nil
	}
	return GateExplanation{s.rules.Explain(u), s.fetchSummary.SHA256, s.usageRules.SignalsForURL(u)}, nil
}

// ExplainURLCleaning returns u as CleanURL does when the origin's file is in mind, and
// which line took what off.
func (g *Gate) ExplainURLCleaning(ctx context.Context, u decorum.URL) (clean decorum.URL, removed []RemovedParam, err error) {
	file, err := g.currentFile(ctx, u.Origin())
	if file == nil {
		return u, nil, err
	}
	clean, removed = file.ExplainURLCleaning(u)
	return clean, removed, nil
}
