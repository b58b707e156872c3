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
	sessionCookie       = "decorum_session"
	sessionFor          = 12 * time.Hour // how long a browser stays logged in
	maxSessionsPerToken = 100            // of one token at a time; a new one replaces the token's session that ends first
)

// sessions are the browsers that are logged in, by the hash of their id. They are
// in memory only: after a restart one logs in again.
type sessions struct {
	mu   sync.Mutex
	open map[[sha256.Size]byte]session
}

type session struct {
	caller Caller
	until  time.Time
}

// begin opens a session and returns its id.
func (s *sessions) begin(c Caller, now time.Time) string {
	id := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[[sha256.Size]byte]session{}
	}
	s.evictOldestIfAtLimit(c)
	s.open[sha256.Sum256([]byte(id))] = session{c, now.Add(sessionFor)}
	return id
}

// evictOldestIfAtLimit drops the caller's session that ends first if the caller has maxSessionsPerToken.
// It keeps the sessions of other callers, so that a reader cannot end an operator's
// session. It requires the lock.
func (s *sessions) evictOldestIfAtLimit(c Caller) {
	var first [sha256.Size]byte
	count := 0
	for id, one := range s.open {
		if one.caller != c {
			continue
		}
		if was, ok := s.open[first]; !ok || one.until.Before(was.until) {
			first = id
		}
		count++
	}
	if count >= maxSessionsPerToken {
		delete(s.open, first)
	}
}

// cookieName returns the name of the session's cookie. Over TLS a browser accepts a
// cookie whose name begins with __Host- only from this host, for all of its paths, and
// over TLS (RFC 6265bis), so that no other server of the domain can plant one.
func cookieName(r *http.Request) string {
	if r.TLS != nil {
		return "__Host-" + sessionCookie
	}
	return sessionCookie
}

// find returns whose session it is: nobody's if it has ended. An id is found by
// its hash, of which the time of the look-up says nothing of use.
func (s *sessions) find(id string) Caller {
	hash := sha256.Sum256([]byte(id))
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.open[hash]
	if ok && !time.Now().Before(one.until) {
		delete(s.open, hash)
		return Caller{}
	}
	return one.caller
}

func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sha256.Sum256([]byte(id)))
}

// login opens a session for who has a token. A browser is sent on to where it
// wanted to go, or back with ?failed=1; all others are told by the status.
func (s *Server) login(w http.ResponseWriter, r *http.Request) (reply, error) {
	if err := r.ParseForm(); err != nil {
		return reply{}, badBody(err)
	}
	c, ok := find(s.cfg.Keys, strings.TrimSpace(r.PostForm.Get("token")))
	if !ok {
		err := unauthorized("the token is not one of this daemon's")
		if !s.throttle.allow(r.RemoteAddr) {
			err = tooMany()
		}
		if !fromBrowser(r) {
			return reply{}, err
		}
		q := url.Values{"failed": {"1"}, "next": {LocalPath(r.PostForm.Get("next"))}}
		if err.Status == http.StatusTooManyRequests {
			q.Set("wait", retrySeconds)
		}
		noteOf(r).refused = err.Status
		return seeOther(loginPath + "?" + q.Encode()), nil
	}
	connlimit.Of(r.Context()).Trust()
	noteOf(r).Who, noteOf(r).Role = c.Name, c.Role
	http.SetCookie(w, s.cookie(r, s.sessions.begin(c, time.Now()), sessionFor))
	if fromBrowser(r) {
		return seeOther(LocalPath(r.PostForm.Get("next"))), nil
	}
	return reply{}, nil
}

// logout ends the caller's session.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) (reply, error) {
	if cookie, err := r.Cookie(cookieName(r)); err == nil {
		s.sessions.end(cookie.Value)
	}
	http.SetCookie(w, s.cookie(r, "", -1))
	if fromBrowser(r) {
		return seeOther(loginPath), nil
	}
	return reply{}, nil
}

// cookie returns the session's cookie. It goes nowhere but back here, and no
// script can read it.
func (s *Server) cookie(r *http.Request, id string, lives time.Duration) *http.Cookie {
	age := int(lives / time.Second)
	if lives < 0 {
		age = -1
	}
	return &http.Cookie{
		Name: cookieName(r), Value: id, Path: "/", MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	}
}

// fromBrowser reports whether a person looks at the answer.
func fromBrowser(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// LocalPath returns where a form leads that asks for next: a path of this server,
// / if next is anything else, as //evil.example would be.
func LocalPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.Contains(next, `\`) {
		return "/"
	}
	return u.RequestURI()
}
