package sitemap

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// Limits in bytes of what is kept in memory.
const (
	maxTextLen = 8 << 10  // text of an element; longer text is cut
	maxTagLen  = 64 << 10 // a tag with its attributes; a longer one is an error
)

// A scanner splits XML into tokens. It does not validate: it skips a document type declaration to
// its end, and knows the five predefined entities only.
type scanner struct {
	in      *input
	inTag   bool   // the last byte read is "<"
	rawBuf  []byte // reused for bytes that the buffer of in cuts in two
	textBuf []byte // reused for text with decoded references
}

// A tokenKind is the kind of a token.
type tokenKind uint8

// The kinds of tokens.
const (
	textToken tokenKind = iota
	startTag
	endTag
)

// A token is a tag or a piece of text. It is valid until the next call of nextToken.
type token struct {
	kind        tokenKind
	name        []byte // of a tag
	attrs       []byte // of a start tag, as written
	selfClosing bool   // a start tag that also ends its element
	text        []byte
	textErr     error // why text must not be used: it was cut, or contains an unknown reference
}

// nextToken returns the next token. It skips comments, processing instructions and declarations.
func (s *scanner) nextToken() (token, error) {
	for {
		if !s.inTag {
			return s.readTextToken()
		}
		s.inTag = false
		var err error
		switch {
		case !s.in.hasPrefix("!") && !s.in.hasPrefix("?"):
			return s.scanTag()
		case s.in.hasPrefix("!--"):
			s.in.skip(len("!--"))
			_, err = s.readUntil("-->")
		case s.in.hasPrefix("![CDATA["):
			s.in.skip(len("![CDATA["))
			text, err := s.readUntil("]]>")
			return token{text: text, textErr: checkTextLen(text)}, err
		case s.in.hasPrefix("?"):
			_, err = s.readUntil("?>")
		default: // a declaration, such as <!DOCTYPE>
			_, err = s.readTag()
		}
		if err != nil {
			return token{}, err
		}
	}
}

// readTextToken returns the text up to the next "<".
func (s *scanner) readTextToken() (token, error) {
	raw, err := s.readUntil("<")
	if err != nil {
		return token{}, err
	}
	s.inTag = true
	decoded, err := decodeReferences(&s.textBuf, raw)
	return token{text: decoded, textErr: cmp.Or(checkTextLen(raw), err)}, nil
}

// checkTextLen returns ErrLimit for text that may have been cut.
func checkTextLen(text []byte) error {
	if len(text) >= maxTextLen {
		return ErrLimit
	}
	return nil
}

// readUntil returns the text before end, and skips end. Text that is longer than the buffer is cut
// to maxTextLen.
func (s *scanner) readUntil(end string) ([]byte, error) {
	b, found, err := s.in.readChunkUntil(end[len(end)-1])
	if found && bytes.HasSuffix(b, []byte(end)) {
		return b[:len(b)-len(end)], nil // the usual case, without a copy
	}
	s.rawBuf = s.rawBuf[:0]
	const before = 2     // bytes of the last chunk that may belong to end, as in "-->"
	var last [2 * 4]byte // holds them and the end of the chunk
	tail := last[:0]
	for {
		s.rawBuf = append(s.rawBuf, b[:min(len(b), maxTextLen+len(end)-len(s.rawBuf))]...)
		tail = append(tail, b[max(0, len(b)-len(end)):]...)
		if found && bytes.HasSuffix(tail, []byte(end)) {
			text := bytes.TrimSuffix(s.rawBuf, []byte(end))
			return text[:min(len(text), maxTextLen)], nil
		}
		if err != nil {
			return nil, err
		}
		tail = append(last[:0], tail[max(0, len(tail)-before):]...)
		b, found, err = s.in.readChunkUntil(end[len(end)-1])
	}
}

// readTag returns a tag or declaration up to its ">". A ">" in quotes does not end it. With an
// error it returns what it has read.
func (s *scanner) readTag() ([]byte, error) {
	b, found, err := s.in.readChunkUntil('>')
	if found && bytes.IndexByte(b, '"') < 0 && bytes.IndexByte(b, '\'') < 0 {
		return b[:len(b)-1], nil // the usual case, without a copy
	}
	s.rawBuf = s.rawBuf[:0]
	var quote byte
	for {
		if len(s.rawBuf)+len(b) > maxTagLen {
			return s.rawBuf, fmt.Errorf("tag: %w", ErrLimit)
		}
		s.rawBuf = append(s.rawBuf, b...)
		for _, c := range b {
			switch {
			case quote == 0 && (c == '"' || c == '\''):
				quote = c
			case c == quote:
				quote = 0
			}
		}
		switch {
		case found && quote == 0:
			return s.rawBuf[:len(s.rawBuf)-1], nil
		case err != nil:
			return s.rawBuf, err
		}
		b, found, err = s.in.readChunkUntil('>')
	}
}

