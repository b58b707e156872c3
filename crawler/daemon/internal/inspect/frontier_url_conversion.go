package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/storage"
)

// ToAPIFrontierURL converts an entry of the frontier, in a state with its time, into its form in the
// API and in exports.
func ToAPIFrontierURL(e *storage.Entry, state storage.EntryState, at time.Time) *api.FrontierURL {
	l := &api.FrontierURL{
		URL: e.URL.String(), State: StateNames[state], NotBefore: at, Source: e.Source.String(),
		PriorityClass: uint8(e.PriorityClass),
		PriorityRank:  e.PriorityRank, Depth: e.Depth, Referrer: e.Referrer, RobotsFor: e.RobotsFor.String(),
		FailedAttempts: e.FailedAttempts, Redirects: e.Redirects,
		CallbackData: e.CallbackData, UncleanedURL: e.UncleanedURL.String(), UseUncleanedURL: e.UseUncleanedURL,
		HTTPSUpgradeTried: e.HTTPSUpgradeTried, Sent: e.Sent, SeedOrigin: e.SeedOrigin.String(),
	}
	if e.Request != nil {
		l.Method, l.RequestBody = e.Request.Method, e.Request.Body
	}
	if p := e.VisitHistorySummary; p != nil {
		l.VisitHistorySummary = &api.VisitHistorySummary{
			VisitedAt: p.VisitedAt, Status: p.Status, ETag: []byte(p.ETag), LastModified: []byte(p.LastModified),
			BodyHash: fmt.Sprintf("%016x", p.BodyHash), ComparedVisits: p.ComparedVisits,
			ChangedVisits: p.ChangedVisits, TotalComparedInterval: int64(p.TotalComparedInterval),
			SitemapLastmod: p.SitemapLastmod, ConsecutiveMissing: p.ConsecutiveMissing,
			FreshFor: int64(p.FreshFor), FreshBy: p.FreshBy, VariantKey: p.VariantKey,
			EncodedBodyLen: p.EncodedBodyLen,
		}
	}
	return l
}

// ToStoredEntry converts back what ToAPIFrontierURL returned. The entry is invalid if the error is
// not nil.
func ToStoredEntry(l *api.FrontierURL) (*storage.StoredEntry, error) {
	// Fields without a text form of their own.
	k := &storage.StoredEntry{NotBefore: l.NotBefore, State: storage.EntryState(slices.Index(StateNames[:], l.State)),
		Entry: storage.Entry{
			PriorityClass: storage.PriorityClass(l.PriorityClass), PriorityRank: l.PriorityRank, Depth: l.Depth,
			Referrer: l.Referrer, FailedAttempts: l.FailedAttempts,
			Redirects: l.Redirects, CallbackData: l.CallbackData, UseUncleanedURL: l.UseUncleanedURL,
			HTTPSUpgradeTried: l.HTTPSUpgradeTried, Sent: l.Sent,
		}}
	if !slices.Contains(StateNames[:], l.State) {
		return nil, fmt.Errorf("%q is not a state of a URL", l.State)
	}
	if l.Method != "" {
		k.Request = &storage.NonGETRequest{Method: l.Method, Body: l.RequestBody}
	}
	// Fields that are parsed. The first error counts.
	var urlErr, sourceErr, uncleanedErr, seedErr, originErr, historyErr error
	k.URL, urlErr = requireCanonicalURL(l.URL)
	k.Source, sourceErr = storage.ParseSource(l.Source)
	if l.UncleanedURL != "" {
		k.UncleanedURL, uncleanedErr = requireCanonicalURL(l.UncleanedURL)
	}
	if l.SeedOrigin != "" {
		k.SeedOrigin, seedErr = ParseOrigin(l.SeedOrigin)
	}
	if l.RobotsFor != "" {
		k.RobotsFor, originErr = ParseOrigin(l.RobotsFor)
	}
	k.VisitHistorySummary, historyErr = toStorageVisitHistorySummary(l.VisitHistorySummary)
	return k, cmp.Or(urlErr, sourceErr, uncleanedErr, seedErr, originErr, historyErr)
}

// toStorageVisitHistorySummary converts the summary of a URL's earlier visits. nil stays nil.
func toStorageVisitHistorySummary(p *api.VisitHistorySummary) (*storage.VisitHistorySummary, error) {
	if p == nil {
		return nil, nil
	}
	hash, err := strconv.ParseUint(p.BodyHash, 16, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is not the hash of a body", p.BodyHash)
	}
	return &storage.VisitHistorySummary{
		VisitedAt: p.VisitedAt, Status: p.Status, ETag: string(p.ETag),
		LastModified: string(p.LastModified), BodyHash: hash,
		ComparedVisits: p.ComparedVisits, ChangedVisits: p.ChangedVisits,
		TotalComparedInterval: time.Duration(p.TotalComparedInterval), SitemapLastmod: p.SitemapLastmod,
		ConsecutiveMissing: p.ConsecutiveMissing,
		FreshFor:           time.Duration(p.FreshFor), FreshBy: p.FreshBy, VariantKey: p.VariantKey,
		EncodedBodyLen: p.EncodedBodyLen,
	}, nil
}

// ParseOrigin parses an origin in canonical form, as Origin.String returns it.
func ParseOrigin(name string) (o decorum.Origin, err error) {
	u, err := requireCanonicalURL(name + "/")
	if err != nil {
		return o, fmt.Errorf("%q is not an origin", name)
	}
	return u.Origin(), nil
}

// requireCanonicalURL parses a URL. It returns an error for any other form than the canonical one,
// by which the stores identify a URL.
func requireCanonicalURL(text string) (decorum.URL, error) {
	u, err := decorum.ParseURL(text)
	if err == nil && u.String() != text {
		err = fmt.Errorf("%q is not how decorum writes a URL: expected %q", text, u)
	}
	return u, err
}
