package page

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"
)

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
