package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"
	"sync"

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
