package daemon

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/storage"
)

// toAPIFrontierURL returns what is kept of a URL, as it is written.
func toAPIFrontierURL(e *storage.Entry, state storage.State, at time.Time) *api.FrontierURL {
	l := &api.FrontierURL{
		URL: e.URL.String(), State: stateNames[state], NotBefore: at, Source: e.Source.String(), Class: uint8(e.Class),
		Rank: e.Rank, Depth: e.Depth, Referrer: e.Referrer, RobotsFor: e.For.String(), FailedAttempts: e.Attempt, Redirects: e.Redirects,
		Context: e.Context, Original: e.Found.String(), UseOriginal: e.AsFound, HTTPSUpgraded: e.Folded, Sent: e.Sent,
	}
	if e.Request != nil {
		l.Method, l.Body = e.Request.Method, e.Request.Body
	}
	if p := e.Page; p != nil {
		l.History = &api.VisitHistory{
			VisitedAt: p.Visited, Status: p.Status, ETag: []byte(p.ETag), LastModified: []byte(p.LastModified),
			BodyHash: fmt.Sprintf("%016x", p.Hash), ComparedVisits: p.Visits, ChangedVisits: p.Changes, TotalComparedInterval: int64(p.Span),
			SitemapLastmod: p.Listed, ConsecutiveMissing: p.Missing,
		}
	}
	return l
}

// toStoredEntry returns what toAPIFrontierURL has written.
func toStoredEntry(l *api.FrontierURL) (*storage.StoredEntry, error) {
	k := &storage.StoredEntry{At: l.NotBefore, In: storage.State(slices.Index(stateNames[:], l.State)), Entry: storage.Entry{
		Class: storage.Class(l.Class), Rank: l.Rank, Depth: l.Depth, Referrer: l.Referrer, Attempt: l.FailedAttempts,
		Redirects: l.Redirects, Context: l.Context, AsFound: l.UseOriginal, Folded: l.HTTPSUpgraded, Sent: l.Sent,
	}}
	if !slices.Contains(stateNames[:], l.State) {
		return nil, fmt.Errorf("%q is no state of a URL", l.State)
	}
	var err error
	if k.URL, err = requireCanonicalURL(l.URL); err != nil {
		return nil, err
	}
	if k.Source, err = storage.ParseSource(l.Source); err != nil {
		return nil, err
	}
	if l.Original != "" {
		if k.Found, err = requireCanonicalURL(l.Original); err != nil {
			return nil, err
		}
	}
	if l.RobotsFor != "" {
		if k.For, err = parseOrigin(l.RobotsFor); err != nil {
			return nil, err
		}
	}
	if l.Method != "" {
		k.Request = &storage.Request{Method: l.Method, Body: l.Body}
	}
	k.Page, err = toStorageVisitHistory(l.History)
	return k, err
}

func toStorageVisitHistory(p *api.VisitHistory) (*storage.Page, error) {
	if p == nil {
		return nil, nil
	}
	hash, err := strconv.ParseUint(p.BodyHash, 16, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is no hash of a page", p.BodyHash)
	}
	return &storage.Page{
		Visited: p.VisitedAt, Status: p.Status, ETag: string(p.ETag), LastModified: string(p.LastModified), Hash: hash,
		Visits: p.ComparedVisits, Changes: p.ChangedVisits, Span: time.Duration(p.TotalComparedInterval), Listed: p.SitemapLastmod, Missing: p.ConsecutiveMissing,
	}, nil
}
