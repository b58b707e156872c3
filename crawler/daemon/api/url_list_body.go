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

// maxLineBytes is how long a line may be that names a URL, in bytes. A longer one
// counts as no URL.
const maxLineBytes = 64 << 10

// An idleTimeoutReader gives a body as long as it takes: only a minute in which nothing
// comes, though we ask, ends it.
type idleTimeoutReader struct {
	body           io.Reader
	serverStopping <-chan struct{}
	setDeadline    func(time.Time) error
	readErr        error // why the body could not be read to its end
}

// Read is part of io.Reader.
func (p *idleTimeoutReader) Read(b []byte) (int, error) {
	select {
	case <-p.serverStopping:
		return 0, errStopping
	default:
	}
	_ = p.setDeadline(time.Now().Add(readTimeout)) // in tests there is no connection
	n, err := p.body.Read(b)
	if err != nil && err != io.EOF {
		p.readErr = err
	}
	return n, err
}

// bodyLines yields what lines name, and leaves out empty ones.
func bodyLines(body io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		reader := bufio.NewReaderSize(body, maxLineBytes)
		for number := 1; ; number++ {
			line, err := reader.ReadSlice('\n')
			text := unquoteLine(string(line))
			if errors.Is(err, bufio.ErrBufferFull) {
				// It is no URL, and will be told as such.
				text = fmt.Sprintf("(line %d is longer than %d bytes)", number, maxLineBytes)
				for errors.Is(err, bufio.ErrBufferFull) {
					_, err = reader.ReadSlice('\n')
				}
			}
			if err != nil && err != io.EOF {
				yield("", err) // what came of the line may be a part of it
				return
			}
			if text != "" && !yield(text, nil) || err != nil {
				return
			}
		}
	}
}

// unquoteLine returns the URL of a line that is one in quotes, as in JSON Lines, or else
// the line.
func unquoteLine(line string) string {
	line = strings.TrimSpace(line)
	if text := ""; strings.HasPrefix(line, `"`) && json.Unmarshal([]byte(line), &text) == nil {
		return strings.TrimSpace(text)
	}
	return line
}

// jsonArrayStrings yields what the elements of a JSON array name.
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
			limited.N = maxLineBytes // for what is not in memory yet
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

// arrayProblem says what is wrong with an array.
func arrayProblem(limited *io.LimitedReader, err error) error {
	switch {
	case err == nil:
		return newProblem(http.StatusBadRequest, "the body is JSON, but no array; for one URL a line say Content-Type: application/x-ndjson")
	case limited.N <= 0:
		return newProblem(http.StatusRequestEntityTooLarge, "an element of the array is longer than %d bytes", maxLineBytes)
	case errors.Is(err, errStopping):
		return err
	}
	return newProblem(http.StatusBadRequest, "the array cannot be read: %w", err)
}
