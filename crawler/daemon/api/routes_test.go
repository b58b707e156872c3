package api

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRoutes calls every route as everybody: who may is answered, who may not is
// told why, nothing is done for him, and the audit has it if it would change
// something.
func TestRoutes(t *testing.T) {
	const evil = "https://evil.example"
	for _, rt := range routes {
		t.Run(rt.method+" "+rt.path, func(t *testing.T) {
			for _, tt := range []struct {
				name   string
				c      call
				status int // 0: it is let in
			}{
				{"nobody", rt.example(), refusedUnless(rt.role == Open, http.StatusUnauthorized)},
				{"a wrong token", rt.example().by("guess"), refusedUnless(rt.role == Open, http.StatusUnauthorized)},
				{"another scheme", rt.example().with("Authorization", "Basic b3A6b3A="), refusedUnless(rt.role == Open, http.StatusUnauthorized)},
				{"a reader", rt.example().by(readToken), refusedUnless(rt.role != Operate, http.StatusForbidden)},
				{"an operator", rt.example().by(operateToken), 0},
				{"an operator, from another site", rt.example().by(operateToken).with("Origin", evil), refusedUnless(!changes(rt.method), http.StatusForbidden)},
				{"an operator, from a frame", rt.example().by(operateToken).with("Sec-Fetch-Site", "cross-site"), refusedUnless(!changes(rt.method), http.StatusForbidden)},
				{"an operator, from here", rt.example().by(operateToken).with("Origin", "http://127.0.0.1:8470"), 0},
			} {
				checkDoor(t, rt, tt.name, tt.c, tt.status)
			}
		})
	}
}

func refusedUnless(may bool, status int) int {
	if may {
		return 0
	}
	return status
}

func checkDoor(t *testing.T, rt route, who string, c call, refused int) {
	t.Helper()
	d := &script{filled: true}
	s := newServer(t, d)
	if rt.as == eventStream {
		s.endStreams()
	}
	w := c.to(s)
	status, want := w.Code, refused
	if refused == 0 {
		want = (&reply{}).code()
		if rt.gives != nil {
			want = http.StatusOK
		}
	}
	if status != want {
		t.Errorf("%s: %d, want %d: %s", who, status, want, w.Body)
	}
	if refused != 0 {
		wantProblem(t, w, refused)
		if did := d.deeds(); len(did) > 0 || len(d.urls) > 0 {
			t.Errorf("%s was refused, and the daemon was asked to %q", who, did)
		}
	}
	page, err := s.cfg.Audit.Page(0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(page.Entries); (n == 1) != changes(rt.method) {
		t.Errorf("%s: %d entries in the audit", who, n)
	} else if n == 1 && (page.Entries[0].Status != status || page.Entries[0].Path != c.path) {
		t.Errorf("%s: the audit says %+v", who, page.Entries[0])
	}
}

// wantProblem checks that an answer is a problem of that status.
func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int) (p Problem) {
	t.Helper()
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("the content type is %q", got)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != status || w.Code != status || p.Title == "" || p.Detail == "" {
		t.Errorf("no problem of status %d: %d %+v, %v", status, w.Code, p, err)
	}
	return p
}

// TestEveryChangeIsGuarded makes sure that no route can be added that changes
// something and stands open.
func TestEveryChangeIsGuarded(t *testing.T) {
	open := []string{"login", "logout"}
	for _, rt := range routes {
		if changes(rt.method) && rt.role != Operate && !slices.Contains(open, rt.name) {
			t.Errorf("%s %s changes something, and needs no operator", rt.method, rt.path)
		}
		if changes(rt.method) && rt.limit == 0 {
			t.Errorf("%s %s has no limit of its body", rt.method, rt.path)
		}
	}
}

