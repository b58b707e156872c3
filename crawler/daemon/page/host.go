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
	Name      string
	Host      *api.HostDetail // nil: the crawl has not met it
	Brake     *api.Brake      // that is on it
	Robots    *robotsView     // nil: there is nothing to show
	URL       string          // that was typed in
	Explained *explained
	Problem   string // why it cannot be explained
}

// host shows a host of a project, and explains the URL that the query names. One
// that the crawl has not met can be explained as well.
func (s *site) host(r *http.Request) (view, error) {
	v, l, err := s.lookAt(r, "host")
	if err != nil {
		return view{}, err
	}
	h := &hostView{Name: r.PathValue("host"), URL: r.URL.Query().Get("url")}
	v.title, l.More = h.Name+" · "+l.Name, h
	if h.Host, err = s.daemon.Host(r.Context(), l.Name, h.Name); err != nil {
		if h.URL == "" || !isNotFound(err) {
			return view{}, err
		}
	}
	if h.Host != nil {
		h.Brake = h.Host.Brake
	}
	if h.URL != "" {
		e, err := s.daemon.Explain(r.Context(), l.Name, h.URL)
		if err != nil {
			h.Problem = err.Error()
		} else {
			h.Explained = explainedOf(e)
		}
	}
	h.Robots, err = s.robotsOf(r, l.Name, h)
	return v, err
}

// explain leads to the page of the host of the URL that the query names.
func (s *site) explain(r *http.Request) (view, error) {
	text := r.URL.Query().Get("url")
	u, err := decorum.ParseURL(strings.TrimSpace(text))
	if err != nil {
		return view{}, api.Invalid("%q cannot be explained: %w", text, err)
	}
	return view{to: hostPath(r.PathValue("project"), u.Origin().Host()) + "?" + url.Values{"url": {text}}.Encode() + "#explain"}, nil
}

func isNotFound(err error) bool { return problemOf(err).Status == http.StatusNotFound }

// An explained URL is an explanation as the page shows it.
type explained struct {
	*api.Explanation
	Verdict string // allowed, disallowed or not known
	Parts   []part // of the path that the rules were compared with
}

// A part of a path is matched by the rule that decides, or is not.
type part struct {
	Text    string
	Matched bool
}

func explainedOf(e *api.Explanation) *explained {
	x := &explained{Explanation: e, Verdict: "not known"}
	if e.Robots.Judged != nil {
		x.Verdict = "disallowed"
		if *e.Robots.Judged {
			x.Verdict = "allowed"
		}
	}
	path := e.Robots.Path
	start, end := 0, 0
	if len(e.Robots.Matches) > 0 {
		span := e.Robots.Matches[0].Span
		start = min(max(span.Start, 0), len(path))
		end = min(max(span.End, start), len(path))
	}
	for _, p := range []part{{path[:start], false}, {path[start:end], true}, {path[end:], false}} {
		if p.Text != "" {
			x.Parts = append(x.Parts, p)
		}
	}
	return x
}
