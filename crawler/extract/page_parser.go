package extract

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

// A pageParser is one page while it is being read.
type pageParser struct {
	tokenizer
	scanner          *Scanner
	result           ScanResult
	pageURL          decorum.URL // the page's own
	baseURL          decorum.URL // what links are relative to
	maxLinks         int         // links
	maxTotalURLBytes int         // bytes of their URLs
	linkURLBytes     int         // bytes of those that there are
	isXHTML          bool

	attrs           attributes       // of the current tag
	foreignElements []foreignElement // of svg and math that are open
	hasTitle        bool             // the title was seen
	hasBase         bool             // a base element was seen
	encodingKnown   bool             // the encoding is known
}

// decodeInputToUTF8 settles how the body is encoded, if its mark or the content type says.
func (p *pageParser) decodeInputToUTF8(body []byte, charset string) {
	n, markCharset := byteOrderMark(body)
	if n > 0 {
		charset = markCharset
	}
	enc, known := encodingByName(charset)
	p.input, p.encodingKnown = decodeToUTF8(body[n:], enc), known
}

// readDocument walks over the page until nothing is learnt too late: a base element
// after the first link, or an encoding that only the page itself tells, makes
// it begin again. Each does so once.
func (p *pageParser) readDocument() *ScanResult {
	for {
		p.reset()
		if restart := p.walkTags(); !restart {
			break
		}
	}
	return p.document()
}

// document returns what was read.
func (p *pageParser) document() *ScanResult {
	doc := p.result
	doc.Links, doc.BaseURL = slices.Clone(p.scanner.links), p.baseURL
	return &doc
}

// reset forgets what was read, but not what was learnt.
func (p *pageParser) reset() {
	s := p.scanner
	s.links = s.links[:0]
	const maxReused = 4096 // clearing a map costs what it has ever held
	if s.linkIndexByURL == nil || len(s.linkIndexByURL) > maxReused {
		s.linkIndexByURL = make(map[decorum.URL]int)
	}
	clear(s.linkIndexByURL)
	p.pos, p.hasTitle, p.result, p.linkURLBytes = 0, false, ScanResult{}, 0
	p.popForeignElements(0)
}

// walkTags reads the page, and says whether that must be done again.
func (p *pageParser) walkTags() (restart bool) {
	for {
		name, end, ok := p.nextTag()
		if !ok {
			return p.switchToWindows1252IfNotUTF8()
		}
		e := elementKindByName(name)
		if e == unknownElement || end || e >= img && e <= source && !p.scanner.IncludeImages {
			if !p.readAttributes(nil) {
				return p.switchToWindows1252IfNotUTF8()
			}
			if len(p.foreignElements) > 0 {
				p.trackForeignTag(name, end)
			}
			continue
		}
		p.attrs = attributes{}
		if !p.readAttributes(&p.attrs) {
			return p.switchToWindows1252IfNotUTF8()
		}
		if len(p.foreignElements) > 0 && p.trackForeignTag(name, false) {
			p.handleForeignTag(e)
		} else if p.handleStartTag(e) {
			return true
		}
	}
}

// switchToWindows1252IfNotUTF8 judges the bytes of a page that nowhere named its encoding.
func (p *pageParser) switchToWindows1252IfNotUTF8() (restart bool) {
	if p.encodingKnown || utf8.Valid(p.input) {
		return false
	}
	p.switchEncoding(charmap.Windows1252)
	return true
}

// switchEncoding settles how the body is encoded after part of it was read.
func (p *pageParser) switchEncoding(enc encoding.Encoding) {
	p.input, p.encodingKnown = decodeToUTF8(p.input, enc), true
	p.baseURL, p.hasBase = p.pageURL, false // it may have been read wrongly
}

// applyDeclaredEncoding learns the encoding that a meta element names.
func (p *pageParser) applyDeclaredEncoding(charset string) (restart bool) {
	if p.encodingKnown {
		return false
	}
	enc, known := encodingByName(charset)
	p.encodingKnown = known
	if enc == nil {
		return false
	}
	if name, _ := htmlindex.Name(enc); strings.HasPrefix(name, "utf-16") {
		return false // a page whose meta element could be read is not written in it
	}
	p.switchEncoding(enc)
	return true
}

// setBase learns from a base element what links are relative to.
func (p *pageParser) setBase(href []byte) (restart bool) {
	if href == nil || p.hasBase {
		return false
	}
	p.hasBase = true // whatever it says
	u, err := p.pageURL.ResolveBytes(trim(unescape(href)))
	if err != nil || u == p.baseURL || len(u.String()) > maxRefBytes {
		return false
	}
	p.baseURL = u
	return len(p.scanner.links) > 0
}

// addLinkKeepingFirstCanonical adds the link ref, decoded, as canonical URL, too, if it is one.
func (p *pageParser) addLinkKeepingFirstCanonical(kind LinkKind, ref []byte) {
	u, ok := p.addLink(kind, ref, 0)
	if ok && kind == Canonical && p.result.CanonicalURL.IsZero() {
		p.result.CanonicalURL = u
	}
}

// addLinkFromAttribute adds the link that an attribute holds.
func (p *pageParser) addLinkFromAttribute(kind LinkKind, raw []byte, rel NoFollowRels) {
	p.addLink(kind, p.unescapedRef(raw), rel)
}

// unescapedRef returns what an attribute that holds a link says, nil if that is too
// long to be one. It is good until the next call.
func (p *pageParser) unescapedRef(raw []byte) []byte {
	if len(raw) > maxRefBytes {
		return nil
	}
	s := p.scanner
	s.linkBuf = appendUnescaped(s.linkBuf[:0], raw)
	return s.linkBuf
}

// addLink adds a link, unless it leads nowhere.
func (p *pageParser) addLink(kind LinkKind, ref []byte, rel NoFollowRels) (u decorum.URL, ok bool) {
	if ref = trim(ref); len(ref) > maxRefBytes || !isCrawlableHref(ref) {
		return u, false
	}
	u, err := p.baseURL.ResolveBytes(ref)
	if err != nil {
		return u, false
	}
	s := p.scanner
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
	s.links = append(s.links, Link{URL: u, Kind: kind, FollowableKind: kind, Rel: rel, IsFeed: kind == Feed})
	return u, true
}
