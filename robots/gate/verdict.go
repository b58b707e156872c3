package gate

import (
	"context"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
)

// VerdictFunc returns how the origin's URLs are judged by the rules that Rules
// returns: as Check judges them while these hold, purposes included. It is nil
// if no rules are known.
func (g *Gate) VerdictFunc(ctx context.Context, o decorum.Origin) (func(decorum.URL) robots.Verdict, error) {
	s, err := g.lastKnownState(ctx, o)
	if err != nil || s.rules == nil {
		return nil, err
	}
	return func(u decorum.URL) robots.Verdict { return g.verdict(s, u) }, nil
}

// verdict is the one place in which a URL is judged.
func (g *Gate) verdict(s *originState, u decorum.URL) robots.Verdict {
	return aiuse.Check(s.rules, s.usageRules, u, g.cfg.Purposes)
}
