package extract

import (
	"bytes"
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

// A markupSyntax is the syntax of a body.
type markupSyntax uint8

const (
	notHTML markupSyntax = iota
	htmlSyntax
	xhtmlSyntax
	xmlSyntax // XHTML or another kind of XML
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
	case strings.EqualFold(kind, "application/xml"), strings.EqualFold(kind, "text/xml"):
		m = xmlSyntax
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

// charsetFromXMLDeclaration returns the encoding that the XML declaration at the start of body names, ""
// if there is none (HTML standard, "get an XML encoding").
func charsetFromXMLDeclaration(body []byte) string {
	if !bytes.HasPrefix(body, []byte("<?xml")) {
		return ""
	}
	declaration := body[:indexAnyOrEnd(body[:min(len(body), maxDeclarationBytes)], ">")]
	_, value, _ := bytes.Cut(declaration, []byte("encoding"))
	if value = trimLeft(value); len(value) == 0 || value[0] != '=' {
		return ""
	}
	if value = trimLeft(value[1:]); len(value) == 0 || value[0] != '"' && value[0] != '\'' {
		return ""
	}
	return readCharsetValue(value)
}

// maxDeclarationBytes is how far into a page its XML declaration may reach: as far as browsers search
// for an encoding.
const maxDeclarationBytes = 1024

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
	if enc == charmap.ISO8859_8I { // differs in how text is laid out
		enc = charmap.ISO8859_8
	}
	return enc, true
}

// decodeToUTF8 returns body in UTF-8. enc is its encoding, nil for UTF-8.
func decodeToUTF8(body []byte, enc encoding.Encoding) []byte {
	switch table, isSingleByte := enc.(*charmap.Charmap); {
	case enc == nil:
		return body
	case isSingleByte:
		return decodeSingleByte(body, table)
	}
	decoded, err := enc.NewDecoder().Bytes(body)
	if err != nil { // HTML forbids this encoding; read the ASCII parts
		return body
	}
	return decoded
}

// decodeSingleByte returns body in UTF-8. Unlike golang.org/x/text, and like the Encoding standard, it
// reads a byte from 0x80 to 0x9F that has no character as the control character of that number, so that
// the queries of links get their bytes back.
func decodeSingleByte(body []byte, table *charmap.Charmap) []byte {
	var runes [256]rune
	for i := range runes {
		runes[i] = table.DecodeByte(byte(i))
		if runes[i] == utf8.RuneError && i >= 0x80 && i <= 0x9F {
			runes[i] = rune(i)
		}
	}
	decoded := make([]byte, 0, len(body)+len(body)/4)
	for _, c := range body {
		decoded = utf8.AppendRune(decoded, runes[c])
	}
	return decoded
}
