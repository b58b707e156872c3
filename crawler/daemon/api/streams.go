package api

import (
	"context"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/decorum-crawler/decorum/internal/jsonline"
)

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
