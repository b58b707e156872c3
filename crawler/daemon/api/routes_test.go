package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRoutes calls every route as every kind of caller. A caller with the required role gets an
// answer. Any other caller gets a problem, the daemon does nothing, and the audit records a call
// that would have changed something.
func TestRoutes(t *testing.T) {
	const evil = "https://evil.example"
	for _, rt := range routes {
		t.Run(rt.method+" "+rt.path, func(t *testing.T) {
			for _, tt := range []struct {
				name   string
				c      testRequest
				status int // of the refusal; 0: the call is allowed
			}{
				{"unknown caller", rt.exampleRequest(), statusUnless(rt.role == RolePublic, http.StatusUnauthorized)},
				{"a wrong token", rt.exampleRequest().withToken("guess"),
					statusUnless(rt.role == RolePublic, http.StatusUnauthorized)},
				{"another scheme", rt.exampleRequest().withHeader("Authorization", "Basic b3A6b3A="),
					statusUnless(rt.role == RolePublic, http.StatusUnauthorized)},
				{"a reader", rt.exampleRequest().withToken(readToken),
					statusUnless(rt.role != RoleOperate, http.StatusForbidden)},
				{"an operator", rt.exampleRequest().withToken(operateToken), 0},
				{"an operator, from another site", rt.exampleRequest().withToken(operateToken).withHeader("Origin",
					evil), statusUnless(!isUnsafeMethod(rt.method), http.StatusForbidden)},
				{"an operator, from a frame", rt.exampleRequest().withToken(operateToken).withHeader("Sec-Fetch-Site",
					"cross-site"), statusUnless(!isUnsafeMethod(rt.method), http.StatusForbidden)},
				{"an operator, from here", rt.exampleRequest().withToken(operateToken).withHeader("Origin",
					"http://127.0.0.1:8470"), 0},
			} {
				checkAccess(t, rt, tt.name, tt.c, tt.status)
			}
		})
	}
}

func statusUnless(allowed bool, status int) int {
	if allowed {
		return 0
	}
	return status
}

