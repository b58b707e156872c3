package supervisor

import (
	"cmp"
	"context"
	"slices"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/politeness"
)

// Queries about a project are answered from its stores by an inspect.Inspector, whether the project runs
// or not. The answers equal those of decorum report and decorum explain.

// Inspector returns the api.Inspector of a project.
func (s *Supervisor) Inspector(_ context.Context, name string) (api.Inspector, error) {
	r, err := s.runners.find(name)
	if err != nil {
		return nil, err
	}
	return &inspect.RunningCrawl{
		Name: name, WithEngine: r.withEngine, URLsAdded: r.engine.resumeForNewURLs,
	}, nil
}

// withInspector calls do with an inspect.Inspector of a project.
func (s *Supervisor) withInspector(ctx context.Context, name string,
	do func(context.Context, *inspect.Inspector) error) error {
	r, err := s.runners.find(name)
	if err != nil {
		return err
	}
	return r.withEngine(ctx, func(ctx context.Context, crawl *engine.Engine) error {
		q, err := inspect.New(ctx, crawl)
		if err != nil {
			return err
		}
		return do(ctx, q)
	})
}

// Limits of a page of hosts.
const (
	defaultHostsPerPage = 50
	maxHostsPerPage     = 1000
)

// Hosts returns one page of the hosts of a project. A query.Limit of 0 means defaultHostsPerPage.
func (s *Supervisor) Hosts(ctx context.Context, name string, query api.HostQuery) (page *api.HostListPage, err error) {
	if query.Limit == 0 {
		query.Limit = defaultHostsPerPage
	}
	if err := checkHostQuery(query); err != nil {
		return nil, err
	}
	err = s.withInspector(ctx, name, func(ctx context.Context, q *inspect.Inspector) error {
		// Use the cached list, so that the pages of one list are consistent.
		r, err := s.hostLists.GetOrBuild(ctx, name, func() (*inspect.HostListSnapshot, error) {
			return q.NewHostList(ctx)
		})
		if err != nil {
			return err
		}
		hosts, total, err := r.Page(ctx, q, query)
		if err != nil {
			return err
		}
		page = &api.HostListPage{AsOf: r.CreatedAt, Total: total, Offset: query.Offset, HostsByState: r.CountByState,
			Hosts: make([]api.Host, len(hosts))}
		for i, h := range hosts {
			if page.Hosts[i], err = hostWithDetails(ctx, q, s.OperatorBrakes, *h); err != nil {
				return err
			}
		}
		return nil
	})
	return page, err
}

// checkHostQuery returns an api.InvalidInput error for a query with an unknown order or state, or with
// an offset or limit out of range.
func checkHostQuery(query api.HostQuery) error {
	_, sorted := inspect.HostSortKeys[query.Sort]
	switch {
	case !sorted:
		return api.InvalidInput("sort: %q is not a known order of hosts", query.Sort)
	case query.State != "" && !slices.Contains(inspect.HostStates, query.State):
		return api.InvalidInput("state: %q is not a known state of a host", query.State)
	case query.Offset < 0:
		return api.InvalidInput("offset: %d is less than 0", query.Offset)
	case query.Limit < 0 || query.Limit > maxHostsPerPage:
		return api.InvalidInput("limit: %d is not from 1 to %d", query.Limit, maxHostsPerPage)
	}
	return nil
}

// hostWithDetails returns a host with the details that the list of all hosts lacks: why it is held, the
// outcome of its last robots.txt fetch, and the brake on it.
func hostWithDetails(
	ctx context.Context, q *inspect.Inspector, brakes *politeness.Brakes, h inspect.HostReport,
) (api.Host, error) {
	if err := q.SetHostHoldReason(ctx, &h); err != nil {
		return h.Host, err
	}
	status, err := q.Gate.LastFetchSummary(ctx, h.OriginList[0])
	if err != nil {
		return h.Host, err
	}
	h.RobotsOutcome, h.RobotsFetchedAt = status.Outcome.String(), status.FetchedAt
	if b, ok := brakes.ForHost(h.Host.Host, q.AsOf); ok {
		h.Brake = new(toAPIBrake(b))
	}
	return h.Host, nil
}

// maxRobotsFiles limits the robots.txt files that HostDetail returns for one host, one per origin.
const maxRobotsFiles = 100

// HostDetail returns a host of a project with its active visits and its robots.txt files. A host that
// the project does not know is an error of the API.
func (s *Supervisor) HostDetail(ctx context.Context, name, host string) (d *api.HostDetail, err error) {
	canonical, err := inspect.ParseHostParam(host)
	if err != nil {
		return nil, err
	}
	err = s.withInspector(ctx, name, func(ctx context.Context, q *inspect.Inspector) error {
		// Sum up the origins of the host.
		origins, err := q.HostOrigins(ctx, canonical)
		if err != nil {
			return err
		}
		h, err := q.ReadHost(ctx, origins, true)
		if h == nil || err != nil {
			return cmp.Or(err, inspect.NewUnknownHostError(name, host))
		}
		d = &api.HostDetail{RobotsFiles: []api.RobotsFile{}}
		if d.Host, err = hostWithDetails(ctx, q, s.OperatorBrakes, *h); err != nil {
			return err
		}
		visits, err := s.ProjectActiveVisits(ctx, name)
		if err != nil {
			return err
		}
		d.ActiveVisits = slices.DeleteFunc(visits, func(v api.ActiveVisit) bool { return v.Host != canonical })
		for _, o := range h.OriginList[:min(len(h.OriginList), maxRobotsFiles)] {
			f, err := q.RobotsFileInfo(ctx, o)
			if err != nil {
				return err
			}
			d.RobotsFiles = append(d.RobotsFiles, *f)
		}
		return nil
	})
	return d, err
}

// RobotsFile returns the robots.txt file of an origin that a project uses or, if version is not empty,
// an earlier version of it.
func (s *Supervisor) RobotsFile(ctx context.Context, name, origin, version string) (f *api.RobotsFile, err error) {
	o, err := inspect.ParseOriginParam(origin)
	if err != nil {
		return nil, err
	}
	err = s.withInspector(ctx, name, func(ctx context.Context, q *inspect.Inspector) error {
		q.AnyProjectReachesPrivate = s.runners.anyProjectMayReachPrivateAddrs()
		f, err = q.RobotsFileInfoAndText(ctx, o, version)
		return err
	})
	return f, err
}
