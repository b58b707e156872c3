package page

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// redirectToExplanation redirects to the page of the URL's host, which explains the URL.
func (s *webUI) redirectToExplanation(r *http.Request) (pageResult, error) {
	text := r.URL.Query().Get("url")
	u, err := decorum.ParseURL(strings.TrimSpace(text))
	if err != nil {
		return pageResult{}, api.InvalidInput("%q cannot be explained: %w", text, err)
	}
	return pageResult{redirectTo: hostPath(r.PathValue("project"), u.Origin().Host()) + "?" +
		url.Values{"url": {text}}.Encode() + "#explain"}, nil
}

func isNotFound(err error) bool { return problemOf(err).Status == http.StatusNotFound }

// An explanationView is the view of the explanation of a URL.
type explanationView struct {
	*api.URLExplanation
	Verdict   string          // allowed, disallowed or not known
	PathParts []pathMatchPart // the path that the rules were compared with
}

// A pathMatchPart is a part of a path.
type pathMatchPart struct {
	Text    string
	Matched bool // the deciding rule matches this part
}

// newExplanationView returns the view of e.
func newExplanationView(e *api.URLExplanation) *explanationView {
	x := &explanationView{URLExplanation: e, Verdict: "not known"}
	if e.Robots.MayVisit != nil {
		x.Verdict = "disallowed"
		if *e.Robots.MayVisit {
			x.Verdict = "allowed"
		}
	}
	// Split the path at the span that the first match covers, which is the deciding one.
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
