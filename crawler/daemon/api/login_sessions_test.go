package api

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// logIn logs a browser in and returns its cookie.
func logIn(t *testing.T, s *Server, token string) *http.Cookie {
	t.Helper()
	w := testRequest{method: "POST", path: "/login",
		body: url.Values{"token": {token}, "next": {"/brakes?x=1"}}.Encode()}.
		withHeader("Content-Type", formTypes[0]).withHeader("Accept", "text/html").sendTo(s)
	cookies := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/brakes?x=1" || len(cookies) != 1 {
		t.Fatalf("login: %d, Location %q, cookies %v", w.Code, w.Header().Get("Location"), cookies)
	}
	return cookies[0]
}

func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, &fakeDaemon{})
		c := logIn(t, s, operateToken)
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure || len(c.Value) < 26 {
			t.Errorf("the cookie is %+v", c)
		}
		cookie := c.Name + "=" + c.Value
		page := testRequest{method: "GET", path: "/"}.withHeader("Cookie", cookie)
		if w := page.sendTo(s); w.Body.String() != "page of operator" {
			t.Errorf("the body is %q", w.Body)
		}
		stop := testRequest{method: "POST", path: "/api/v1/projects/books/stop"}.withHeader("Cookie", cookie)
		if w := stop.sendTo(s); w.Code != http.StatusOK {
			t.Errorf("an action: %d", w.Code)
		}
		checkProblem(t, stop.withHeader("Origin", "null").sendTo(s), http.StatusForbidden)
		if w := (testRequest{method: "POST", path: "/logout"}).withHeader("Cookie",
			cookie).sendTo(s); w.Code != http.StatusNoContent {
			t.Errorf("logout: %d", w.Code)
		}
		checkProblem(t, stop.sendTo(s), http.StatusUnauthorized)

		c = logIn(t, s, readToken)
		page = testRequest{method: "GET", path: "/"}.withHeader("Cookie", c.Name+"="+c.Value)
		if w := page.sendTo(s); w.Body.String() != "page of reader" {
			t.Errorf("the body is %q", w.Body)
		}
		post := testRequest{method: "POST", path: "/brakes"}.withHeader("Cookie", c.Name+"="+c.Value)
		checkProblem(t, post.sendTo(s), http.StatusForbidden)
		time.Sleep(sessionLifetime)
		checkProblem(t, page.sendTo(s), http.StatusUnauthorized)
	})
}

func TestSessionsAreBounded(t *testing.T) {
	var s loginSessions
	now := time.Now()
	valid := func([sha256.Size]byte) bool { return true }
	operator, reader := Caller{"a", RoleOperate}, Caller{"b", RoleRead}
	other := s.create(operator, "", now)
	first := s.create(reader, "", now)
	for i := range 1000 { // the throttle does not limit callers with a valid token
		s.create(reader, "", now.Add(time.Duration(i+1)*time.Second))
	}
	if len(s.byIDHash) != maxSessionsPerToken+1 || s.callerOf(first, valid) != (Caller{}) ||
		s.callerOf(other, valid) != operator {
		t.Errorf("%d sessions are open, the first is of %v, and the operator's of %v", len(s.byIDHash),
			s.callerOf(first, valid), s.callerOf(other, valid))
	}
}

