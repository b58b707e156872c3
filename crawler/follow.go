package crawler

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/extract"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/frontier/sitemap"
	"github.com/decorum-crawler/decorum/storage"
)

// FollowedLinkKinds says which URLs of a page LinksToFollow returns. The zero value: links, feeds
// that pages announce, the entries of feeds, and the page's canonical URL.
type FollowedLinkKinds struct {
	NoLinks     bool
	NoFeeds     bool // visit no announced feed, and read no feed's entries
	NoCanonical bool
	Images      bool // follow images, too: img, srcset and picture
	// Forms says to follow the actions of forms with the method GET, too, without their queries. A request
	// may have effects on the server: a search, a log-out.
	Forms bool
	// Resources says to visit what a browser needs to show the pages, too: styles, scripts, fonts, images
	// and media, and what the styles name. They lead to no pages.
	Resources bool
}

// includesKind reports whether links of kind k are followed.
func (f FollowedLinkKinds) includesKind(k extract.LinkKind) bool {
	return k < extract.Canonical && !f.NoLinks || k == extract.Image && f.Images && !f.Resources
}

// LinksToFollow is the Handler of a crawl without callbacks. For a page answered with 2xx it
// returns the links in the HTML and in the header, except those that either asks robots not to
// follow; the feeds and the canonical URL that it names; and the entries of a feed.
// Settings.FollowedLinkKinds limits these. Alternate forms of the page are not links.
func (c *Crawler) LinksToFollow(ctx context.Context, v *Visit) ([]LinkToVisit, error) {
	return c.pages.linksToFollow(ctx, v)
}

// linksToFollow implements Crawler.LinksToFollow.
func (p *pageHandler) linksToFollow(_ context.Context, v *Visit) ([]LinkToVisit, error) {
	if !v.OK() {
		return nil, nil
	}
	if v.Lease.Source == storage.SourceResource { // only a style sheet leads to more
		return p.resourcesOfStyleSheet(v), nil
	}
	// Find the links, and which of them the crawl follows.
	page, found, isResource := v.PageScanResult(), linksInHeaderAndPage(v), p.resourceFilter(v)
	p.countIfNeedsRendering(v)
	follow, canonical := p.settings.FollowedLinkKinds, v.CanonicalURL()
	follow.Images = follow.Images && !p.content.forbidsImagesForPurposes(v)
	isFollowed := func(l *extract.Link, kind extract.LinkKind) bool {
		return l.IsFeed && !follow.NoFeeds || follow.includesKind(kind) ||
			!follow.NoCanonical && l.URL == canonical && canonical != v.URL()
	}
	meta := !p.settings.IgnoreNoFollow // whether nofollow in the page and its header counts
	noLinks := meta && page.RobotsDirectivesFor(p.settings.ProductToken, v.Response.Header).NoFollow
	// Collect them, and count those that are left for nofollow alone.
	links := p.takeLinkBuffer(v, len(found))
	for i := range found {
		l := &found[i]
		switch {
		case meta && (noLinks || l.NoFollow() || !isFollowed(l, l.FollowableKind)):
			if isFollowed(l, l.Kind) && (noLinks || !isResource(l)) {
				p.countNoFollowLink(v, l.URL, noLinks)
			}
		case l.IsFeed && !follow.NoFeeds:
			links = append(links, LinkToVisit{URL: l.URL,
				CallbackData: []byte(frontier.AnnouncedFeed), isFeedOrFeedEntry: true})
			continue
		case isFollowed(l, l.Kind):
			links = append(links, LinkToVisit{URL: l.URL, isAlsoResource: isResource(l)})
			continue
		}
		if isResource(l) {
			links = append(links, LinkToVisit{URL: l.URL, isResource: true})
		}
	}
	if noLinks {
		return nil, nil
	}
	links = append(links, p.extractFeedLinks(v)...)
	return append(links, p.resourcesOfStyleSheet(v)...), nil
}

// takeLinkBuffer returns an empty slice for the links of v, about n: the memory of an earlier visit's links if
// Settings.ReuseVisitMemory allows that.
func (p *pageHandler) takeLinkBuffer(v *Visit, n int) []LinkToVisit {
	if !p.settings.ReuseVisitMemory || p.handler != nil {
		return make([]LinkToVisit, 0, n)
	}
	buf, ok := p.linkBuffers.Get().(*[]LinkToVisit)
	if !ok {
		buf = new([]LinkToVisit)
	}
	if cap(*buf) < n {
		*buf = make([]LinkToVisit, 0, n)
	}
	v.linkBuffer = buf
	return *buf
}

