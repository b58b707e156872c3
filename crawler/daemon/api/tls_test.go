package api

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// Over TLS the session cookie is bound to the host, and browsers get the header for HSTS. A cookie
// without the prefix, which another server of the domain may have set, is ignored.
func TestSessionOverTLS(t *testing.T) {
	s := newServer(t, &fakeDaemon{})
	s.cfg.AllowedHosts = []string{"crawler.example"}
	do := func(method, host string, secure bool, cookies ...*http.Cookie) *http.Response {
		t.Helper()
		body := strings.NewReader(url.Values{"token": {operateToken}}.Encode())
		r := httptest.NewRequestWithContext(t.Context(), method, "http://"+host+"/login", body)
		if method == http.MethodGet {
			r = httptest.NewRequestWithContext(t.Context(), method, "http://"+host+"/api/v1/projects", nil)
		}
		r.Header.Set("Content-Type", formTypes[0])
		if r.TLS = nil; secure {
			r.TLS = &tls.ConnectionState{}
		}
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Result()
	}
	for _, tt := range []struct {
		host   string
		secure bool
		name   string
		hsts   string
	}{
		{"crawler.example", true, "__Host-decorum_session", "max-age=31536000"},
		{"crawler.example:8470", true, "__Host-decorum_session", "max-age=31536000"},
		{"localhost:8470", true, "__Host-decorum_session", ""},
		{"crawler.example", false, "decorum_session", ""},
	} {
		res := do(http.MethodPost, tt.host, tt.secure)
		cookies := res.Cookies()
		if len(cookies) != 1 {
			t.Fatalf("%s: %s, cookies %v", tt.host, res.Status, cookies)
		}
		c := cookies[0]
		if c.Name != tt.name || c.Secure != tt.secure || c.Path != "/" || c.Domain != "" ||
			res.Header.Get("Strict-Transport-Security") != tt.hsts {
			t.Errorf("%s, TLS %v: cookie %v, HSTS %q", tt.host, tt.secure, c,
				res.Header.Get("Strict-Transport-Security"))
		}
		if res := do(http.MethodGet, tt.host, tt.secure, c); res.StatusCode != http.StatusOK {
			t.Errorf("%s: with the cookie %s", tt.host, res.Status)
		}
		planted := &http.Cookie{Name: "decorum_session", Value: c.Value}
		if res := do(http.MethodGet, tt.host, true, planted); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: with a cookie that any server of the domain may set %s", tt.host, res.Status)
		}
	}
}
