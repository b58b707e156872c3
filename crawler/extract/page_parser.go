package extract

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
)

// A pageParser reads one page.
type pageParser struct {
	tokenizer
	scanner          *Scanner
	result           ScanResult
	pageURL          decorum.URL // URL of the page
	baseURL          decorum.URL // links are relative to it
	maxLinks         int         // limit of the number of links
	maxTotalURLBytes int         // limit of linkURLBytes
	linkURLBytes     int         // length of all URLs in the scanner's links
	isXHTML          bool
	srcdocDepth      int // how many srcdoc attributes the page is in

	attrs           attributes       // of the current tag
	foreignElements []foreignElement // open foreign elements, outermost first
	hasTitle        bool             // a title element has been read
	hasBase         bool             // a base element has been read
	hasGETForm      bool             // a form with the method GET has been read
	hasOtherForm    bool             // a form with another method has been read
	encodingKnown   bool             // no later declaration can change the encoding
	queryEncoder    *queryEncoder    // writes the queries of links; nil: they are in UTF-8
}

// decodeInputToUTF8 sets the input to body in UTF-8, if its byte order mark, the content type or, in
// XHTML, the XML declaration names the encoding; else to body as it is.
func (p *pageParser) decodeInputToUTF8(body []byte, charset string) {
	n, markCharset := byteOrderMark(body)
	if n > 0 {
		charset = markCharset
	}
	enc, known := encodingByName(charset)
	if declared := charsetFromXMLDeclaration(body[n:]); !known && p.isXHTML {
		enc, known = encodingByName(declared)
	}
	p.input, p.encodingKnown, p.queryEncoder = decodeToUTF8(body[n:], enc), known, newQueryEncoder(enc)
}

// beginsWithHTMLElement reports whether the first element of the page is html.
func (p *pageParser) beginsWithHTMLElement() bool {
	name, end, ok := p.nextTag()
	p.pos = 0
	return ok && !end && string(name) == "html"
}

// readDocument reads the page. It starts over if it learns something that affects what it has read: a
// base element after the first link, or an encoding that only the page declares. Each happens at most
// once.
func (p *pageParser) readDocument() *ScanResult {
	for {
		p.reset()
		if restart := p.walkTags(); !restart {
			break
		}
	}
	return p.document()
}

// document returns the result of the reading.
func (p *pageParser) document() *ScanResult {
	doc := p.result
	doc.Links, doc.BaseURL = slices.Clone(p.scanner.links), p.baseURL
	return &doc
}

// reset drops what the last pass found, and keeps the base and the encoding.
func (p *pageParser) reset() {
	s := p.scanner
	s.links = s.links[:0]
	const maxReused = 4096 // the cost of clear grows with the most entries a map has had
	if s.linkIndexByURL == nil || len(s.linkIndexByURL) > maxReused {
		s.linkIndexByURL = make(map[decorum.URL]int)
	}
	clear(s.linkIndexByURL)
	p.pos, p.hasTitle, p.result, p.linkURLBytes = 0, false, ScanResult{}, 0
	p.hasGETForm, p.hasOtherForm = false, false
	p.popForeignElements(0)
}

// walkTags reads the page from its start to its end, and reports whether it must be read again.
func (p *pageParser) walkTags() (restart bool) {
	for {
		name, end, ok := p.nextTag()
		if !ok {
			return p.applyFallbackEncoding()
		}
		e := elementKindByName(name)
		// Skip tags without meaning for the result, except that foreign content must be tracked. With
		// resources, every start tag may have a style.
		if end || !p.scanner.IncludeResources &&
			(e == unknownElement || e >= img && e <= source && !p.scanner.IncludeImages) {
			if !p.readAttributes(nil) {
				return p.applyFallbackEncoding()
			}
			if len(p.foreignElements) > 0 {
				p.trackForeignTag(name, end)
			}
			continue
		}
		// Start tags with meaning: in foreign content, only some have it.
		p.attrs.clear()
		if !p.readAttributes(&p.attrs) {
			return p.applyFallbackEncoding()
		}
		if len(p.foreignElements) > 0 && p.trackForeignTag(name, false) {
			p.handleForeignTag(e)
		} else if p.handleStartTag(e) {
			return true
		}
	}
}

// applyFallbackEncoding decides the encoding at the end of a page whose header and meta elements do not
// name one: that of its XML declaration, else windows-1252 if the page is not UTF-8. It reports whether
// the page must be read again.
func (p *pageParser) applyFallbackEncoding() (restart bool) {
	if p.encodingKnown {
		return false
	}
	if enc, known := encodingByName(charsetFromXMLDeclaration(p.input)); known && enc != nil {
		return p.switchDeclaredEncoding(enc)
	}
	if utf8.Valid(p.input) {
		return false
	}
	p.switchEncoding(charmap.Windows1252)
	return true
}

