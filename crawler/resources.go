package crawler

import (
	"mime"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/extract"
	"github.com/decorum-crawler/decorum/storage"
)

// maxStyleSheetChain is how many style sheets may lead from a page to a resource, each by @import or url()
// of the one before.
const maxStyleSheetChain = 5

// resourcesOfPage returns the resources among the links found on the page of v, if the crawl visits them.
// A link may be one and a page as well; then the crawl visits it as whichever it accepts first.
func (p *pageHandler) resourcesOfPage(v *Visit, found []extract.Link) (links []LinkToVisit) {
	if !p.settings.FollowedLinkKinds.Resources {
		return nil
	}
	noImages := p.content.forbidsImagesForPurposes(v)
	for i := range found {
		l := &found[i]
		isNoFollow := l.NoFollow() && !p.settings.IgnoreNoFollow
		if (l.IsResource || l.IsImage && !noImages) && !isNoFollow {
			links = append(links, LinkToVisit{URL: l.URL, isResource: true})
		}
	}
	return links
}

// resourcesOfStyleSheet returns the resources that the answer to v names, if it is a style sheet and the
// crawl visits resources. The CallbackData of a resource has one byte for each style sheet that led to it.
func (p *pageHandler) resourcesOfStyleSheet(v *Visit) (links []LinkToVisit) {
	if !p.settings.FollowedLinkKinds.Resources {
		return nil
	}
	chain := 0
	if v.Lease.Source == storage.SourceResource {
		chain = len(v.Lease.CallbackData)
	}
	sheet := p.content.scanStyleSheet(v)
	if sheet == nil || chain >= maxStyleSheetChain {
		return nil
	}
	for _, l := range sheet.Links {
		links = append(links, LinkToVisit{URL: l.URL, CallbackData: make([]byte, chain+1), isResource: true})
	}
	return links
}

// scanStyleSheet returns what extract.Scanner.ScanStyleSheet finds in the answer to v.
func (r *contentAnalyzer) scanStyleSheet(v *Visit) *extract.ScanResult {
	return r.lazyScan(v.Response, func(s *extract.Scanner) *extract.ScanResult {
		return s.ScanStyleSheet(v.Response.Body, v.Response.Header.Get("Content-Type"), v.URL())
	})()
}

// isResourceType reports whether a browser reads answers of this content type as parts of a page only.
func isResourceType(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	switch kind, _, _ := strings.Cut(mediaType, "/"); kind {
	case "image", "font", "audio", "video":
		return true
	}
	switch mediaType {
	case "text/css", "text/javascript", "application/javascript":
		return true
	}
	return false
}
