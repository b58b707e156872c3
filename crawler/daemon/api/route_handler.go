package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// isUnsafeMethod reports whether a call with this method may change something.
func isUnsafeMethod(method string) bool {
	return !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, method)
}

// routeHandler returns the handler of a route. It records a call that may change something in the
// audit before it answers.
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
			s.cfg.Log.Debug("cannot write an API answer", "path", r.URL.Path, "error", err)
		}
	})
}

// authorizeAndHandle checks the caller's role, the query and the body's type and size, in this
// order, and then calls the handler of the route.
func (s *Server) authorizeAndHandle(rt route, w http.ResponseWriter, r *http.Request) (reply, error) {
	role := rt.role
	if rt.path == metricsPath && s.cfg.PublicMetrics {
		role = RolePublic
	}
	nextRotation := s.keys.nextRotation() // before the token is checked, so that no rotation is missed
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
	if rt.responseMediaType == eventStreamType {
		r = r.WithContext(context.WithValue(r.Context(), nextRotationContextKey{}, nextRotation))
	}
	if rt.handleCrawl == nil {
		return rt.handle(s, w, r)
	}
	i, err := s.inspectorHandlers.inspectorOf(r.Context(), r.PathValue("project"))
	if err != nil {
		return reply{}, err
	}
	return rt.handleCrawl(&s.inspectorHandlers, i, w, r)
}

// authorize returns the caller of a call, or an error if the call is refused. It checks the token
// or session first, then that no page of another site made a browser send the call, then the
// caller's role.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request, needed Role) (Caller, error) {
	c, err := s.authenticateUnlessPublic(r, needed)
	// The audit names the caller of a refused call, too.
	n := pendingAuditEntryOf(r)
	n.Who, n.Role = c.Name, c.Role
	if err != nil {
		return c, err
	}
	if err := s.crossOriginProtection.Check(r); err != nil {
		return c, newProblem(http.StatusForbidden, "a page of another site sent this request: %w", err)
	}
	return c, checkRole(c, needed)
}

func withCaller(r *http.Request, c Caller) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerContextKey{}, c))
}

// checkParams returns the problem (400) of an unknown query parameter or an invalid value, or nil.
func (rt *route) checkParams(query url.Values) error {
	for name := range query {
		if !slices.ContainsFunc(rt.queryParams, func(p queryParam) bool { return p.name == name }) {
			return newProblem(http.StatusBadRequest, "unknown query parameter %q", name)
		}
	}
	for _, p := range rt.queryParams {
		v := query.Get(p.name)
		n, err := strconv.Atoi(v)
		switch {
		case v == "":
		case p.jsonType == "integer" && (err != nil || n < 0 || n > p.maxValue):
			return newProblem(http.StatusBadRequest, "%s must be a number from 0 to %d, not %q", p.name, p.maxValue, v)
		case p.jsonType == "boolean" && v != "true" && v != "false":
			return newProblem(http.StatusBadRequest, "%s must be true or false, not %q", p.name, v)
		case p.enum != nil && !slices.Contains(p.enum, v):
			return newProblem(http.StatusBadRequest, "%s must be one of %s, not %q", p.name,
				strings.Join(p.enum, ", "), v)
		}
	}
	return nil
}

// checkMediaType returns the problem (415) of a body whose headers name an encoding or a media type
// that the route does not take, or nil. It does not read the body.
func (rt *route) checkMediaType(r *http.Request) error {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return newProblem(http.StatusUnsupportedMediaType, "the body has the content coding %q: send it without one",
			coding)
	}
	contentType := r.Header.Get("Content-Type")
	if contentType == "" || len(rt.requestMediaTypes) == 0 {
		return nil
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil || !slices.Contains(rt.requestMediaTypes, media) {
		return newProblem(http.StatusUnsupportedMediaType, "the body has the media type %q; this call takes %s",
			contentType, strings.Join(rt.requestMediaTypes, ", "))
	}
	return nil
}

// readJSON decodes a body that is exactly one JSON object. An unknown field is an error.
func readJSON(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return bodyProblem(err)
	}
	if d.More() {
		return bodyProblem(fmt.Errorf("text follows the object"))
	}
	return nil
}
