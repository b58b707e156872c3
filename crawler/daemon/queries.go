package daemon

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/storage"
)

// What is asked about a project is answered from its state by an inquiry, while
// it runs or rests: the answer is that of decorum report and decorum explain.

// inquire calls ask with an inquiry about a project.
func (s *supervisor) inquire(ctx context.Context, name string, ask func(context.Context, *inquiry) error) error {
	r, err := s.find(name)
	if err != nil {
		return err
	}
	return r.consult(ctx, func(ctx context.Context, engine *crawlEngine, _ stores) error { return ask(ctx, engine.inquire()) })
}

// Explain says what a project makes of a URL. It makes no request.
func (s *supervisor) ExplainURL(ctx context.Context, name, url string) (e *api.Explanation, err error) {
	if _, err := decorum.ParseURL(url); err != nil {
		return nil, api.InvalidInput("%q is not a URL: %s", url, cause(err))
	}
	err = s.inquire(ctx, name, func(ctx context.Context, q *inquiry) error {
		e, err = q.explain(ctx, url)
		return err
	})
	return e, err
}

// Report says how a project stands, URL by URL where they are parked: of many
// such it takes time.
func (s *supervisor) Report(ctx context.Context, name string, want api.ReportQuery) (r *api.Report, err error) {
	host, err := hostAsked(want.Host)
	if err != nil {
		return nil, err
	}
	if want.Limit < 0 {
		return nil, api.InvalidInput("limit: %d is not a number of hosts", want.Limit)
	}
	err = s.inquire(ctx, name, func(ctx context.Context, q *inquiry) error {
		r, err = q.report(ctx, host, want.Limit)
		return err
	})
	if err == nil && host != "" && len(r.Hosts) == 0 {
		return nil, notMet(name, host)
	}
	return r, err
}

// Limits of a page of hosts.
const (
	usualHosts      = 50
	maxHostsPerPage = 1000
)

// Hosts returns a page of the hosts of a project.
func (s *supervisor) Hosts(ctx context.Context, name string, want api.HostQuery) (page *api.HostPage, err error) {
	if want.Limit == 0 {
		want.Limit = usualHosts
	}
	if err := checkHostQuery(want); err != nil {
		return nil, err
	}
	err = s.inquire(ctx, name, func(ctx context.Context, q *inquiry) error {
		r, err := s.rosters.get(ctx, name, func() (*roster, error) { return q.roster(ctx) })
		if err != nil {
			return err
		}
		hosts, total, err := r.page(ctx, q, want)
		if err != nil {
			return err
		}
		page = &api.HostPage{AsOf: r.at, Total: total, Offset: want.Offset, HostsByState: r.states, Hosts: make([]api.Host, len(hosts))}
		for i, h := range hosts {
			if page.Hosts[i], err = s.detail(ctx, q, *h); err != nil {
				return err
			}
		}
		return nil
	})
	return page, err
}

func checkHostQuery(want api.HostQuery) error {
	_, sorted := hostOrders[want.Sort]
	switch {
	case !sorted:
		return api.InvalidInput("sort: %q is no order of hosts", want.Sort)
	case want.State != "" && !slices.Contains(states, want.State):
		return api.InvalidInput("state: %q is no state of a host", want.State)
	case want.Offset < 0:
		return api.InvalidInput("offset: %d is less than 0", want.Offset)
	case want.Limit < 0 || want.Limit > maxHostsPerPage:
		return api.InvalidInput("limit: %d is not from 1 to %d", want.Limit, maxHostsPerPage)
	}
	return nil
}

// detail adds to a host what is not known of all of them: why it is held, its
// robots.txt, its brake.
func (s *supervisor) detail(ctx context.Context, q *inquiry, h surveyed) (api.Host, error) {
	if err := q.explainHold(ctx, &h); err != nil {
		return h.Host, err
	}
	known, err := q.gate.Known(ctx, h.first)
	if err != nil {
		return h.Host, err
	}
	h.RobotsOutcome, h.RobotsFetchedAt = known.Outcome.String(), known.Fetched
	if b, ok := s.brakes.For(h.Host.Host, q.now); ok {
		h.Brake = new(shownBrake(b))
	}
	return h.Host, nil
}

