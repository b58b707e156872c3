package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/internal/jsonline"
)

// streamReply answers with the bytes that write writes. If write fails before any byte was sent,
// the answer is a problem. If it fails later, streamReply breaks the connection, so that no reader
// takes a part for the whole.
func (h *inspectorHandlers) streamReply(r *http.Request, mediaType string, write func(io.Writer) error) reply {
	return reply{writeBody: func(w http.ResponseWriter) error {
		out := &streamWriter{w: w, mediaType: mediaType, stopContext: h.eventStreams.stopContext}
		out.setDeadline(time.Time{}) // write may compute for long before it writes
		// Interrupt a write in progress when the server stops.
		interrupted := make(chan struct{})
		stopWatching := context.AfterFunc(out.stopContext, func() {
			defer close(interrupted)
			out.setDeadline(time.Now())
		})
		// The interruption uses w, so it must have ended before this function returns or panics.
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
		out.setDeadline(time.Now().Add(writeTimeout)) // for the bytes still buffered, or the problem
		switch {
		case err == nil && !out.hasBegun:
			w.Header().Set("Content-Type", mediaType)
		case err != nil && !out.hasBegun:
			writeProblem(w, problemOf(h.log, r, err))
		case err != nil:
			h.log.Debug("an API answer was broken off", "path", r.URL.Path, "error", err)
			panic(http.ErrAbortHandler)
		}
		return nil
	}}
}

// errStopping ends calls and streams in progress when the server stops.
var errStopping = errors.New("the daemon is stopping: send again the lines that were not added")

// jsonLinesType is the media type of JSON Lines.
const jsonLinesType = "application/x-ndjson"

// A streamWriter writes the body of an answer without a limit on the duration of the whole. A
// single write may take writeTimeout, and writes fail once the server stops.
type streamWriter struct {
	w           http.ResponseWriter
	mediaType   string          // the Content-Type, set before the first byte
	stopContext context.Context // of the server: done when the server stops
	hasBegun    bool            // a byte has been written, so the status cannot change
}

// setDeadline sets the time by which a write must have ended; the zero Time means no limit. It does
// nothing in tests that have no connection.
func (w *streamWriter) setDeadline(at time.Time) {
	_ = http.NewResponseController(w.w).SetWriteDeadline(at)
}

// Write implements io.Writer. The reader has writeTimeout to take p.
func (w *streamWriter) Write(p []byte) (int, error) {
	w.setDeadline(time.Now().Add(writeTimeout))
	defer w.setDeadline(time.Time{})
	// Check this after the deadline is set: if the context ends later, its AfterFunc replaces the deadline.
	if w.stopContext.Err() != nil {
		return 0, errStopping
	}
	if !w.hasBegun {
		w.hasBegun = true
		w.w.Header().Set("Content-Type", w.mediaType)
	}
	return w.w.Write(p)
}

// writeJSONLines writes each value on a line. It returns the first error, of values or of w.
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