// releaseLinkBuffer lets the links of another visit take the memory of v's. Nothing may use v.Links afterwards.
func (p *pageHandler) releaseLinkBuffer(v *Visit) {
	if v.linkBuffer == nil {
		return
	}
	clear((*v.linkBuffer)[:cap(*v.linkBuffer)]) // keeps no URL alive
	if cap(*v.linkBuffer) <= maxReusedLinks {
		p.linkBuffers.Put(v.linkBuffer)
	}
	v.linkBuffer, v.Links = nil, nil
}

// maxReusedLinks is the longest slice of links whose memory serves other visits.
const maxReusedLinks = 1 << 10

// linksInHeaderAndPage returns the links in the header of the answer, then those in the page.
func linksInHeaderAndPage(v *Visit) (found []extract.Link) {
	if page := v.PageScanResult(); page != nil {
		found = page.Links
	}
	if header := v.HeaderScanResult(); header != nil && len(header.Links) > 0 { // seldom
		found = slices.Concat(header.Links, found)
	}
	return found
}

// countNoFollowLink counts a link that is left because its page asks so, on the first visit of the page.
func (p *pageHandler) countNoFollowLink(v *Visit, u decorum.URL, isWholePage bool) {
	if v.IsRevisit() {
		return
	}
	why := "the links have rel=nofollow, ugc or sponsored"
	if isWholePage {
		why = "pages ask robots not to follow their links, by a meta element or X-Robots-Tag"
	}
	e := storage.Entry{URL: u, Source: storage.SourceLink, Depth: v.Lease.Depth + 1, Referrer: v.URL().String()}
	if p.frontier.CountNoFollowLink(e, why) {
		p.counters.count(func(s *Stats) { s.NoFollowLinks++ })
	}
}

// countIfNeedsRendering counts a page without links that its scripts would fill, on its first visit. Link
// elements such as that for the author stand in such pages, too.
func (p *pageHandler) countIfNeedsRendering(v *Visit) {
	isLink := func(l extract.Link) bool { return l.Kind < extract.Canonical && l.Kind != extract.Info }
	page := v.PageScanResult()
	if page == nil || v.IsRevisit() || slices.ContainsFunc(page.Links, isLink) {
		return
	}
	if mountPoint := extract.MountPoint(v.Response.Body); mountPoint != "" {
		p.frontier.CountUnrenderedPage(v.URL(), mountPoint)
		p.counters.count(func(s *Stats) { s.PagesToRender++ })
	}
}

// shouldTryAsFeed reports whether an answer of this content type to the visit of l is read as a
// feed: its type says that it is one, or a page announced it, or another part of the feed.
func (p *pageHandler) shouldTryAsFeed(l storage.Lease, contentType string) bool {
	return !p.settings.FollowedLinkKinds.NoFeeds && (isFeed(l) || extract.IsFeedContentType(contentType))
}

// extractFeedLinks returns the entries of a feed, as far as it can be read; nothing if the answer
// is not a feed. It ignores the dates of entries, which say nothing about the pages.
func (p *pageHandler) extractFeedLinks(v *Visit) (links []LinkToVisit) {
	if !p.shouldTryAsFeed(v.Lease, v.Response.Header.Get("Content-Type")) {
		return nil
	}
	options := sitemap.Options{FeedsOnly: true, MaxEntries: p.settings.MaxLinks}
	damage := sitemap.Read(bytes.NewReader(v.Response.Body), v.URL(), options, func(e sitemap.Entry) error {
		l := LinkToVisit{URL: e.URL, isFeedOrFeedEntry: true}
		if e.IsSitemap { // a further part of the feed
			l.CallbackData = []byte(frontier.FeedPart)
		}
		links = append(links, l)
		return nil
	})
	if damage != nil && !errors.Is(damage, sitemap.ErrNotSitemap) {
		p.log.Warn("feed is damaged; its readable part is used", "url", v.URL(), "error", damage)
	}
	return links
}
