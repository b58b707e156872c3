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

// streamReply answers with what write writes. An error before anything has left is answered
// as a problem; after that it breaks the connection, so that no reader takes a part for the
// whole.
func (h *inspectorHandlers) streamReply(r *http.Request, mediaType string, write func(io.Writer) error) reply {
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

var errStopping = errors.New("the daemon stops: offer again what was not taken")

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