// When a token is replaced, the old one, its logins and its event streams end at once. Other tokens stay.
func TestRotateToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, &fakeDaemon{})
		rotate := testRequest{method: "POST", path: "/api/v1/tokens/operator/rotate"}
		cookie := logIn(t, s, operateToken)
		login := testRequest{method: "GET", path: "/api/v1/projects"}.withHeader("Cookie", cookie.Name+"="+cookie.Value)
		if w := login.sendTo(s); w.Code != http.StatusOK {
			t.Fatalf("logged in: %d", w.Code)
		}
		streamEnded := make(chan struct{})
		go func() {
			defer close(streamEnded)
			testRequest{method: "GET", path: "/api/v1/events"}.withToken(operateToken).sendTo(s)
		}()
		synctest.Wait() // the stream is open
		checkProblem(t, rotate.withToken(readToken).sendTo(s), http.StatusForbidden)
		unknown := testRequest{method: "POST", path: "/api/v1/tokens/x/rotate"}.withToken(operateToken)
		checkProblem(t, unknown.sendTo(s), http.StatusNotFound)
		select {
		case <-streamEnded:
			t.Error("the stream ended before the token was replaced")
		default:
		}
		w := rotate.withToken(operateToken).sendTo(s)
		if w.Code != http.StatusOK || strings.Contains(w.Body.String(), rotatedToken) {
			t.Errorf("the answer is %d %s; want one without the token", w.Code, w.Body)
		}
		<-streamEnded
		get := testRequest{method: "GET", path: "/api/v1/projects"}
		checkProblem(t, get.withToken(operateToken).sendTo(s), http.StatusUnauthorized)
		checkProblem(t, login.sendTo(s), http.StatusUnauthorized)
		for _, token := range []string{rotatedToken, readToken} {
			if w := get.withToken(token).sendTo(s); w.Code != http.StatusOK {
				t.Errorf("%s: %d", token, w.Code)
			}
		}
	})
}

// A new token that may not be durable is valid, and the caller learns of the failure.
func TestRotateTokenNotDurable(t *testing.T) {
	s := newServer(t, &fakeDaemon{}, func(cfg *ServerConfig) {
		cfg.RotateToken = func(name string) (APIKey, string, error) {
			return APIKeyFromToken(name, RoleOperate, rotatedToken), "/data/token", errors.New("no sync")
		}
	})
	rotate := testRequest{method: "POST", path: "/api/v1/tokens/operator/rotate"}
	checkProblem(t, rotate.withToken(operateToken).sendTo(s), http.StatusInternalServerError)
	get := testRequest{method: "GET", path: "/api/v1/projects"}
	checkProblem(t, get.withToken(operateToken).sendTo(s), http.StatusUnauthorized)
	if w := get.withToken(rotatedToken).sendTo(s); w.Code != http.StatusOK {
		t.Errorf("the token in the file: %d", w.Code)
	}
}

func TestLogin(t *testing.T) {
	s := newServer(t, &fakeDaemon{})
	form := func(token, next string) testRequest {
		return testRequest{method: "POST", path: "/login",
			body: url.Values{"token": {token}, "next": {next}}.Encode()}.withHeader("Content-Type", formTypes[0])
	}
	if w := form("guess", "/audit").withHeader("Accept", "text/html").sendTo(s); w.Code != http.StatusSeeOther ||
		w.Header().Get("Location") != "/login?failed=1&next=%2Faudit" {
		t.Errorf("a wrong token leads to %q", w.Header().Get("Location"))
	}
	checkProblem(t, form("guess", "").sendTo(s), http.StatusUnauthorized)
	for _, next := range []string{"//evil.example", "https://evil.example/", `/\evil.example`,
		"evil", "", "/\t/evil.example"} {
		if w := form(operateToken, next).withHeader("Accept",
			"text/html").sendTo(s); w.Header().Get("Location") != "/" {
			t.Errorf("next=%q leads to %q", next, w.Header().Get("Location"))
		}
	}
	checkProblem(t, form(operateToken, "").withHeader("Origin", "https://evil.example").sendTo(s), http.StatusForbidden)
	page, err := s.cfg.AuditLog.Page(0, 100)
	if err != nil || len(page.Entries) != 9 {
		t.Fatalf("the audit has %d entries, %v", len(page.Entries), err)
	}
	if e := page.Entries[8]; e.Status != http.StatusUnauthorized || e.Who != "" {
		t.Errorf("the audit entry of the wrong token is %+v", e)
	}
	if e := page.Entries[1]; e.Status != http.StatusSeeOther || e.Who != "operator" {
		t.Errorf("the audit entry of the valid token is %+v", e)
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
