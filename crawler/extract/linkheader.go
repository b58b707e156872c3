package extract

import (
	"bytes"
	"net/http"

	"github.com/decorum-crawler/decorum"
)

// ScanHeaderLinks returns the links in the header fields Link (RFC 8288) and Refresh of a response
// for the page base, whatever its content type. A Link field has the same kinds of links as a link
// element. A link whose anchor parameter is another page is ignored. The result has no title and no
// RobotsMeta: ScanResult.RobotsDirectivesFor reads X-Robots-Tag.
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

// addLinkHeader adds the links of one Link field, up to the first syntax error (RFC 8288 §B.2).
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
		if p.resolvesToPageURL(params.anchor) {
			p.addRelatedLink(target, params.linkRelations)
		}
	}
}

// resolvesToPageURL reports whether the anchor parameter of a link refers to the page itself.
func (p *pageParser) resolvesToPageURL(anchor []byte) bool {
	u, err := p.pageURL.ResolveBytes(anchor)
	return err == nil && u == p.pageURL
}

// linkHeaderParams has the parameters of a link that affect the result; nil if absent.
type linkHeaderParams struct {
	linkRelations
	anchor []byte
}

// readLinkParams reads the parameters of a link, and returns what follows them (RFC 8288 §B.3). Of
// duplicates the first counts.
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

// setKnownIfUnset sets the field for the parameter called name, if there is one and it is unset.
func (p *linkHeaderParams) setKnownIfUnset(name, value []byte) {
	switch {
	case equalFold(name, "rel"):
		setIfUnset(&p.rel, value)
	case equalFold(name, "type"):
		setIfUnset(&p.typ, value)
	case equalFold(name, "as"):
		setIfUnset(&p.as, value)
	case equalFold(name, "anchor"):
		setIfUnset(&p.anchor, value)
	}
}

// readParamValue reads the value of a parameter, a token or a quoted string, and returns what
// follows it. An unterminated string extends to the end of s.
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

// optionalWhitespace has the white space characters of header fields.
const optionalWhitespace = " \t"
