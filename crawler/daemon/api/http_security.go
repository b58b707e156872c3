package api

import (
	"cmp"
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

// setSecurityHeaders says what no answer of ours may be used for. The page has no script
// or style but those of files of its own.
func setSecurityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, forms would be sent with Origin: null
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// setHSTS makes browsers use only TLS for a year (RFC 6797) after their first visit
// by TLS. It does nothing on localhost, where services on other ports may have no TLS.
// Browsers ignore the header for addresses.
func setHSTS(h http.Header, r *http.Request) {
	if r.TLS != nil && !isLocalhost(hostName(r.Host)) {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// isExemptFromHostCheck reports whether a path is for those who watch the process, or check its
// signatures, by whatever name they know it.
func isExemptFromHostCheck(path string) bool {
	return path == healthPath || path == readyPath || path == keyDirectoryPath
}

// isAllowedHostHeader reports whether a Host header is a name of the daemon: an address, a name
// of loopback, or one of allowedHosts. No name of somebody else's leads here
// then, whatever it resolves to.
func isAllowedHostHeader(host string, allowedHosts []string) bool {
	host = hostName(host)
	_, err := netip.ParseAddr(host)
	isAllowed := func(h string) bool { return strings.EqualFold(h, host) }
	return err == nil || isLocalhost(host) || slices.ContainsFunc(allowedHosts, isAllowed)
}

// hostName returns the name in a Host header, in lower case, without port, brackets and final dot.
func hostName(header string) string {
	if name, _, err := net.SplitHostPort(header); err == nil {
		header = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(header, "[]"), "."))
}

func isLocalhost(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// maxPageFormBytes is how long a form of the page may be: one may be a list of URLs.
const maxPageFormBytes = 8 << 20

// authorizeAndServePage lets a browser in to the page. What a form of it changes is in the
// audit, as is what a call of the API does.
func (s *Server) authorizeAndServePage(w http.ResponseWriter, r *http.Request) {
	r = requestWithAuditNote(r)
	c, err := s.authorize(w, r, requiredPageRole(r))
	if err != nil {
		p := problemOf(s.cfg.Log, r, err)
		if isUnsafeMethod(r.Method) {
			s.appendAudit(r, p.Status, err)
		} else if p.Status == http.StatusUnauthorized && acceptsHTML(r) {
			http.Redirect(w, r, loginPath+"?"+url.Values{"next": {LocalRedirectPath(r.URL.RequestURI())}}.Encode(), http.StatusSeeOther)
			return
		}
		writeProblem(w, p)
		return
	}
	if c == (Caller{}) {
		c, _ = s.authenticateAndTrustConn(r) // an open page may greet who is logged in
	}
	if strings.HasPrefix(r.URL.Path, assetsPath) {
		w.Header().Set("Cache-Control", "no-cache")
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxPageFormBytes)
	authorized := withCaller(r, c)
	sw := &statusRecorder{ResponseWriter: w}
	s.cfg.PageHandler.ServeHTTP(sw, authorized)
	if isUnsafeMethod(r.Method) {
		s.appendAudit(authorized, cmp.Or(sw.status, http.StatusOK), nil)
	}
}

// requiredPageRole returns what a call of the page needs.
func requiredPageRole(r *http.Request) Role {
	switch path := r.URL.Path; {
	case isUnsafeMethod(r.Method):
		return RoleOperate
	case path == loginPath, path == botPath, strings.HasPrefix(path, assetsPath), path == "/favicon.ico":
		return RolePublic
	}
	return RoleRead
}

// A statusRecorder remembers the status of an answer.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader is part of http.ResponseWriter.
func (w *statusRecorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
