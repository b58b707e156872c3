package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/decorum-crawler/decorum/internal/connlimit"
	"github.com/decorum-crawler/decorum/internal/recent"
)

// A Role is what somebody may do.
type Role string

// The roles. Who may operate may read as well.
const (
	RolePublic  Role = ""        // what anybody may have: no token is asked for
	RoleRead    Role = "read"    // look at everything but project files, which may hold passwords
	RoleOperate Role = "operate" // and change it
)

// Allows reports whether r is enough for what needs another role.
func (r Role) Allows(needed Role) bool {
	return needed == RolePublic || r == RoleOperate || r == RoleRead && needed == RoleRead
}

// An APIKey lets who presents a token in.
type APIKey struct {
	Name string // of its holder, in the audit
	Role Role
	Hash [sha256.Size]byte // SHA-256 of the token
}

// APIKeyFromToken returns the key of a token.
func APIKeyFromToken(name string, role Role, token string) APIKey {
	return APIKey{Name: name, Role: role, Hash: sha256.Sum256([]byte(token))}
}

// A Caller is who makes a call.
type Caller struct {
	Name string // of the APIKey; empty: nobody that is known
	Role Role   // RolePublic if nobody is known
}

// authenticateToken returns whose token it is. It compares hashes, and looks at all keys
// whatever it finds, so that its time says nothing of how near a guess was.
func authenticateToken(keys []APIKey, token string) (Caller, bool) {
	hash := sha256.Sum256([]byte(token))
	found := -1
	for i, k := range keys {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(hash[:], k.Hash[:]), i, found)
	}
	if found < 0 {
		return Caller{}, false
	}
	return Caller{keys[found].Name, keys[found].Role}, true
}

type callerContextKey struct{}

// CallerFromContext returns who makes the call that ctx is of: the zero Caller if it is
// one that needs no token.
func CallerFromContext(ctx context.Context) Caller {
	c, _ := ctx.Value(callerContextKey{}).(Caller)
	return c
}

// authenticateAndTrustConn finds the caller of a call by the token, by the session, or by the
// socket that the call came through, in this order, and trusts the connection if it knows the
// caller. It returns an error for an invalid token.
func (s *Server) authenticateAndTrustConn(r *http.Request) (c Caller, err error) {
	defer func() {
		if c != (Caller{}) {
			connlimit.ConnFromContext(r.Context()).Trust()
		}
	}()
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, token, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return Caller{}, unauthorizedProblem("the scheme of Authorization must be Bearer")
		}
		c, ok := authenticateToken(s.cfg.APIKeys, strings.TrimSpace(token))
		if !ok {
			return Caller{}, unauthorizedProblem("the token is not one of this daemon's")
		}
		return c, nil
	}
	if cookie, err := r.Cookie(sessionCookieNameFor(r)); err == nil {
		return s.sessions.callerOf(cookie.Value), nil
	}
	if isFromSocket(r) {
		return Caller{Name: SocketCallerName, Role: RoleOperate}, nil
	}
	return Caller{}, nil
}

func unauthorizedProblem(detail string) *Problem {
	return newProblem(http.StatusUnauthorized, "%s", detail)
}

// authenticateUnlessPublic lets a call in that needs a role, and returns why not. A token that is
// none costs its address a slot of the throttle. One that is good always opens,
// so that nobody is locked out by what others do from behind the same address:
// tokens are random, and guessing them is not what the throttle is against.
func (s *Server) authenticateUnlessPublic(r *http.Request, needed Role) (Caller, error) {
	c, err := s.authenticateAndTrustConn(r)
	switch {
	case err != nil && !s.wrongTokenThrottle.allow(r.RemoteAddr):
		return c, tooManyRequestsProblem()
	case needed == RolePublic:
		return c, nil
	case err == nil && c == Caller{}:
		err = unauthorizedProblem("send a token as Authorization: Bearer TOKEN, or log in")
	}
	return c, err
}

// checkRole returns why a caller may not do what needs a role.
func checkRole(c Caller, needed Role) error {
	if c.Role.Allows(needed) {
		return nil
	}
	return newProblem(http.StatusForbidden, "%s has the role %s, and this needs %s", c.Name, c.Role, needed)
}

// How often an address may present a token that is none, or be in the audit without
// a good one, and how many addresses are remembered at least, twice as many at most.
const (
	guessesPerSecond  = 0.5
	guessBurst        = 20
	throttledNetworks = 10_000
)

// An untrustedThrottle slows who has no good token.
type untrustedThrottle struct {
	mu       sync.Mutex                        // guards limiters
	limiters recent.Map[string, *rate.Limiter] // by network
}

// allow reports whether one more may come from an address, and counts it.
func (t *untrustedThrottle) allow(remote string) bool {
	network := connlimit.NetworkPrefix(remote)
	t.mu.Lock()
	defer t.mu.Unlock()
	l, ok := t.limiters.Get(network, throttledNetworks)
	if !ok {
		l = rate.NewLimiter(guessesPerSecond, guessBurst)
		t.limiters.Put(network, l, throttledNetworks)
	}
	return l.Allow()
}

// retryAfterSeconds is how long one waits until another guess is heard.
const retryAfterSeconds = "2"

func tooManyRequestsProblem() *Problem {
	return newProblem(http.StatusTooManyRequests, "too many tokens that are none, from this address: wait %s seconds", retryAfterSeconds)
}

const (
	sessionCookieName   = "decorum_session"
	sessionLifetime     = 12 * time.Hour // how long a browser stays logged in
	maxSessionsPerToken = 100            // of one token at a time; a new one replaces the token's session that ends first
)

// sessions are the browsers that are logged in, by the hash of their id. They are
// in memory only: after a restart one logs in again.
type sessions struct {
	mu       sync.Mutex
	byIDHash map[[sha256.Size]byte]session
}

type session struct {
	caller    Caller
	expiresAt time.Time
}

// create opens a session and returns its id.
func (s *sessions) create(c Caller, now time.Time) string {
	id := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byIDHash == nil {
		s.byIDHash = map[[sha256.Size]byte]session{}
	}
	s.evictOldestOfCallerIfAtLimit(c)
	s.byIDHash[sha256.Sum256([]byte(id))] = session{c, now.Add(sessionLifetime)}
	return id
}

// evictOldestOfCallerIfAtLimit drops the caller's session that ends first if the caller has maxSessionsPerToken.
// It keeps the sessions of other callers, so that a reader cannot end an operator's
// session. It requires the lock.
func (s *sessions) evictOldestOfCallerIfAtLimit(c Caller) {
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
func (s *sessions) callerOf(id string) Caller {
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

func (s *sessions) remove(id string) {
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

// acceptsHTML reports whether a person looks at the answer.
func acceptsHTML(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// LocalRedirectPath returns where a form leads that asks for next: a path of this server,
// / if next is anything else, as //evil.example would be.
func LocalRedirectPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.Contains(next, `\`) {
		return "/"
	}
	return u.RequestURI()
}
