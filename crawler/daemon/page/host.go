package page

import (
	"net/http"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A hostView is the view of a host, and of the explanation of one of its URLs.
type hostView struct {
	Name           string
	Detail         *api.HostDetail  // nil: the crawl does not know the host
	Brake          *api.Brake       // the brake on the host; nil: none
	Robots         *robotsView      // nil: the page shows no robots.txt
	ExplainURL     string           // the URL to explain; empty: none
	Explanation    *explanationView // nil: ExplainURL is empty, or cannot be explained
	ExplainProblem string           // why ExplainURL cannot be explained
}

// hostPage shows a host of a project, and explains the URL in the query. It explains URLs of unknown
// hosts as well.
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
	// Explain the URL; an error is part of the page.
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
