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

// The paths of the page that need no login, because they reveal nothing about the crawls.
const (
	loginPath  = "/login"
	botPath    = "/bot"
	assetsPath = "/assets/"
)

// setSecurityHeaders sets the headers that restrict what browsers do with an answer. The page
// loads its scripts and styles only from files of this server.
func setSecurityHeaders(h http.Header) {
	h.Set("Content-Security-Policy",
		"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, forms would be sent with Origin: null
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// setHSTS makes browsers use only TLS for a year after their first visit over TLS (RFC 6797). It
// does nothing on localhost, where services on other ports may lack TLS. Browsers ignore the
// header for IP addresses.
func setHSTS(h http.Header, r *http.Request) {
	if r.TLS != nil && !isLocalhost(hostName(r.Host)) {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// isExemptFromHostCheck reports whether a path is served under any host name: to monitors of the
// process, and to servers that check its signatures.
func isExemptFromHostCheck(path string) bool {
	return path == healthPath || path == readyPath || path == keyDirectoryPath
}

// isAllowedHostHeader reports whether a Host header is a name of the daemon: an IP address, a name
// of localhost, or one of allowedHosts. A browser that resolved another site's name to this
// daemon's address is refused.
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

// maxPageFormBytes is the limit of a form of the page, in bytes. A form may hold a list of URLs.
const maxPageFormBytes = 8 << 20

// authorizeAndServePage serves the page to a caller with the role that requiredPageRole returns,
// and redirects a browser without a session to the login. It records forms that may change
// something in the audit, as the API does with its calls.
func (s *Server) authorizeAndServePage(w http.ResponseWriter, r *http.Request) {
	r = requestWithAuditNote(r)
	c, err := s.authorize(w, r, requiredPageRole(r))
	if err != nil {
		p := problemOf(s.cfg.Log, r, err)
		if isUnsafeMethod(r.Method) {
			s.appendAudit(r, p.Status, err)
		} else if p.Status == http.StatusUnauthorized && acceptsHTML(r) {
			http.Redirect(w, r, loginPath+"?"+url.Values{"next": {LocalRedirectPath(r.URL.RequestURI())}}.Encode(),
				http.StatusSeeOther)
			return
		}
		writeProblem(w, p)
		return
	}
	if c == (Caller{}) {
		c, _ = s.authenticateAndTrustConn(r) // a public page shows the caller's name if there is one
	}
	if strings.HasPrefix(r.URL.Path, assetsPath) {
		w.Header().Set("Cache-Control", "no-cache")
	}
	// Serve the page, and keep its status for the audit.
	r.Body = http.MaxBytesReader(w, r.Body, maxPageFormBytes)
	authorized := withCaller(r, c)
	sw := &statusRecorder{ResponseWriter: w}
	s.cfg.PageHandler.ServeHTTP(sw, authorized)
	if isUnsafeMethod(r.Method) {
		s.appendAudit(authorized, cmp.Or(sw.status, http.StatusOK), nil)
	}
}

// requiredPageRole returns the role that a request for the page needs.
func requiredPageRole(r *http.Request) Role {
	switch path := r.URL.Path; {
	case isUnsafeMethod(r.Method):
		return RoleOperate
	case path == loginPath, path == botPath, strings.HasPrefix(path, assetsPath), path == "/favicon.ico":
		return RolePublic
	}
	return RoleRead
}

// A statusRecorder is a ResponseWriter that records the status of the answer.
type statusRecorder struct {
	http.ResponseWriter
	status int // the final status; 0: no header was written
}

// WriteHeader implements http.ResponseWriter.
func (w *statusRecorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the wrapped ResponseWriter, for http.ResponseController.
func (w *statusRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