func checkAccess(t *testing.T, rt route, who string, c testRequest, refusedStatus int) {
	t.Helper()
	d := &fakeDaemon{fillsFields: true}
	s := newServer(t, d)
	if rt.responseMediaType == eventStreamType {
		s.eventStreams.stopAll()
	}
	w := c.sendTo(s)
	status, want := w.Code, refusedStatus
	if refusedStatus == 0 {
		want = (&reply{}).statusCode()
		if rt.responseBodyPrototype != nil {
			want = http.StatusOK
		}
	}
	if status != want {
		t.Errorf("%s: %d, want %d: %s", who, status, want, w.Body)
	}
	if refusedStatus != 0 {
		checkProblem(t, w, refusedStatus)
		if calls := d.recordedCalls(); len(calls) > 0 || len(d.urls) > 0 {
			t.Errorf("%s was refused, but the daemon received the calls %q", who, calls)
		}
	}
	page, err := s.cfg.AuditLog.Page(0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(page.Entries); (n == 1) != isUnsafeMethod(rt.method) {
		t.Errorf("%s: %d entries in the audit", who, n)
	} else if n == 1 && (page.Entries[0].Status != status || page.Entries[0].Path != c.path) {
		t.Errorf("%s: the audit entry is %+v", who, page.Entries[0])
	}
}

// checkProblem checks that an answer is a problem with the given status.
func checkProblem(t *testing.T, w *httptest.ResponseRecorder, status int) (p Problem) {
	t.Helper()
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("the content type is %q", got)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != status || w.Code != status ||
		p.Title == "" || p.Detail == "" {
		t.Errorf("want a problem with status %d, got %d %+v, %v", status, w.Code, p, err)
	}
	return p
}

// TestEveryChangeIsGuarded fails if a route that changes something needs no role.
func TestEveryChangeIsGuarded(t *testing.T) {
	open := []string{"login", "logout"}
	for _, rt := range routes {
		if isUnsafeMethod(rt.method) && rt.role != RoleOperate && !slices.Contains(open, rt.operationID) {
			t.Errorf("%s %s changes something without the role operate", rt.method, rt.path)
		}
		if isUnsafeMethod(rt.method) && rt.maxBodyBytes == 0 {
			t.Errorf("%s %s does not limit its body", rt.method, rt.path)
		}
	}
}

func TestHeaders(t *testing.T) {
	s := newServer(t, &fakeDaemon{})
	for _, path := range []string{"/api/v1/projects", "/healthz", "/", "/nowhere", "/api/v1/nowhere"} {
		h := testRequest{method: "GET", path: path}.withToken(readToken).sendTo(s).Header()
		for name, want := range map[string]string{
			"Content-Security-Policy": "frame-ancestors 'none'", "X-Content-Type-Options": "nosniff",
			"Cache-Control": "no-store", "Referrer-Policy": "same-origin",
		} {
			if !strings.Contains(h.Get(name), want) {
				t.Errorf("%s: %s is %q, want %q in it", path, name, h.Get(name), want)
			}
		}
	}
}

func TestHostNames(t *testing.T) {
	s := newServer(t, &fakeDaemon{}, func(c *ServerConfig) { c.AllowedHosts = []string{"crawler.example.org"} })
	for host, status := range map[string]int{
		"127.0.0.1:8470": 200, "localhost:8470": 200, "localhost": 200, "crawl.localhost": 200,
		"[::1]:8470": 200, "192.0.2.7": 200,
		"Crawler.example.org": 200, "crawler.example.org.:8470": 200,
		"evil.example": 421, "evil.example:8470": 421, "localhost.evil.example": 421,
		"127.0.0.1.evil.example": 421, "": 421,
	} {
		if w := (testRequest{method: "GET", path: "/api/v1/about"}).withHeader("Host",
			host).sendTo(s); w.Code != status {
			t.Errorf("Host %q: %d, want %d", host, w.Code, status)
		}
	}
	evil := testRequest{method: "GET", path: "/healthz"}.withHeader("Host", "pod.cluster.local")
	if w := evil.sendTo(s); w.Code != 200 {
		t.Errorf("a probe by another name: %d", w.Code)
	}
	evil.path = "/api/v1/projects"
	if w := evil.withToken(readToken).sendTo(s); w.Code != 200 {
		t.Errorf("with a token, by another name: %d", w.Code)
	}
}

func TestUnknownPaths(t *testing.T) {
	s := newServer(t, &fakeDaemon{}, func(c *ServerConfig) { c.PageHandler = nil })
	checkProblem(t, testRequest{method: "GET", path: "/api/v1/nothing"}.withToken(readToken).sendTo(s),
		http.StatusNotFound)
	checkProblem(t, testRequest{method: "GET", path: "/"}.sendTo(s), http.StatusNotFound)
	w := testRequest{method: "PATCH", path: "/api/v1/projects/books"}.withToken(operateToken).sendTo(s)
	checkProblem(t, w, http.StatusMethodNotAllowed)
	if allow := w.Header().Get("Allow"); allow != "DELETE, GET, HEAD, PUT" {
		t.Errorf("Allow is %q", allow)
	}
}

// TestBodies sends bodies that are too long, of another media type, or invalid.
func TestBodies(t *testing.T) {
	for _, rt := range routes {
		if !isUnsafeMethod(rt.method) || rt.maxBodyBytes < 0 {
			continue
		}
		t.Run(rt.operationID, func(t *testing.T) {
			if len(rt.requestMediaTypes) > 0 {
				s := newServer(t, &fakeDaemon{})
				c := rt.exampleRequest().withToken(operateToken)
				c.header = append(c.header, "Content-Type", rt.requestMediaTypes[0])
				c.body = `{"reason": "` + strings.Repeat("x", int(rt.maxBodyBytes)) + `"}`
				if rt.operationID == "logout" {
					return // the route takes no body
				}
				checkProblem(t, c.sendTo(s), http.StatusRequestEntityTooLarge)
				c = rt.exampleRequest().withToken(operateToken)
				c.header = []string{"Authorization", "Bearer " + operateToken, "Content-Type", "image/png"}
				checkProblem(t, c.sendTo(s), http.StatusUnsupportedMediaType)
				c.header = []string{"Authorization", "Bearer " + operateToken, "Content-Type", rt.requestMediaTypes[0],
					"Content-Encoding", "gzip"}
				checkProblem(t, c.sendTo(s), http.StatusUnsupportedMediaType)
			}
		})
	}
	s := newServer(t, &fakeDaemon{})
	for body, status := range map[string]int{
		`{"stop": true, "reason": "x"}`:                     200,
		`{"delay_ms": 1500, "reason": "x", "for_ms": 1000}`: 200,
		`{"stop": true, "delay_ms": 1, "reason": "x"}`:      422,
		`{"stop": true}`:                  422,
		`{"stop": true, "reason": "  "}`:  422,
		`{"reason": "x"}`:                 422,
		`{"delay_ms": -4, "reason": "x"}`: 422,
		`{"stop": true, "reason": "x", "expires": "2020-01-01T00:00:00Z"}`:              422,
		`{"stop": true, "reason": "x", "for_ms": -1}`:                                   422,
		`{"stop": true, "reason": "x", "expires": "2120-01-01T00:00:00Z"}`:              200,
		`{"stop": true, "reason": "x", "for_ms": 1, "expires": "2120-01-01T00:00:00Z"}`: 422,
		`{"stop": true, "reason": "x", "hosts": 1}`:                                     400,
		// in nanoseconds, 448384 beyond 2^64
		`{"delay_ms": 18446744073710, "reason": "x"}`:             400,
		`{"stop": true, "reason": "x", "for_ms": 18446744073710}`: 400,
		`{"stop": "yes"}`: 400, `[]`: 400, ``: 400, `{"stop": true, "reason": "x"} {}`: 400,
	} {
		if w := (testRequest{method: "PUT", path: "/api/v1/brakes/example.com",
			body: body}).withToken(operateToken).sendTo(s); w.Code != status {
			t.Errorf("%s: %d, want %d: %s", body, w.Code, status, w.Body)
		}
	}
}

func TestQueries(t *testing.T) {
	s := newServer(t, &fakeDaemon{})
	const hosts = "/api/v1/projects/books/hosts"
	for path, status := range map[string]int{
		hosts + "?q=a&state=set+aside&sort=queued&order=desc&offset=50&limit=1000": 200,
		hosts + "?limit=1001": 400, hosts + "?limit=-1": 400, hosts + "?limit=ten": 400, hosts + "?offset=-1": 400,
		hosts + "?state=asleep": 400, hosts + "?sort=colour": 400, hosts + "?order=up": 400, hosts + "?page=2": 400,
		"/api/v1/projects/books/explain":                 400,
		"/api/v1/projects/books/throughput?coarse=true":  200,
		"/api/v1/projects/books/throughput?coarse=maybe": 400,
		"/api/v1/audit?before=17&limit=3":                200,
		"/api/v1/audit?before=then":                      400,
	} {
		if w := (testRequest{method: "GET", path: path}).withToken(readToken).sendTo(s); w.Code != status {
			t.Errorf("%s: %d, want %d: %s", path, w.Code, status, w.Body)
		}
	}
	w := testRequest{method: "GET", path: hosts + "?q=shop&offset=100&limit=50"}.withToken(readToken).sendTo(s)
	want := []string{`</api/v1/projects/books/hosts?limit=50&offset=150&q=shop>; rel="next"`,
		`</api/v1/projects/books/hosts?limit=50&offset=50&q=shop>; rel="prev"`}
	if got := w.Header().Values("Link"); !slices.Equal(got, want) {
		t.Errorf("Link is %q, want %q", got, want)
	}
}

// A caller with the role read does not get a project file, which may hold passwords.
func TestProjectFile(t *testing.T) {
	s := newServer(t, &fakeDaemon{})
	c := testRequest{method: "GET", path: "/api/v1/projects/books"}.withHeader("Accept", "application/yaml")
	if w := c.withToken(operateToken).sendTo(s); w.Body.String() != "project: a\n" ||
		w.Header().Get("Content-Type") != "application/yaml" {
		t.Errorf("the file is %q, of type %s", w.Body, w.Header().Get("Content-Type"))
	}
	checkProblem(t, c.withToken(readToken).sendTo(s), http.StatusForbidden)
	w := testRequest{method: "PUT", path: "/api/v1/projects/new",
		body: "project: new\n"}.withToken(operateToken).sendTo(s)
	if w.Code != http.StatusCreated || w.Header().Get("Location") != "/api/v1/projects/new" {
		t.Errorf("a new project: %d, Location %q", w.Code, w.Header().Get("Location"))
	}
}

// A percent-encoded origin in the path reaches the daemon decoded.
func TestRobotsOrigin(t *testing.T) {
	d := &fakeDaemon{}
	testRequest{method: "GET", path: "/api/v1/projects/books/robots/http%3A%2F%2Fexample.com%3A8080?version=ab12"}.
		withToken(readToken).sendTo(newServer(t, d))
	if calls := d.recordedCalls(); !slices.Equal(calls, []string{"robots http://example.com:8080 ab12"}) {
		t.Errorf("the daemon received the calls %q", calls)
	}
}

// The parameter against names the version that the answer's diff starts from.
func TestRobotsAgainst(t *testing.T) {
	d := &fakeDaemon{fillsFields: true}
	path := "/api/v1/projects/books/robots/http%3A%2F%2Fexample.com?version=new&against=old"
	w := testRequest{method: "GET", path: path}.withToken(readToken).sendTo(newServer(t, d))
	var file RobotsFile
	if err := json.Unmarshal(w.Body.Bytes(), &file); err != nil || file.Diff == nil || len(file.Diff.Lines) != 1 {
		t.Errorf("the answer is %s, %v", w.Body, err)
	}
	if calls := d.recordedCalls(); !slices.Equal(calls,
		[]string{"robots http://example.com new", "robots http://example.com old"}) {
		t.Errorf("the daemon received the calls %q", calls)
	}
}

// A Problem is sent to the caller unchanged. Any other error, which may say more than the caller
// should know, goes to the log.
func TestErrors(t *testing.T) {
	var log strings.Builder
	s := newServer(t, &fakeDaemon{err: Conflict("it is being deleted")}, func(c *ServerConfig) {
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	get := testRequest{method: "GET", path: "/api/v1/projects"}.withToken(readToken)
	if p := checkProblem(t, get.sendTo(s), http.StatusConflict); p.Detail != "it is being deleted" {
		t.Errorf("the detail is %q", p.Detail)
	}
	s.daemon = &fakeDaemon{err: fmt.Errorf("look: %w", errSecret)}
	if p := checkProblem(t, get.sendTo(s), http.StatusInternalServerError); strings.Contains(p.Detail, "secret") {
		t.Errorf("the detail is %q", p.Detail)
	}
	if !strings.Contains(log.String(), errSecret.Error()) {
		t.Errorf("the log is only %q", &log)
	}
	s.cfg.PageHandler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oh") })
	checkProblem(t, testRequest{method: "GET", path: "/"}.withToken(readToken).sendTo(s),
		http.StatusInternalServerError)
	if !strings.Contains(log.String(), "panic=oh") || !strings.Contains(log.String(), "routes_test.go") {
		t.Errorf("the log does not say where it panicked: %q", &log)
	}
}

// The throttle refuses callers that guess tokens, and no other caller.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, &fakeDaemon{})
		guess := testRequest{method: "DELETE", path: "/api/v1/projects/books"}.withToken("guess")
		for i := range guessBurst {
			if w := guess.sendTo(s); w.Code != http.StatusUnauthorized {
				t.Fatalf("guess %d: %d", i, w.Code)
			}
		}
		w := guess.sendTo(s)
		checkProblem(t, w, http.StatusTooManyRequests)
		if w.Header().Get("Retry-After") == "" {
			t.Error("it does not say when to come back")
		}
		if w := (testRequest{method: "GET",
			path: "/api/v1/projects"}).withToken(readToken).sendTo(s); w.Code != http.StatusOK {
			t.Errorf("a good token from the same address: %d", w.Code)
		}
		page, err := s.cfg.AuditLog.Page(0, 100)
		if err != nil || len(page.Entries) != guessBurst {
			t.Errorf("the audit has %d entries, %v", len(page.Entries), err)
		}
		time.Sleep(2 * time.Second)
		if w := guess.sendTo(s); w.Code != http.StatusUnauthorized {
			t.Errorf("after a rest: %d", w.Code)
		}
	})
}

