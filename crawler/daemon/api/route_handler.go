package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum/internal/jsonline"
)

// reasonHeader says why a call is made, for the audit.
const reasonHeader = "Decorum-Reason"

// maxAuditTextBytes is how much of a text that a caller chose is kept in the audit.
const maxAuditTextBytes = 1000

// A note is what the audit will say of a call.
type note struct {
	AuditEntry
	refused int // the status, where a browser is sent elsewhere by the answer's
}

type noteKey struct{}

// noteOf returns the note of a call.
func noteOf(r *http.Request) *note { return r.Context().Value(noteKey{}).(*note) }

// noted gives a call its note.
func noted(r *http.Request) *http.Request {
	n := &note{AuditEntry: AuditEntry{
		At: time.Now().UTC(), Remote: r.RemoteAddr, Method: r.Method, Path: cut(r.URL.EscapedPath()),
		Reason: cut(r.Header.Get(reasonHeader)),
	}}
	return r.WithContext(context.WithValue(r.Context(), noteKey{}, n))
}

// cut makes a text that a caller chose fit for the audit.
func cut(text string) string {
	if len(text) > maxAuditTextBytes {
		text = text[:maxAuditTextBytes]
	}
	return strings.ToValidUTF8(text, string(utf8.RuneError))
}

// keep puts a call into the audit. Where that cannot be, on a full disk say, the
// log has it: a brake must be possible all the same.
func (s *Server) keep(r *http.Request, status int, err error) {
	n := noteOf(r)
	n.Status = status
	n.Project, n.Host = cut(r.PathValue("project")), cut(cmp.Or(r.PathValue("host"), r.PostForm.Get("host")))
	n.Reason = cmp.Or(cut(r.PostForm.Get("reason")), n.Reason)
	if n.refused != 0 {
		n.Status = n.refused
	}
	if err != nil {
		n.Error = cut(err.Error())
	}
	if n.Status == http.StatusTooManyRequests {
		return
	}
	if stranger := n.Who == "" || n.Status == http.StatusForbidden; stranger && !s.strangers.allow(r.RemoteAddr) {
		return
	}
	if err := s.cfg.Audit.Append(n.AuditEntry); err != nil {
		s.cfg.Log.Error("a call is missing in the audit", "call", n.AuditEntry, "error", err)
	}
}

// changes reports whether a call may change something.
func changes(method string) bool {
	return !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, method)
}

// A reply is what a call is answered with.
type reply struct {
	status int // 0: 200, or 204 if there is nothing to say
	body   any // written as JSON
	stream func(http.ResponseWriter) error
}

// seeOther sends a browser elsewhere.
func seeOther(path string) reply {
	return reply{status: http.StatusSeeOther, stream: func(w http.ResponseWriter) error {
		w.Header().Set("Location", path)
		w.WriteHeader(http.StatusSeeOther)
		return nil
	}}
}

// raw answers with bytes.
func raw(contentType string, text []byte) reply {
	return reply{status: http.StatusOK, stream: func(w http.ResponseWriter) error {
		w.Header().Set("Content-Type", contentType)
		_, err := w.Write(text)
		return err
	}}
}

func (a reply) code() int {
	switch {
	case a.status != 0:
		return a.status
	case a.body == nil && a.stream == nil:
		return http.StatusNoContent
	}
	return http.StatusOK
}

// serve returns the handler of a route. A call that may change something is in
// the audit before it is answered.
func (s *Server) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = noted(r)
		answer, err := s.run(rt, w, r)
		var p *Problem
		if err != nil {
			p = s.problemOf(r, err)
			answer.status = p.Status
		}
		if changes(rt.method) {
			s.keep(r, answer.code(), err)
		}
		allowTime(w)
		if p != nil {
			writeProblem(w, p)
			return
		}
		if err := answer.write(w); err != nil && r.Context().Err() == nil {
			s.cfg.Log.Debug("an answer of the API could not be written", "path", r.URL.Path, "error", err)
		}
	})
}

