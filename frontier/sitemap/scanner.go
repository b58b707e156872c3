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
	inside bool // after a "<"
	raw    []byte
	text   []byte
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
		switch {
		case s.in.next("!--"):
			s.in.skip(len("!--"))
			if err := s.until("-->"); err != nil {
				return token{}, err
			}
		case s.in.next("![CDATA["):
			s.in.skip(len("![CDATA["))
			err := s.until("]]>")
			return token{text: s.raw, unusable: tooLong(s.raw)}, err
		case s.in.next("?"):
			if err := s.until("?>"); err != nil {
				return token{}, err
			}
		case s.in.next("!"):
			if err := s.tag(); err != nil {
				return token{}, err
			}
		default:
			return s.element()
		}
	}
}

// characters returns the text up to the next "<".
func (s *scanner) characters() (token, error) {
	err := s.until("<")
	if err != nil {
		return token{}, err
	}
	s.inside = true
	decoded, err := decode(s.text[:0], s.raw)
	s.text = decoded
	return token{text: s.text, unusable: cmp.Or(tooLong(s.raw), err)}, nil
}

// tooLong returns ErrLimit for text that may have been cut.
func tooLong(text []byte) error {
	if len(text) == maxValue {
		return ErrLimit
	}
	return nil
}

// until reads up to the given end and keeps what comes before it, at most
// maxValue bytes, in s.raw.
func (s *scanner) until(end string) error {
	s.raw = s.raw[:0]
	const before = 2     // bytes before a chunk that may belong to an end, as in "-->"
	var last [2 * 4]byte // room for them and for the end of the chunk
	tail := last[:0]
	for {
		b, found, err := s.in.chunk(end[len(end)-1])
		s.raw = append(s.raw, b[:min(len(b), maxValue+len(end)-len(s.raw))]...)
		tail = append(tail, b[max(0, len(b)-len(end)):]...)
		if found && bytes.HasSuffix(tail, []byte(end)) {
			if bytes.HasSuffix(s.raw, []byte(end)) {
				s.raw = s.raw[:len(s.raw)-len(end)]
			}
			s.raw = s.raw[:min(len(s.raw), maxValue)]
			return nil
		}
		if err != nil {
			return err
		}
		tail = append(last[:0], tail[max(0, len(tail)-before):]...)
	}
}

// tag reads a tag or declaration up to its ">" into s.raw. One in quotes does
// not end it.
func (s *scanner) tag() error {
	s.raw = s.raw[:0]
	var quote byte
	for {
		b, found, err := s.in.chunk('>')
		if len(s.raw)+len(b) > maxTag {
			return fmt.Errorf("tag: %w", ErrLimit)
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
		if found && quote == 0 {
			s.raw = s.raw[:len(s.raw)-1]
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// element returns a start or end tag. With an error it says at least which.
func (s *scanner) element() (token, error) {
	err := s.tag()
	t := token{kind: start}
	rest := s.raw
	if bytes.HasPrefix(rest, []byte("/")) {
		t.kind, rest = end, rest[1:]
	} else if t.empty = bytes.HasSuffix(rest, []byte("/")); t.empty {
		rest = rest[:len(rest)-1]
	}
	if err != nil {
		return t, err
	}
	n := 0
	for n < len(rest) && !isBlank(rest[n]) {
		n++
	}
	t.name, t.attrs = rest[:n], rest[n:]
	if n == 0 || bytes.ContainsAny(t.name, "<\"'=/&") {
		return token{}, fmt.Errorf("tag %.40q: %w", s.raw, ErrSyntax)
	}
	return t, nil
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
