package daemon

import (
	"os"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots"
)

// An inspector is a crawl that is asked about at a moment. It answers from the
// crawl's own stores and rooms, and changes nothing; the crawl may go on
// meanwhile.
type inspector struct {
	project        project.Project
	frontierStore  datadir.StoreInspectorImporter
	gate           *robots.Gate
	scope          *frontier.Scope // nil if it is not known
	paramCleaner   *frontier.ParamCleaner
	inspectionTime time.Time
	// anyProjectReachesPrivate is set if a project that shares the cache of robots.txt files may
	// reach into private networks.
	anyProjectReachesPrivate bool
}

// loadScope works out the scope, for which all seeds are read.
func (q *inspector) loadScope() error {
	cfg, err := q.project.ScopeConfig()
	if err != nil {
		return err
	}
	seedPerOrigin, err := q.project.FirstSeedPerOrigin(os.Open)
	if err != nil {
		return err
	}
	q.scope = frontier.NewScope(cfg, seedPerOrigin)
	return nil
}

// newInspector returns an inspector of a crawl at the present moment.
func newInspector(r *crawlComponents) *inspector {
	return &inspector{project: r.project, frontierStore: r.stores.Frontier, gate: r.gate, scope: r.scope,
		paramCleaner: r.frontier.ParamCleaner(), inspectionTime: time.Now()}
}
