package api

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The handlers of what can be asked. They read the query, and hand the daemon's
// answer on.

func of[T any](v T, err error) (reply, error) { return reply{body: v}, err }

// listOf answers with a list, which is none rather than nothing.
func listOf[T any](v []T, err error) (reply, error) {
	if v == nil {
		v = []T{}
	}
	return reply{body: v}, err
}

func (s *Server) listProjects(_ http.ResponseWriter, r *http.Request) (reply, error) {
	return listOf(s.d.Projects(r.Context()))
}

func (s *Server) getProject(w http.ResponseWriter, r *http.Request) (reply, error) {
	w.Header().Set("Vary", "Accept")
	if !strings.Contains(r.Header.Get("Accept"), "yaml") {
		return of(s.d.Project(r.Context(), r.PathValue("project")))
	}
	if err := allowed(CallerOf(r.Context()), Operate); err != nil {
		return reply{}, err
	}
	text, err := s.d.ProjectFile(r.Context(), r.PathValue("project"))
	return raw("application/yaml", text), err
}

func (s *Server) listHosts(w http.ResponseWriter, r *http.Request) (reply, error) {
	q := query{r.URL.Query(), nil}
	ask := HostQuery{
		Search: q.text("q"), State: q.oneOf("state", hostStates), Sort: q.oneOf("sort", hostSorts),
		Down: q.oneOf("order", []string{"asc", "desc"}) == "desc", Offset: q.number("offset", 0, 1<<40), Limit: q.number("limit", 50, 1000),
	}
	ask.Limit = max(ask.Limit, 1)
	if q.err != nil {
		return reply{}, q.err
	}
	page, err := s.d.Hosts(r.Context(), r.PathValue("project"), ask)
	if err == nil {
		linkPages(w.Header(), r.URL, ask.Offset, ask.Limit, page.Total)
	}
	return of(page, err)
}

// linkPages names the pages before and after one (RFC 8288).
func linkPages(h http.Header, u *url.URL, offset, limit, total int) {
	link := func(rel string, offset int) {
		q := u.Query()
		q.Set("offset", strconv.Itoa(offset))
		q.Set("limit", strconv.Itoa(limit))
		h.Add("Link", fmt.Sprintf("<%s?%s>; rel=%q", u.EscapedPath(), q.Encode(), rel))
	}
	if offset+limit < total {
		link("next", offset+limit)
	}
	if offset > 0 {
		link("prev", max(0, offset-limit))
	}
}

func (s *Server) getHost(_ http.ResponseWriter, r *http.Request) (reply, error) {
	return of(s.d.Host(r.Context(), r.PathValue("project"), r.PathValue("host")))
}

func (s *Server) explain(_ http.ResponseWriter, r *http.Request) (reply, error) {
	q := query{r.URL.Query(), nil}
	u := q.text("url")
	if u == "" {
		q.fail("url", "is compulsory: the URL to explain")
	}
	if q.err != nil {
		return reply{}, q.err
	}
	return of(s.d.Explain(r.Context(), r.PathValue("project"), u))
}

func (s *Server) report(_ http.ResponseWriter, r *http.Request) (reply, error) {
	q := query{r.URL.Query(), nil}
	ask := ReportQuery{Host: q.text("host"), Limit: q.number("limit", 100, 1<<40)}
	if q.err != nil {
		return reply{}, q.err
	}
	return of(s.d.Report(r.Context(), r.PathValue("project"), ask))
}

func (s *Server) robots(_ http.ResponseWriter, r *http.Request) (reply, error) {
	q := query{r.URL.Query(), nil}
	get := func(version string) (*RobotsFile, error) {
		return s.d.Robots(r.Context(), r.PathValue("project"), r.PathValue("origin"), version)
	}
	file, err := get(q.text("version"))
	if err != nil || q.text("against") == "" {
		return of(file, err)
	}
	old, err := get(q.text("against"))
	if err != nil {
		return reply{}, err
	}
	file = new(*file)
	file.Diff = DiffRobots(old, file)
	return reply{body: file}, nil
}

