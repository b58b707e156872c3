package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The handlers of calls that change nothing. They read the query, call the Daemon and return its
// answer.

func (s *Server) listProjects(_ http.ResponseWriter, r *http.Request) (reply, error) {
	return jsonListReply(s.daemon.Projects(r.Context()))
}

// getProject answers with a project, or, if the caller accepts YAML and has the role operate, with
// its file.
func (s *Server) getProject(w http.ResponseWriter, r *http.Request) (reply, error) {
	w.Header().Set("Vary", "Accept")
	if !strings.Contains(r.Header.Get("Accept"), "yaml") {
		return jsonReply(s.daemon.Project(r.Context(), r.PathValue("project")))
	}
	if err := checkRole(CallerFromContext(r.Context()), RoleOperate); err != nil {
		return reply{}, err
	}
	text, err := s.daemon.ReadProjectFile(r.Context(), r.PathValue("project"))
	return rawReply("application/yaml", text), err
}

// defaultHostLimit is the number of hosts on a page if the query has no limit.
const defaultHostLimit = 50

func (s *Server) listHosts(w http.ResponseWriter, r *http.Request) (reply, error) {
	q := r.URL.Query()
	hostQuery := HostQuery{
		Search: q.Get("q"), State: q.Get("state"), Sort: q.Get("sort"), Descending: q.Get("order") == "desc",
		Offset: queryNumber(q, "offset", 0), Limit: max(queryNumber(q, "limit", defaultHostLimit), 1),
	}
	page, err := s.daemon.Hosts(r.Context(), r.PathValue("project"), hostQuery)
	if err == nil {
		setPageLinks(w.Header(), r.URL, hostQuery.Offset, hostQuery.Limit, page.Total)
	}
	return jsonReply(page, err)
}

// setPageLinks adds Link headers for the next and the previous page (RFC 8288).
func setPageLinks(h http.Header, u *url.URL, offset, limit, total int) {
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
	return jsonReply(s.daemon.HostDetail(r.Context(), r.PathValue("project"), r.PathValue("host")))
}

// getRobotsFile answers with a version of a robots.txt, and with its difference from the version
// that the parameter against names.
func (s *Server) getRobotsFile(_ http.ResponseWriter, r *http.Request) (reply, error) {
	q := r.URL.Query()
	get := func(version string) (*RobotsFile, error) {
		return s.daemon.RobotsFile(r.Context(), r.PathValue("project"), r.PathValue("origin"), version)
	}
	file, err := get(q.Get("version"))
	if err != nil || q.Get("against") == "" {
		return jsonReply(file, err)
	}
	old, err := get(q.Get("against"))
	if err != nil {
		return reply{}, err
	}
	file = new(*file)
	file.Diff = DiffRobotsLines(old, file)
	return reply{body: file}, nil
}

func (s *Server) listActiveVisits(_ http.ResponseWriter, r *http.Request) (reply, error) {
	return jsonListReply(s.daemon.ProjectActiveVisits(r.Context(), r.PathValue("project")))
}

func (s *Server) getThroughput(_ http.ResponseWriter, r *http.Request) (reply, error) {
	coarse := r.URL.Query().Get("coarse") == "true"
	return jsonListReply(s.daemon.ProjectThroughput(r.Context(), r.PathValue("project"), coarse))
}

func (s *Server) listAuditEntries(_ http.ResponseWriter, r *http.Request) (reply, error) {
	q := r.URL.Query()
	return jsonReply(s.cfg.AuditLog.Page(int64(queryNumber(q, "before", 0)), max(queryNumber(q, "limit", 50), 1)))
}

func (s *Server) getAbout(http.ResponseWriter, *http.Request) (reply, error) {
	return reply{body: s.daemon.CrawlerIdentities()}, nil
}

func (s *Server) getSigningKeyDirectory(_ http.ResponseWriter, r *http.Request) (reply, error) {
	return reply{writeBody: func(w http.ResponseWriter) error {
		serveSigningKeyDirectory(s.daemon, w, r)
		return nil
	}}, nil
}

func (s *Server) getHealth(http.ResponseWriter, *http.Request) (reply, error) {
	return reply{body: Health{Status: "ok"}}, nil
}

// getReadiness answers with 503 while a project that should run does not. The call needs no token,
// so the status names no project. A caller with the role read gets each reason.
func (s *Server) getReadiness(_ http.ResponseWriter, r *http.Request) (reply, error) {
	err := s.daemon.CheckReady(r.Context())
	if err == nil {
		return reply{body: Health{Status: "ok"}}, nil
	}
	// Split an error of several projects, and choose a status that fits all reasons.
	reasons := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // of errors.Join
		reasons = joined.Unwrap()
	}
	h := Health{Status: "a project that should run does not"}
	if !slices.ContainsFunc(reasons, func(err error) bool { return !errors.Is(err, ErrDiskFull) }) {
		h.Status = "a project waits for free disk space"
	}
	if c, err := s.authenticateAndTrustConn(r); err == nil && c.Role.Allows(RoleRead) {
		for _, reason := range reasons {
			h.Reasons = append(h.Reasons, reason.Error())
		}
	}
	return reply{status: http.StatusServiceUnavailable, body: h}, nil
}

func (s *Server) getMetrics(_ http.ResponseWriter, r *http.Request) (reply, error) {
	if s.cfg.MetricsHandler == nil {
		return reply{}, NotFound("this daemon keeps no metrics")
	}
	return reply{writeBody: func(w http.ResponseWriter) error {
		s.cfg.MetricsHandler.ServeHTTP(w, r)
		return nil
	}}, nil
}

func (s *Server) getOpenAPI(http.ResponseWriter, *http.Request) (reply, error) {
	return rawReply("application/json", openAPIDocument(s.cfg.Version)), nil
}

// The handlers of calls that change something.

func (s *Server) putProject(w http.ResponseWriter, r *http.Request) (reply, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return reply{}, bodyProblem(err)
	}
	created, err := s.daemon.PutProject(r.Context(), r.PathValue("project"), text)
	if err != nil || !created {
		return reply{}, err
	}
	w.Header().Set("Location", projectsPath+"/"+url.PathEscape(r.PathValue("project")))
	return reply{status: http.StatusCreated}, nil
}

func (s *Server) deleteProject(_ http.ResponseWriter, r *http.Request) (reply, error) {
	return reply{}, s.daemon.DeleteProject(r.Context(), r.PathValue("project"))
}

// controlHandler returns a handler that changes the state of a project and answers with the project
// in its new state.
func controlHandler(a ProjectAction) func(*Server, http.ResponseWriter, *http.Request) (reply, error) {
	return func(s *Server, _ http.ResponseWriter, r *http.Request) (reply, error) {
		if err := s.daemon.ControlProject(r.Context(), r.PathValue("project"), a); err != nil {
			return reply{}, err
		}
		return jsonReply(s.daemon.Project(r.Context(), r.PathValue("project")))
	}
}

func (s *Server) reloadProjects(_ http.ResponseWriter, r *http.Request) (reply, error) {
	return jsonListReply(s.daemon.ReloadProjects(r.Context()))
}

// queryNumber returns the value of a parameter, or defaultValue if the query lacks it.
// route.checkParams has checked that the value is a number.
func queryNumber(q url.Values, name string, defaultValue int) int {
	if n, err := strconv.Atoi(q.Get(name)); err == nil {
		return n
	}
	return defaultValue
}
