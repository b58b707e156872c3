package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum/internal/jsonline"
)

// reasonHeader says why a call is made, for the audit.
const reasonHeader = "Decorum-Reason"

// maxAuditTextBytes is how much of a text that a caller chose is kept in the audit.
const maxAuditTextBytes = 1000

// A pendingAuditEntry is what the audit will say of a call.
type pendingAuditEntry struct {
	AuditEntry
	statusOverride int // the status, where a browser is sent elsewhere by the answer's
}

type pendingAuditEntryContextKey struct{}

// pendingAuditEntryOf returns the note of a call.
func pendingAuditEntryOf(r *http.Request) *pendingAuditEntry {
	return r.Context().Value(pendingAuditEntryContextKey{}).(*pendingAuditEntry)
}

// requestWithAuditNote gives a call its note.
func requestWithAuditNote(r *http.Request) *http.Request {
	n := &pendingAuditEntry{AuditEntry: AuditEntry{
		At: time.Now().UTC(), Remote: r.RemoteAddr, Method: r.Method, Path: truncateForAudit(r.URL.EscapedPath()),
		Reason: truncateForAudit(r.Header.Get(reasonHeader)),
	}}
	return r.WithContext(context.WithValue(r.Context(), pendingAuditEntryContextKey{}, n))
}

// truncateForAudit makes a text that a caller chose fit for the audit.
func truncateForAudit(text string) string {
	if len(text) > maxAuditTextBytes {
		text = text[:maxAuditTextBytes]
	}
	return strings.ToValidUTF8(text, string(utf8.RuneError))
}

// appendAudit puts a call into the audit. Where that cannot be, on a full disk say, the
// log has it: a brake must be possible all the same.
func (s *Server) appendAudit(r *http.Request, status int, err error) {
	n := pendingAuditEntryOf(r)
	n.Status = cmp.Or(n.statusOverride, status)
	n.Project, n.Host = truncateForAudit(r.PathValue("project")), truncateForAudit(cmp.Or(r.PathValue("host"), r.PostForm.Get("host")))
	n.Reason = cmp.Or(truncateForAudit(r.PostForm.Get("reason")), n.Reason)
	if err != nil {
		n.Error = truncateForAudit(err.Error())
	}
	if n.Status == http.StatusTooManyRequests {
		return
	}
	if untrusted := n.Who == "" || n.Status == http.StatusForbidden; untrusted && !s.untrustedAuditThrottle.allow(r.RemoteAddr) {
		return
	}
	if err := s.cfg.AuditLog.appendEntry(n.AuditEntry); err != nil {
		s.cfg.Log.Error("a call is missing in the audit", "call", n.AuditEntry, "error", err)
	}
}

// isUnsafeMethod reports whether a call may change something.
func isUnsafeMethod(method string) bool {
	return !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, method)
}

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

// routeHandler returns the handler of a route. A call that may change something is in
// the audit before it is answered.
func (s *Server) routeHandler(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = requestWithAuditNote(r)
		rep, err := s.authorizeAndHandle(rt, w, r)
		var p *Problem
		if err != nil {
			p = problemOf(s.cfg.Log, r, err)
			rep.status = p.Status
		}
		if isUnsafeMethod(rt.method) && s.cfg.AuditLog != nil {
			s.appendAudit(r, rep.statusCode(), err)
		}
		extendWriteDeadline(w)
		if p != nil {
			writeProblem(w, p)
			return
		}
		if err := rep.write(w); err != nil && r.Context().Err() == nil {
			s.cfg.Log.Debug("an answer of the API could not be written", "path", r.URL.Path, "error", err)
		}
	})
}

// authorizeAndHandle lets a call in, or not, and does what it asks for.
func (s *Server) authorizeAndHandle(rt route, w http.ResponseWriter, r *http.Request) (reply, error) {
	role := rt.role
	if rt.path == metricsPath && s.cfg.PublicMetrics {
		role = RolePublic
	}
	c, err := s.authorize(w, r, role)
	if err != nil {
		return reply{}, err
	}
	if err := cmp.Or(rt.checkParams(r.URL.Query()), rt.checkMediaType(r)); err != nil {
		return reply{}, err
	}
	if rt.maxBodyBytes >= 0 {
		r.Body = http.MaxBytesReader(w, r.Body, rt.maxBodyBytes)
	}
	r = withCaller(r, c)
	if rt.handleCrawl == nil {
		return rt.handle(s, w, r)
	}
	i, err := s.crawlHandlers.inspectorOf(r.Context(), r.PathValue("project"))
	if err != nil {
		return reply{}, err
	}
	return rt.handleCrawl(&s.crawlHandlers, i, w, r)
}