func TestHeaders(t *testing.T) {
	s := newServer(t, &script{})
	for _, path := range []string{"/api/v1/projects", "/healthz", "/", "/nowhere", "/api/v1/nowhere"} {
		h := call{method: "GET", path: path}.by(readToken).to(s).Header()
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
	s := newServer(t, &script{}, func(c *Config) { c.Hosts = []string{"crawler.example.org"} })
	for host, status := range map[string]int{
		"127.0.0.1:8470": 200, "localhost:8470": 200, "localhost": 200, "crawl.localhost": 200, "[::1]:8470": 200, "192.0.2.7": 200,
		"Crawler.example.org": 200, "crawler.example.org.:8470": 200,
		"evil.example": 421, "evil.example:8470": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "": 421,
	} {
		if w := (call{method: "GET", path: "/api/v1/about"}).with("Host", host).to(s); w.Code != status {
			t.Errorf("Host %q: %d, want %d", host, w.Code, status)
		}
	}
	evil := call{method: "GET", path: "/healthz"}.with("Host", "pod.cluster.local")
	if w := evil.to(s); w.Code != 200 {
		t.Errorf("a probe by another name: %d", w.Code)
	}
	evil.path = "/api/v1/projects"
	if w := evil.by(readToken).to(s); w.Code != 200 {
		t.Errorf("with a token, by another name: %d", w.Code)
	}
}

func TestUnknownPaths(t *testing.T) {
	s := newServer(t, &script{}, func(c *Config) { c.Page = nil })
	wantProblem(t, call{method: "GET", path: "/api/v1/nothing"}.by(readToken).to(s), http.StatusNotFound)
	wantProblem(t, call{method: "GET", path: "/"}.to(s), http.StatusNotFound)
	w := call{method: "PATCH", path: "/api/v1/projects/books"}.by(operateToken).to(s)
	wantProblem(t, w, http.StatusMethodNotAllowed)
	if allow := w.Header().Get("Allow"); allow != "DELETE, GET, HEAD, PUT" {
		t.Errorf("Allow is %q", allow)
	}
}

// TestBodies sends bodies that are too long, of another type, or make no sense.
func TestBodies(t *testing.T) {
	for _, rt := range routes {
		if !changes(rt.method) || rt.limit < 0 {
			continue
		}
		t.Run(rt.name, func(t *testing.T) {
			if len(rt.types) > 0 {
				s := newServer(t, &script{})
				c := rt.example().by(operateToken)
				c.header = append(c.header, "Content-Type", rt.types[0])
				c.body = `{"reason": "` + strings.Repeat("x", int(rt.limit)) + `"}`
				if rt.name == "logout" {
					return // it reads none
				}
				wantProblem(t, c.to(s), http.StatusRequestEntityTooLarge)
				c = rt.example().by(operateToken)
				c.header = []string{"Authorization", "Bearer " + operateToken, "Content-Type", "image/png"}
				wantProblem(t, c.to(s), http.StatusUnsupportedMediaType)
				c.header = []string{"Authorization", "Bearer " + operateToken, "Content-Type", rt.types[0], "Content-Encoding", "gzip"}
				wantProblem(t, c.to(s), http.StatusUnsupportedMediaType)
			}
		})
	}
	s := newServer(t, &script{})
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
		`{"delay_ms": 18446744073710, "reason": "x"}`:                                   400, // in nanoseconds, 448384 beyond 2^64
		`{"stop": true, "reason": "x", "for_ms": 18446744073710}`:                       400,
		`{"stop": "yes"}`: 400, `[]`: 400, ``: 400, `{"stop": true, "reason": "x"} {}`: 400,
	} {
		if w := (call{method: "PUT", path: "/api/v1/brakes/example.com", body: body}).by(operateToken).to(s); w.Code != status {
			t.Errorf("%s: %d, want %d: %s", body, w.Code, status, w.Body)
		}
	}
}

func TestQueries(t *testing.T) {
	s := newServer(t, &script{})
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
		if w := (call{method: "GET", path: path}).by(readToken).to(s); w.Code != status {
			t.Errorf("%s: %d, want %d: %s", path, w.Code, status, w.Body)
		}
	}
	w := call{method: "GET", path: hosts + "?q=shop&offset=100&limit=50"}.by(readToken).to(s)
	want := []string{`</api/v1/projects/books/hosts?limit=50&offset=150&q=shop>; rel="next"`, `</api/v1/projects/books/hosts?limit=50&offset=50&q=shop>; rel="prev"`}
	if got := w.Header().Values("Link"); !slices.Equal(got, want) {
		t.Errorf("Link is %q, want %q", got, want)
	}
}

// TestProjectFile: the file may hold passwords, so who may only look does not get
// it.
func TestProjectFile(t *testing.T) {
	s := newServer(t, &script{})
	c := call{method: "GET", path: "/api/v1/projects/books"}.with("Accept", "application/yaml")
	if w := c.by(operateToken).to(s); w.Body.String() != "project: a\n" || w.Header().Get("Content-Type") != "application/yaml" {
		t.Errorf("the file is %q, of type %s", w.Body, w.Header().Get("Content-Type"))
	}
	wantProblem(t, c.by(readToken).to(s), http.StatusForbidden)
	w := call{method: "PUT", path: "/api/v1/projects/new", body: "project: new\n"}.by(operateToken).to(s)
	if w.Code != http.StatusCreated || w.Header().Get("Location") != "/api/v1/projects/new" {
		t.Errorf("a new project: %d, Location %q", w.Code, w.Header().Get("Location"))
	}
}

