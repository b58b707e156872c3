package page

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// hostsPerPage is how many hosts are on a page.
const hostsPerPage = 50

// A hostList is a part of a project's hosts.
type hostList struct {
	Project string
	*api.HostListPage
	pagination
	Columns      []hostTableColumn
	Search       string
	State        string
	StateChoices []stateChoice // states to choose from
	Problem      string        // why there is no list
	Sort, Order  string        // as asked for, to be kept by the form
}

// A hostTableColumn is one of the table of hosts.
type hostTableColumn struct {
	Name     string
	AriaSort string // aria-sort: ascending, descending, or empty
	SortURL  string // sorts by it, or the other way round
}

// A stateChoice is a state that hosts can be filtered by.
type stateChoice struct {
	State     string
	HostCount int
	Selected  bool
}

// hostColumns are those of the table of hosts: what is sorted by, the name, and
// whether the largest come first when it is chosen.
var hostColumns = []struct {
	key, name    string
	largestFirst bool
}{
	{"host", "Host", false}, {"state", "State", false}, {"queued", "Queued", true}, {"due", "Due", false},
	{"pace", "Declared / configured / observed", true}, {"last_status", "Last status", true},
	{"robots_age", "robots.txt", true}, {"failures", "Errors", true}, {"", "Shortfall", false},
}

// hostStates are the states of hosts, in the order in which they are offered.
var hostStates = []string{"due", "waiting", "held", "set aside", "resting", "done"}

// loadHostList asks for the hosts that the query of r names.
func (s *webUI) loadHostList(r *http.Request, project string) hostList {
	q := r.URL.Query()
	l := hostList{Project: project, Search: q.Get("q"), State: q.Get("state"), Sort: q.Get("sort"), Order: q.Get("order")}
	offset := offsetOfRequest(r)
	page, err := s.daemon.Hosts(r.Context(), project, api.HostQuery{Search: strings.TrimSpace(l.Search), State: l.State,
		Sort: l.Sort, Descending: l.Order == "desc", Offset: offset, Limit: hostsPerPage})
	if err != nil {
		l.Problem = err.Error()
		return l
	}
	l.HostListPage, l.pagination = page, newPagination(r, offset, hostsPerPage, page.Total)
	for _, state := range hostStates {
		l.StateChoices = append(l.StateChoices, stateChoice{state, page.HostsByState[state], state == l.State})
	}
	for _, c := range hostColumns {
		l.Columns = append(l.Columns, sortableColumn(q, c.key, c.name, c.largestFirst))
	}
	return l
}

// sortableColumn makes the head of a column: a link that sorts by it, the other way
// round if that is so already.
func sortableColumn(q url.Values, key, name string, largestFirst bool) hostTableColumn {
	c := hostTableColumn{Name: name}
	if key == "" {
		return c
	}
	if q.Get("sort") == key {
		c.AriaSort, largestFirst = "ascending", true
		if q.Get("order") == "desc" {
			c.AriaSort, largestFirst = "descending", false
		}
	}
	order := "asc"
	if largestFirst {
		order = "desc"
	}
	c.SortURL = queryWithChanges(q, "sort", key, "order", order, "offset", "") + "#hosts"
	return c
}

// pagination lead through a list.
type pagination struct {
	FirstItem, LastItem, TotalItems int // counted from 1
	PreviousURL, NextURL            string
}

// newPagination makes the links through a list that r shows a part of.
func newPagination(r *http.Request, offset, limit, total int) pagination {
	q := r.URL.Query()
	p := pagination{FirstItem: min(offset+1, total), LastItem: min(offset+limit, total), TotalItems: total}
	if offset > 0 {
		p.PreviousURL = queryWithChanges(q, "offset", strconv.Itoa(max(0, offset-limit)))
	}
	if offset+limit < total {
		p.NextURL = queryWithChanges(q, "offset", strconv.Itoa(offset+limit))
	}
	return p
}

// offsetOfRequest returns where in a list r begins; what is no number is the beginning.
func offsetOfRequest(r *http.Request) int {
	n, err := strconv.Atoi(r.FormValue("offset"))
	if err != nil {
		return 0
	}
	return max(0, n)
}

// queryWithChanges returns q as the query of a link with other values of some keys; an
// empty value takes a key off.
func queryWithChanges(q url.Values, keysAndValues ...string) string {
	next := maps.Clone(q)
	for i := 0; i < len(keysAndValues); i += 2 {
		if keysAndValues[i+1] == "" {
			next.Del(keysAndValues[i])
			continue
		}
		next.Set(keysAndValues[i], keysAndValues[i+1])
	}
	return "?" + next.Encode()
}

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