// Callers that may not change anything cannot push other entries out of the audit.
func TestUntrustedCallsDoNotFillTheAudit(t *testing.T) {
	for name, flood := range map[string]testRequest{
		"no token":        {method: "POST", path: "/api/v1/reload"},
		"no such session": testRequest{method: "POST", path: "/brakes"}.withHeader("Cookie", sessionCookieName+"=none"),
		"no form": testRequest{method: "POST", path: "/login",
			body: "%zz"}.withHeader("Content-Type", formTypes[0]),
		"no login":  {method: "POST", path: "/logout"},
		"read only": testRequest{method: "POST", path: "/api/v1/reload"}.withToken(readToken),
		"another site": testRequest{method: "POST", path: "/api/v1/reload"}.withToken(operateToken).withHeader("Origin",
			"https://evil.example"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, &fakeDaemon{})
				entryCount := func() int {
					page, err := s.cfg.AuditLog.Page(0, 1000)
					if err != nil {
						t.Fatal(err)
					}
					return len(page.Entries)
				}
				for range 3 * guessBurst {
					flood.sendTo(s)
				}
				if n := entryCount(); n != guessBurst {
					t.Errorf("%d calls are kept", n)
				}
				testRequest{method: "POST", path: "/api/v1/reload"}.withToken(operateToken).sendTo(s)
				if n := entryCount(); n != guessBurst+1 {
					t.Errorf("with that of the operator, %d calls are kept", n)
				}
				time.Sleep(2 * time.Second)
				flood.sendTo(s)
				if n := entryCount(); n != guessBurst+2 {
					t.Errorf("after a rest, %d calls are kept", n)
				}
			})
		})
	}
}

