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
	sessionCookieName   = "decorum_session"
	sessionLifetime     = 12 * time.Hour // how long a browser stays logged in
	maxSessionsPerToken = 100            // of one token at a time; a new one replaces the token's session that ends first
)

// loginSessions are the browsers that are logged in, by the hash of their id. They are
// in memory only: after a restart one logs in again.
type loginSessions struct {
	mu       sync.Mutex
	byIDHash map[[sha256.Size]byte]loginSession
}

type loginSession struct {
	caller    Caller
	expiresAt time.Time
}

// create opens a session and returns its id.
func (s *loginSessions) create(c Caller, now time.Time) string {
	id := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byIDHash == nil {
		s.byIDHash = map[[sha256.Size]byte]loginSession{}
	}
	s.evictOldestOfCallerIfAtLimit(c)
	s.byIDHash[sha256.Sum256([]byte(id))] = loginSession{c, now.Add(sessionLifetime)}
	return id
}

// evictOldestOfCallerIfAtLimit drops the caller's session that ends first if the caller has maxSessionsPerToken.
// It keeps the sessions of other callers, so that a reader cannot end an operator's
// session. It requires the lock.
func (s *loginSessions) evictOldestOfCallerIfAtLimit(c Caller) {
	var first [sha256.Size]byte
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

// callerOf returns whose session it is: nobody's if it has ended. An id is found by
// its hash, of which the time of the look-up says nothing of use.
func (s *loginSessions) callerOf(id string) Caller {
	hash := sha256.Sum256([]byte(id))
	s.mu.Lock()
	defer s.mu.Unlock()
	sess, ok := s.byIDHash[hash]
	if ok && !time.Now().Before(sess.expiresAt) {
		delete(s.byIDHash, hash)
		return Caller{}
	}
	return sess.caller
}

func (s *loginSessions) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byIDHash, sha256.Sum256([]byte(id)))
}

// login opens a session for who has a token. A browser is sent on to where it
// wanted to go, or back with ?failed=1; all others are told by the status.
func (s *Server) login(w http.ResponseWriter, r *http.Request) (reply, error) {
	if err := r.ParseForm(); err != nil {
		return reply{}, bodyProblem(err)
	}
	c, ok := authenticateToken(s.cfg.APIKeys, strings.TrimSpace(r.PostForm.Get("token")))
	if !ok {
		err := unauthorizedProblem("the token is not one of this daemon's")
		if !s.wrongTokenThrottle.allow(r.RemoteAddr) {
			err = tooManyRequestsProblem()
		}
		if !acceptsHTML(r) {
			return reply{}, err
		}
		q := url.Values{"failed": {"1"}, "next": {LocalRedirectPath(r.PostForm.Get("next"))}}
		if err.Status == http.StatusTooManyRequests {
			q.Set("wait", retryAfterSeconds)
		}
		pendingAuditEntryOf(r).statusOverride = err.Status
		return redirectReply(w, loginPath+"?"+q.Encode()), nil
	}
	connlimit.ConnFromContext(r.Context()).Trust()
	pendingAuditEntryOf(r).Who, pendingAuditEntryOf(r).Role = c.Name, c.Role
	http.SetCookie(w, newSessionCookie(r, s.sessions.create(c, time.Now()), sessionLifetime))
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

// newSessionCookie returns the session's cookie; a negative lifetime deletes it. It goes nowhere but
// back here, and no script can read it.
func newSessionCookie(r *http.Request, id string, lifetime time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: sessionCookieNameFor(r), Value: id, Path: "/", MaxAge: int(lifetime / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	}
}
