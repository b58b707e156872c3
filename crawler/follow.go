package crawler

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/decorum-crawler/decorum/crawler/extract"
	"github.com/decorum-crawler/decorum/frontier/sitemap"
	"github.com/decorum-crawler/decorum/storage"
)

// FollowedLinkKinds says which of the URLs that a page names LinksToFollow returns. The zero
// value: links, the feeds that pages announce, what feeds list, and the URL that
// a page says is its canonical one.
type FollowedLinkKinds struct {
	NoLinks     bool
	NoFeeds     bool // feeds that are announced are not visited, and none is read
	NoCanonical bool
	Images      bool // images of pages, too: img, srcset and picture
}

// includesKind reports whether links of a kind are followed.
func (f FollowedLinkKinds) includesKind(k extract.LinkKind) bool {
	return k < extract.Canonical && !f.NoLinks || k == extract.Image && f.Images
}

// LinksToFollow is the handler of a crawl without callbacks: it returns the
// links of every page that was answered with 2xx, those of its header and those
// of HTML, but not those that the page or its header ask robots not to follow;
// the feeds and the canonical URL that it names; and, of a feed, what it lists:
// all as far as Settings.FollowedLinkKinds says. Alternate forms of the page are no links.
func (c *Crawler) LinksToFollow(ctx context.Context, v *Visit) ([]LinkToVisit, error) {
	return c.pages.linksToFollow(ctx, v)
}

func (p *pageHandler) linksToFollow(_ context.Context, v *Visit) ([]LinkToVisit, error) {
	if !v.OK() {
		return nil, nil
	}
	page := v.PageScanResult()
	meta := !p.settings.IgnoreNoFollow
	if meta && page.RobotsDirectivesFor(p.settings.ProductToken, v.Response.Header).NoFollow {
		return nil, nil
	}
	var found []extract.Link
	if page != nil {
		found = page.Links
	}
	if header := v.HeaderScanResult(); header != nil && len(header.Links) > 0 { // seldom
		found = slices.Concat(header.Links, found)
	}
	follow, canonical := p.settings.FollowedLinkKinds, v.CanonicalURL()
	follow.Images = follow.Images && !p.content.forbidsImagesForPurposes(v)
	links := make([]LinkToVisit, 0, len(found))
	for _, l := range found {
		kind := l.Kind
		if meta {
			kind = l.FollowableKind
		}
		switch {
		case meta && l.NoFollow():
		case l.IsFeed && !follow.NoFeeds:
			links = append(links, LinkToVisit{URL: l.URL, CallbackData: []byte(announcedFeedContext), isFeedOrFeedEntry: true})
		case follow.includesKind(kind), !follow.NoCanonical && l.URL == canonical && canonical != v.URL():
			links = append(links, LinkToVisit{URL: l.URL})
		}
	}
	return append(links, p.extractFeedLinks(v)...), nil
}

// announcedFeedContext is the context of an entry of source Feed that a page announced
// as a feed. Others of that source are what feeds list.
const announcedFeedContext = "feed"

// shouldTryAsFeed reports whether an answer of this content type to the visit of l is
// read as a feed, if it is one: it says that it is, or a page does.
func (p *pageHandler) shouldTryAsFeed(l storage.Lease, contentType string) bool {
	return !p.settings.FollowedLinkKinds.NoFeeds && (isAnnouncedFeed(l) || extract.IsFeedContentType(contentType))
}

// extractFeedLinks returns what a feed lists, as far as it can be read; of what is none,
// whatever was announced, nothing. The dates of items say nothing of the pages.
func (p *pageHandler) extractFeedLinks(v *Visit) (links []LinkToVisit) {
	if !p.shouldTryAsFeed(v.Lease, v.Response.Header.Get("Content-Type")) {
		return nil
	}
	options := sitemap.Options{FeedsOnly: true, MaxEntries: p.settings.MaxLinks}
	damage := sitemap.Read(bytes.NewReader(v.Response.Body), v.URL(), options, func(e sitemap.Entry) error {
		l := LinkToVisit{URL: e.URL, isFeedOrFeedEntry: true}
		if e.IsSitemap { // it goes on there
			l.CallbackData = []byte(announcedFeedContext)
		}
		links = append(links, l)
		return nil
	})
	if damage != nil && !errors.Is(damage, sitemap.ErrNotSitemap) {
		p.log.Warn("feed is damaged; what could be read of it counts", "url", v.URL(), "error", damage)
	}
	return links
}
