package main

import (
	"fmt"
	"strings"

	"github.com/decorum-crawler/decorum/bench/internal/web"
)

// A soakProject is a project of the daemon. It crawls the hosts from FirstHostIndex up to, but
// without, EndHostIndex.
type soakProject struct {
	ProjectName                  string
	FirstHostIndex, EndHostIndex int
}

// projects returns the projects of a run: two that share a quarter of the hosts, and a third one.
func (p soakOptions) projects() []soakProject {
	quarter := p.Web.Hosts / 4
	return []soakProject{{"north", 0, 2 * quarter}, {"south", quarter, 3 * quarter}, {"west", 3 * quarter, p.Web.Hosts}}
}

// projectTemplate is the project file: see projectFileText.
const projectTemplate = `project: %s
agent: {product: soakbot, version: "1", contact: "mailto:soak@example.com"}
seeds: [%s]
scope: {max_urls_per_host: %d}
politeness: {delay: %s, adaptive: 0, ip: {concurrency: 64}}
limits: {workers: %d}
fetch: {allow_private: true, connect_to: ["::%s"]}
`

// initialWorkers is limits.workers before the operator changes it.
const initialWorkers = 64

// projectFileText returns the project file of a project that connects to address for all hosts.
func (j soakProject) projectFileText(p soakOptions, address string, workers int) []byte {
	seeds := make([]string, 0, j.EndHostIndex-j.FirstHostIndex)
	for h := j.FirstHostIndex; h < j.EndHostIndex; h++ {
		seeds = append(seeds, "http://"+web.Host(h)+"/")
	}
	return fmt.Appendf(nil, projectTemplate, j.ProjectName, strings.Join(seeds, ", "), p.maxURLsPerHost(),
		p.Web.CrawlerDelay, workers, address)
}

// maxURLsPerHost returns how many URLs of a host a project takes: all that it can visit in the run,
// and a third more. The queue of a host has them within a few minutes. From then on the program
// measures the memory of a crawl whose frontier no longer grows.
func (p soakOptions) maxURLsPerHost() int { return 20 + int(4*p.Duration/(3*p.Web.CrawlerDelay)) }
