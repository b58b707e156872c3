package sitemap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// jsonFeed is with what the version of a JSON Feed begins.
const jsonFeed = "https://jsonfeed.org/version/"

// A jsonReader reads a JSON Feed (https://www.jsonfeed.org/version/1.1): the url of
// each item, which is relative to nothing but the feed, and next_url, where the feed
// goes on. One text of the file is in memory at a time.
type jsonReader struct {
	tokens *json.Decoder
	lines  *lines
	sink   *sink
	depth  int
}

func readJSON(in *input, s *sink) error {
	l := &lines{in: in, read: in.offset}
	l.start = l.read
	j := &jsonReader{tokens: json.NewDecoder(l), lines: l, sink: s}
	if t, err := j.next(); err != nil || t != json.Delim('{') {
		return errors.Join(ErrNotSitemap, err)
	}
	items := false
	err := j.members(func(name string) error {
		switch name {
		case "version":
			version, err := j.text()
			if err == nil && !strings.HasPrefix(version, jsonFeed) {
				err = fmt.Errorf("version %.40q: %w", version, ErrNotSitemap)
			}
			return err
		case "next_url":
			return j.nextURL()
		case "items":
			items = true
			return j.items()
		}
		return j.skip()
	})
	if err == nil && !items {
		err = fmt.Errorf("no items: %w", ErrNotSitemap)
	}
	return err
}

// items reads the list of items.
func (j *jsonReader) items() error {
	t, err := j.next()
	if err != nil || t != json.Delim('[') {
		return errors.Join(err, j.rest(t))
	}
	for j.tokens.More() {
		if t, err = j.next(); err == nil && t == json.Delim('{') {
			err = j.item()
		} else if err == nil {
			err = j.rest(t)
		}
		if err != nil {
			return err
		}
	}
	_, err = j.next()
	return err
}

// item reads an item whose brace has been read. One without a url is about no page.
func (j *jsonReader) item() error {
	var d draft
	d.reset()
	modified := ""
	err := j.members(func(name string) (err error) {
		switch text := ""; name {
		case "url":
			text, err = j.text()
			d.locate([]byte(text), j.lines.in.line, nil)
		case "date_modified":
			modified, err = j.text()
		case "date_published":
			if text, err = j.text(); modified == "" {
				modified = text
			}
		default:
			err = j.skip()
		}
		return err
	})
	if d.date, _ = time.Parse(time.RFC3339, modified); !d.date.IsZero() {
		d.date = d.date.UTC()
	}
	if len(d.loc) > 0 {
		err = errors.Join(j.sink.put(&d, false), err) // it was read whole, whatever comes
	}
	return err
}

// nextURL reads where the feed goes on.
func (j *jsonReader) nextURL() error {
	text, err := j.text()
	if text == "" {
		return err
	}
	var d draft
	d.reset()
	d.locate([]byte(text), j.lines.in.line, nil)
	return errors.Join(j.sink.put(&d, true), err)
}

// members calls read for each member of an object whose brace has been read; it
// must read the value.
func (j *jsonReader) members(read func(name string) error) error {
	for j.tokens.More() {
		name, err := j.next()
		if err != nil {
			return err
		}
		key, _ := name.(string)
		if err := read(key); err != nil {
			return err
		}
	}
	_, err := j.next()
	return err
}

// text reads a value that should be a text; empty if it is another.
func (j *jsonReader) text() (string, error) {
	t, err := j.next()
	if s, ok := t.(string); ok || err != nil {
		return s, err
	}
	return "", j.rest(t)
}

// skip reads a value.
func (j *jsonReader) skip() error {
	t, err := j.next()
	if err != nil {
		return err
	}
	return j.rest(t)
}

// rest reads what is left of a value that begins with t.
func (j *jsonReader) rest(t json.Token) error {
	if t != json.Delim('{') && t != json.Delim('[') {
		return nil
	}
	for outer := j.depth - 1; j.depth > outer; {
		if _, err := j.next(); err != nil {
			return err
		}
	}
	return nil
}

// next reads a token, and counts how deep it is.
func (j *jsonReader) next() (json.Token, error) {
	t, err := j.tokens.Token()
	j.lines.reach(j.tokens.InputOffset())
	var bad *json.SyntaxError
	switch {
	case errors.As(err, &bad), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w: %v", ErrJSON, err)
	case err != nil:
		return nil, err
	}
	switch t {
	case json.Delim('{'), json.Delim('['):
		j.depth++
	case json.Delim('}'), json.Delim(']'):
		j.depth--
	}
	if j.depth > j.sink.Depth {
		return nil, fmt.Errorf("depth: %w", ErrLimit)
	}
	return t, nil
}

// maxLineEnds is how many ends of lines are remembered that have been read, and not
// reached. Where there are more, of a file of hardly anything but empty lines, the
// number of a line is told too high.
const maxLineEnds = 1 << 16

// lines is an input that is read ahead of what has been made of it.
type lines struct {
	in     *input
	start  int64   // where the JSON begins
	read   int64   // how far the file has been read
	breaks []int64 // where lines end that have been read, and not reached
}

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	n, err := l.in.r.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			if len(l.breaks) == maxLineEnds {
				l.in.line++
				l.breaks = l.breaks[1:]
			}
			l.breaks = append(l.breaks, l.read+int64(i))
		}
	}
	l.read += int64(n)
	return n, err
}

// reach says how much of the JSON has been made use of.
func (l *lines) reach(offset int64) {
	l.in.offset = l.start + offset
	for len(l.breaks) > 0 && l.breaks[0] < l.in.offset {
		l.in.line++
		l.breaks = l.breaks[1:]
	}
}
