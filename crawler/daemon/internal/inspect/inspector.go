package inspect

import (
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

// An Inspector is a crawl that is asked about at a moment. It answers from the
// crawl's own stores and engine, and changes nothing; the crawl may go on
// meanwhile.
type Inspector struct {
	Name          string // of the crawl, in errors
	Project       project.Project
	FrontierStore datadir.StoreInspectorImporter
	RobotsStore   storage.NoteStore // what Gate keeps
	Gate          *gate.Gate
	Scope         func() *frontier.Scope // returns nil, to which every URL belongs, if it is not known
	ParamCleaner  *frontier.ParamCleaner
	AsOf          time.Time
	// AnyProjectReachesPrivate is set if a project that shares the cache of robots.txt files may
	// reach into private networks.
	AnyProjectReachesPrivate bool
}

// New returns an inspector of a crawl at the present moment.
func New(r *engine.Engine) *Inspector {
	return &Inspector{Project: r.Project, FrontierStore: r.Stores.Frontier, RobotsStore: r.Stores.Robots, Gate: r.Gate,
		Scope: func() *frontier.Scope { return r.Scope }, ParamCleaner: r.Frontier.ParamCleaner(), AsOf: time.Now()}
}

// ParseHostParam returns the name of a host in canonical form; empty: none is asked for.
func ParseHostParam(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	host, ok := project.CanonicalHost(text)
	if !ok {
		return "", api.InvalidInput("%q is not the name of a host, as in example.com", text)
	}
	return host, nil
}

// ParseOriginParam returns the origin that a question names.
func ParseOriginParam(text string) (decorum.Origin, error) {
	u, err := decorum.ParseURL(text)
	if err != nil || u.PathAndQuery() != "/" {
		return decorum.Origin{}, api.InvalidInput("%q is not an origin, as https://example.com", text)
	}
	return u.Origin(), nil
}

// NewUnknownHostError is the error of a host that a crawl has not met.
func NewUnknownHostError(crawl, host string) error {
	return api.NotFound("%s knows no host %s", crawl, host)
}
