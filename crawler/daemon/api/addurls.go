package api

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"strings"
	"time"
)

// maxLineBytes is how long a line may be that names a URL, in bytes. A longer one
// counts as no URL.
const maxLineBytes = 64 << 10

var errStopping = errors.New("the daemon stops: offer again what was not taken")

// addURLs queues what the body names. It is read as fast as it is taken, and the
// call goes on for as long as something comes.
func (s *Server) addURLs(w http.ResponseWriter, r *http.Request) (reply, error) {
	if _, err := s.d.Project(r.Context(), r.PathValue("project")); err != nil {
		return reply{}, err
	}
	body := &patient{body: r.Body, stop: s.stop, wait: http.NewResponseController(w).SetReadDeadline}
	lines := linesOf(body)
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media == "application/json" {
		lines = elementsOf(body)
	}
	taken, err := s.d.AddURLs(r.Context(), r.PathValue("project"), lines)
	if err == nil {
		return reply{body: taken}, nil
	}
	_ = body.wait(time.Now()) // net/http would read on, for as long as the caller waits
	var p *Problem
	switch {
	case errors.As(err, &p):
		p = new(*p)
	case errors.Is(err, errStopping):
		p = problem(http.StatusServiceUnavailable, "%w", errStopping)
	case body.failed != nil:
		p = problem(http.StatusBadRequest, "the body ended before it should: %w", body.failed)
	default:
		p = s.problemOf(r, err)
	}
	p.Taken = taken
	return reply{}, p
}

// A patient reader gives a body as long as it takes: only a minute in which nothing
// comes, though we ask, ends it.
type patient struct {
	body   io.Reader
	stop   <-chan struct{}
	wait   func(time.Time) error
	failed error // why the body could not be read to its end
}

// Read is part of io.Reader.
func (p *patient) Read(b []byte) (int, error) {
	select {
	case <-p.stop:
		return 0, errStopping
	default:
	}
	_ = p.wait(time.Now().Add(readTimeout)) // in tests there is no connection
	n, err := p.body.Read(b)
	if err != nil && err != io.EOF {
		p.failed = err
	}
	return n, err
}

// linesOf yields what lines name, and leaves out empty ones.
func linesOf(body io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		in := bufio.NewReaderSize(body, maxLineBytes)
		for number := 1; ; number++ {
			line, err := in.ReadSlice('\n')
			text := named(string(line))
			if errors.Is(err, bufio.ErrBufferFull) {
				text = tooLong("line", number)
				for errors.Is(err, bufio.ErrBufferFull) {
					_, err = in.ReadSlice('\n')
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

// named returns the URL of a line that is one in quotes, as in JSON Lines, or else
// the line.
func named(line string) string {
	line = strings.TrimSpace(line)
	if text := ""; strings.HasPrefix(line, `"`) && json.Unmarshal([]byte(line), &text) == nil {
		return strings.TrimSpace(text)
	}
	return line
}

// tooLong is what stands for a line that is too long. It is no URL, and will be
// told as such.
func tooLong(what string, number int) string {
	return fmt.Sprintf("(%s %d is longer than %d bytes)", what, number, maxLineBytes)
}

// elementsOf yields what the elements of a JSON array name.
func elementsOf(body io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		rest := &io.LimitedReader{R: body, N: maxLineBytes}
		d := json.NewDecoder(rest)
		fail := func(err error) { yield("", badArray(rest, err)) }
		if first, err := d.Token(); err != nil || first != json.Delim('[') {
			fail(err)
			return
		}
		for d.More() {
			rest.N = maxLineBytes // for what is not in memory yet
			var element json.RawMessage
			if err := d.Decode(&element); err != nil {
				fail(err)
				return
			}
			if !yield(named(string(element)), nil) {
				return
			}
		}
		if _, err := d.Token(); err != nil {
			fail(err)
		}
	}
}

// badArray says what is wrong with an array.
func badArray(rest *io.LimitedReader, err error) error {
	switch {
	case err == nil:
		return problem(http.StatusBadRequest, "the body is JSON, but no array; for one URL a line say Content-Type: application/x-ndjson")
	case rest.N <= 0:
		return problem(http.StatusRequestEntityTooLarge, "an element of the array is longer than %d bytes", maxLineBytes)
	case errors.Is(err, errStopping):
		return err
	}
	return problem(http.StatusBadRequest, "the array cannot be read: %w", err)
}

// readAll reads a body that has a limit.
func readAll(body io.Reader) ([]byte, error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, badBody(err)
	}
	return text, nil
}
