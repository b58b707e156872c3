package sitemap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// jsonFeedVersionPrefix is the prefix of every JSON Feed version.
const jsonFeedVersionPrefix = "https://jsonfeed.org/version/"

// A jsonFeedReader reads a JSON Feed (https://www.jsonfeed.org/version/1.1): the url of each item,
// resolved against the feed's URL, and next_url, the next page of the feed. It holds one token of
// the file in memory at a time.
type jsonFeedReader struct {
	decoder     *json.Decoder
	lineTracker *lineTracker
	emitter     *entryEmitter
	depth       int // open objects and arrays
}

// readJSONFeed reads a feed from in and emits its items.
func readJSONFeed(in *input, s *entryEmitter) error {
	l := &lineTracker{in: in, bytesRead: in.offset}
	l.jsonStartOffset = l.bytesRead
	j := &jsonFeedReader{decoder: json.NewDecoder(l), lineTracker: l, emitter: s}
	if t, err := j.nextToken(); err != nil || t != json.Delim('{') {
		return errors.Join(ErrNotSitemap, err)
	}
	// Members may come in any order, so items may be emitted before the version is checked.
	hasItems := false
	err := j.readMembers(func(name string) error {
		switch name {
		case "version":
			version, err := j.readString()
			if err == nil && !strings.HasPrefix(version, jsonFeedVersionPrefix) {
				err = fmt.Errorf("version %.40q: %w", version, ErrNotSitemap)
			}
			return err
		case "next_url":
			return j.readNextPageURL()
		case "items":
			hasItems = true
			return j.readItems()
		}
		return j.skipValue()
	})
	if err == nil && !hasItems {
		err = fmt.Errorf("no items: %w", ErrNotSitemap)
	}
	return err
}

// readItems reads the value of "items", and skips what is not a list of objects.
func (j *jsonFeedReader) readItems() error {
	t, err := j.nextToken()
	if err != nil || t != json.Delim('[') {
		return errors.Join(err, j.skipRestOfValue(t))
	}
	for j.decoder.More() {
		if t, err = j.nextToken(); err == nil && t == json.Delim('{') {
			err = j.readAndEmitItem()
		} else if err == nil {
			err = j.skipRestOfValue(t)
		}
		if err != nil {
			return err
		}
	}
	_, err = j.nextToken()
	return err
}

// readAndEmitItem reads an item, whose opening brace has been read, and emits it if it has a url.
func (j *jsonFeedReader) readAndEmitItem() error {
	var d partialEntry
	d.reset()
	modified := ""
	err := j.readMembers(func(name string) (err error) {
		switch text := ""; name {
		case "url":
			text, err = j.readString()
			d.setLocation([]byte(text), j.lineTracker.in.line, nil)
		case "date_modified":
			modified, err = j.readString()
		case "date_published":
			if text, err = j.readString(); modified == "" {
				modified = text
			}
		default:
			err = j.skipValue()
		}
		return err
	})
	if d.lastMod, _ = time.Parse(time.RFC3339, modified); !d.lastMod.IsZero() {
		d.lastMod = d.lastMod.UTC()
	}
	if len(d.loc) > 0 {
		err = errors.Join(j.emitter.emit(&d, false), err) // the url is complete, even if err is set
	}
	return err
}

// readNextPageURL reads and emits the URL of the feed's next page.
func (j *jsonFeedReader) readNextPageURL() error {
	text, err := j.readString()
	if text == "" {
		return err
	}
	var d partialEntry
	d.reset()
	d.setLocation([]byte(text), j.lineTracker.in.line, nil)
	return errors.Join(j.emitter.emit(&d, true), err)
}

// readMembers calls readValue for each member of an object, whose opening brace has been read.
// readValue must read the value.
func (j *jsonFeedReader) readMembers(readValue func(name string) error) error {
	for j.decoder.More() {
		name, err := j.nextToken()
		if err != nil {
			return err
		}
		key, _ := name.(string)
		if err := readValue(key); err != nil {
			return err
		}
	}
	_, err := j.nextToken()
	return err
}

// readString reads a value, and returns "" if it is not a string.
func (j *jsonFeedReader) readString() (string, error) {
	t, err := j.nextToken()
	if s, ok := t.(string); ok || err != nil {
		return s, err
	}
	return "", j.skipRestOfValue(t)
}

// skipValue reads a value and discards it.
func (j *jsonFeedReader) skipValue() error {
	t, err := j.nextToken()
	if err != nil {
		return err
	}
	return j.skipRestOfValue(t)
}

// skipRestOfValue reads the rest of a value whose first token is t.
func (j *jsonFeedReader) skipRestOfValue(t json.Token) error {
	if t != json.Delim('{') && t != json.Delim('[') {
		return nil
	}
	for outer := j.depth - 1; j.depth > outer; {
		if _, err := j.nextToken(); err != nil {
			return err
		}
	}
	return nil
}

// nextToken reads a token, updates the position and the depth, and enforces the limit of the depth.
func (j *jsonFeedReader) nextToken() (json.Token, error) {
	t, err := j.decoder.Token()
	j.lineTracker.advanceTo(j.decoder.InputOffset())
	// Only malformed JSON is ErrJSON; other errors come from the input.
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
	if j.depth > j.emitter.MaxElementDepth {
		return nil, fmt.Errorf("depth: %w", ErrLimit)
	}
	return t, nil
}

// maxLineEnds is how many ends of lines are remembered that the decoder has read ahead. Beyond
// that, in a file of hardly anything but empty lines, reported line numbers are too high.
const maxLineEnds = 1 << 16

// A lineTracker passes the file to a JSON decoder, which reads ahead, and keeps the position of the
// input at the last token.
type lineTracker struct {
	in              *input
	jsonStartOffset int64   // offset of the first byte of JSON
	bytesRead       int64   // offset up to which the decoder has read
	lineEnds        []int64 // offsets of line ends that the decoder has read ahead
}

// Read implements io.Reader.
func (l *lineTracker) Read(p []byte) (int, error) {
	n, err := l.in.r.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			if len(l.lineEnds) == maxLineEnds {
				l.in.line++
				l.lineEnds = l.lineEnds[1:]
			}
			l.lineEnds = append(l.lineEnds, l.bytesRead+int64(i))
		}
	}
	l.bytesRead += int64(n)
	return n, err
}

// advanceTo moves the position of the input to the decoder's offset.
func (l *lineTracker) advanceTo(offset int64) {
	l.in.offset = l.jsonStartOffset + offset
	for len(l.lineEnds) > 0 && l.lineEnds[0] < l.in.offset {
		l.in.line++
		l.lineEnds = l.lineEnds[1:]
	}
}