// TestRobotsOrigin: an origin in the path comes as it is.
func TestRobotsOrigin(t *testing.T) {
	d := &script{}
	call{method: "GET", path: "/api/v1/projects/books/robots/http%3A%2F%2Fexample.com%3A8080?version=ab12"}.by(readToken).to(newServer(t, d))
	if did := d.deeds(); !slices.Equal(did, []string{"robots http://example.com:8080 ab12"}) {
		t.Errorf("the daemon was asked for %q", did)
	}
}

// TestRobotsAgainst: a version is compared with the one that is named.
func TestRobotsAgainst(t *testing.T) {
	d := &script{filled: true}
	w := call{method: "GET", path: "/api/v1/projects/books/robots/http%3A%2F%2Fexample.com?version=new&against=old"}.by(readToken).to(newServer(t, d))
	var file RobotsFile
	if err := json.Unmarshal(w.Body.Bytes(), &file); err != nil || file.Diff == nil || len(file.Diff.Lines) != 1 {
		t.Errorf("the answer is %s, %v", w.Body, err)
	}
	if did := d.deeds(); !slices.Equal(did, []string{"robots http://example.com new", "robots http://example.com old"}) {
		t.Errorf("the daemon was asked for %q", did)
	}
}

// TestErrors: a Problem is told as it is; of another error, which may say more than
// a caller should know, there is a line in the log.
func TestErrors(t *testing.T) {
	var log strings.Builder
	s := newServer(t, &script{fail: Conflict("it is being deleted")}, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	get := call{method: "GET", path: "/api/v1/projects"}.by(readToken)
	if p := wantProblem(t, get.to(s), http.StatusConflict); p.Detail != "it is being deleted" {
		t.Errorf("the problem says %q", p.Detail)
	}
	s.d = &script{fail: fmt.Errorf("look: %w", errSecret)}
	if p := wantProblem(t, get.to(s), http.StatusInternalServerError); strings.Contains(p.Detail, "secret") {
		t.Errorf("the problem says %q", p.Detail)
	}
	if !strings.Contains(log.String(), errSecret.Error()) {
		t.Errorf("the log says only %q", &log)
	}
	s.cfg.Page = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oh") })
	wantProblem(t, call{method: "GET", path: "/"}.by(readToken).to(s), http.StatusInternalServerError)
	if !strings.Contains(log.String(), "panic=oh") || !strings.Contains(log.String(), "routes_test.go") {
		t.Errorf("the log does not say where it panicked: %q", &log)
	}
}

// TestThrottle: who guesses is slowed, and nobody else is.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, &script{})
		guess := call{method: "DELETE", path: "/api/v1/projects/books"}.by("guess")
		for i := range guessesAtOnce {
			if w := guess.to(s); w.Code != http.StatusUnauthorized {
				t.Fatalf("guess %d: %d", i, w.Code)
			}
		}
		w := guess.to(s)
		wantProblem(t, w, http.StatusTooManyRequests)
		if w.Header().Get("Retry-After") == "" {
			t.Error("it does not say when to come back")
		}
		if w := (call{method: "GET", path: "/api/v1/projects"}).by(readToken).to(s); w.Code != http.StatusOK {
			t.Errorf("a good token from the same address: %d", w.Code)
		}
		page, err := s.cfg.Audit.Page(0, 100)
		if err != nil || len(page.Entries) != guessesAtOnce {
			t.Errorf("the audit has %d entries, %v", len(page.Entries), err)
		}
		time.Sleep(2 * time.Second)
		if w := guess.to(s); w.Code != http.StatusUnauthorized {
			t.Errorf("after a rest: %d", w.Code)
		}
	})
}

// Nobody who may change nothing can push others out of the audit.
func TestStrangersDoNotFillTheAudit(t *testing.T) {
	for name, flood := range map[string]call{
		"no token":        {method: "POST", path: "/api/v1/reload"},
		"no such session": call{method: "POST", path: "/brakes"}.with("Cookie", sessionCookie+"=none"),
		"no form":         call{method: "POST", path: "/login", body: "%zz"}.with("Content-Type", formTypes[0]),
		"no login":        {method: "POST", path: "/logout"},
		"read only":       call{method: "POST", path: "/api/v1/reload"}.by(readToken),
		"another site":    call{method: "POST", path: "/api/v1/reload"}.by(operateToken).with("Origin", "https://evil.example"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, &script{})
				entryCount := func() int {
					page, err := s.cfg.Audit.Page(0, 1000)
					if err != nil {
						t.Fatal(err)
					}
					return len(page.Entries)
				}
				for range 3 * guessesAtOnce {
					flood.to(s)
				}
				if n := entryCount(); n != guessesAtOnce {
					t.Errorf("%d calls are kept", n)
				}
				call{method: "POST", path: "/api/v1/reload"}.by(operateToken).to(s)
				if n := entryCount(); n != guessesAtOnce+1 {
					t.Errorf("with that of the operator, %d calls are kept", n)
				}
				time.Sleep(2 * time.Second)
				flood.to(s)
				if n := entryCount(); n != guessesAtOnce+2 {
					t.Errorf("after a rest, %d calls are kept", n)
				}
			})
		})
	}
}