func TestThrottleIsBounded(t *testing.T) {
	var th untrustedThrottle
	for i := range 3 * throttledNetworks {
		th.allow(fmt.Sprintf("[2001:db8:%x:%x::1]:443", i>>8, i&255))
	}
	if n := th.limiters.Len(); n > 2*throttledNetworks {
		t.Errorf("%d addresses are kept", n)
	}
}

func TestPageAccess(t *testing.T) {
	s := newServer(t, &fakeDaemon{})
	browser := testRequest{method: "GET", path: "/projects/books?sort=host"}.withHeader("Accept", "text/html")
	if w := browser.sendTo(s); w.Code != http.StatusSeeOther ||
		w.Header().Get("Location") != "/login?next=%2Fprojects%2Fbooks%3Fsort%3Dhost" {
		t.Errorf("a browser without a session is redirected to %q", w.Header().Get("Location"))
	}
	for _, path := range []string{"/login", "/bot", "/assets/page.css", "/favicon.ico"} {
		if w := (testRequest{method: "GET", path: path}).sendTo(s); w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	for _, path := range []string{"/", "/botany", "/assets", "/login/x"} {
		checkProblem(t, testRequest{method: "GET", path: path}.sendTo(s), http.StatusUnauthorized)
	}
	form := testRequest{method: "POST", path: "/brakes",
		body: "host=example.com&reason=they+asked"}.withHeader("Content-Type", formTypes[0])
	checkProblem(t, form.sendTo(s), http.StatusUnauthorized)
	checkProblem(t, form.withToken(operateToken).withHeader("Origin", "https://evil.example").sendTo(s),
		http.StatusForbidden)
	if w := form.withToken(operateToken).sendTo(s); w.Code != http.StatusOK {
		t.Errorf("a form: %d %s", w.Code, w.Body)
	}
	page, err := s.cfg.AuditLog.Page(0, 1)
	if err != nil || len(page.Entries) != 1 {
		t.Fatal(page, err)
	}
	if e := page.Entries[0]; e.Who != "operator" || e.Reason != "they asked" ||
		e.Host != "example.com" || e.Status != 200 {
		t.Errorf("the audit entry is %+v", e)
	}
	form.body = "reason=" + strings.Repeat("x", maxPageFormBytes)
	if w := form.withToken(operateToken).sendTo(s); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a form that is too long: %d", w.Code)
	}
}

