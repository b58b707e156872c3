package api

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/internal/connlimit"
)

const (
	sessionCookieName = "decorum_session"
	sessionLifetime   = 12 * time.Hour // how long a browser stays logged in
	// maxSessionsPerToken is the number of sessions of one token at a time. A new session replaces
	// the token's session that ends first.
	maxSessionsPerToken = 100
)

// loginSessions holds the sessions of browsers that are logged in. It keeps them in memory only:
// after a restart of the daemon, people log in again.
type loginSessions struct {
	mu       sync.Mutex                         // guards byIDHash
	byIDHash map[[sha256.Size]byte]loginSession // by the SHA-256 of the session's ID; made by create
}

type loginSession struct {
	caller    Caller
	tokenHash [sha256.Size]byte // of the token that opened the session, which ends when the token is replaced
	expiresAt time.Time
}

// create opens a session for the caller with a token, and returns its ID.
func (s *loginSessions) create(c Caller, token string, now time.Time) string {
	id := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byIDHash == nil {
		s.byIDHash = map[[sha256.Size]byte]loginSession{}
	}
	s.evictOldestOfCallerIfAtLimit(c)
	s.byIDHash[sha256.Sum256([]byte(id))] = loginSession{c, sha256.Sum256([]byte(token)), now.Add(sessionLifetime)}
	return id
}

// evictOldestOfCallerIfAtLimit deletes the caller's session that ends first if the caller has
// maxSessionsPerToken. It keeps the sessions of other callers, so that a caller with the role read
// cannot end an operator's session. The caller holds s.mu.
func (s *loginSessions) evictOldestOfCallerIfAtLimit(c Caller) {
	var first [sha256.Size]byte // the key of the session that ends first
	count := 0
	for id, sess := range s.byIDHash {
		if sess.caller != c {
			continue
		}
		if oldest, ok := s.byIDHash[first]; !ok || sess.expiresAt.Before(oldest.expiresAt) {
			first = id
		}
		count++
	}
	if count >= maxSessionsPerToken {
		delete(s.byIDHash, first)
	}
}

// sessionCookieNameFor returns the name of the session's cookie. Over TLS a browser accepts a
// cookie whose name begins with __Host- only from this host, for all of its paths, and
// over TLS (RFC 6265bis), so that no other server of the domain can plant one.
func sessionCookieNameFor(r *http.Request) string {
	if r.TLS != nil {
		return "__Host-" + sessionCookieName
	}
	return sessionCookieName
}

// callerOf returns the caller of a session, or the zero Caller if the session is unknown or has
// ended, or if isValid returns false for the hash of its token. It looks the ID up by its hash, so that
// the duration does not help to guess an ID.
func (s *loginSessions) callerOf(id string, isValid func(tokenHash [sha256.Size]byte) bool) Caller {
	hash := sha256.Sum256([]byte(id))
	s.mu.Lock()
	defer s.mu.Unlock()
	sess, ok := s.byIDHash[hash]
	if ok && (!time.Now().Before(sess.expiresAt) || !isValid(sess.tokenHash)) {
		delete(s.byIDHash, hash)
		return Caller{}
	}
	return sess.caller
}

// remove ends a session.
func (s *loginSessions) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byIDHash, sha256.Sum256([]byte(id)))
}

// login opens a session for the holder of a token. It redirects a browser to the page that it
// wanted, or back to the login with ?failed=1. Other callers learn the result from the status.
func (s *Server) login(w http.ResponseWriter, r *http.Request) (reply, error) {
	if err := r.ParseForm(); err != nil {
		return reply{}, bodyProblem(err)
	}
	token := strings.TrimSpace(r.PostForm.Get("token"))
	c, ok := s.keys.authenticate(token)
	if !ok {
		err := unauthorizedProblem("the token is not valid for this daemon")
		if !s.wrongTokenThrottle.allow(r.RemoteAddr) {
			err = tooManyRequestsProblem()
		}
		if !acceptsHTML(r) {
			return reply{}, err
		}
		// Redirect a browser back to the login; the audit records the status that the redirect hides.
		q := url.Values{"failed": {"1"}, "next": {LocalRedirectPath(r.PostForm.Get("next"))}}
		if err.Status == http.StatusTooManyRequests {
			q.Set("wait", retryAfterSeconds)
		}
		pendingAuditEntryOf(r).statusOverride = err.Status
		return redirectReply(w, loginPath+"?"+q.Encode()), nil
	}
	connlimit.ConnFromContext(r.Context()).Trust()
	pendingAuditEntryOf(r).Who, pendingAuditEntryOf(r).Role = c.Name, c.Role
	http.SetCookie(w, newSessionCookie(r, s.sessions.create(c, token, time.Now()), sessionLifetime))
	if acceptsHTML(r) {
		return redirectReply(w, LocalRedirectPath(r.PostForm.Get("next"))), nil
	}
	return reply{}, nil
}

// logout ends the caller's session.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) (reply, error) {
	if cookie, err := r.Cookie(sessionCookieNameFor(r)); err == nil {
		s.sessions.remove(cookie.Value)
	}
	http.SetCookie(w, newSessionCookie(r, "", -time.Second))
	if acceptsHTML(r) {
		return redirectReply(w, loginPath), nil
	}
	return reply{}, nil
}

// newSessionCookie returns the session's cookie; a negative lifetime deletes it. Browsers send the
// cookie only with requests that pages of this server make, and hide it from scripts.
func newSessionCookie(r *http.Request, id string, lifetime time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: sessionCookieNameFor(r), Value: id, Path: "/", MaxAge: int(lifetime / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	}
}
