package daemon

import (
	"fmt"
	"slices"
	"strconv"
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

// toStoredEntry returns what newURLLine has written.
func toStoredEntry(l *api.URL) (*storage.StoredEntry, error) {
	k := &storage.StoredEntry{At: l.At, In: storage.State(slices.Index(stateNames[:], l.State)), Entry: storage.Entry{
		Class: storage.Class(l.Class), Rank: l.Rank, Depth: l.Depth, Referrer: l.Referrer, Attempt: l.Attempt,
		Redirects: l.Redirects, Context: l.Context, AsFound: l.AsFound, Folded: l.Folded, Sent: l.Sent,
	}}
	if !slices.Contains(stateNames[:], l.State) {
		return nil, fmt.Errorf("%q is no state of a URL", l.State)
	}
	var err error
	if k.URL, err = parseExact(l.URL); err != nil {
		return nil, err
	}
	if k.Source, err = storage.ParseSource(l.Source); err != nil {
		return nil, err
	}
	if l.Found != "" {
		if k.Found, err = parseExact(l.Found); err != nil {
			return nil, err
		}
	}
	if l.For != "" {
		if k.For, err = parseOrigin(l.For); err != nil {
			return nil, err
		}
	}
	if l.Method != "" {
		k.Request = &storage.Request{Method: l.Method, Body: l.Body}
	}
	k.Page, err = pageOf(l.Page)
	return k, err
}

func pageOf(p *api.Page) (*storage.Page, error) {
	if p == nil {
		return nil, nil
	}
	hash, err := strconv.ParseUint(p.Hash, 16, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is no hash of a page", p.Hash)
	}
	return &storage.Page{
		Visited: p.Visited, Status: p.Status, ETag: string(p.ETag), LastModified: string(p.LastModified), Hash: hash,
		Visits: p.Visits, Changes: p.Changes, Span: time.Duration(p.Span), Listed: p.Listed, Missing: p.Missing,
	}, nil
}
