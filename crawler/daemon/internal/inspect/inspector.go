package inspect

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// An Inspector answers queries about a crawl at one moment, AsOf. It reads the crawl's own stores
// and engine and changes nothing. The crawl may continue meanwhile.
type Inspector struct {
	Name          string // name of the crawl in errors
	Project       project.Project
	FrontierStore datadir.StoreInspectorImporter
	RobotsStore   storage.NoteStore // the store of Gate
	Gate          *gate.Gate
	Scope         func() *frontier.Scope // returns nil, which contains every URL, if the scope is unknown
	ParamCleaner  *frontier.ParamCleaner
	AsOf          time.Time
	// AnyProjectReachesPrivate is set if a project that shares the cache of robots.txt files may
	// connect to private addresses.
	AnyProjectReachesPrivate bool

	closedPatterns atomic.Pointer[frontier.ClosedPatterns] // set by loadClosedPatterns
}

// New returns an Inspector of the engine's crawl at the present time. It reads notes of the crawl.
func New(ctx context.Context, r *engine.Engine) (*Inspector, error) {
	if err := r.Frontier.LoadSeedRedirects(ctx); err != nil {
		return nil, err
	}
	return &Inspector{Project: r.Project, FrontierStore: r.Stores.Frontier, RobotsStore: r.Stores.Robots, Gate: r.Gate,
		Scope: r.Frontier.Scope, ParamCleaner: r.Frontier.ParamCleaner(), AsOf: time.Now()}, nil
}

// ParseHostParam returns the canonical form of a host parameter, or "" for an empty one. For any
// other text that is not a host name it returns an error of kind InvalidInput.
func ParseHostParam(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	host, ok := project.CanonicalHost(text)
	if !ok {
		return "", api.InvalidInput("%q is not a host name such as example.com", text)
	}
	return host, nil
}

// ParseOriginParam returns the origin that a query names, as in https://example.com.
func ParseOriginParam(text string) (decorum.Origin, error) {
	u, err := decorum.ParseURL(text)
	if err != nil || u.PathAndQuery() != "/" {
		return decorum.Origin{}, api.InvalidInput("%q is not an origin, as https://example.com", text)
	}
	return u.Origin(), nil
}

// NewUnknownHostError returns the error for a host without URLs in the crawl with that name.
func NewUnknownHostError(crawl, host string) error {
	return api.NotFound("%s knows no host %s", crawl, host)
}

// loadClosedPatterns reads the patterns of URLs that the crawl has closed, for checkScope, on its first
// call that succeeds.
func (q *Inspector) loadClosedPatterns(ctx context.Context) error {
	if q.closedPatterns.Load() != nil {
		return nil
	}
	patterns, err := frontier.LoadClosedPatterns(ctx, q.FrontierStore)
	if err == nil {
		q.closedPatterns.Store(&patterns)
	}
	return err
}

// checkScope returns why e does not belong to the crawl, nil if it does. Call loadClosedPatterns first.
func (q *Inspector) checkScope(e storage.Entry) error {
	if err := q.Scope().Check(e); err != nil {
		return err
	}
	if patterns := q.closedPatterns.Load(); patterns != nil {
		return patterns.Check(e)
	}
	return nil
}
