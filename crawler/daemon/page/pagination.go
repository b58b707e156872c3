package page

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"
)

// pagination is the position of a page in a list, with links to the pages before and after it.
type pagination struct {
	FirstItem, LastItem, TotalItems int    // counted from 1
	PreviousURL, NextURL            string // empty before the first and after the last page
}

// newPagination returns the pagination of a page with up to limit of total items. offset is the
// number of items before it.
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

// offsetOfRequest returns the parameter offset of r, or 0 if it is invalid.
func offsetOfRequest(r *http.Request) int {
	n, err := strconv.Atoi(r.FormValue("offset"))
	if err != nil {
		return 0
	}
	return max(0, n)
}

// queryWithChanges returns the query of a link: q with new values for some keys. An empty value
// removes its key.
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
