package robots

import (
	"context"
	"time"

	"github.com/decorum-crawler/decorum"
)

// VerdictFunc returns how the origin's URLs are judged by the rules that Rules
// returns: as Check judges them while these hold, purposes included. It is nil
// if no rules are known.
func (g *Gate) VerdictFunc(ctx context.Context, o decorum.Origin) (func(decorum.URL) Verdict, error) {
	rules, err := g.Rules(ctx, o)
	if err != nil || rules == nil {
		return nil, err
	}
	return func(u decorum.URL) Verdict { return g.verdict(rules, u) }, nil
}

// verdict is the one place in which a URL is judged.
func (g *Gate) verdict(rules *Rules, u decorum.URL) Verdict { return rules.CheckFor(u, g.cfg.Purposes) }

// Purposes returns what the crawl is for.
func (g *Gate) Purposes() []string { return g.cfg.Purposes }

// Usage returns what the origin's robots.txt asks of the use of u, as far as the
// file is in mind: it does no I/O. After Check has judged a URL, it is.
func (g *Gate) Usage(u decorum.URL) Signals {
	if s := g.memory.find(u.Origin()); s != nil && s.rules != nil {
		return s.rules.Usage(u)
	}
	return nil
}

// PostponedReason says why the origin's pages cannot be visited now; nil if they can,
// or if it is time to ask for its robots.txt. Unlike Check it claims nothing.
func (g *Gate) PostponedReason(ctx context.Context, now time.Time, o decorum.Origin) (*PostponedError, error) {
	s, err := g.lately(ctx, o)
	if err != nil || !s.isPostponed || !now.Before(s.until) {
		return nil, err
	}
	return g.postponedError(s, s.until, s.why), nil
}

// Known returns what the Gate last learnt of an origin's robots.txt, however
// long ago. Its Outcome is Unknown if that is nothing.
func (g *Gate) Known(ctx context.Context, o decorum.Origin) (Snapshot, error) {
	if s := g.memory.find(o); s != nil {
		return s.file, nil
	}
	r, err := g.load(ctx, o)
	if err != nil {
		return Snapshot{}, err
	}
	return g.compile(&r, new(File)).file, nil // what stands in the file makes no difference
}

// Fresh returns until when what the Gate knows of an origin's robots.txt holds:
// after it, the next who wants to visit the origin makes it ask again. The time
// is zero if nothing was ever known.
func (g *Gate) Fresh(ctx context.Context, o decorum.Origin) (time.Time, error) {
	s, err := g.lately(ctx, o)
	if err != nil {
		return time.Time{}, err
	}
	return s.until, nil
}
