package page

import (
	"net/http"
	"net/url"
	"strings"

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
