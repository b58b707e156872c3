package api

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// The paths of the page that need no login: they say nothing of the crawls.
const (
	loginPath  = "/login"
	botPath    = "/bot"
	assetsPath = "/assets/"
)

// setHeaders says what no answer of ours may be used for. The page has no script
// or style but those of files of its own.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, forms would be sent with Origin: null
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// demandTLS makes browsers use only TLS for a year (RFC 6797) after their first visit
// by TLS. It does nothing on localhost, where services on other ports may have no TLS.
// Browsers ignore the header for addresses.
func demandTLS(h http.Header, r *http.Request) {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if r.TLS != nil && host != "localhost" && !strings.HasSuffix(host, ".localhost") {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// isNameless reports whether a path is for those who watch the process, or check its
// signatures, by whatever name they know it.
func isNameless(path string) bool { return path == healthPath || path == readyPath || path == keysPath }

// knows reports whether a Host header is a name of the daemon: an address, a name
// of loopback, or one that it was given. No name of somebody else's leads here
// then, whatever it resolves to.
func (s *Server) knows(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.ContainsFunc(s.cfg.Hosts, func(h string) bool {
		return strings.EqualFold(h, host)
	})
}

// pageLimit is how long a form of the page may be: one may be a list of URLs.
const pageLimit = 8 << 20

// servePage lets a browser in to the page. What a form of it changes is in the
// audit, as is what a call of the API does.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	r = noted(r)
	c, err := s.admit(w, r, pageRole(r))
	if err != nil {
		p := s.problemOf(r, err)
		if changes(r.Method) {
			s.keep(r, p.Status, err)
		} else if p.Status == http.StatusUnauthorized && fromBrowser(r) {
			http.Redirect(w, r, loginPath+"?"+url.Values{"next": {LocalPath(r.URL.RequestURI())}}.Encode(), http.StatusSeeOther)
			return
		}
		writeProblem(w, p)
		return
	}
	if c == (Caller{}) {
		c, _ = s.caller(r) // an open page may greet who is logged in
	}
	if strings.HasPrefix(r.URL.Path, assetsPath) {
		w.Header().Set("Cache-Control", "no-cache")
	}
	r.Body = http.MaxBytesReader(w, r.Body, pageLimit)
	inner := withCaller(r, c)
	watched := &statusWriter{ResponseWriter: w}
	s.cfg.Page.ServeHTTP(watched, inner)
	if changes(r.Method) {
		s.keep(inner, watched.code(), nil)
	}
}

// pageRole returns what a call of the page needs.
func pageRole(r *http.Request) Role {
	switch path := r.URL.Path; {
	case changes(r.Method):
		return Operate
	case path == loginPath, path == botPath, strings.HasPrefix(path, assetsPath), path == "/favicon.ico":
		return Open
	}
	return Read
}

// A statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader is part of http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusWriter) code() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}
