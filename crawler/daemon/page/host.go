package page

import (
	"net/http"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A hostView is all that is known of one host, and what it makes of one URL.
type hostView struct {
	Name           string
	Detail         *api.HostDetail // nil: the crawl has not met it
	Brake          *api.Brake      // that is on it
	Robots         *robotsView     // nil: there is nothing to show
	ExplainURL     string          // that was typed in
	Explanation    *explanationView
	ExplainProblem string // why it cannot be explained
}

// hostPage shows a host of a project, and explains the URL that the query names. One
// that the crawl has not met can be explained as well.
func (s *webUI) hostPage(r *http.Request) (pageResult, error) {
	v, l, err := s.loadProjectView(r, "host")
	if err != nil {
		return pageResult{}, err
	}
	h := &hostView{Name: r.PathValue("host"), ExplainURL: r.URL.Query().Get("url")}
	v.title, l.Content = h.Name+" · "+l.Name, h
	if h.Detail, err = s.daemon.HostDetail(r.Context(), l.Name, h.Name); err != nil {
		if h.ExplainURL == "" || !isNotFound(err) {
			return pageResult{}, err
		}
	}
	if h.Detail != nil {
		h.Brake = h.Detail.Brake
	}
	if h.ExplainURL != "" {
		i, err := s.daemon.Inspector(r.Context(), l.Name)
		if err != nil {
			return pageResult{}, err
		}
		if e, err := i.ExplainURL(r.Context(), h.ExplainURL); err != nil {
			h.ExplainProblem = err.Error()
		} else {
			h.Explanation = newExplanationView(e)
		}
	}
	h.Robots, err = s.loadRobotsView(r, l.Name, h)
	return v, err
}