// run lets a call in, or not, and does what it asks for.
func (s *Server) run(rt route, w http.ResponseWriter, r *http.Request) (reply, error) {
	role := rt.role
	if rt.path == metricsPath && s.cfg.PublicMetrics {
		role = Open
	}
	c, err := s.admit(w, r, role)
	if err != nil {
		return reply{}, err
	}
	if err := rt.takes(r); err != nil {
		return reply{}, err
	}
	if rt.limit >= 0 {
		r.Body = http.MaxBytesReader(w, r.Body, rt.limit)
	}
	return rt.handle(s, w, withCaller(r, c))
}

// admit says who makes a call: its token is looked at first, then whether a
// browser was made to send it from elsewhere, then what the caller may do.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, needed Role) (Caller, error) {
	c, err := s.enter(r, needed)
	n := noteOf(r)
	n.Who, n.Role = c.Name, c.Role
	if err != nil {
		return c, err
	}
	if err := s.cross.Check(r); err != nil {
		return c, problem(http.StatusForbidden, "a page of another site has sent this: %w", err)
	}
	return c, allowed(c, needed)
}

func withCaller(r *http.Request, c Caller) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
}

// takes returns why a route does not take what a call brings, as far as its
// header says.
func (rt *route) takes(r *http.Request) error {
	for name := range r.URL.Query() {
		if !slices.ContainsFunc(rt.params, func(p param) bool { return p.name == name }) {
			return problem(http.StatusBadRequest, "%q is no parameter of this", name)
		}
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return problem(http.StatusUnsupportedMediaType, "the body is in %q: send it as it is", coding)
	}
	given := r.Header.Get("Content-Type")
	if given == "" || len(rt.types) == 0 {
		return nil
	}
	media, _, err := mime.ParseMediaType(given)
	if err != nil || !slices.Contains(rt.types, media) {
		return problem(http.StatusUnsupportedMediaType, "the body is %q, and this takes %s", given, strings.Join(rt.types, ", "))
	}
	return nil
}

// writeTimeout is for how long nobody may take what is being written.
const writeTimeout = time.Minute

// allowTime gives what is written next its time, however long ago the call began.
// Where there is no connection, in tests, there is no deadline.
func allowTime(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// write answers.
func (a reply) write(w http.ResponseWriter) error {
	switch {
	case a.stream != nil:
		return a.stream(w)
	case a.body == nil:
		w.WriteHeader(a.code())
		return nil
	}
	return writeJSON(w, a.code(), "application/json", a.body)
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
	_, err = w.Write(append(jsonline.Escape(text), '\n'))
	return err
}

// writeProblem answers with a problem. That its reader has gone is no news.
func writeProblem(w http.ResponseWriter, p *Problem) {
	switch p.Status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="decorum"`)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retrySeconds)
	}
	_ = writeJSON(w, p.Status, "application/problem+json", p)
}

// problemOf returns what a caller is told of an error. What is not a Problem is
// for the log: it may say more than a caller should know.
func (s *Server) problemOf(r *http.Request, err error) *Problem {
	var (
		p    *Problem
		long *http.MaxBytesError
	)
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &long):
		return problem(http.StatusRequestEntityTooLarge, "the body is longer than the %d bytes that this takes", long.Limit)
	case r.Context().Err() != nil:
		return problem(statusGone, "the caller has gone")
	}
	s.cfg.Log.Error("a call of the API failed", "method", r.Method, "path", r.URL.Path, "error", err)
	return internal()
}

// statusGone is for the audit, of a caller who did not wait for the answer.
const statusGone = 499

func internal() *Problem {
	return problem(http.StatusInternalServerError, "this should not be; the daemon's log says more")
}

// badBody is the problem of a body that cannot be read.
func badBody(err error) error {
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		return err
	}
	return problem(http.StatusBadRequest, "the body cannot be read: %w", err)
}

// readJSON reads a body that is one object, of known fields only.
func readJSON(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return badBody(err)
	}
	if d.More() {
		return badBody(fmt.Errorf("there is more after the object"))
	}
	return nil
}
