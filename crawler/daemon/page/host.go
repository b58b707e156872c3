package page

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A hostView is all that is known of one host, and what it makes of one URL.
type hostView struct {
	Name           string
	Host           *api.HostDetail // nil: the crawl has not met it
	Brake          *api.Brake      // that is on it
	Robots         *robotsView     // nil: there is nothing to show
	ExplainURL     string          // that was typed in
	Explanation    *explanationView
	ExplainProblem string // why it cannot be explained
}

// hostPage shows a host of a project, and explains the URL that the query names. One
// that the crawl has not met can be explained as well.
func (s *webUI) hostPage(r *http.Request) (pageView, error) {
	v, l, err := s.loadProjectView(r, "host")
	if err != nil {
		return pageView{}, err
	}
	h := &hostView{Name: r.PathValue("host"), ExplainURL: r.URL.Query().Get("url")}
	v.title, l.Content = h.Name+" · "+l.Name, h
	if h.Host, err = s.daemon.HostDetail(r.Context(), l.Name, h.Name); err != nil {
		if h.ExplainURL == "" || !isNotFound(err) {
			return pageView{}, err
		}
	}
	if h.Host != nil {
		h.Brake = h.Host.Brake
	}
	if h.ExplainURL != "" {
		i, err := s.daemon.Inspector(r.Context(), l.Name)
		if err != nil {
			return pageView{}, err
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

// redirectToExplanation leads to the page of the host of the URL that the query names.
func (s *webUI) redirectToExplanation(r *http.Request) (pageView, error) {
	text := r.URL.Query().Get("url")
	u, err := decorum.ParseURL(strings.TrimSpace(text))
	if err != nil {
		return pageView{}, api.InvalidInput("%q cannot be explained: %w", text, err)
	}
	return pageView{redirectTo: hostPath(r.PathValue("project"), u.Origin().Host()) + "?" + url.Values{"url": {text}}.Encode() + "#explain"}, nil
}

func isNotFound(err error) bool { return problemOf(err).Status == http.StatusNotFound }

// An explanationView is an explanation as the page shows it.
type explanationView struct {
	*api.URLExplanation
	Verdict   string          // allowed, disallowed or not known
	PathParts []pathMatchPart // of the path that the rules were compared with
}

// A pathMatchPart is a part of a path that is matched by the rule that decides, or is not.
type pathMatchPart struct {
	Text    string
	Matched bool
}

func newExplanationView(e *api.URLExplanation) *explanationView {
	x := &explanationView{URLExplanation: e, Verdict: "not known"}
	if e.Robots.MayVisit != nil {
		x.Verdict = "disallowed"
		if *e.Robots.MayVisit {
			x.Verdict = "allowed"
		}
	}
	path := e.Robots.PathAndQuery
	start, end := 0, 0
	if len(e.Robots.Matches) > 0 {
		span := e.Robots.Matches[0].Span
		start = min(max(span.Start, 0), len(path))
		end = min(max(span.End, start), len(path))
	}
	for _, p := range []pathMatchPart{{path[:start], false}, {path[start:end], true}, {path[end:], false}} {
		if p.Text != "" {
			x.PathParts = append(x.PathParts, p)
		}
	}
	return x
}
