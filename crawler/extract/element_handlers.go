package extract

import (
	"bytes"
	"strings"
)

// An element is an element that matters.
type element uint8

const (
	unknown element = iota
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

// names are the names of the elements.
var names = [...]string{
	anchor: "a", area: "area", base: "base", frame: "frame", link: "link",
	math: "math", meta: "meta", svg: "svg", img: "img", image: "image", source: "source",
	plaintext: "plaintext", iframe: "iframe",
	noembed: "noembed", noframes: "noframes", script: "script", style: "style",
	textarea: "textarea", title: "title", xmp: "xmp",
}

const maxElementName = len("plaintext")

// letters holds, for every length, with which letters names of it begin: one
// bit each. Most tags of a page are told apart from those that matter by it.
var letters = func() (table [maxElementName + 1]uint32) {
	for _, name := range names[unknown+1:] {
		table[len(name)] |= 1 << (name[0] & 31)
	}
	return table
}()

// elementOf returns the element of that name, which is not empty.
func elementOf(name []byte) element {
	if len(name) > maxElementName || letters[len(name)]&(1<<(name[0]&31)) == 0 {
		return unknown
	}
	for e, known := range names {
		if is(name, known) {
			return element(e)
		}
	}
	return unknown
}

// element reads an element whose start tag was just passed, and says whether
// the page must be read again.
func (p *page) element(e element) (again bool) {
	a := &p.attrs
	switch e {
	case anchor:
		p.add(Anchor, a.href, relOf(a.rel))
	case area:
		p.add(Area, a.href, relOf(a.rel))
	case frame:
		p.add(Frame, a.src, 0)
	case iframe:
		p.add(IFrame, a.src, 0)
	case img, image: // a parser makes an img of image
		p.add(Image, a.src, 0)
		p.srcset()
	case source:
		p.srcset()
	case link:
		if kind, ok := relation(unescape(a.rel), unescape(a.kind)); ok {
			p.mention(kind, p.decoded(a.href))
		}
	case base:
		return p.rebase(a.href)
	case meta:
		return p.meta()
	case math, svg:
		p.root(e)
	}
	if e >= plaintext && !(p.void && p.xhtml) {
		p.content(e)
	}
	return false
}

// foreignElement is element inside svg and math, where only links count.
func (p *page) foreignElement(e element) {
	switch a := &p.attrs; e {
	case anchor:
		href := a.href
		if href == nil {
			href = a.xlink
		}
		p.add(Anchor, href, relOf(a.rel))
	case math, svg:
		p.root(e)
	}
}

// srcset adds the images of a srcset attribute.
func (p *page) srcset() {
	for url := range candidates(unescape(p.attrs.srcset)) {
		p.addRef(Image, url, 0)
	}
}

// content passes over content that is text.
func (p *page) content(e element) {
	switch e {
	case plaintext:
		p.p = len(p.b)
	case script:
		p.script()
	case title:
		text := p.text(names[title])
		if !p.titled && len(p.islands) == 0 {
			p.doc.Title, p.titled = titleText(text), true
		}
		if len(p.islands) > 0 { // its end tag is not that of an svg's title
			p.next()
			p.attributes(nil)
		}
	default:
		p.text(names[e])
	}
}

// relation returns what kind of link a link element is, or a Link field, by
// its relations and the type of its target, and whether it is one at all.
func relation(rel, kind []byte) (k Kind, ok bool) {
	var canonical, alternate, next, prev, amp, stylesheet bool
	for token := range bytes.FieldsSeq(rel) {
		canonical = canonical || is(token, "canonical")
		alternate = alternate || is(token, "alternate")
		next = next || is(token, "next")
		prev = prev || is(token, "prev") || is(token, "previous")
		amp = amp || is(token, "amphtml")
		stylesheet = stylesheet || is(token, "stylesheet")
	}
	switch {
	case stylesheet:
		return 0, false
	case canonical:
		return Canonical, true
	case alternate && IsFeed(string(kind)):
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

// IsFeed reports whether a content type, of a link's target or of an answer, is
// that of a feed: RSS, Atom or JSON Feed. application/json is not: it is the type of
// many an alternate form of a page that is no feed.
func IsFeed(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.Trim(media, blanks)
	return strings.EqualFold(media, "application/rss+xml") || strings.EqualFold(media, "application/atom+xml") ||
		strings.EqualFold(media, "application/feed+json")
}

// relOf returns what the rel of an anchor says of whom the link is from.
func relOf(raw []byte) (rel Rel) {
	for token := range bytes.FieldsSeq(unescape(raw)) {
		switch {
		case is(token, "nofollow"):
			rel |= NoFollow
		case is(token, "ugc"):
			rel |= UGC
		case is(token, "sponsored"):
			rel |= Sponsored
		}
	}
	return rel
}

// meta reads a meta element.
func (p *page) meta() (again bool) {
	a := &p.attrs
	content := unescape(a.content)
	switch equiv := unescape(a.equiv); {
	case a.charset != nil:
		return p.declare(string(trim(unescape(a.charset))))
	case is(equiv, "content-type"):
		return p.declare(charsetIn(content))
	case is(equiv, "refresh"):
		p.addRef(Refresh, refreshTarget(content), 0)
	case a.name != nil:
		p.named(string(trim(unescape(a.name))), content)
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
	s = bytes.TrimLeft(rest, blanks+",;")
	if len(s) == len(rest) {
		return nil
	}
	if url := trimLeft(s[min(len(s), len("url")):]); len(s) >= len("url") && is(s[:len("url")], "url") &&
		len(url) > 0 && url[0] == '=' {
		s = trimLeft(url[1:])
	}
	if len(s) > 0 && (s[0] == '"' || s[0] == '\'') {
		s, _, _ = bytes.Cut(s[1:], s[:1])
	}
	return s
}
