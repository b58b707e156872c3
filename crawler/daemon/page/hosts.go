package page

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// hostsPerPage is the number of hosts on a page.
const hostsPerPage = 50

// A hostList is the view of a page of a project's hosts.
type hostList struct {
	Project string
	*api.HostListPage
	pagination
	Columns      []hostTableColumn
	Search       string
	State        string
	StateChoices []stateChoice // the states of the filter
	Problem      string        // why the page lacks the list; empty if it has one
	Sort, Order  string        // of the query; the search form repeats them
}

// A hostTableColumn is a column of the table of hosts.
type hostTableColumn struct {
	Name     string
	AriaSort string // aria-sort: ascending, descending, or empty
	SortURL  string // a link that sorts by the column, or reverses its order; empty: it cannot be sorted
}

// A stateChoice is a state that hosts can be filtered by.
type stateChoice struct {
	State     string
	HostCount int
	Selected  bool
}

// hostColumns holds the columns of the table of hosts.
var hostColumns = []struct {
	key          string // of api.HostQuery.Sort; empty: the column cannot be sorted
	name         string
	largestFirst bool // the first click sorts the largest first
}{
	{"host", "Host", false}, {"state", "State", false}, {"queued", "Queued", true}, {"due", "Due", false},
	{"pace", "Declared / configured / observed", true}, {"last_status", "Last status", true},
	{"robots_age", "robots.txt", true}, {"failures", "Errors", true}, {"", "Shortfall", false},
}

// hostStates holds the states of hosts in the order of the filter.
var hostStates = []string{"due", "waiting", "held", "set aside", "resting", "done"}

// loadHostList returns the page of hosts that the query of r selects. An error is in the list's
// Problem.
func (s *webUI) loadHostList(r *http.Request, project string) hostList {
	q := r.URL.Query()
	l := hostList{Project: project, Search: q.Get("q"), State: q.Get("state"),
		Sort: q.Get("sort"), Order: q.Get("order")}
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

// sortableColumn returns a column for the query q. Its link sorts by the column, or reverses the
// order if the query already sorts by it.
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
