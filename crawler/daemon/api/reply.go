package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/decorum-crawler/decorum/internal/jsonline"
)

// A reply is what a call is answered with.
type reply struct {
	status    int // 0: 200, or 204 if there is nothing to say
	body      any // written as JSON
	writeBody func(http.ResponseWriter) error
}

// redirectReply sends a browser elsewhere.
func redirectReply(w http.ResponseWriter, path string) reply {
	w.Header().Set("Location", path)
	return reply{status: http.StatusSeeOther}
}

// rawReply answers with bytes.
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

// writeTimeout is for how long nobody may take what is being written.
const writeTimeout = time.Minute

// extendWriteDeadline gives what is written next its time, however long ago the call began.
// Where there is no connection, in tests, there is no deadline.
func extendWriteDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// write answers.
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

// writeJSON answers with a value, or with 500 if it is none in JSON.
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

// jsonListReply answers with a list, which is none rather than nothing.
func jsonListReply[T any](v []T, err error) (reply, error) {
	if v == nil {
		v = []T{}
	}
	return reply{body: v}, err
}
