package engine

import (
	"log/slog"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// NewOnDemandCrawl returns a crawl that makes single visits with the fetch and politeness settings of
// project p, and robots.txt decisions by cfg. It shares nothing with other crawls or earlier visits, keeps
// its notes in memory, and logs nothing.
func NewOnDemandCrawl(p *project.Project, cfg gate.Config) (*crawler.OnDemandCrawl, error) {
	notes := memory.New(memory.Config{})
	_, fetcher, err := NewFetchers(p, nil, notes, nil, SharedResources{})
	if err != nil {
		return nil, err
	}
	return crawler.NewOnDemandCrawl(&crawler.Crawler{
		Gate: gate.New(cfg, notes), Policy: p.PolitenessPolicy(),
		Limiter: politeness.NewLimiter(politeness.LimiterConfig{}),
		Fetcher: fetcher, Log: slog.New(slog.DiscardHandler),
	})
}
