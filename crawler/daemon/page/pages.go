package page

import (
	"net/http"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// Spans of time that plots show: of samples of a second, and of a minute.
const (
	recentPlotSpan = 10 * time.Minute
	dayPlotSpan    = 24 * time.Hour
)

// A projectCard is a project in the list of them.
type projectCard struct {
	api.Project
	Plot plot
}

// A projectsOverview is what the daemon does as a whole.
type projectsOverview struct {
	Cards                 []projectCard
	Brakes                []api.Brake
	LargestDelayShortfall api.Milliseconds // the worst
	ShortfallProject      string           // the project that has it
	TotalVisits           int64            // that it is the worst of
	NotReadyReason        string           // why
}

func (s *webUI) projectsPage(r *http.Request) (pageResult, error) {
	projects, err := s.daemon.Projects(r.Context())
	if err != nil {
		return pageResult{}, err
	}
	var o projectsOverview
	for _, p := range projects {
		c := projectCard{Project: p}
		samples, _ := s.daemon.ProjectThroughput(r.Context(), p.Name, false) // nil: the card is there without a plot
		c.Plot = pagesMetric.newPlot(samples, time.Now(), recentPlotSpan, 100)
		o.Cards = append(o.Cards, c)
		o.TotalVisits += p.Stats.Pages + p.Stats.RobotsFetches + p.Stats.SitemapFetches
		if p.LargestDelayShortfall > o.LargestDelayShortfall {
			o.LargestDelayShortfall, o.ShortfallProject = p.LargestDelayShortfall, p.Name
		}
	}
	if o.Brakes, err = s.daemon.Brakes(r.Context()); err != nil {
		return pageResult{}, err
	}
	if err := s.daemon.CheckReady(r.Context()); err != nil {
		o.NotReadyReason = err.Error()
	}
	return pageResult{templateName: "projects", title: "Projects", data: o}, nil
}

// A projectView of a project is what all of its pages show, and what one of them does.
type projectView struct {
	api.Project
	Tab     string
	Content any
}

// loadProjectView begins a page of the project that is named in the path.
func (s *webUI) loadProjectView(r *http.Request, tab string) (pageResult, *projectView, error) {
	p, err := s.daemon.Project(r.Context(), r.PathValue("project"))
	if err != nil {
		return pageResult{}, nil, err
	}
	l := &projectView{Project: *p, Tab: tab}
	return pageResult{templateName: tab, title: p.Name, data: l}, l, nil
}

// A projectDashboard is what a project does now.
type projectDashboard struct {
	Plots        []plot
	ShowsDay     bool // the plots are of a day
	ActiveVisits []api.ActiveVisit
	Hosts        hostList
}

// projectTab returns a page of the project that is named in the path, whose content is what content
// returns.
func (s *webUI) projectTab(tab string, content func(*http.Request, *api.Project) (any, error)) pageFunc {
	return func(r *http.Request) (pageResult, error) {
		v, l, err := s.loadProjectView(r, tab)
		if err == nil {
			l.Content, err = content(r, &l.Project)
		}
		return v, err
	}
}

func (s *webUI) projectDashboard(r *http.Request, p *api.Project) (_ any, err error) {
	d := projectDashboard{ShowsDay: r.FormValue("span") == "day"}
	span, steps := recentPlotSpan, 120
	if d.ShowsDay {
		span, steps = dayPlotSpan, 144
	}
	samples, _ := s.daemon.ProjectThroughput(r.Context(), p.Name, d.ShowsDay) // nil: the page is there without plots
	for _, metric := range []plotMetric{pagesMetric, bytesMetric, errorsMetric, queuedMetric} {
		d.Plots = append(d.Plots, metric.newPlot(samples, time.Now(), span, steps))
	}
	d.ActiveVisits, err = s.daemon.ProjectActiveVisits(r.Context(), p.Name)
	if err == nil {
		d.Hosts = s.loadHostList(r, p.Name)
	}
	return d, err
}

// maxRefusals bounds what is listed of what is blocked.
const maxRefusals = 200

func (s *webUI) blockedURLs(r *http.Request, p *api.Project) (any, error) {
	i, err := s.daemon.Inspector(r.Context(), p.Name)
	if err != nil {
		return nil, err
	}
	return api.FullReport(r.Context(), i.Report, api.ReportQuery{Limit: maxRefusals})
}

func (s *webUI) brakesPage(r *http.Request) (pageResult, error) {
	brakes, err := s.daemon.Brakes(r.Context())
	return pageResult{templateName: "brakes", title: "Brakes", data: brakes}, err
}

// auditEntriesPerPage is how many calls are on a page of the audit.
const auditEntriesPerPage = 100

func (s *webUI) auditPage(r *http.Request) (pageResult, error) {
	before, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	if err != nil {
		before = 0 // the newest
	}
	page, err := s.audit.Page(before, auditEntriesPerPage)
	return pageResult{templateName: "audit", title: "Audit", data: page}, err
}

func (s *webUI) botPage(*http.Request) (pageResult, error) {
	return pageResult{templateName: "bot", title: "About this bot", data: s.daemon.CrawlerIdentities()}, nil
}

// A loginForm is what the page of the login says.
type loginForm struct {
	NextPath    string // where to go then
	Failed      bool
	WaitSeconds string // seconds, after too many attempts
}

func (s *webUI) loginPage(r *http.Request) (pageResult, error) {
	q := r.URL.Query()
	return pageResult{templateName: "login", title: "Log in", data: loginForm{api.LocalRedirectPath(q.Get("next")), q.Has("failed"), q.Get("wait")}}, nil
}
