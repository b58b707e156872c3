package extract

import (
	"bytes"
	"slices"
)

// An elementKind is an element that affects the result.
type elementKind uint8

const (
	unknownElement elementKind = iota
	anchor
	area
	base
	blockquote
	button
	embed
	form
	frame
	input
	link
	math
	meta
	object
	quote
	svg
	img // img, image and source are links only with IncludeImages or IncludeResources
	image
	source
	plaintext // plaintext and the kinds below have text as their content
	iframe
	noembed
	noframes
	script
	style
	textarea
	title
	xmp
)

// elementNames has the tag name of each elementKind.
var elementNames = [...]string{
	anchor: "a", area: "area", base: "base", blockquote: "blockquote", button: "button",
	embed: "embed", form: "form", frame: "frame", input: "input", link: "link", quote: "q",
	math: "math", meta: "meta", object: "object", svg: "svg", img: "img", image: "image", source: "source",
	plaintext: "plaintext", iframe: "iframe",
	noembed: "noembed", noframes: "noframes", script: "script", style: "style",
	textarea: "textarea", title: "title", xmp: "xmp",
}

// maxElementName is the length of the longest of elementNames.
const maxElementName = len("blockquote")

// initialsByLength has, for each length, the set of letters with which an element name of that length
// begins, one bit each. It quickly rules out most tags of a page.
var initialsByLength = func() (table [maxElementName + 1]uint32) {
	for _, name := range elementNames[unknownElement+1:] {
		table[len(name)] |= 1 << (name[0] & 31)
	}
	return table
}()

// elementKindByName returns the element with the given name, which must not be empty.
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

// handleStartTag processes the start tag that was just read, and the element's content if that is
// text. It reports whether the page must be read again.
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
		p.readSrcdoc(a.srcdoc)
	case embed:
		p.addEmbedded(a.src, a.typ)
	case object:
		p.addEmbedded(a.data, a.typ)
	case blockquote, quote:
		p.addLinkFromAttribute(Citation, a.cite, 0)
	case form:
		p.handleForm()
	case button, input:
		p.addFormAction()
	case img, image: // HTML parsers treat image as img
		p.addLinkFromAttribute(Image, a.src, 0)
		p.addSrcset(a.srcset)
	case source:
		p.addSrcset(a.srcset)
	case link:
		p.handleLinkElement()
	case base:
		return p.setBase(a.href)
	case meta:
		return p.handleMeta()
	case math, svg:
		p.enterForeignRoot(e)
	}
	if p.scanner.IncludeResources {
		p.addResources(e)
	}
	if e >= plaintext && !(p.selfClosing && p.isXHTML) {
		p.consumeTextContent(e)
	}
	return false
}

// handleForeignTag is handleStartTag for a tag inside svg or math, where only links count.
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
	default:
		p.addForeignResources(e)
	}
}

// addEmbedded adds the content of an embed or object element: an image as one, what can only be played as
// a resource, other content of unknown or of a readable type as a link.
func (p *pageParser) addEmbedded(url, contentType []byte) {
	kind, subtype, _ := bytes.Cut(trim(unescape(contentType)), []byte("/"))
	switch {
	case equalFold(kind, "image"):
		if p.scanner.IncludeImages || p.scanner.IncludeResources {
			p.addLinkFromAttribute(Image, url, 0)
		}
	case equalFold(kind, "audio"), equalFold(kind, "video"), equalFold(subtype, "x-shockwave-flash"):
		if p.scanner.IncludeResources {
			p.addLinkFromAttribute(Resource, url, 0)
		}
	default:
		p.addLinkFromAttribute(Embed, url, 0)
	}
}

// maxSrcdocDepth bounds how deep pages in srcdoc attributes are nested; deeper ones are ignored.
const maxSrcdocDepth = 4

// readSrcdoc adds the links of the page in the srcdoc attribute of an iframe. Its links are relative to
// the base of the outer page, and their queries are in UTF-8.
func (p *pageParser) readSrcdoc(raw []byte) {
	if len(raw) == 0 || p.srcdocDepth == maxSrcdocDepth {
		return
	}
	s := p.scanner
	inner, before := s.newPageParser(p.baseURL), len(s.links)
	inner.srcdocDepth, inner.linkURLBytes = p.srcdocDepth+1, p.linkURLBytes
	inner.input, inner.encodingKnown = unescape(raw), true
	for inner.walkTags() { // only a base after links ends it early: it applies to the links that follow
	}
	// What its robots meta elements forbid holds for its links, not for the outer page.
	if slices.ContainsFunc(inner.result.RobotsMeta, func(m RobotsMeta) bool { return m.NoFollow }) {
		for i := range s.links[before:] {
			s.links[before+i].Rel |= NoFollow
		}
	}
	p.linkURLBytes = inner.linkURLBytes
	p.result.LinksTruncated = p.result.LinksTruncated || inner.result.LinksTruncated
}

// addSrcset adds the images of a srcset attribute, as written.
func (p *pageParser) addSrcset(raw []byte) {
	for url := range srcsetURLs(unescape(raw)) {
		p.addLink(Image, url, 0)
	}
}

// consumeTextContent skips the content of an element whose content is text. It keeps the first title.
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
		if len(p.foreignElements) > 0 { // the end tag must not close a title element of svg
			p.nextTag()
			p.readAttributes(nil)
		}
	default:
		text := p.readRawText(elementNames[e])
		if e == style && p.scanner.IncludeResources {
			p.addStyleResources(text)
		}
	}
}

// handleMeta processes a meta element, and reports whether the page must be read again.
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

// refreshTarget returns the URL in a refresh value such as "5; url='/next'". It returns nil if the
// value has no URL, so that the page only reloads itself.
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
