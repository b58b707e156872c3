package extract

import (
	"strings"

	"github.com/decorum-crawler/decorum"
)

// ScanStyleSheet returns the resources that a style sheet names by url() and @import, as links of the kind
// Resource, or nil if contentType is not text/css. base is the URL of the style sheet. It needs
// IncludeResources.
func (s *Scanner) ScanStyleSheet(body []byte, contentType string, base decorum.URL) *ScanResult {
	mediaType, _, _ := strings.Cut(contentType, ";")
	if !s.IncludeResources || !strings.EqualFold(strings.Trim(mediaType, whitespace), "text/css") {
		return nil
	}
	p := s.newPageParser(base)
	p.reset()
	p.decodeInputToUTF8(body, charsetFromContentType([]byte(contentType)))
	p.queryEncoder = nil // only the queries of a page's own links are in its encoding
	p.addStyleResources(p.input)
	return p.document()
}

// addResources adds the resources that the attributes of the current tag name, except those that also
// count as images or embedded documents.
func (p *pageParser) addResources(e elementKind) {
	a := &p.attrs
	r := a.resource
	switch e {
	case script, source:
		p.addLinkFromAttribute(Resource, a.src, 0)
	case unknownElement: // audio, video, track, bgsound, and the elements of AMP
		p.addLinkFromAttribute(Resource, a.src, 0)
		p.addLinkFromAttribute(Image, r.poster, 0)
		p.addLinkFromAttribute(Resource, r.manifest, 0) // of html
	case input:
		if equalFold(trim(unescape(a.typ)), "image") {
			p.addLinkFromAttribute(Image, a.src, 0)
		}
	case img, image:
		p.addLinkFromAttribute(Image, r.lowsrc, 0)
		p.addLinkFromAttribute(Image, r.dynsrc, 0)
		p.addLinkFromAttribute(Resource, r.longdesc, 0)
	}
	p.addLinkFromAttribute(Image, r.background, 0)
	if len(r.style) > 0 {
		p.addStyleResources(unescape(r.style))
	}
}

// addForeignResources adds what the current tag of an element in svg or math refers to, such as the href
// of an image or a use element.
func (p *pageParser) addForeignResources(e elementKind) {
	a := &p.attrs
	if a.resource == nil {
		return
	}
	kind := Resource
	if e == image {
		kind = Image
	}
	p.addLinkFromAttribute(kind, a.href, 0)
	p.addLinkFromAttribute(kind, a.xlinkHref, 0)
	if len(a.resource.style) > 0 {
		p.addStyleResources(unescape(a.resource.style))
	}
}

// addStyleResources adds the resources that a style sheet or the style of an element names.
func (p *pageParser) addStyleResources(text []byte) {
	for url := range styleURLs(text) {
		p.addLink(Resource, url, 0)
	}
}