func (s *Server) visits(_ http.ResponseWriter, r *http.Request) (reply, error) {
	return listOf(s.d.Visits(r.Context(), r.PathValue("project")))
}

func (s *Server) throughput(_ http.ResponseWriter, r *http.Request) (reply, error) {
	q := query{r.URL.Query(), nil}
	coarse := q.oneOf("coarse", []string{"true", "false"}) == "true"
	if q.err != nil {
		return reply{}, q.err
	}
	return listOf(s.d.Throughput(r.Context(), r.PathValue("project"), coarse))
}

func (s *Server) listBrakes(_ http.ResponseWriter, r *http.Request) (reply, error) {
	return listOf(s.d.Brakes(r.Context()))
}

func (s *Server) audit(_ http.ResponseWriter, r *http.Request) (reply, error) {
	q := query{r.URL.Query(), nil}
	before, limit := q.number("before", 0, 1<<60), q.number("limit", 50, 1000)
	if q.err != nil {
		return reply{}, q.err
	}
	return of(s.cfg.Audit.Page(int64(before), max(limit, 1)))
}

func (s *Server) about(http.ResponseWriter, *http.Request) (reply, error) {
	return reply{body: s.d.About()}, nil
}

func (s *Server) keys(_ http.ResponseWriter, r *http.Request) (reply, error) {
	return reply{stream: func(w http.ResponseWriter) error {
		serveKeys(s.d, w, r)
		return nil
	}}, nil
}

func (s *Server) health(http.ResponseWriter, *http.Request) (reply, error) {
	return reply{body: Health{Status: "ok"}}, nil
}

// ready answers 503 while a project that should run does not. The call needs no token,
// so the status names no project; a caller who may read gets each reason.
func (s *Server) ready(_ http.ResponseWriter, r *http.Request) (reply, error) {
	err := s.d.Ready(r.Context())
	if err == nil {
		return reply{body: Health{Status: "ok"}}, nil
	}
	reasons := joined(err)
	h := Health{Status: "a project does not run that should"}
	if !slices.ContainsFunc(reasons, func(err error) bool { return !errors.Is(err, ErrDiskFull) }) {
		h.Status = "a project waits for room on the disk"
	}
	if c, err := s.caller(r); err == nil && c.Role.May(Read) {
		for _, reason := range reasons {
			h.Reasons = append(h.Reasons, reason.Error())
		}
	}
	return reply{status: http.StatusServiceUnavailable, body: h}, nil
}

// joined returns the errors that errors.Join joined into err; otherwise err itself.
func joined(err error) []error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	return []error{err}
}

func (s *Server) metrics(_ http.ResponseWriter, r *http.Request) (reply, error) {
	if s.cfg.Metrics == nil {
		return reply{}, NotFound("this daemon keeps no metrics")
	}
	return reply{stream: func(w http.ResponseWriter) error {
		s.cfg.Metrics.ServeHTTP(w, r)
		return nil
	}}, nil
}

func (s *Server) openapi(http.ResponseWriter, *http.Request) (reply, error) {
	return raw("application/json", s.document()), nil
}

// The handlers of what changes something.

func (s *Server) putProject(w http.ResponseWriter, r *http.Request) (reply, error) {
	text, err := readAll(r.Body)
	if err != nil {
		return reply{}, err
	}
	created, err := s.d.PutProject(r.Context(), r.PathValue("project"), text)
	if err != nil || !created {
		return reply{}, err
	}
	w.Header().Set("Location", projects+"/"+url.PathEscape(r.PathValue("project")))
	return reply{status: http.StatusCreated}, nil
}

func (s *Server) deleteProject(_ http.ResponseWriter, r *http.Request) (reply, error) {
	return reply{}, s.d.DeleteProject(r.Context(), r.PathValue("project"))
}

// do returns the handler that asks a project for a state, and tells in which it is
// then.
func do(a Action) func(*Server, http.ResponseWriter, *http.Request) (reply, error) {
	return func(s *Server, _ http.ResponseWriter, r *http.Request) (reply, error) {
		if err := s.d.Do(r.Context(), r.PathValue("project"), a); err != nil {
			return reply{}, err
		}
		return of(s.d.Project(r.Context(), r.PathValue("project")))
	}
}

