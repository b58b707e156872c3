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

// resourceFilter returns a function that reports whether a link on the page of v is a resource that the
// crawl visits. Such a link may also lead to a page; then the crawl visits it as whichever it accepts first.
func (p *pageHandler) resourceFilter(v *Visit) func(*extract.Link) bool {
	if !p.settings.FollowedLinkKinds.Resources {
		return func(*extract.Link) bool { return false }
	}
	noImages := p.content.forbidsImagesForPurposes(v)
	return func(l *extract.Link) bool {
		return (l.IsResource || l.IsImage) && !(l.IsImage && noImages) && (p.settings.IgnoreNoFollow || !l.NoFollow())
	}
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
