package gate

import (
	"context"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
)

// VerdictFunc returns a function that gives the verdict for URLs of the origin by its last known
// rules and the Purposes of the Gate: the verdict of Check while these rules are in force. It is nil
// if no rules are known.
func (g *Gate) VerdictFunc(ctx context.Context, o decorum.Origin) (func(decorum.URL) robots.Verdict, error) {
	s, err := g.lastKnownState(ctx, o)
	if err != nil || s.rules == nil {
		return nil, err
	}
	return func(u decorum.URL) robots.Verdict { return g.verdict(s, u) }, nil
}

// VersionVerdictFunc is VerdictFunc by the file of the origin with the SHA-256 hash, in hex, which may be an
// earlier version. It is nil if that file is not stored.
func (g *Gate) VersionVerdictFunc(ctx context.Context, o decorum.Origin,
	hash string) (func(decorum.URL) robots.Verdict, error) {
	body, err := g.FileBodyByHash(ctx, o, hash)
	if err != nil || body == nil {
		return nil, err
	}
	file := g.parseFile(body)
	s := &originState{rules: file.RulesFor(g.cfg.Agent), usageRules: aiuse.Compile(file, g.cfg.Agent)}
	return func(u decorum.URL) robots.Verdict { return g.verdict(s, u) }, nil
}

// verdict returns the verdict for u by the rules of s. All methods of Gate that need a verdict about a
// page call it.
func (g *Gate) verdict(s *originState, u decorum.URL) robots.Verdict {
	return aiuse.Check(s.rules, s.usageRules, u, g.cfg.Purposes)
}
