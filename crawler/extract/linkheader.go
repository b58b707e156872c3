package extract

import (
	"bytes"
	"net/http"

	"github.com/decorum-crawler/decorum"
)

// ScanHeaderLinks returns what the fields Link (RFC 8288) and Refresh of an answer
// for page say, whatever its content type: links of the kinds that link
// elements have, and Refresh. A link with an anchor that is not on the page
// speaks of another page, and is passed over. The title and the rules for
// robots stay empty: ScanResult.RobotsDirectivesFor reads X-Robots-Tag.
func (s *Scanner) ScanHeaderLinks(header http.Header, base decorum.URL) *ScanResult {
	p := s.newPageParser(base)
	p.reset()
	for _, field := range header.Values("Link") {
		p.addLinkHeader([]byte(field))
	}
	for _, field := range header.Values("Refresh") {
		p.addLink(Refresh, refreshTarget([]byte(field)), 0)
	}
	return p.document()
}

// addLinkHeader reads one Link field, which may hold several links, up to where it
// is no longer one (RFC 8288 §B.2).
func (p *pageParser) addLinkHeader(s []byte) {
	for {
		s = bytes.TrimLeft(s, optionalWhitespace+",")
		if len(s) == 0 || s[0] != '<' {
			return
		}
		target, rest, ok := bytes.Cut(s[1:], []byte(">"))
		if !ok {
			return
		}
		var params linkHeaderParams
		params, s = readLinkParams(rest)
		if kind, ok := linkRelKind(params.rel, params.typ); ok && p.resolvesToPageURL(params.anchor) {
			p.addLinkKeepingFirstCanonical(kind, target)
		}
	}
}

// resolvesToPageURL reports whether the anchor of a link is the page itself.
func (p *pageParser) resolvesToPageURL(anchor []byte) bool {
	u, err := p.pageURL.ResolveBytes(anchor)
	return err == nil && u == p.pageURL
}

// linkHeaderParams are those of a link that matter.
type linkHeaderParams struct{ rel, typ, anchor []byte }

// readLinkParams reads the parameters of a link, and returns what follows them
// (RFC 8288 §B.3). The first of a name counts.
func readLinkParams(s []byte) (params linkHeaderParams, rest []byte) {
	for {
		s = bytes.TrimLeft(s, optionalWhitespace)
		if len(s) == 0 || s[0] != ';' {
			return params, s
		}
		s = bytes.TrimLeft(s[1:], optionalWhitespace)
		end := indexAnyOrEnd(s, optionalWhitespace+"=;,")
		name, value := s[:end], []byte{}
		s = bytes.TrimLeft(s[end:], optionalWhitespace)
		if len(s) > 0 && s[0] == '=' {
			value, s = readParamValue(bytes.TrimLeft(s[1:], optionalWhitespace))
		}
		params.setKnownIfUnset(name, value)
	}
}

// setKnownIfUnset keeps the value, if the parameter matters.
func (p *linkHeaderParams) setKnownIfUnset(name, value []byte) {
	switch {
	case equalFold(name, "rel"):
		setIfUnset(&p.rel, value)
	case equalFold(name, "type"):
		setIfUnset(&p.typ, value)
	case equalFold(name, "anchor"):
		setIfUnset(&p.anchor, value)
	}
}

// readParamValue reads a parameter's value, a token or a quoted string, and returns
// what follows it. A string that is never closed ends with s.
func readParamValue(s []byte) (value, rest []byte) {
	if len(s) == 0 || s[0] != '"' {
		end := indexAnyOrEnd(s, ";,")
		return bytes.TrimRight(s[:end], optionalWhitespace), s[end:]
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

// optionalWhitespace is the white space of header fields.
const optionalWhitespace = " \t"
