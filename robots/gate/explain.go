package gate

import (
	"context"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
)

// An Explanation is a verdict with all of a robots.txt that led to it.
type Explanation struct {
	robots.Explanation
	SHA256       string        `json:"file_sha256,omitempty"` // the hash of the file in hex; empty if there is none
	UsageSignals aiuse.Signals `json:"signals,omitempty"`     // what the file asks of the use of the content
}

// Explain says how the rules that Rules returns for o judge u, which need not be of that
// origin. Nothing is allowed while none are known. Whether an outage closes the origin is
// for Check to say.
func (g *Gate) Explain(ctx context.Context, o decorum.Origin, u decorum.URL) (Explanation, error) {
	s, err := g.lastKnownState(ctx, o)
	if err != nil {
		return Explanation{}, err
	}
	if s.rules == nil {
		return Explanation{Explanation: robots.DisallowAll().Explain(u)}, nil
	}
	return Explanation{s.rules.Explain(u), s.fetchSummary.SHA256, s.usageRules.SignalsForURL(u)}, nil
}

// ExplainURLCleaning returns u as CleanURL does when the origin's file is in mind, and
// which line took what off.
func (g *Gate) ExplainURLCleaning(ctx context.Context, u decorum.URL) (clean decorum.URL, removed []robots.RemovedParam, err error) {
	file, err := g.currentFile(ctx, u.Origin())
	if file == nil {
		return u, nil, err
	}
	clean, removed = file.ExplainURLCleaning(u)
	return clean, removed, nil
}
