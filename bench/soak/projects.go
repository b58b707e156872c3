package main

import (
	"fmt"
	"strings"

	"github.com/decorum-crawler/decorum/bench/internal/web"
)

// A soakProject is a project of the daemon's: the hosts from FirstHostIndex up to EndHostIndex.
type soakProject struct {
	ProjectName                  string
	FirstHostIndex, EndHostIndex int
}

// projects are the projects of a soak: two that share a quarter of the hosts, and one.
func (p soakOptions) projects() []soakProject {
	quarter := p.Web.Hosts / 4
	return []soakProject{{"north", 0, 2 * quarter}, {"south", quarter, 3 * quarter}, {"west", 3 * quarter, p.Web.Hosts}}
}

const projectTemplate = `project: %s
agent: {product: soakbot, version: "1", contact: "mailto:soak@example.com"}
seeds: [%s]
scope: {max_urls_per_host: %d}
politeness: {delay: %s, adaptive: 0, ip: {concurrency: 64}}
limits: {workers: %d}
fetch: {allow_private: true, connect_to: ["::%s"]}
`

const initialWorkers = 64

// projectFileText is the project file of a job.
func (j soakProject) projectFileText(p soakOptions, address string, workers int) []byte {
	seeds := make([]string, 0, j.EndHostIndex-j.FirstHostIndex)
	for h := j.FirstHostIndex; h < j.EndHostIndex; h++ {
		seeds = append(seeds, "http://"+web.Host(h)+"/")
	}
	return fmt.Appendf(nil, projectTemplate, j.ProjectName, strings.Join(seeds, ", "), p.maxURLsPerHost(), p.Web.CrawlerDelay, workers, address)
}

// maxURLsPerHost is how many URLs of a host a project takes: all that it can visit in the time
// of the plan, and a third more. A host's queue has them within a few minutes, and from
// then on it is what a crawl keeps that is measured, not how its frontier grows.
func (p soakOptions) maxURLsPerHost() int { return 20 + int(4*p.Duration/(3*p.Web.CrawlerDelay)) }
