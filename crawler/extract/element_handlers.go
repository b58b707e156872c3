package extract

import (
	"bytes"
	"strings"
)

// An elementKind is an element that matters.
type elementKind uint8

const (
	unknownElement elementKind = iota
	anchor
	area
	base
	frame
	link
	math
	meta
	svg
	img // from here to source links by setting
	image
	source
	plaintext
	iframe // from here on the content is text
	noembed
	noframes
	script
	style
	textarea
	title
	xmp
)

// elementNames are the names of the elements.
var elementNames = [...]string{
	anchor: "a", area: "area", base: "base", frame: "frame", link: "link",
	math: "math", meta: "meta", svg: "svg", img: "img", image: "image", source: "source",
	plaintext: "plaintext", iframe: "iframe",
	noembed: "noembed", noframes: "noframes", script: "script", style: "style",
	textarea: "textarea", title: "title", xmp: "xmp",
}

const maxElementName = len("plaintext")

// initialsByLength holds, for every length, with which letters names of it begin: one
// bit each. Most tags of a page are told apart from those that matter by it.
var initialsByLength = func() (table [maxElementName + 1]uint32) {
	for _, name := range elementNames[unknownElement+1:] {
		table[len(name)] |= 1 << (name[0] & 31)
	}
	return table
}()

// elementKindByName returns the element of that name, which is not empty.
func elementKindByName(name []byte) elementKind {
	if len(name) > maxElementName || initialsByLength[len(name)]&(1<<(name[0]&31)) == 0 {
		return unknownElement
	}
	for e, known := range elementNames {
		if equalFold(name, known) {
			return elementKind(e)
		}
	}
	return unknownElement
}

// handleStartTag reads an element whose start tag was just passed, and says whether
// the page must be read again.
func (p *pageParser) handleStartTag(e elementKind) (restart bool) {
	a := &p.attrs
	switch e {
	case anchor:
		p.addLinkFromAttribute(Anchor, a.href, parseRel(a.rel))
	case area:
		p.addLinkFromAttribute(Area, a.href, parseRel(a.rel))
	case frame:
		p.addLinkFromAttribute(Frame, a.src, 0)
	case iframe:
		p.addLinkFromAttribute(IFrame, a.src, 0)
	case img, image: // a parser makes an img of image
		p.addLinkFromAttribute(Image, a.src, 0)
		p.addSrcset()
	case source:
		p.addSrcset()
	case link:
		if kind, ok := linkRelKind(unescape(a.rel), unescape(a.typ)); ok {
			p.addLinkKeepingFirstCanonical(kind, p.unescapedRef(a.href))
		}
	case base:
		return p.setBase(a.href)
	case meta:
		return p.handleMeta()
	case math, svg:
		p.enterForeignRoot(e)
	}
	if e >= plaintext && !(p.selfClosing && p.isXHTML) {
		p.consumeTextContent(e)
	}
	return false
}

// handleForeignTag is element inside svg and math, where only links count.
func (p *pageParser) handleForeignTag(e elementKind) {
	switch a := &p.attrs; e {
	case anchor:
		href := a.href
		if href == nil {
			href = a.xlinkHref
		}
		p.addLinkFromAttribute(Anchor, href, parseRel(a.rel))
	case math, svg:
		p.enterForeignRoot(e)
	}
}

// addSrcset adds the images of a srcset attribute.
func (p *pageParser) addSrcset() {
	for url := range srcsetURLs(unescape(p.attrs.srcset)) {
		p.addLink(Image, url, 0)
	}
}

// consumeTextContent passes over content that is text.
func (p *pageParser) consumeTextContent(e elementKind) {
	switch e {
	case plaintext:
		p.pos = len(p.input)
	case script:
		p.skipScript()
	case title:
		text := p.readRawText(elementNames[title])
		if !p.hasTitle && len(p.foreignElements) == 0 {
			p.result.Title, p.hasTitle = titleText(text), true
		}
		if len(p.foreignElements) > 0 { // its end tag is not that of an svg's title
			p.nextTag()
			p.readAttributes(nil)
		}
	default:
		p.readRawText(elementNames[e])
	}
}

// linkRelKind returns what kind of link a link element is, or a Link field, by
// its relations and the type of its target, and whether it is one at all.
func linkRelKind(rel, kind []byte) (k LinkKind, ok bool) {
	var canonical, alternate, next, prev, amp, stylesheet bool
	for token := range bytes.FieldsSeq(rel) {
		canonical = canonical || equalFold(token, "canonical")
		alternate = alternate || equalFold(token, "alternate")
		next = next || equalFold(token, "next")
		prev = prev || equalFold(token, "prev") || equalFold(token, "previous")
		amp = amp || equalFold(token, "amphtml")
		stylesheet = stylesheet || equalFold(token, "stylesheet")
	}
	switch {
	case stylesheet:
		return 0, false
	case canonical:
		return Canonical, true
	case alternate && IsFeedContentType(string(kind)):
		return Feed, true
	case alternate:
		return Alternate, true
	case next:
		return Next, true
	case prev:
		return Prev, true
	}
	return AMP, amp
}

// IsFeedContentType reports whether a content type, of a link's target or of an answer, is
// that of a feed: RSS, Atom or JSON Feed. application/json is not: it is the type of
// many an alternate form of a page that is no feed.
func IsFeedContentType(contentType string) bool {
	mediaType, _, _ := strings.Cut(contentType, ";")
	mediaType = strings.Trim(mediaType, whitespace)
	return strings.EqualFold(mediaType, "application/rss+xml") || strings.EqualFold(mediaType, "application/atom+xml") ||
		strings.EqualFold(mediaType, "application/feed+json")
}

// parseRel returns what the rel of an anchor says of whom the link is from.
func parseRel(raw []byte) (rel NoFollowRels) {
	for token := range bytes.FieldsSeq(unescape(raw)) {
		switch {
		case equalFold(token, "nofollow"):
			rel |= NoFollow
		case equalFold(token, "ugc"):
			rel |= UGC
		case equalFold(token, "sponsored"):
			rel |= Sponsored
		}
	}
	return rel
}

// handleMeta reads a meta element.
func (p *pageParser) handleMeta() (restart bool) {
	a := &p.attrs
	content := unescape(a.content)
	switch equiv := unescape(a.httpEquiv); {
	case a.charset != nil:
		return p.applyDeclaredEncoding(string(trim(unescape(a.charset))))
	case equalFold(equiv, "content-type"):
		return p.applyDeclaredEncoding(charsetFromContentType(content))
	case equalFold(equiv, "refresh"):
		p.addLink(Refresh, refreshTarget(content), 0)
	case a.nameValue != nil:
		p.handleNamedMeta(string(trim(unescape(a.nameValue))), content)
	}
	return false
}

// refreshTarget returns the URL in "5; url='/next'", nil if there is none:
// then the page only reloads itself.
func refreshTarget(s []byte) []byte {
	s = trimLeft(s)
	rest := bytes.TrimLeft(s, "0123456789.")
	if len(rest) == len(s) {
		return nil
	}
	s = bytes.TrimLeft(rest, whitespace+",;")
	if len(s) == len(rest) {
		return nil
	}
	if url := trimLeft(s[min(len(s), len("url")):]); len(s) >= len("url") && equalFold(s[:len("url")], "url") &&
		len(url) > 0 && url[0] == '=' {
		s = trimLeft(url[1:])
	}
	if len(s) > 0 && (s[0] == '"' || s[0] == '\'') {
		s, _, _ = bytes.Cut(s[1:], s[:1])
	}
	return s
}
