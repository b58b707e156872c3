package page

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// hostLimit is how many hosts are on a page.
const hostLimit = 50

// A hostList is a part of a project's hosts.
type hostList struct {
	Project string
	*api.HostPage
	pages
	Columns  []column
	Search   string
	State    string
	Choices  []choice // states to choose from
	Problem  string   // why there is no list
	Sort, By string   // as asked for, to be kept by the form
}

// A column is one of the table of hosts.
type column struct {
	Name   string
	Sorted string // aria-sort: ascending, descending, or empty
	URL    string // sorts by it, or the other way round
}

// A choice is a state that hosts can be filtered by.
type choice struct {
	State string
	Hosts int
	On    bool
}

// columns are those of the table of hosts: what is sorted by, the name, and
// whether the largest come first when it is chosen.
var columns = []struct {
	sort, name string
	down       bool
}{
	{"host", "Host", false}, {"state", "State", false}, {"queued", "Queued", true}, {"due", "Due", false},
	{"pace", "Declared / configured / observed", true}, {"last_status", "Last status", true},
	{"robots_age", "robots.txt", true}, {"failures", "Errors", true}, {"", "Shortfall", false},
}

// hostStates are the states of hosts, in the order in which they are offered.
var hostStates = []string{"due", "waiting", "held", "set aside", "resting", "done"}

// hostList asks for the hosts that the query of r names.
func (s *site) hostList(r *http.Request, project string) hostList {
	q := r.URL.Query()
	l := hostList{Project: project, Search: q.Get("q"), State: q.Get("state"), Sort: q.Get("sort"), By: q.Get("order")}
	offset := offsetOf(r)
	page, err := s.daemon.Hosts(r.Context(), project, api.HostQuery{Search: strings.TrimSpace(l.Search), State: l.State,
		Sort: l.Sort, Down: l.By == "desc", Offset: offset, Limit: hostLimit})
	if err != nil {
		l.Problem = err.Error()
		return l
	}
	l.HostPage, l.pages = page, pagesOf(r, offset, hostLimit, page.Total)
	for _, state := range hostStates {
		l.Choices = append(l.Choices, choice{state, page.States[state], state == l.State})
	}
	for _, c := range columns {
		l.Columns = append(l.Columns, sortable(q, c.sort, c.name, c.down))
	}
	return l
}

// sortable makes the head of a column: a link that sorts by it, the other way
// round if that is so already.
func sortable(q url.Values, by, name string, down bool) column {
	c := column{Name: name}
	if by == "" {
		return c
	}
	if q.Get("sort") == by {
		c.Sorted, down = "ascending", true
		if q.Get("order") == "desc" {
			c.Sorted, down = "descending", false
		}
	}
	order := "asc"
	if down {
		order = "desc"
	}
	c.URL = changed(q, "sort", by, "order", order, "offset", "") + "#hosts"
	return c
}

// pages lead through a list.
type pages struct {
	From, To, Of   int // counted from 1
	Previous, Next string
}

// pagesOf makes the links through a list that r shows a part of.
func pagesOf(r *http.Request, offset, limit, total int) pages {
	q := r.URL.Query()
	p := pages{From: min(offset+1, total), To: min(offset+limit, total), Of: total}
	if offset > 0 {
		p.Previous = changed(q, "offset", strconv.Itoa(max(0, offset-limit)))
	}
	if offset+limit < total {
		p.Next = changed(q, "offset", strconv.Itoa(offset+limit))
	}
	return p
}

// offsetOf returns where in a list r begins; what is no number is the beginning.
func offsetOf(r *http.Request) int {
	n, err := strconv.Atoi(r.FormValue("offset"))
	if err != nil {
		return 0
	}
	return max(0, n)
}

// changed returns q as the query of a link with other values of some keys; an
// empty value takes a key off.
func changed(q url.Values, keysAndValues ...string) string {
	next := url.Values{}
	for key, values := range q {
		next[key] = values
	}
	for i := 0; i < len(keysAndValues); i += 2 {
		if keysAndValues[i+1] == "" {
			next.Del(keysAndValues[i])
			continue
		}
		next.Set(keysAndValues[i], keysAndValues[i+1])
	}
	return "?" + next.Encode()
}
