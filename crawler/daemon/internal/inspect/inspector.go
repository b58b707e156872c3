package inspect

import (
	"os"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// An Inspector is a crawl that is asked about at a moment. It answers from the
// crawl's own stores and engine, and changes nothing; the crawl may go on
// meanwhile.
type Inspector struct {
	Name          string // of the crawl, in errors
	Project       project.Project
	FrontierStore datadir.StoreInspectorImporter
	RobotsStore   storage.NoteStore // what Gate keeps
	Gate          *gate.Gate
	Scope         *frontier.Scope // nil if it is not known
	ParamCleaner  *frontier.ParamCleaner
	Time          time.Time
	// AnyProjectReachesPrivate is set if a project that shares the cache of robots.txt files may
	// reach into private networks.
	AnyProjectReachesPrivate bool
}

// LoadScope works out the scope, for which all seeds are read.
func (q *Inspector) LoadScope() error {
	cfg, err := q.Project.ScopeConfig()
	if err != nil {
		return err
	}
	seedPerOrigin, err := q.Project.FirstSeedPerOrigin(os.Open)
	if err != nil {
		return err
	}
	q.Scope = frontier.NewScope(cfg, seedPerOrigin)
	return nil
}

// New returns an inspector of a crawl at the present moment.
func New(r *engine.Engine) *Inspector {
	return &Inspector{Project: r.Project, FrontierStore: r.Stores.Frontier, RobotsStore: r.Stores.Robots, Gate: r.Gate, Scope: r.Scope,
		ParamCleaner: r.Frontier.ParamCleaner(), Time: time.Now()}
}
