package engine

import (
	"log/slog"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// NewOnDemandCrawl returns what makes single visits as the project says, and decides by cfg. It
// knows of no other crawl and of no earlier visit, and logs nothing.
func NewOnDemandCrawl(p *project.Project, cfg gate.Config) (*crawler.OnDemandCrawl, error) {
	notes := memory.New(memory.Config{})
	_, fetcher, err := NewFetchers(p, nil, notes, nil, nil)
	if err != nil {
		return nil, err
	}
	return crawler.NewOnDemandCrawl(&crawler.Crawler{
		Gate: gate.New(cfg, notes), Policy: p.PolitenessPolicy(), Limiter: politeness.NewLimiter(politeness.LimiterConfig{}),
		Fetcher: fetcher, Log: slog.New(slog.DiscardHandler),
	})
}
