package extract

import (
	"bytes"
	"net/http"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
)

// A markupSyntax is the syntax of a body.
type markupSyntax uint8

const (
	notHTML markupSyntax = iota
	htmlSyntax
	xhtmlSyntax
)

// detectSyntaxAndCharset returns the syntax of body, and the encoding that contentType names, or "".
func detectSyntaxAndCharset(contentType string, body []byte) (m markupSyntax, charset string) {
	sniffed := strings.TrimSpace(contentType) == ""
	if sniffed {
		contentType = http.DetectContentType(body)
	}
	kind, parameters, _ := strings.Cut(contentType, ";")
	switch kind = strings.TrimSpace(kind); {
	case strings.EqualFold(kind, "text/html"):
		m = htmlSyntax
	case strings.EqualFold(kind, "application/xhtml+xml"):
		m = xhtmlSyntax
	}
	if !sniffed { // the sniffer says utf-8 without having checked
		charset = charsetFromContentType([]byte(parameters))
	}
	return m, charset
}

// charsetFromContentType returns the charset in the value of a content type, by the standard's
// rules for meta elements; "" if it has none.
func charsetFromContentType(s []byte) string {
	for {
		i := indexFold(s, "charset")
		if i < 0 {
			return ""
		}
		s = trimLeft(s[i+len("charset"):])
		if len(s) > 0 && s[0] == '=' {
			return readCharsetValue(trimLeft(s[1:]))
		}
	}
}

// readCharsetValue returns the value at the start of s: quoted, or up to white space or a semicolon.
func readCharsetValue(s []byte) string {
	if len(s) > 0 && (s[0] == '"' || s[0] == '\'') {
		if end := bytes.IndexByte(s[1:], s[0]); end >= 0 {
			return string(s[1 : 1+end])
		}
		return ""
	}
	return string(s[:indexAnyOrEnd(s, whitespace+";")])
}

// byteOrderMark returns the length of the body's byte order mark and the encoding that it means; 0
// and "" if the body has none.
func byteOrderMark(body []byte) (length int, charset string) {
	switch {
	case bytes.HasPrefix(body, []byte("\xEF\xBB\xBF")):
		return 3, "utf-8"
	case bytes.HasPrefix(body, []byte("\xFE\xFF")):
		return 2, "utf-16be"
	case bytes.HasPrefix(body, []byte("\xFF\xFE")):
		return 2, "utf-16le"
	}
	return 0, ""
}

// encodingByName returns the encoding called charset, and whether it is known. The encoding is nil
// for UTF-8.
func encodingByName(charset string) (enc encoding.Encoding, known bool) {
	if strings.EqualFold(charset, "utf-8") {
		return nil, true
	}
	enc, err := htmlindex.Get(charset)
	if err != nil {
		return nil, false
	}
	if name, _ := htmlindex.Name(enc); name == "utf-8" {
		return nil, true
	}
	return enc, true
}

// decodeToUTF8 returns body in UTF-8. enc is its encoding, nil for UTF-8.
func decodeToUTF8(body []byte, enc encoding.Encoding) []byte {
	if enc == nil {
		return body
	}
	decoded, err := enc.NewDecoder().Bytes(body)
	if err != nil { // HTML forbids this encoding; read the ASCII parts
		return body
	}
	return decoded
}
