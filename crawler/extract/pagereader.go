package extract

import (
	"slices"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

// A page is one page while it is being read.
type page struct {
	tokens
	scanner     *Scanner
	doc         Document
	home        decorum.URL // the page's own
	base        decorum.URL // what links are relative to
	limit       int         // links
	maxURLBytes int         // bytes of their URLs
	size        int         // bytes of those that there are
	xhtml       bool

	attrs   attributes // of the current tag
	islands []island   // of svg and math that are open
	titled  bool       // the title was seen
	based   bool       // a base element was seen
	certain bool       // the encoding is known
}

// encode settles how the body is encoded, if its mark or the content type says.
func (p *page) encode(body []byte, charset string) {
	n, marked := mark(body)
	if n > 0 {
		charset = marked
	}
	enc, known := encodingOf(charset)
	p.b, p.certain = decode(body[n:], enc), known
}

// read walks over the page until nothing is learnt too late: a base element
// after the first link, or an encoding that only the page itself tells, makes
// it begin again. Each does so once.
func (p *page) read() *Document {
	for {
		p.begin()
		if again := p.walk(); !again {
			break
		}
	}
	return p.document()
}

// document returns what was read.
func (p *page) document() *Document {
	doc := p.doc
	doc.Links, doc.Base = slices.Clone(p.scanner.links), p.base
	return &doc
}

// begin forgets what was read, but not what was learnt.
func (p *page) begin() {
	s := p.scanner
	s.links = s.links[:0]
	const roomy = 4096 // clearing a map costs what it has ever held
	if s.index == nil || len(s.index) > roomy {
		s.index = make(map[decorum.URL]int)
	}
	clear(s.index)
	p.p, p.titled, p.doc, p.size = 0, false, Document{}, 0
	p.leave(0)
}

// walk reads the page, and says whether that must be done again.
func (p *page) walk() (again bool) {
	for {
		name, end, ok := p.next()
		if !ok {
			return p.end()
		}
		e := elementOf(name)
		if e == unknown || end || e >= img && e <= source && !p.scanner.Images {
			if !p.attributes(nil) {
				return p.end()
			}
			if len(p.islands) > 0 {
				p.cross(name, end)
			}
			continue
		}
		p.attrs = attributes{}
		if !p.attributes(&p.attrs) {
			return p.end()
		}
		if len(p.islands) > 0 && p.cross(name, false) {
			p.foreignElement(e)
		} else if p.element(e) {
			return true
		}
	}
}

// end judges the bytes of a page that nowhere named its encoding.
func (p *page) end() (again bool) {
	if p.certain || utf8.Valid(p.b) {
		return false
	}
	p.recode(charmap.Windows1252)
	return true
}

// recode settles how the body is encoded after part of it was read.
func (p *page) recode(enc encoding.Encoding) {
	p.b, p.certain = decode(p.b, enc), true
	p.base, p.based = p.home, false // it may have been read wrongly
}

// declare learns the encoding that a meta element names.
func (p *page) declare(charset string) (again bool) {
	if p.certain {
		return false
	}
	enc, known := encodingOf(charset)
	p.certain = known
	if enc == nil || isWide(enc) {
		return false
	}
	p.recode(enc)
	return true
}

// rebase learns from a base element what links are relative to.
func (p *page) rebase(href []byte) (again bool) {
	if href == nil || p.based {
		return false
	}
	p.based = true // whatever it says
	u, err := p.home.ResolveBytes(trim(unescape(href)))
	if err != nil || u == p.base || len(u.String()) > maxRef {
		return false
	}
	p.base = u
	return len(p.scanner.links) > 0
}

// mention adds the link ref, decoded, as canonical URL, too, if it is one.
func (p *page) mention(kind Kind, ref []byte) {
	u, ok := p.addRef(kind, ref, 0)
	if ok && kind == Canonical && p.doc.Canonical.IsZero() {
		p.doc.Canonical = u
	}
}

// add adds the link that an attribute holds.
func (p *page) add(kind Kind, raw []byte, rel Rel) {
	p.addRef(kind, p.decoded(raw), rel)
}

// decoded returns what an attribute that holds a link says, nil if that is too
// long to be one. It is good until the next call.
func (p *page) decoded(raw []byte) []byte {
	if len(raw) > maxRef {
		return nil
	}
	s := p.scanner
	s.ref = appendUnescaped(s.ref[:0], raw)
	return s.ref
}

// addRef adds a link, unless it leads nowhere.
func (p *page) addRef(kind Kind, ref []byte, rel Rel) (u decorum.URL, ok bool) {
	if ref = trim(ref); len(ref) > maxRef || !leads(ref) {
		return u, false
	}
	u, err := p.base.ResolveBytes(ref)
	if err != nil {
		return u, false
	}
	s := p.scanner
	if i, seen := s.index[u]; seen {
		s.links[i].mention(kind, rel)
		return u, true
	}
	size := p.size + len(u.String())
	if len(s.links) == p.limit || size > p.maxURLBytes {
		p.doc.More = true
		return u, true
	}
	p.size = size
	s.index[u] = len(s.links)
	s.links = append(s.links, Link{URL: u, Kind: kind, Free: kind, Rel: rel, Feed: kind == Feed})
	return u, true
}
