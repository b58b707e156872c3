package page

import (
	"net/http"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// Spans of time that plots show: of samples of a second, and of a minute.
const (
	lately = 10 * time.Minute
	aDay   = 24 * time.Hour
)

// A card is a project in the list of them.
type card struct {
	api.Project
	Plot plot
}

// An overview is what the daemon does as a whole.
type overview struct {
	Cards     []card
	Brakes    []api.Brake
	Shortfall api.Milliseconds // the worst
	Short     string           // the project that has it
	Visits    int64            // that it is the worst of
	NotReady  string           // why
}

func (s *site) projects(r *http.Request) (view, error) {
	projects, err := s.daemon.Projects(r.Context())
	if err != nil {
		return view{}, err
	}
	var o overview
	for _, p := range projects {
		c := card{Project: p}
		samples, err := s.daemon.Throughput(r.Context(), p.Name, false)
		if err != nil {
			samples = nil // the card is there without a plot
		}
		c.Plot = pagesSeries.draw(samples, time.Now(), lately, 100)
		o.Cards = append(o.Cards, c)
		o.Visits += p.Stats.Pages + p.Stats.Robots + p.Stats.Sitemaps
		if p.Shortfall > o.Shortfall {
			o.Shortfall, o.Short = p.Shortfall, p.Name
		}
	}
	if o.Brakes, err = s.daemon.Brakes(r.Context()); err != nil {
		return view{}, err
	}
	if err := s.daemon.Ready(r.Context()); err != nil {
		o.NotReady = err.Error()
	}
	return view{name: "projects", title: "Projects", data: o}, nil
}

// A look at a project is what all of its pages show, and what one of them does.
type look struct {
	api.Project
	Tab  string
	More any
}

// lookAt begins a page of the project that is named in the path.
func (s *site) lookAt(r *http.Request, tab string) (view, *look, error) {
	p, err := s.daemon.Project(r.Context(), r.PathValue("project"))
	if err != nil {
		return view{}, nil, err
	}
	l := &look{Project: *p, Tab: tab}
	return view{name: tab, title: p.Name, data: l}, l, nil
}

// A dashboard is what a project does now.
type dashboard struct {
	Plots  []plot
	Day    bool // the plots are of a day
	Visits []api.LiveVisit
	Hosts  hostList
}

func (s *site) project(r *http.Request) (view, error) {
	v, l, err := s.lookAt(r, "project")
	if err != nil {
		return view{}, err
	}
	d := dashboard{Day: r.FormValue("span") == "day"}
	span, steps := lately, 120
	if d.Day {
		span, steps = aDay, 144
	}
	samples, err := s.daemon.Throughput(r.Context(), l.Name, d.Day)
	if err != nil {
		samples = nil // the page is there without plots
	}
	for _, series := range []series{pagesSeries, bytesSeries, errorsSeries, queuedSeries} {
		d.Plots = append(d.Plots, series.draw(samples, time.Now(), span, steps))
	}
	if d.Visits, err = s.daemon.Visits(r.Context(), l.Name); err != nil {
		return view{}, err
	}
	d.Hosts = s.hostList(r, l.Name)
	l.More = d
	return v, nil
}

// mostRefusals bounds what is listed of what is blocked.
const mostRefusals = 200

func (s *site) blocked(r *http.Request) (view, error) {
	v, l, err := s.lookAt(r, "blocked")
	if err != nil {
		return view{}, err
	}
	report, err := s.daemon.Report(r.Context(), l.Name, api.ReportQuery{Limit: mostRefusals})
	if err != nil {
		return view{}, err
	}
	l.More = report
	return v, nil
}

func (s *site) brakes(r *http.Request) (view, error) {
	brakes, err := s.daemon.Brakes(r.Context())
	return view{name: "brakes", title: "Brakes", data: brakes}, err
}

// auditLimit is how many calls are on a page of the audit.
const auditLimit = 100

func (s *site) audit(r *http.Request) (view, error) {
	before, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	if err != nil {
		before = 0 // the newest
	}
	page, err := s.log.Page(before, auditLimit)
	return view{name: "audit", title: "Audit", data: page}, err
}

func (s *site) bot(*http.Request) (view, error) {
	return view{name: "bot", title: "About this bot", data: s.daemon.About()}, nil
}

// A loginForm is what the page of the login says.
type loginForm struct {
	Next   string // where to go then
	Failed bool
	Wait   string // seconds, after too many attempts
}

func (s *site) login(r *http.Request) (view, error) {
	q := r.URL.Query()
	return view{name: "login", title: "Log in", data: loginForm{api.LocalPath(q.Get("next")), q.Has("failed"), q.Get("wait")}}, nil
}
