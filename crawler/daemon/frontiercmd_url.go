package daemon

import (
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/storage"
)

// newURLLine returns what is kept of a URL, as it is written.
func newURLLine(e *storage.Entry, state storage.State, at time.Time) *api.URL {
	l := &api.URL{
		URL: e.URL.String(), State: stateNames[state], At: at, Source: e.Source.String(), Class: uint8(e.Class),
		Rank: e.Rank, Depth: e.Depth, Referrer: e.Referrer, For: e.For.String(), Attempt: e.Attempt, Redirects: e.Redirects,
		Context: e.Context, Found: e.Found.String(), AsFound: e.AsFound, Folded: e.Folded, Sent: e.Sent,
	}
	if e.Request != nil {
		l.Method, l.Body = e.Request.Method, e.Request.Body
	}
	if p := e.Page; p != nil {
		l.Page = &api.Page{
			Visited: p.Visited, Status: p.Status, ETag: []byte(p.ETag), LastModified: []byte(p.LastModified),
			Hash: fmt.Sprintf("%016x", p.Hash), Visits: p.Visits, Changes: p.Changes, Span: int64(p.Span),
			Listed: p.Listed, Missing: p.Missing,
		}
	}
	return l
}
