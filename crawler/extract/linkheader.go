package extract

import (
	"bytes"
	"net/http"

	"github.com/decorum-crawler/decorum"
)

// ScanHeader reads what the header of an answer links to; see Scanner.ScanHeader.
func ScanHeader(header http.Header, page decorum.URL) *Document {
	return new(Scanner).ScanHeader(header, page)
}

// ScanHeader returns what the fields Link (RFC 8288) and Refresh of an answer
// for page say, whatever its content type: links of the kinds that link
// elements have, and Refresh. A link with an anchor that is not on the page
// speaks of another page, and is passed over. The title and the rules for
// robots stay empty: Document.Directives reads X-Robots-Tag.
func (s *Scanner) ScanHeader(header http.Header, base decorum.URL) *Document {
	p := s.page(base)
	p.begin()
	for _, field := range header.Values("Link") {
		p.linkField([]byte(field))
	}
	for _, field := range header.Values("Refresh") {
		p.addRef(Refresh, refreshTarget([]byte(field)), 0)
	}
	return p.document()
}

// linkField reads one Link field, which may hold several links, up to where it
// is no longer one (RFC 8288 §B.2).
func (p *page) linkField(s []byte) {
	for {
		s = bytes.TrimLeft(s, optional+",")
		if len(s) == 0 || s[0] != '<' {
			return
		}
		target, rest, ok := bytes.Cut(s[1:], []byte(">"))
		if !ok {
			return
		}
		var with parameters
		with, s = readParameters(rest)
		if kind, ok := relation(with.rel, with.kind); ok && p.isHome(with.anchor) {
			p.mention(kind, target)
		}
	}
}

// isHome reports whether the anchor of a link is the page itself.
func (p *page) isHome(anchor []byte) bool {
	u, err := p.home.ResolveBytes(anchor)
	return err == nil && u == p.home
}

// parameters are those of a link that matter.
type parameters struct{ rel, kind, anchor []byte }

// readParameters reads the parameters of a link, and returns what follows them
// (RFC 8288 §B.3). The first of a name counts.
func readParameters(s []byte) (with parameters, rest []byte) {
	for {
		s = bytes.TrimLeft(s, optional)
		if len(s) == 0 || s[0] != ';' {
			return with, s
		}
		s = bytes.TrimLeft(s[1:], optional)
		end := bytes.IndexAny(s, optional+"=;,")
		if end < 0 {
			end = len(s)
		}
		name, value := s[:end], []byte{}
		s = bytes.TrimLeft(s[end:], optional)
		if len(s) > 0 && s[0] == '=' {
			value, s = readValue(bytes.TrimLeft(s[1:], optional))
		}
		with.set(name, value)
	}
}

// set keeps the value, if the parameter matters.
func (p *parameters) set(name, value []byte) {
	var place *[]byte
	switch {
	case is(name, "rel"):
		place = &p.rel
	case is(name, "type"):
		place = &p.kind
	case is(name, "anchor"):
		place = &p.anchor
	default:
		return
	}
	if *place == nil {
		*place = value
	}
}

// readValue reads a parameter's value, a token or a quoted string, and returns
// what follows it. A string that is never closed ends with s.
func readValue(s []byte) (value, rest []byte) {
	if len(s) == 0 || s[0] != '"' {
		end := bytes.IndexAny(s, ";,")
		if end < 0 {
			end = len(s)
		}
		return bytes.TrimRight(s[:end], optional), s[end:]
	}
	value = make([]byte, 0, len(s))
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return value, s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		value = append(value, s[i])
	}
	return value, nil
}

// optional is the white space of header fields.
const optional = " \t"