// authorize says who makes a call: its token is looked at first, then whether a
// browser was made to send it from elsewhere, then what the caller may do.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request, needed Role) (Caller, error) {
	c, err := s.authenticateUnlessPublic(r, needed)
	n := pendingAuditEntryOf(r)
	n.Who, n.Role = c.Name, c.Role
	if err != nil {
		return c, err
	}
	if err := s.crossOriginProtection.Check(r); err != nil {
		return c, newProblem(http.StatusForbidden, "a page of another site has sent this: %w", err)
	}
	return c, checkRole(c, needed)
}

func withCaller(r *http.Request, c Caller) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerContextKey{}, c))
}

// checkParams returns why a route does not take a query.
func (rt *route) checkParams(query url.Values) error {
	for name := range query {
		if !slices.ContainsFunc(rt.queryParams, func(p queryParam) bool { return p.name == name }) {
			return newProblem(http.StatusBadRequest, "%q is no parameter of this", name)
		}
	}
	for _, p := range rt.queryParams {
		v := query.Get(p.name)
		n, err := strconv.Atoi(v)
		switch {
		case v == "":
		case p.jsonType == "integer" && (err != nil || n < 0 || n > p.maxValue):
			return newProblem(http.StatusBadRequest, "%s is a number from 0 to %d, not %q", p.name, p.maxValue, v)
		case p.jsonType == "boolean" && v != "true" && v != "false":
			return newProblem(http.StatusBadRequest, "%s is one of true, false, not %q", p.name, v)
		case p.enum != nil && !slices.Contains(p.enum, v):
			return newProblem(http.StatusBadRequest, "%s is one of %s, not %q", p.name, strings.Join(p.enum, ", "), v)
		}
	}
	return nil
}

// checkMediaType returns why a route does not take the body of a call, as far as its header
// says.
func (rt *route) checkMediaType(r *http.Request) error {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return newProblem(http.StatusUnsupportedMediaType, "the body is in %q: send it as it is", coding)
	}
	contentType := r.Header.Get("Content-Type")
	if contentType == "" || len(rt.requestMediaTypes) == 0 {
		return nil
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil || !slices.Contains(rt.requestMediaTypes, media) {
		return newProblem(http.StatusUnsupportedMediaType, "the body is %q, and this takes %s", contentType, strings.Join(rt.requestMediaTypes, ", "))
	}
	return nil
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

// writeProblem answers with a problem. That its reader has gone is no news.
func writeProblem(w http.ResponseWriter, p *Problem) {
	switch p.Status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="decorum"`)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfterSeconds)
	}
	_ = writeJSON(w, p.Status, "application/problem+json", p)
}

// problemOf returns what a caller is told of an error. What is not a Problem is
// for the log: it may say more than a caller should know.
func problemOf(log *slog.Logger, r *http.Request, err error) *Problem {
	var (
		p        *Problem
		tooLarge *http.MaxBytesError
	)
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &tooLarge):
		return newProblem(http.StatusRequestEntityTooLarge, "the body is longer than the %d bytes that this takes", tooLarge.Limit)
	case r.Context().Err() != nil:
		return newProblem(statusClientClosedRequest, "the caller has gone")
	}
	log.Error("a call of the API failed", "method", r.Method, "path", r.URL.Path, "error", err)
	return internalProblem()
}

// statusClientClosedRequest is for the audit, of a caller who did not wait for the answer.
const statusClientClosedRequest = 499

func internalProblem() *Problem {
	return newProblem(http.StatusInternalServerError, "this should not be; the daemon's log says more")
}

// bodyProblem is the problem of a body that cannot be read.
func bodyProblem(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return err
	}
	return newProblem(http.StatusBadRequest, "the body cannot be read: %w", err)
}

// readJSON reads a body that is one object, of known fields only.
func readJSON(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return bodyProblem(err)
	}
	if d.More() {
		return bodyProblem(fmt.Errorf("there is more after the object"))
	}
	return nil
}