func TestThrottleIsBounded(t *testing.T) {
	var th throttle
	for i := range 3 * maxThrottledNetworks {
		th.allow(fmt.Sprintf("[2001:db8:%x:%x::1]:443", i>>8, i&255))
	}
	if n := len(th.young) + len(th.old); n > 2*maxThrottledNetworks {
		t.Errorf("%d addresses are kept", n)
	}
}

// logIn logs a browser in and returns its cookie.
func logIn(t *testing.T, s *Server, token string) *http.Cookie {
	t.Helper()
	w := call{method: "POST", path: "/login", body: url.Values{"token": {token}, "next": {"/brakes?x=1"}}.Encode()}.
		with("Content-Type", formTypes[0]).with("Accept", "text/html").to(s)
	cookies := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/brakes?x=1" || len(cookies) != 1 {
		t.Fatalf("login: %d, Location %q, cookies %v", w.Code, w.Header().Get("Location"), cookies)
	}
	return cookies[0]
}

func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, &script{})
		c := logIn(t, s, operateToken)
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure || len(c.Value) < 26 {
			t.Errorf("the cookie is %+v", c)
		}
		cookie := c.Name + "=" + c.Value
		page := call{method: "GET", path: "/"}.with("Cookie", cookie)
		if w := page.to(s); w.Body.String() != "page of operator" {
			t.Errorf("the page says %q", w.Body)
		}
		stop := call{method: "POST", path: "/api/v1/projects/books/stop"}.with("Cookie", cookie)
		if w := stop.to(s); w.Code != http.StatusOK {
			t.Errorf("an action: %d", w.Code)
		}
		wantProblem(t, stop.with("Origin", "null").to(s), http.StatusForbidden)
		if w := (call{method: "POST", path: "/logout"}).with("Cookie", cookie).to(s); w.Code != http.StatusNoContent {
			t.Errorf("logout: %d", w.Code)
		}
		wantProblem(t, stop.to(s), http.StatusUnauthorized)

		c = logIn(t, s, readToken)
		page = call{method: "GET", path: "/"}.with("Cookie", c.Name+"="+c.Value)
		if w := page.to(s); w.Body.String() != "page of reader" {
			t.Errorf("the page says %q", w.Body)
		}
		post := call{method: "POST", path: "/brakes"}.with("Cookie", c.Name+"="+c.Value)
		wantProblem(t, post.to(s), http.StatusForbidden)
		time.Sleep(sessionFor)
		wantProblem(t, page.to(s), http.StatusUnauthorized)
	})
}

func TestSessionsAreBounded(t *testing.T) {
	var s sessions
	now := time.Now()
	operator, reader := Caller{"a", Operate}, Caller{"b", Read}
	other := s.begin(operator, now)
	first := s.begin(reader, now)
	for i := range 1000 { // as the throttle does not hold who has a token
		s.begin(reader, now.Add(time.Duration(i+1)*time.Second))
	}
	if len(s.open) != maxSessionsPerToken+1 || s.find(first) != (Caller{}) || s.find(other) != operator {
		t.Errorf("%d sessions are open, the first is of %v, and the operator's of %v", len(s.open), s.find(first), s.find(other))
	}
}

