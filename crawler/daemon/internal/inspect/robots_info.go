package inspect

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/robots/gate"
)

// RobotsFileInfo describes the current robots.txt of origin o and its earlier versions, without the
// text.
func (q *Inspector) RobotsFileInfo(ctx context.Context, o decorum.Origin) (*api.RobotsFile, error) {
	// Ask the gate for the parts; the first error counts.
	status, statusErr := q.Gate.LastFetchSummary(ctx, o)
	postponed, postponedErr := q.Gate.PostponedReason(ctx, q.AsOf, o)
	expiresAt, expiresErr := q.Gate.ExpiresAt(ctx, o)
	crawlDelay, _, delayErr := q.Gate.DelayAndNextAllowedTime(ctx, o, q.AsOf)
	sitemaps, sitemapsErr := q.Gate.Sitemaps(ctx, o)
	mainMirror, mirrorErr := q.Gate.MainMirror(ctx, o)
	versions, versionsErr := q.Gate.FileVersions(ctx, o)
	err := cmp.Or(statusErr, postponedErr, expiresErr, delayErr, sitemapsErr, mirrorErr, versionsErr)
	if err != nil {
		return nil, err
	}
	f := &api.RobotsFile{Origin: o.String(), Outcome: status.Outcome.String(), FetchedAt: status.FetchedAt,
		SHA256: status.SHA256, CrawlDelay: api.Milliseconds(crawlDelay), MainMirror: mainMirror}
	// While the gate postpones visits to the origin, no expiry applies.
	if postponed != nil {
		f.OriginPostponedReason, f.OriginPostponedUntil = plaintext.ReplaceControlChars(postponed.Reason),
			postponed.Until
	} else if status.Outcome != gate.OutcomeUnknown {
		f.ExpiresAt = expiresAt
	}
	for _, u := range sitemaps {
		f.Sitemaps = append(f.Sitemaps, u.String())
	}
	for _, v := range versions {
		f.History = append(f.History, api.RobotsVersion{SHA256: v.SHA256, Bytes: v.Size,
			FirstFetchedAt: v.FirstSeen, FinalURL: v.RedirectedTo})
		if v.SHA256 == f.SHA256 {
			f.Bytes, f.FinalURL = v.Size, v.RedirectedTo
		}
	}
	return f, nil
}

// RobotsFileInfoAndText is RobotsFileInfo with the text. version is the SHA-256 of an earlier
// version, or "" for the current one. Of an earlier version it returns the text and the time of its
// first fetch, without the fields that only the current version has. It returns an error of kind
// NotFound if the robots.txt was never fetched or the version is not stored.
func (q *Inspector) RobotsFileInfoAndText(ctx context.Context, o decorum.Origin,
	version string) (*api.RobotsFile, error) {
	f, err := q.RobotsFileInfo(ctx, o)
	switch {
	case err != nil:
		return nil, err
	case f.Outcome == gate.OutcomeUnknown.String() && f.OriginPostponedReason == "":
		return nil, api.NotFound("the robots.txt of %s has not been fetched", o)
	}
	// An earlier version replaces the fields of the current one.
	if version != "" && version != f.SHA256 {
		i := slices.IndexFunc(f.History, func(v api.RobotsVersion) bool { return v.SHA256 == version })
		if i < 0 {
			return nil, api.NotFound("%s has no stored robots.txt with the SHA-256 %s", o, version)
		}
		old := f.History[i]
		f = &api.RobotsFile{
			Origin: f.Origin, Outcome: f.Outcome, FetchedAt: old.FirstFetchedAt,
			SHA256: old.SHA256, Bytes: old.Bytes, FinalURL: old.FinalURL, History: f.History,
		}
	}
	if f.TextWithheldReason = q.robotsTextWithheldReason(ctx, o, f.FinalURL); f.TextWithheldReason != "" {
		return f, nil
	}
	body, err := q.Gate.FileBodyByHash(ctx, o, f.SHA256)
	f.Text = strings.ToValidUTF8(string(body), "\ufffd")
	return f, err
}

// robotsTextWithheldReason returns why the caller in ctx may not read the text of a robots.txt, or
// "". If a project may connect to private networks, a site can redirect its robots.txt to a server
// there, whose response only the role operate may see. All projects of a daemon share the cache of
// robots.txt files, so any of them may have fetched it.
func (q *Inspector) robotsTextWithheldReason(ctx context.Context, o decorum.Origin, finalURL string) string {
	if api.CallerFromContext(ctx).Role != api.RoleRead || finalURL == "" || !q.AnyProjectReachesPrivate {
		return ""
	}
	if u, err := decorum.ParseURL(finalURL); err == nil && u.Origin().Host() == o.Host() {
		return ""
	}
	return "it is the response of another host, and a project of this daemon may connect to private networks: " +
		"reading it requires the role operate"
}
