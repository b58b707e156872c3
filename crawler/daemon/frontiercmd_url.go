package daemon

import (
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// A urlLine is all that is kept of a URL in the frontier.
type urlLine struct {
	Type      string    `json:"type,omitempty"` // url, in an export
	URL       string    `json:"url"`
	State     string    `json:"state"`
	At        time.Time `json:"at,omitzero"`
	Why       string    `json:"why,omitempty"`
	Source    string    `json:"source"`
	Class     uint8     `json:"class"`
	Rank      uint16    `json:"rank,omitempty"`
	Depth     int       `json:"depth"`
	Referrer  string    `json:"referrer,omitempty"`
	For       string    `json:"for,omitempty"` // the origin, of a hop of its robots.txt
	Attempt   int       `json:"attempt,omitempty"`
	Redirects int       `json:"redirects,omitempty"`
	Context   []byte    `json:"context,omitempty"`
	Found     string    `json:"found,omitempty"`
	AsFound   bool      `json:"as_found,omitempty"`
	Folded    bool      `json:"folded,omitempty"`
	Page      *pageLine `json:"page,omitempty"`
}

// A pageLine is what the last visit left: storage.Page.
type pageLine struct {
	Visited      time.Time `json:"visited,omitzero"`
	Status       int       `json:"status"`
	ETag         []byte    `json:"etag,omitempty"` // in base64: a server may send any bytes
	LastModified []byte    `json:"last_modified,omitempty"`
	Hash         string    `json:"hash,omitempty"` // in hex
	Visits       int       `json:"visits"`
	Changes      int       `json:"changes"`
	Span         int64     `json:"span_ns"`
	Listed       time.Time `json:"listed,omitzero"`
	Missing      int       `json:"missing,omitempty"`
}

func newURLLine(e *storage.Entry, state storage.State, at time.Time) *urlLine {
	l := &urlLine{
		URL: e.URL.String(), State: stateNames[state], At: at, Source: e.Source.String(), Class: uint8(e.Class),
		Rank: e.Rank, Depth: e.Depth, Referrer: e.Referrer, For: e.For.String(), Attempt: e.Attempt, Redirects: e.Redirects,
		Context: e.Context, Found: e.Found.String(), AsFound: e.AsFound, Folded: e.Folded,
	}
	if p := e.Page; p != nil {
		l.Page = &pageLine{
			Visited: p.Visited, Status: p.Status, ETag: []byte(p.ETag), LastModified: []byte(p.LastModified),
			Hash: fmt.Sprintf("%016x", p.Hash), Visits: p.Visits, Changes: p.Changes, Span: int64(p.Span),
			Listed: p.Listed, Missing: p.Missing,
		}
	}
	return l
}
