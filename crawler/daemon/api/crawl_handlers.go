package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/internal/jsonline"
)

// crawlHandlers are the handlers of calls that an Inspector answers: that of a daemon's project,
// or of a crawl in the foreground.
type crawlHandlers struct {
	inspectorOf  func(ctx context.Context, project string) (Inspector, error)
	eventStreams *eventStreams // whose end ends answers, too
	log          *slog.Logger
}

func (h *crawlHandlers) explainURL(i Inspector, _ http.ResponseWriter, r *http.Request) (reply, error) {
	u := r.URL.Query().Get("url")
	if u == "" {
		return reply{}, newProblem(http.StatusBadRequest, "url is compulsory: the URL to explain")
	}
	return jsonReply(i.ExplainURL(r.Context(), u))
}

func (h *crawlHandlers) getReport(i Inspector, w http.ResponseWriter, r *http.Request) (reply, error) {
	w.Header().Set("Vary", "Accept")
	q := r.URL.Query()
	reportQuery := ReportQuery{Host: q.Get("host"), Limit: queryNumber(q, "limit", 100)}
	if strings.Contains(r.Header.Get("Accept"), jsonLinesType) {
		return h.streamReply(r, jsonLinesType, func(w io.Writer) error {
			return i.Report(r.Context(), reportQuery, func(report *StreamedReport) error { return report.WriteJSONLines(w) })
		}), nil
	}
	return jsonReply(FullReport(r.Context(), i.Report, reportQuery))
}

func (h *crawlHandlers) getFrontierStats(i Inspector, _ http.ResponseWriter, r *http.Request) (reply, error) {
	return jsonReply(i.FrontierStats(r.Context()))
}

// listFrontierURLs streams URLs of the frontier. What callbacks gave a URL, and the body of
// its request, may be secret: only who may operate gets them.
func (h *crawlHandlers) listFrontierURLs(i Inspector, _ http.ResponseWriter, r *http.Request) (reply, error) {
	q := r.URL.Query()
	urlQuery := FrontierURLQuery{
		Host: q.Get("host"), Origin: q.Get("origin"), State: q.Get("state"), Limit: queryNumber(q, "limit", 0),
	}
	maySeeSecrets := CallerFromContext(r.Context()).Role.Allows(RoleOperate)
	return h.streamReply(r, jsonLinesType, func(w io.Writer) error {
		return writeJSONLines(w, func(yield func(*FrontierURL, error) bool) {
			for u, err := range i.FrontierURLs(r.Context(), urlQuery) {
				if u != nil && !maySeeSecrets {
					u.CallbackData, u.RequestBody = nil, nil
				}
				if !yield(u, err) {
					return
				}
			}
		})
	}), nil
}

func (h *crawlHandlers) listLedgerRecords(i Inspector, _ http.ResponseWriter, r *http.Request) (reply, error) {
	q := r.URL.Query()
	return h.streamReply(r, jsonLinesType, func(w io.Writer) error {
		return writeJSONLines(w, i.LedgerRecords(r.Context(), LedgerQuery{URL: q.Get("url"), Host: q.Get("host")}))
	}), nil
}

// addURLs queues what the body names. It is read as fast as it is taken, and the
// call goes on for as long as something comes.
func (h *crawlHandlers) addURLs(i Inspector, w http.ResponseWriter, r *http.Request) (reply, error) {
	body := &idleTimeoutReader{body: r.Body, serverStopping: h.eventStreams.stopContext.Done(), setDeadline: http.NewResponseController(w).SetReadDeadline}
	lines := bodyLines(body)
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media == "application/json" {
		lines = jsonArrayStrings(body)
	}
	added, err := i.AddURLs(r.Context(), lines)
	if err == nil {
		return reply{body: added}, nil
	}
	_ = body.setDeadline(time.Now()) // net/http would read on, for as long as the caller waits
	var p *Problem
	switch {
	case errors.As(err, &p):
		p = new(*p)
	case errors.Is(err, errStopping):
		p = newProblem(http.StatusServiceUnavailable, "%w", errStopping)
	case body.readErr != nil:
		p = newProblem(http.StatusBadRequest, "the body ended before it should: %w", body.readErr)
	default:
		p = problemOf(h.log, r, err)
	}
	p.PartialResult = added
	return reply{}, p
}

// streamReply answers with what write writes. An error before anything has left is answered
// as a problem; after that it breaks the connection, so that no reader takes a part for the
// whole.
func (h *crawlHandlers) streamReply(r *http.Request, mediaType string, write func(io.Writer) error) reply {
	return reply{writeBody: func(w http.ResponseWriter) error {
		out := &streamWriter{w: w, mediaType: mediaType, stopContext: h.eventStreams.stopContext}
		out.setDeadline(time.Time{}) // what write does before it writes may take long
		interrupted := make(chan struct{})
		stopWatching := context.AfterFunc(out.stopContext, func() {
			defer close(interrupted)
			out.setDeadline(time.Now())
		})
		// w must not be used when this has returned, or panicked.
		endWatching := sync.OnceFunc(func() {
			if !stopWatching() {
				<-interrupted
			}
		})
		defer endWatching()
		b := bufio.NewWriterSize(out, 1<<16)
		err := write(b)
		if err == nil {
			err = b.Flush()
		}
		endWatching()
		out.setDeadline(time.Now().Add(writeTimeout)) // for what is still to leave
		switch {
		case err == nil && !out.hasBegun:
			w.Header().Set("Content-Type", mediaType)
		case err != nil && !out.hasBegun:
			writeProblem(w, problemOf(h.log, r, err))
		case err != nil:
			h.log.Debug("an answer of the API was broken off", "path", r.URL.Path, "error", err)
			panic(http.ErrAbortHandler)
		}
		return nil
	}}
}

// maxLineBytes is how long a line may be that names a URL, in bytes. A longer one
// counts as no URL.
const maxLineBytes = 64 << 10

var errStopping = errors.New("the daemon stops: offer again what was not taken")

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

// jsonLinesType is the media type of JSON Lines.
const jsonLinesType = "application/x-ndjson"

// A streamWriter writes the body of an answer that may take as long as its reader does, but no
// longer than the server.
type streamWriter struct {
	w           http.ResponseWriter
	mediaType   string
	stopContext context.Context // of the server: its end ends a write under way
	hasBegun    bool
}

// setDeadline sets the time by which a write must have ended; zero: it may take any time.
// Where there is no connection, in tests, there is no deadline.
func (w *streamWriter) setDeadline(at time.Time) {
	_ = http.NewResponseController(w.w).SetWriteDeadline(at)
}

// Write gives the reader its time for each part.
func (w *streamWriter) Write(p []byte) (int, error) {
	w.setDeadline(time.Now().Add(writeTimeout))
	defer w.setDeadline(time.Time{})
	if w.stopContext.Err() != nil { // after the deadline is set, which the end of the context may replace
		return 0, errStopping
	}
	if !w.hasBegun {
		w.hasBegun = true
		w.w.Header().Set("Content-Type", w.mediaType)
	}
	return w.w.Write(p)
}

// writeJSONLines writes each value on a line of its own, until an error comes.
func writeJSONLines[T any](w io.Writer, values iter.Seq2[*T, error]) error {
	e := jsonline.NewEncoder(w)
	for v, err := range values {
		if err != nil {
			return err
		}
		if err := e.Encode(v); err != nil {
			return err
		}
	}
	return nil
}
