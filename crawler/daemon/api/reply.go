package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/decorum-crawler/decorum/internal/jsonline"
)

// A reply is the answer to a call. It has a body, a writeBody, or neither.
type reply struct {
	status    int                             // 0: 200, or 204 without body and writeBody
	body      any                             // written as JSON
	writeBody func(http.ResponseWriter) error // writes status, headers and body itself
}

// redirectReply redirects a browser to path with 303.
func redirectReply(w http.ResponseWriter, path string) reply {
	w.Header().Set("Location", path)
	return reply{status: http.StatusSeeOther}
}

// rawReply answers with text as it is, in the given content type.
func rawReply(contentType string, text []byte) reply {
	return reply{writeBody: func(w http.ResponseWriter) error {
		w.Header().Set("Content-Type", contentType)
		_, err := w.Write(text)
		return err
	}}
}

func (a reply) statusCode() int {
	switch {
	case a.status != 0:
		return a.status
	case a.body == nil && a.writeBody == nil:
		return http.StatusNoContent
	}
	return http.StatusOK
}

// writeTimeout is how long one write to a caller may take.
const writeTimeout = time.Minute

// extendWriteDeadline sets the deadline of the next write to writeTimeout from now, however long
// ago the call began. It does nothing in tests that have no connection.
func extendWriteDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// write sends the answer.
func (a reply) write(w http.ResponseWriter) error {
	switch {
	case a.writeBody != nil:
		return a.writeBody(w)
	case a.body == nil:
		w.WriteHeader(a.statusCode())
		return nil
	}
	return writeJSON(w, a.statusCode(), "application/json", a.body)
}

// writeJSON answers with a value as JSON, or with 500 if the value cannot be encoded.
func writeJSON(w http.ResponseWriter, status int, contentType string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return err
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, err = w.Write(append(jsonline.EscapeControlChars(text), '\n'))
	return err
}

func jsonReply[T any](v T, err error) (reply, error) { return reply{body: v}, err }

// jsonListReply answers with a list. A nil list becomes [], not null.
func jsonListReply[T any](v []T, err error) (reply, error) {
	if v == nil {
		v = []T{}
	}
	return reply{body: v}, err
}