func (s *Server) reload(_ http.ResponseWriter, r *http.Request) (reply, error) {
	return listOf(s.d.Reload(r.Context()))
}

// A BrakeOrder is what a brake is to do. The host is in the path.
type BrakeOrder struct {
	Domain  bool         `json:"domain,omitempty"`   // brake its subdomains as well
	Stop    bool         `json:"stop,omitempty"`     // no visit at all; else delay_ms is needed
	Delay   Milliseconds `json:"delay_ms,omitempty"` // at least this rest, one visit at a time
	Reason  string       `json:"reason,omitempty"`   // why; compulsory, here or in Decorum-Reason
	For     Milliseconds `json:"for_ms,omitempty"`   // lifted by itself after so long; 0: not
	Expires time.Time    `json:"expires,omitzero"`   // lifted by itself then; not together with for_ms
}

func (s *Server) setBrake(_ http.ResponseWriter, r *http.Request) (reply, error) {
	var order BrakeOrder
	if err := readJSON(r, &order); err != nil {
		return reply{}, err
	}
	n := noteOf(r)
	order.Reason = cmp.Or(order.Reason, n.Reason)
	n.Reason = cut(order.Reason)
	b, err := order.brake(r.PathValue("host"), CallerOf(r.Context()).Name, time.Now())
	if err != nil {
		return reply{}, err
	}
	if p := r.PathValue("project"); p != "" {
		if _, err := s.d.Project(r.Context(), p); err != nil {
			return reply{}, err
		}
	}
	if err := s.d.SetBrake(r.Context(), b); err != nil {
		return reply{}, err
	}
	return reply{body: b}, nil
}

// brake returns the brake that is ordered.
func (o BrakeOrder) brake(host, by string, now time.Time) (Brake, error) {
	b := Brake{
		Host: strings.ToLower(host), Domain: o.Domain, Stop: o.Stop, Delay: o.Delay, Reason: strings.TrimSpace(o.Reason),
		By: by, Since: now.UTC(), Expires: o.Expires.UTC(),
	}
	if o.For > 0 {
		b.Expires = b.Since.Add(time.Duration(o.For))
	}
	switch {
	case b.Reason == "":
		return b, Invalid("a brake needs a reason, which is kept with it")
	case !b.Stop && b.Delay <= 0:
		return b, Invalid("a brake needs stop, or a delay_ms of more than 0")
	case b.Stop && b.Delay != 0:
		return b, Invalid("a brake either stops or slows: give stop or delay_ms, not both")
	case o.For < 0, o.For > 0 && !o.Expires.IsZero():
		return b, Invalid("give for_ms, of more than 0, or expires, not both")
	case !b.Expires.IsZero() && !b.Expires.After(now):
		return b, Invalid("a brake that expires at %s is over already", b.Expires.Format(time.RFC3339))
	}
	return b, nil
}

func (s *Server) liftBrake(_ http.ResponseWriter, r *http.Request) (reply, error) {
	return reply{}, s.d.LiftBrake(r.Context(), strings.ToLower(r.PathValue("host")))
}

// A query reads the parameters of one, and keeps what was wrong with the first
// that makes no sense.
type query struct {
	values url.Values
	err    error
}

func (q *query) fail(name, format string, args ...any) {
	if q.err == nil {
		q.err = problem(http.StatusBadRequest, "%s %s", name, fmt.Sprintf(format, args...))
	}
}

func (q *query) text(name string) string { return q.values.Get(name) }

func (q *query) oneOf(name string, known []string) string {
	v := q.values.Get(name)
	if v != "" && !slices.Contains(known, v) {
		q.fail(name, "is one of %s, not %q", strings.Join(known, ", "), v)
	}
	return v
}

func (q *query) number(name string, usual, maxValue int) int {
	v := q.values.Get(name)
	if v == "" {
		return usual
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > maxValue {
		q.fail(name, "is a number from 0 to %d, not %q", maxValue, v)
	}
	return n
}
