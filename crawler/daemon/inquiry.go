package daemon

import (
	"time"

	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// An inquiry is a crawl that is asked about at a moment. It answers from the
// crawl's own stores and rooms, and changes nothing; the crawl may go on
// meanwhile.
type inquiry struct {
	project Project
	store   store
	gate    *robots.Gate
	scope   *frontier.Scope // nil if it is not known
	params  *frontier.Params
	now     time.Time
	// reachesPrivate is set if a project that shares the cache of robots.txt files may
	// reach into private networks.
	reachesPrivate bool
}

// A store is one that can be asked what it holds, and take over what another does.
type store interface {
	storage.Store
	storage.Inspector
	storage.Importer
}

// inquire returns an inquiry at the present moment.
func (r *crawlEngine) inquire() *inquiry {
	return &inquiry{project: r.project, store: r.files.frontier, gate: r.gate, scope: r.scope,
		params: r.frontier.Params(), now: time.Now()}
}

// withScope works out the scope, for which all seeds are read.
func (q *inquiry) withScope() error {
	cfg, err := q.project.scope()
	if err != nil {
		return err
	}
	roots, err := q.project.roots(nil)
	if err != nil {
		return err
	}
	q.scope = frontier.NewScope(cfg, roots)
	return nil
}
