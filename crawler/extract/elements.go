package extract

import "bytes"

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
	math: "math", meta: "meta", svg: "svg", plaintext: "plaintext", iframe: "iframe",
	noembed: "noembed", noframes: "noframes", script: "script", style: "style",
	textarea: "textarea", title: "title", xmp: "xmp",
}

const longestName = len("plaintext")

// letters holds, for every length, with which letters names of it begin: one
// bit each. Most tags of a page are told apart from those that matter by it.
var letters = func() (table [longestName + 1]uint32) {
	for _, name := range names[unknown+1:] {
		table[len(name)] |= 1 << (name[0] & 31)
	}
	return table
}()

// elementOf returns the element of that name, which is not empty.
func elementOf(name []byte) element {
	if len(name) > longestName || letters[len(name)]&(1<<(name[0]&31)) == 0 {
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
		p.add(Anchor, a.href, noFollow(a.rel))
	case area:
		p.add(Area, a.href, noFollow(a.rel))
	case frame:
		p.add(Frame, a.src, false)
	case iframe:
		p.add(IFrame, a.src, false)
	case link:
		p.link()
	case base:
		return p.rebase(a.href)
	case meta:
		return p.meta()
	case math, svg:
		if !p.void {
			p.nest(+1)
		}
	}
	if e >= plaintext && !(p.void && p.cdata) {
		p.content(e)
	}
	return false
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
		if !p.titled && p.depth == 0 {
			p.doc.Title, p.titled = titleText(text), true
		}
	default:
		p.text(names[e])
	}
}

// link reads a link element.
func (p *page) link() {
	a := &p.attrs
	var canonical, alternate, next, prev, stylesheet bool
	for token := range bytes.FieldsSeq(unescape(a.rel)) {
		canonical = canonical || is(token, "canonical")
		alternate = alternate || is(token, "alternate")
		next = next || is(token, "next")
		prev = prev || is(token, "prev")
		stylesheet = stylesheet || is(token, "stylesheet")
	}
	switch {
	case stylesheet:
	case canonical:
		if u, ok := p.add(Canonical, a.href, false); ok && p.doc.Canonical.IsZero() {
			p.doc.Canonical = u
		}
	case alternate && isFeed(a.kind):
		p.add(Feed, a.href, false)
	case alternate:
		p.add(Alternate, a.href, false)
	case next:
		p.add(Next, a.href, false)
	case prev:
		p.add(Prev, a.href, false)
	}
}

// isFeed reports whether a link's type is that of a feed.
func isFeed(kind []byte) bool {
	kind, _, _ = bytes.Cut(unescape(kind), []byte(";"))
	kind = trim(kind)
	return is(kind, "application/rss+xml") || is(kind, "application/atom+xml")
}

// noFollow reports whether the rel of an anchor asks not to follow it.
func noFollow(rel []byte) bool {
	for token := range bytes.FieldsSeq(unescape(rel)) {
		if is(token, "nofollow") || is(token, "ugc") || is(token, "sponsored") {
			return true
		}
	}
	return false
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
		if len(content) <= maxRef {
			p.addRef(Refresh, refreshTarget(content), false)
		}
	case a.name != nil:
		p.rule(string(trim(unescape(a.name))), content)
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
