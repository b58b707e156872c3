package page

import (
	"net/http"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// The spans of time that plots show.
const (
	recentPlotSpan = 10 * time.Minute // from a sample a second
	dayPlotSpan    = 24 * time.Hour   // from a sample a minute
)

// A projectCard is the view of a project in the list of projects.
type projectCard struct {
	api.Project
	Plot plot
}

// A projectsOverview is the view of all projects of the daemon.
type projectsOverview struct {
	Cards                 []projectCard
	Brakes                []api.Brake
	LargestDelayShortfall api.Milliseconds // the largest of all projects
	ShortfallProject      string           // the project with the largest shortfall
	TotalVisits           int64            // of all projects since the daemon started
	NotReadyReason        string           // why the daemon is not ready; empty: it is
}

// projectsPage shows all projects, and the figures of the daemon as a whole.
func (s *webUI) projectsPage(r *http.Request) (pageResult, error) {
	projects, err := s.daemon.Projects(r.Context())
	if err != nil {
		return pageResult{}, err
	}
	var o projectsOverview
	for _, p := range projects {
		c := projectCard{Project: p}
		samples, _ := s.daemon.ProjectThroughput(r.Context(), p.Name, false) // without samples the plot is empty
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

// A projectView is the view of a page of a project.
type projectView struct {
	api.Project        // for the header that all pages of a project share
	Tab         string // the template of the page
	Content     any    // the view of the page below the header
}

// loadProjectView returns a page of the project in the path, and its view without Content.
func (s *webUI) loadProjectView(r *http.Request, tab string) (pageResult, *projectView, error) {
	p, err := s.daemon.Project(r.Context(), r.PathValue("project"))
	if err != nil {
		return pageResult{}, nil, err
	}
	l := &projectView{Project: *p, Tab: tab}
	return pageResult{templateName: tab, title: p.Name, data: l}, l, nil
}

// A projectDashboard is the view of the present work of a project.
type projectDashboard struct {
	Plots        []plot
	ShowsDay     bool // the plots show dayPlotSpan instead of recentPlotSpan
	ActiveVisits []api.ActiveVisit
	Hosts        hostList
}

// projectTab returns a pageFunc for a page of the project in the path. content returns the
// projectView's Content.
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
	samples, _ := s.daemon.ProjectThroughput(r.Context(), p.Name, d.ShowsDay) // without samples the plots are empty
	for _, metric := range []plotMetric{pagesMetric, bytesMetric, errorsMetric, queuedMetric} {
		d.Plots = append(d.Plots, metric.newPlot(samples, time.Now(), span, steps))
	}
	d.ActiveVisits, err = s.daemon.ProjectActiveVisits(r.Context(), p.Name)
	if err == nil {
		d.Hosts = s.loadHostList(r, p.Name)
	}
	return d, err
}

// maxRefusals is the number of rules, and of hosts, that the page of blocked URLs lists.
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

// auditEntriesPerPage is the number of calls on a page of the audit.
const auditEntriesPerPage = 100

func (s *webUI) auditPage(r *http.Request) (pageResult, error) {
	before, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	if err != nil {
		before = 0 // the first page, with the newest entries
	}
	page, err := s.audit.Page(before, auditEntriesPerPage)
	return pageResult{templateName: "audit", title: "Audit", data: page}, err
}

func (s *webUI) botPage(*http.Request) (pageResult, error) {
	return pageResult{templateName: "bot", title: "About this bot", data: s.daemon.CrawlerIdentities()}, nil
}

// A loginForm is the view of the login.
type loginForm struct {
	NextPath    string // the page after the login
	Failed      bool   // the last token was invalid
	WaitSeconds string // how long to wait after too many attempts; empty: not at all
}

func (s *webUI) loginPage(r *http.Request) (pageResult, error) {
	q := r.URL.Query()
	return pageResult{templateName: "login", title: "Log in",
		data: loginForm{api.LocalRedirectPath(q.Get("next")), q.Has("failed"), q.Get("wait")}}, nil
}
