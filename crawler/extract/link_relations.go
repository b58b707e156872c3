package extract

import (
	"bytes"
	"slices"
	"strings"
)

// handleLinkElement adds the target of a link element.
func (p *pageParser) handleLinkElement() {
	a := &p.attrs
	p.addRelatedLink(p.unescapedRef(a.href), linkRelations{rel: unescape(a.rel), typ: unescape(a.typ), as: a.asValue()})
	if a.resource != nil {
		p.addSrcset(a.resource.imageSrcset)
	}
}

// addRelatedLink adds the target of a link element or Link field, if its relations are of interest. The
// first canonical link becomes the page's canonical URL.
func (p *pageParser) addRelatedLink(ref []byte, relations linkRelations) {
	kind, ok := relations.kind()
	if !ok || (kind == Image || kind == Resource) && !p.scanner.IncludeResources {
		return
	}
	u, ok := p.addLink(kind, ref, 0)
	if ok && kind == Canonical && p.result.CanonicalURL.IsZero() {
		p.result.CanonicalURL = u
	}
}

// linkRelations says what a link element or Link field says of its target: its relations, its content
// type, and what it is used as.
type linkRelations struct{ rel, typ, as []byte }

// kind returns the kind of the link. It returns false if no relation is of interest.
func (l linkRelations) kind() (k LinkKind, ok bool) {
	var canonical, alternate, next, prev, amp, info, stylesheet, icon, preload bool
	as := trim(l.as)
	for token := range bytes.FieldsSeq(l.rel) {
		is := func(names ...string) bool {
			return slices.ContainsFunc(names, func(name string) bool { return equalFold(token, name) })
		}
		switch {
		case is("canonical"):
			canonical = true
		case is("alternate"):
			alternate = true
		case is("next"):
			next = true
		case is("prev", "previous"):
			prev = true
		case is("amphtml"):
			amp = true
		case is("author", "help", "license", "privacy-policy", "terms-of-service"):
			info = true
		case is("stylesheet"):
			stylesheet = true
		case is("icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon"):
			icon = true
		case is("manifest", "modulepreload"):
			preload = true
		case is("preload", "prefetch"):
			// Without a use, or as a document, this may be the next page.
			preload = preload || len(as) > 0 && !equalFold(as, "document")
		}
	}
	switch {
	// An alternate style sheet or icon is not a page.
	case stylesheet:
		return Resource, true
	case icon:
		return Image, true
	case canonical:
		return Canonical, true
	case alternate && IsFeedContentType(string(l.typ)):
		return Feed, true
	case alternate:
		return Alternate, true
	case next:
		return Next, true
	case prev:
		return Prev, true
	case amp:
		return AMP, true
	case info:
		return Info, true
	case equalFold(as, "image"):
		return Image, preload
	}
	return Resource, preload
}

// IsFeedContentType reports whether the content type of a link's target or of a response is that of
// a feed: RSS, Atom or JSON Feed. It excludes application/json, because many other alternate forms
// of pages have that type.
func IsFeedContentType(contentType string) bool {
	mediaType, _, _ := strings.Cut(contentType, ";")
	mediaType = strings.Trim(mediaType, whitespace)
	return strings.EqualFold(mediaType, "application/rss+xml") ||
		strings.EqualFold(mediaType, "application/atom+xml") ||
		strings.EqualFold(mediaType, "application/feed+json")
}

// parseRel returns the NoFollowRels in the rel attribute of an anchor.
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
