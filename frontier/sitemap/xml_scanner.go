package sitemap

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
)

// Limits of what is kept in memory.
const (
	maxValue = 8 << 10  // text of an element; longer text is cut
	maxTag   = 64 << 10 // a tag with its attributes; a longer one is refused
)

// A scanner cuts XML into tokens. It is far from a validating parser: of a
// document type declaration it reads no more than its end, and knows the five
// predefined entities only.
type scanner struct {
	in     *input
	inside bool   // after a "<"
	raw    []byte // room for what the window cuts in two
	text   []byte // room for text with references
}

// A kind says what a token is.
type kind uint8

const (
	text kind = iota
	start
	end
)

// A token is a tag or a piece of text. It is valid until the next one.
type token struct {
	kind     kind
	name     []byte // of a tag
	attrs    []byte // of a start tag, as written
	empty    bool   // a start tag that ends its element too
	text     []byte
	unusable error // why the text must not be used: it was cut, or has holes
}

// next returns the next token. Comments, processing instructions and
// declarations are none.
func (s *scanner) next() (token, error) {
	for {
		if !s.inside {
			return s.characters()
		}
		s.inside = false
		var err error
		switch {
		case !s.in.next("!") && !s.in.next("?"):
			return s.element()
		case s.in.next("!--"):
			s.in.skip(len("!--"))
			_, err = s.until("-->")
		case s.in.next("![CDATA["):
			s.in.skip(len("![CDATA["))
			text, err := s.until("]]>")
			return token{text: text, unusable: tooLong(text)}, err
		case s.in.next("?"):
			_, err = s.until("?>")
		default:
			_, err = s.tag()
		}
		if err != nil {
			return token{}, err
		}
	}
}

// characters returns the text up to the next "<".
func (s *scanner) characters() (token, error) {
	raw, err := s.until("<")
	if err != nil {
		return token{}, err
	}
	s.inside = true
	decoded, err := decode(&s.text, raw)
	return token{text: decoded, unusable: cmp.Or(tooLong(raw), err)}, nil
}

// tooLong returns ErrLimit for text that may have been cut.
func tooLong(text []byte) error {
	if len(text) >= maxValue {
		return ErrLimit
	}
	return nil
}

// until returns what comes before the given end, cut where it is longer than
// both maxValue and the window.
func (s *scanner) until(end string) ([]byte, error) {
	b, found, err := s.in.chunk(end[len(end)-1])
	if found && bytes.HasSuffix(b, []byte(end)) {
		return b[:len(b)-len(end)], nil // as nearly always: there is no need to copy
	}
	s.raw = s.raw[:0]
	const before = 2     // bytes before a chunk that may belong to an end, as in "-->"
	var last [2 * 4]byte // room for them and for the end of the chunk
	tail := last[:0]
	for {
		s.raw = append(s.raw, b[:min(len(b), maxValue+len(end)-len(s.raw))]...)
		tail = append(tail, b[max(0, len(b)-len(end)):]...)
		if found && bytes.HasSuffix(tail, []byte(end)) {
			text := bytes.TrimSuffix(s.raw, []byte(end))
			return text[:min(len(text), maxValue)], nil
		}
		if err != nil {
			return nil, err
		}
		tail = append(last[:0], tail[max(0, len(tail)-before):]...)
		b, found, err = s.in.chunk(end[len(end)-1])
	}
}

// tag returns a tag or declaration up to its ">". One in quotes does not end
// it. With an error it returns what there is of it.
func (s *scanner) tag() ([]byte, error) {
	b, found, err := s.in.chunk('>')
	if found && bytes.IndexByte(b, '"') < 0 && bytes.IndexByte(b, '\'') < 0 {
		return b[:len(b)-1], nil // as nearly always: there is no need to copy
	}
	s.raw = s.raw[:0]
	var quote byte
	for {
		if len(s.raw)+len(b) > maxTag {
			return s.raw, fmt.Errorf("tag: %w", ErrLimit)
		}
		s.raw = append(s.raw, b...)
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
			return s.raw[:len(s.raw)-1], nil
		case err != nil:
			return s.raw, err
		}
		b, found, err = s.in.chunk('>')
	}
}

// element returns a start or end tag. With an error it says at least which.
func (s *scanner) element() (token, error) {
	tag, err := s.tag()
	t := token{kind: start}
	rest, isEnd := bytes.CutPrefix(tag, []byte("/"))
	if isEnd {
		t.kind = end
	} else {
		rest, t.empty = bytes.CutSuffix(rest, []byte("/"))
	}
	if err != nil {
		return t, err
	}
	n := nameLen(rest)
	if t.name, t.attrs = rest[:n], rest[n:]; n == 0 || len(t.attrs) > 0 && !isBlank(t.attrs[0]) {
		return token{}, fmt.Errorf("tag %.40q: %w", tag, ErrSyntax)
	}
	return t, nil
}

// nameLen returns how long the name is that tag begins with.
func nameLen(tag []byte) int {
	for i, c := range tag {
		switch c {
		case ' ', '\t', '\n', '\r', '<', '"', '\'', '=', '/', '&':
			return i
		}
	}
	return len(tag)
}

// attribute returns the value of the attribute among those of a tag, nil if
// it is not there. References are left as they are.
func attribute(attrs []byte, name string) []byte {
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

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// broken says what an error in the middle of a file means.
func broken(err error) error {
	if err == io.EOF {
		return fmt.Errorf("%w: %w", ErrSyntax, io.ErrUnexpectedEOF)
	}
	return err
}
