package api

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"
)

// maxLineBytes is the limit of a line with a URL, in bytes. A longer line counts as an invalid URL.
const maxLineBytes = 64 << 10

// An idleTimeoutReader reads a body without a limit on its duration. A single Read fails after
// readTimeout (a minute) without a byte, and every Read fails once the server stops.
type idleTimeoutReader struct {
	body           io.Reader
	serverStopping <-chan struct{}       // closed when the server stops
	setDeadline    func(time.Time) error // sets the read deadline of the connection
	readErr        error                 // why the body could not be read to its end; nil: it could so far
}

// Read implements io.Reader.
func (p *idleTimeoutReader) Read(b []byte) (int, error) {
	select {
	case <-p.serverStopping:
		return 0, errStopping
	default:
	}
	_ = p.setDeadline(time.Now().Add(readTimeout)) // it fails in tests that have no connection
	n, err := p.body.Read(b)
	if err != nil && err != io.EOF {
		p.readErr = err
	}
	return n, err
}

// bodyLines yields the lines of a body as AddURLs takes them, without quotes and empty lines. A
// read error is yielded last.
func bodyLines(body io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		reader := bufio.NewReaderSize(body, maxLineBytes)
		for number := 1; ; number++ {
			line, err := reader.ReadSlice('\n')
			text := unquoteLine(string(line))
			if errors.Is(err, bufio.ErrBufferFull) {
				// Replace a line that is too long by a text that is not a URL, so that it is
				// counted as invalid, and skip the rest of it.
				text = fmt.Sprintf("(line %d is longer than %d bytes)", number, maxLineBytes)
				for errors.Is(err, bufio.ErrBufferFull) {
					_, err = reader.ReadSlice('\n')
				}
			}
			if err != nil && err != io.EOF {
				yield("", err) // without the line, which may be incomplete
				return
			}
			if text != "" && !yield(text, nil) || err != nil {
				return
			}
		}
	}
}

// unquoteLine returns the content of a line that is a JSON string, and any other line unchanged but
// for surrounding space.
func unquoteLine(line string) string {
	line = strings.TrimSpace(line)
	if text := ""; strings.HasPrefix(line, `"`) && json.Unmarshal([]byte(line), &text) == nil {
		return strings.TrimSpace(text)
	}
	return line
}

// jsonArrayStrings yields the elements of a JSON array as AddURLs takes them. It does not hold the
// array in memory. An error is yielded last.
func jsonArrayStrings(body io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		limited := &io.LimitedReader{R: body, N: maxLineBytes}
		d := json.NewDecoder(limited)
		fail := func(err error) { yield("", arrayProblem(limited, err)) }
		if first, err := d.Token(); err != nil || first != json.Delim('[') {
			fail(err)
			return
		}
		for d.More() {
			limited.N = maxLineBytes // the limit of an element, beyond what d has buffered
			var element json.RawMessage
			if err := d.Decode(&element); err != nil {
				fail(err)
				return
			}
			if !yield(unquoteLine(string(element)), nil) {
				return
			}
		}
		if _, err := d.Token(); err != nil {
			fail(err)
		}
	}
}

// arrayProblem returns the problem of a body that should be a JSON array. err is nil if the body is
// another JSON value; limited is exhausted if an element is too long.
func arrayProblem(limited *io.LimitedReader, err error) error {
	switch {
	case err == nil:
		return newProblem(http.StatusBadRequest,
			"the body is JSON, but not an array; send a URL on each line with Content-Type: application/x-ndjson")
	case limited.N <= 0:
		return newProblem(http.StatusRequestEntityTooLarge,
			"an element of the array is longer than %d bytes", maxLineBytes)
	case errors.Is(err, errStopping):
		return err
	}
	return newProblem(http.StatusBadRequest, "the array cannot be read: %w", err)
}