// scanTag returns a start or end tag. If an error occurs in the tag, the token has at least its
// kind.
func (s *scanner) scanTag() (token, error) {
	tag, err := s.readTag()
	t := token{kind: startTag}
	rest, isEnd := bytes.CutPrefix(tag, []byte("/"))
	if isEnd {
		t.kind = endTag
	} else {
		rest, t.selfClosing = bytes.CutSuffix(rest, []byte("/"))
	}
	if err != nil {
		return t, err
	}
	n := nameLen(rest)
	if t.name, t.attrs = rest[:n], rest[n:]; n == 0 || len(t.attrs) > 0 && !isBlankByte(t.attrs[0]) {
		return token{}, fmt.Errorf("tag %.40q: %w", tag, ErrSyntax)
	}
	return t, nil
}

// nameLen returns the length of the name at the beginning of tag.
func nameLen(tag []byte) int {
	if end := bytes.IndexAny(tag, " \t\n\r<\"'=/&"); end >= 0 {
		return end
	}
	return len(tag)
}

// attributeValue returns the value of an attribute, nil if attrs does not contain it. References
// are not decoded.
func attributeValue(attrs []byte, name string) []byte {
	for {
		before, after, found := bytes.Cut(attrs, []byte("="))
		after = bytes.TrimSpace(after)
		if !found || len(after) == 0 {
			return nil
		}
		value, rest, closed := bytes.Cut(after[1:], after[:1])
		if !closed {
			return nil
		}
		fields := bytes.Fields(before)
		if len(fields) > 0 && string(fields[len(fields)-1]) == name {
			return value
		}
		attrs = rest
	}
}

// isBlankByte reports whether c is white space in XML.
func isBlankByte(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// errUnexpectedEOF is the error of a file that ends within its XML.
var errUnexpectedEOF = fmt.Errorf("%w: %w", ErrSyntax, io.ErrUnexpectedEOF)

// errUnknownEntity is the reason for not using text with an unknown reference.
var errUnknownEntity = errors.New("unknown entity")

// decodeReferences returns src with its references decoded; in *buf if there are any. It leaves an
// unknown reference unchanged, and returns errUnknownEntity. An "&" that begins no reference stands
// for itself, because many sitemaps do not escape it.
func decodeReferences(buf *[]byte, src []byte) (decoded []byte, err error) {
	if bytes.IndexByte(src, '&') < 0 {
		return src, nil
	}
	dst := (*buf)[:0]
	for {
		i := bytes.IndexByte(src, '&')
		if i < 0 {
			*buf = append(dst, src...)
			return *buf, err
		}
		dst = append(dst, src[:i]...)
		src = src[i+1:]
		// A reference has at most 31 characters before its semicolon.
		name, _, closed := bytes.Cut(src[:min(len(src), 32)], []byte(";"))
		if !closed || !isEntityName(name) {
			dst = append(dst, '&')
			continue
		}
		r := entityRune(name)
		if r < 0 {
			dst, err = append(dst, '&'), errUnknownEntity
			continue
		}
		dst, src = utf8.AppendRune(dst, r), src[len(name)+1:]
	}
}

// predefinedEntities holds the entities that XML defines without a declaration.
var predefinedEntities = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

// entityRune returns the character of a reference, or -1 if it is unknown.
func entityRune(name []byte) rune {
	if r, ok := predefinedEntities[string(name)]; ok {
		return r
	}
	if name[0] != '#' {
		return -1
	}
	digits, radix := string(name[1:]), 10
	if len(digits) > 0 && digits[0] == 'x' {
		digits, radix = digits[1:], 16
	}
	n, err := strconv.ParseUint(digits, radix, 32)
	if err != nil || n == 0 || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return -1
	}
	return rune(n)
}

// isEntityName reports whether name, which stands between "&" and ";", can be a reference.
func isEntityName(name []byte) bool {
	for i, c := range name {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && !(i == 0 && c == '#') {
			return false
		}
	}
	return len(name) > 0
}