func TestPublicMetrics(t *testing.T) {
	get := testRequest{method: "GET", path: "/metrics"}
	checkProblem(t, get.sendTo(newServer(t, &fakeDaemon{})), http.StatusUnauthorized)
	if w := get.sendTo(newServer(t, &fakeDaemon{}, func(c *ServerConfig) {
		c.PublicMetrics = true
	})); w.Code != http.StatusOK {
		t.Errorf("public metrics: %d", w.Code)
	}
}

func TestReady(t *testing.T) {
	s := newServer(t, &fakeDaemon{readyErr: fmt.Errorf("books: %w", errSecret)})
	w := testRequest{method: "GET", path: "/readyz"}.sendTo(s)
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("not ready: %d %s", w.Code, w.Body)
	}
}

// A caller with the role read gets every reason; other callers get only the kind of problem.
func TestReadyReasons(t *testing.T) {
	diskFull := fmt.Errorf("%w: project books waits", ErrDiskFull)
	failed := errors.New("project news has failed")
	for _, tt := range []struct {
		status, reasons string
		ready           error
	}{
		{status: "a project waits for free disk space", reasons: `["no room on the disk: project books waits"]`,
			ready: errors.Join(diskFull)},
		{status: "a project that should run does not",
			reasons: `["no room on the disk: project books waits","project news has failed"]`,
			ready:   errors.Join(diskFull, failed)},
	} {
		s := newServer(t, &fakeDaemon{readyErr: tt.ready})
		get := testRequest{method: "GET", path: "/readyz"}
		if got, want := strings.TrimSpace(get.sendTo(s).Body.String()), `{"status":"`+tt.status+`"}`; got != want {
			t.Errorf("a stranger reads %s, want %s", got, want)
		}
		if got, want := strings.TrimSpace(get.withToken(readToken).sendTo(s).Body.String()), `{"status":"`+tt.status+
			`","reasons":`+tt.reasons+`}`; got != want {
			t.Errorf("a reader reads %s, want %s", got, want)
		}
	}
}