func TestLogin(t *testing.T) {
	s := newServer(t, &script{})
	form := func(token, next string) call {
		return call{method: "POST", path: "/login", body: url.Values{"token": {token}, "next": {next}}.Encode()}.with("Content-Type", formTypes[0])
	}
	if w := form("guess", "/audit").with("Accept", "text/html").to(s); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/login?failed=1&next=%2Faudit" {
		t.Errorf("a wrong token leads to %q", w.Header().Get("Location"))
	}
	wantProblem(t, form("guess", "").to(s), http.StatusUnauthorized)
	for _, next := range []string{"//evil.example", "https://evil.example/", `/\evil.example`, "evil", "", "/\t/evil.example"} {
		if w := form(operateToken, next).with("Accept", "text/html").to(s); w.Header().Get("Location") != "/" {
			t.Errorf("next=%q leads to %q", next, w.Header().Get("Location"))
		}
	}
	wantProblem(t, form(operateToken, "").with("Origin", "https://evil.example").to(s), http.StatusForbidden)
	page, err := s.cfg.Audit.Page(0, 100)
	if err != nil || len(page.Entries) != 9 {
		t.Fatalf("the audit has %d entries, %v", len(page.Entries), err)
	}
	if e := page.Entries[8]; e.Status != http.StatusUnauthorized || e.Who != "" {
		t.Errorf("the audit says of the wrong token: %+v", e)
	}
	if e := page.Entries[1]; e.Status != http.StatusSeeOther || e.Who != "operator" {
		t.Errorf("the audit says of the good one: %+v", e)
	}
	r := httptest.NewRequest("POST", "https://127.0.0.1/login", strings.NewReader("token="+readToken))
	r.Header.Set("Content-Type", formTypes[0])
	r.TLS = &tls.ConnectionState{}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if c := w.Result().Cookies(); len(c) != 1 || !c[0].Secure {
		t.Errorf("over TLS the cookie is %v", c)
	}
}

func TestPageDoor(t *testing.T) {
	s := newServer(t, &script{})
	browser := call{method: "GET", path: "/projects/books?sort=host"}.with("Accept", "text/html")
	if w := browser.to(s); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/login?next=%2Fprojects%2Fbooks%3Fsort%3Dhost" {
		t.Errorf("who is not logged in is sent to %q", w.Header().Get("Location"))
	}
	for _, path := range []string{"/login", "/bot", "/assets/page.css", "/favicon.ico"} {
		if w := (call{method: "GET", path: path}).to(s); w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	for _, path := range []string{"/", "/botany", "/assets", "/login/x"} {
		wantProblem(t, call{method: "GET", path: path}.to(s), http.StatusUnauthorized)
	}
	form := call{method: "POST", path: "/brakes", body: "host=example.com&reason=they+asked"}.with("Content-Type", formTypes[0])
	wantProblem(t, form.to(s), http.StatusUnauthorized)
	wantProblem(t, form.by(operateToken).with("Origin", "https://evil.example").to(s), http.StatusForbidden)
	if w := form.by(operateToken).to(s); w.Code != http.StatusOK {
		t.Errorf("a form: %d %s", w.Code, w.Body)
	}
	page, err := s.cfg.Audit.Page(0, 1)
	if err != nil || len(page.Entries) != 1 {
		t.Fatal(page, err)
	}
	if e := page.Entries[0]; e.Who != "operator" || e.Reason != "they asked" || e.Host != "example.com" || e.Status != 200 {
		t.Errorf("the audit says %+v", e)
	}
	form.body = "reason=" + strings.Repeat("x", pageLimit)
	if w := form.by(operateToken).to(s); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a form that is too long: %d", w.Code)
	}
}

func TestPublicMetrics(t *testing.T) {
	get := call{method: "GET", path: "/metrics"}
	wantProblem(t, get.to(newServer(t, &script{})), http.StatusUnauthorized)
	if w := get.to(newServer(t, &script{}, func(c *Config) { c.PublicMetrics = true })); w.Code != http.StatusOK {
		t.Errorf("public metrics: %d", w.Code)
	}
}

func TestReady(t *testing.T) {
	s := newServer(t, &script{ready: fmt.Errorf("books: %w", errSecret)})
	w := call{method: "GET", path: "/readyz"}.to(s)
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("not ready: %d %s", w.Code, w.Body)
	}
}

// A caller who may read gets every reason, others what kind of trouble it is.
func TestReadyReasons(t *testing.T) {
	full := fmt.Errorf("%w: project books waits", ErrDiskFull)
	failed := errors.New("project news has failed")
	for _, tt := range []struct {
		status, reasons string
		ready           error
	}{
		{status: "a project waits for room on the disk", reasons: `["no room on the disk: project books waits"]`, ready: errors.Join(full)},
		{status: "a project does not run that should", reasons: `["no room on the disk: project books waits","project news has failed"]`, ready: errors.Join(full, failed)},
	} {
		s := newServer(t, &script{ready: tt.ready})
		get := call{method: "GET", path: "/readyz"}
		if got, want := strings.TrimSpace(get.to(s).Body.String()), `{"status":"`+tt.status+`"}`; got != want {
			t.Errorf("a stranger reads %s, want %s", got, want)
		}
		if got, want := strings.TrimSpace(get.by(readToken).to(s).Body.String()), `{"status":"`+tt.status+`","reasons":`+tt.reasons+`}`; got != want {
			t.Errorf("a reader reads %s, want %s", got, want)
		}
	}
}