// maxRobotsFiles is of how many origins of a host the robots.txt files are told.
const maxRobotsFiles = 100

// Host returns all that is known of a host of a project.
func (s *supervisor) Host(ctx context.Context, name, host string) (d *api.HostDetail, err error) {
	asked, err := hostAsked(host)
	if err != nil {
		return nil, err
	}
	err = s.inquire(ctx, name, func(ctx context.Context, q *inquiry) error {
		origins, err := q.originsOf(ctx, asked)
		if err != nil {
			return err
		}
		h, err := q.readHost(ctx, origins)
		if h == nil || err != nil {
			return cmp.Or(err, notMet(name, host))
		}
		for _, o := range origins {
			if err := q.classifyParked(ctx, o, h); err != nil {
				return err
			}
		}
		cover(&h.HostTotals)
		h.ParkedByRule = h.refusals.list()
		d = &api.HostDetail{RobotsFiles: []api.RobotsFile{}}
		if d.Host, err = s.detail(ctx, q, *h); err != nil {
			return err
		}
		visits, err := s.ActiveVisits(ctx, name)
		if err != nil {
			return err
		}
		d.ActiveVisits = slices.DeleteFunc(visits, func(v api.ActiveVisit) bool { return v.Host != asked })
		for _, o := range origins[:min(len(origins), maxRobotsFiles)] {
			f, err := q.robotsFile(ctx, o)
			if err != nil {
				return err
			}
			d.RobotsFiles = append(d.RobotsFiles, *f)
		}
		return nil
	})
	return d, err
}

// hostAsked returns the name of a host in canonical form; empty: none is asked for.
func hostAsked(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	host, ok := hostName(text)
	if !ok {
		return "", api.InvalidInput("%q is not the name of a host, as in example.com", text)
	}
	return host, nil
}

func notMet(project, host string) error {
	return api.NotFound("%s has not met the host %s", project, host)
}

// Robots returns the robots.txt of an origin as a project knows it, or one that
// it had before.
func (s *supervisor) RobotsFile(ctx context.Context, name, origin, version string) (f *api.RobotsFile, err error) {
	u, err := decorum.ParseURL(origin)
	if err != nil || u.Path() != "/" {
		return nil, api.InvalidInput("%q is not an origin, as https://example.com", origin)
	}
	err = s.inquire(ctx, name, func(ctx context.Context, q *inquiry) error {
		q.reachesPrivate = s.reachesPrivate()
		f, err = q.robotsText(ctx, u.Origin(), version)
		return err
	})
	return f, err
}

// AddURLs queues what lines name. A batch is added before the next is read, so
// that who sends them goes no faster than the store does. When it returns, what it
// took is on the disk; that is told with an error, too.
func (s *supervisor) AddURLs(ctx context.Context, name string, lines iter.Seq2[string, error]) (*api.AddURLsResult, error) {
	r, err := s.find(name)
	if err != nil {
		return nil, err
	}
	in := newIntake(r.offer)
	if err := in.takeAll(ctx, lines); err != nil {
		return in.result(), err
	}
	err = r.consult(ctx, func(ctx context.Context, engine *crawlEngine, _ stores) error { return engine.frontier.Flush(ctx) })
	return in.result(), err
}

// offer queues entries. The project is asked for its rooms each time: its file may
// change while somebody sends a long list.
func (r *runner) offer(ctx context.Context, refused func(storage.Entry, error), entries []storage.Entry) (added int, err error) {
	err = r.consult(ctx, func(ctx context.Context, engine *crawlEngine, _ stores) error {
		added, err = engine.frontier.Offer(ctx, refused, entries)
		if added > 0 {
			r.stir(engine)
		}
		return err
	})
	return added, err
}