// switchEncoding sets the encoding after part of the page was read.
func (p *pageParser) switchEncoding(enc encoding.Encoding) {
	p.input, p.encodingKnown, p.queryEncoder = decodeToUTF8(p.input, enc), true, newQueryEncoder(enc)
	p.baseURL, p.hasBase = p.pageURL, false // the base may have been read in the wrong encoding
}

// applyDeclaredEncoding applies the encoding that a meta element names, if none is known. It reports
// whether the page must be read again.
func (p *pageParser) applyDeclaredEncoding(charset string) (restart bool) {
	if p.encodingKnown {
		return false
	}
	enc, known := encodingByName(charset)
	p.encodingKnown = known
	return enc != nil && p.switchDeclaredEncoding(enc)
}

// switchDeclaredEncoding sets the encoding that the page itself declares (HTML standard, "prescan a byte
// stream"). It reports whether the page must be read again.
func (p *pageParser) switchDeclaredEncoding(enc encoding.Encoding) (restart bool) {
	switch name, _ := htmlindex.Name(enc); {
	case strings.HasPrefix(name, "utf-16"):
		return false // the declaration was readable as ASCII, so the page is not UTF-16
	case enc == charmap.XUserDefined:
		enc = charmap.Windows1252
	}
	p.switchEncoding(enc)
	return true
}

// setBase applies the first base element. It reports whether the page must be read again, because links
// came before the element.
func (p *pageParser) setBase(href []byte) (restart bool) {
	if href == nil || p.hasBase {
		return false
	}
	p.hasBase = true // even if href is invalid
	u, err := p.resolve(p.pageURL, trim(unescape(href)))
	if err != nil || u == p.baseURL || len(u.String()) > maxRefBytes {
		return false
	}
	p.baseURL = u
	return len(p.scanner.links) > 0
}

// addLinkFromAttribute adds the link in an attribute, as written.
func (p *pageParser) addLinkFromAttribute(kind LinkKind, raw []byte, rel NoFollowRels) {
	p.addLink(kind, p.unescapedRef(raw), rel)
}

// unescapedRef returns the value of a link attribute with references decoded, or nil if it is too
// long. The result is valid until the next call.
func (p *pageParser) unescapedRef(raw []byte) []byte {
	if len(raw) > maxRefBytes {
		return nil
	}
	s := p.scanner
	s.linkBuf = appendUnescaped(s.linkBuf[:0], raw)
	return s.linkBuf
}

// resolve resolves ref on base, with its query in the encoding of the page. In a page that is not valid
// UTF-8 as it should be, it reads ref as browsers do: with U+FFFD in place of what is invalid.
func (p *pageParser) resolve(base decorum.URL, ref []byte) (decorum.URL, error) {
	if p.queryEncoder != nil {
		return base.ResolveBytes(p.queryEncoder.encodeQuery(ref))
	}
	u, err := base.ResolveBytes(ref)
	// Only a URL with escapes can come from bytes outside ASCII.
	if err != nil || strings.IndexByte(u.String(), '%') < 0 || utf8.Valid(ref) {
		return u, err
	}
	if ref, err = unicode.UTF8.NewDecoder().Bytes(ref); err != nil {
		return decorum.URL{}, err
	}
	return base.ResolveBytes(ref)
}

// addLink adds a link, or another mention of it. It returns its URL, and false if ref is not a link
// that can be crawled. If a new link exceeds the limits of the page, addLink sets LinksTruncated
// instead of adding it.
func (p *pageParser) addLink(kind LinkKind, ref []byte, rel NoFollowRels) (u decorum.URL, ok bool) {
	if ref = trim(ref); len(ref) > maxRefBytes || !isCrawlableHref(ref) {
		return u, false
	}
	u, err := p.resolve(p.baseURL, ref)
	if err != nil {
		return u, false
	}
	s := p.scanner
	// A known URL gets another mention; a new one must fit the limits of the page.
	if i, seen := s.linkIndexByURL[u]; seen {
		s.links[i].addMention(kind, rel)
		return u, true
	}
	size := p.linkURLBytes + len(u.String())
	if len(s.links) == p.maxLinks || size > p.maxTotalURLBytes {
		p.result.LinksTruncated = true
		return u, true
	}
	p.linkURLBytes = size
	s.linkIndexByURL[u] = len(s.links)
	s.links = append(s.links, Link{URL: u, Kind: kind, FollowableKind: kind, Rel: rel, IsFeed: kind == Feed,
		IsImage: kind == Image, IsResource: kind == Resource})
	return u, true
}
