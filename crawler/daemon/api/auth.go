package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"github.com/decorum-crawler/decorum/internal/connlimit"
	"github.com/decorum-crawler/decorum/internal/recent"
)

// A Role is what a caller may do.
type Role string

// The roles. RoleOperate includes RoleRead.
const (
	RolePublic  Role = ""        // calls that need no token
	RoleRead    Role = "read"    // read everything except project files, which may hold passwords
	RoleOperate Role = "operate" // read and change everything
)

// Allows reports whether a caller with the role r may make a call that needs the role needed.
func (r Role) Allows(needed Role) bool {
	return needed == RolePublic || r == RoleOperate || r == RoleRead && needed == RoleRead
}

// An APIKey gives a role to the holder of a token.
type APIKey struct {
	Name string // of its holder, for the audit
	Role Role
	Hash [sha256.Size]byte // SHA-256 of the token; the token itself is not kept
}

// APIKeyFromToken returns the APIKey for a token.
func APIKeyFromToken(name string, role Role, token string) APIKey {
	return APIKey{Name: name, Role: role, Hash: sha256.Sum256([]byte(token))}
}

// A Caller is the caller of an API call. The zero Caller is an unknown one.
type Caller struct {
	Name string // of the APIKey; empty: the caller is unknown
	Role Role   // RolePublic if the caller is unknown
}

// authenticateToken returns the caller that a token belongs to, and whether one of keys has it. It
// compares hashes, and always compares all keys, so that its duration does not reveal how close a
// guess was.
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

// An apiKeySet holds the keys that callers may present. A rotation replaces one of them.
type apiKeySet struct {
	rotation sync.Mutex // held during a rotation, so that the file and the set get the keys in one order

	mu      sync.RWMutex // guards keys and changed
	keys    []APIKey
	changed chan struct{} // closed at the next rotation
}

// authenticate returns the caller that a token belongs to, and whether a key of the set has it.
func (k *apiKeySet) authenticate(token string) (Caller, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return authenticateToken(k.keys, token)
}

// has reports whether the set has a key with this hash.
func (k *apiKeySet) has(hash [sha256.Size]byte) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return slices.ContainsFunc(k.keys, func(key APIKey) bool { return key.Hash == hash })
}

// nextRotation returns a channel that the next rotation closes.
func (k *apiKeySet) nextRotation() <-chan struct{} {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.changed
}

// rotate replaces the key that has the name of the key which newKey returns, also if newKey returns both a
// key and an error.
func (k *apiKeySet) rotate(newKey func() (APIKey, error)) error {
	k.rotation.Lock()
	defer k.rotation.Unlock()
	key, err := newKey()
	if key == (APIKey{}) {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.keys, func(old APIKey) bool { return old.Name == key.Name })
	if i < 0 {
		return fmt.Errorf("there is no key %s to replace", key.Name)
	}
	k.keys = slices.Clone(k.keys)
	k.keys[i] = key
	close(k.changed)
	k.changed = make(chan struct{})
	return err
}

// A TokenRotation is the result of replacing a token. It does not contain the token, because callers with
// a token of their own may not use another one.
type TokenRotation struct {
	Name string `json:"name"` // of the key, as the audit names its holder
	Role Role   `json:"role"`
	File string `json:"file"` // holds the new token, on the daemon's machine
}

// rotateToken replaces a token of the daemon. The old token, and the logins and event streams that it
// opened, end at once.
func (s *Server) rotateToken(_ http.ResponseWriter, r *http.Request) (reply, error) {
	if s.cfg.RotateToken == nil {
		return reply{}, NotFound("the tokens of this daemon cannot be replaced by a call")
	}
	var result TokenRotation
	err := s.keys.rotate(func() (key APIKey, err error) {
		key, result.File, err = s.cfg.RotateToken(r.PathValue("token"))
		result.Name, result.Role = key.Name, key.Role
		return key, err
	})
	if err != nil {
		return reply{}, err
	}
	s.cfg.Log.Info("a token of the API is replaced; the old one is not valid any more", "token", result.Name,
		"by", CallerFromContext(r.Context()).Name)
	return reply{body: result}, nil
}

type callerContextKey struct{}

// CallerFromContext returns the caller of the call that ctx belongs to. It is the zero Caller for a
// call that needs no token.
func CallerFromContext(ctx context.Context) Caller {
	c, _ := ctx.Value(callerContextKey{}).(Caller)
	return c
}

// authenticateAndTrustConn identifies the caller by the token, by the session, or by the socket
// that the call came through, in this order. It marks the connection of a known caller as trusted.
// An invalid token is an error; a call without credentials returns the zero Caller.
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
		c, ok := s.keys.authenticate(strings.TrimSpace(token))
		if !ok {
			return Caller{}, unauthorizedProblem("the token is not valid for this daemon")
		}
		return c, nil
	}
	if cookie, err := r.Cookie(sessionCookieNameFor(r)); err == nil {
		return s.sessions.callerOf(cookie.Value, s.keys.has), nil
	}
	if isFromSocket(r) {
		return Caller{Name: SocketCallerName, Role: RoleOperate}, nil
	}
	return Caller{}, nil
}

func unauthorizedProblem(detail string) *Problem {
	return newProblem(http.StatusUnauthorized, "%s", detail)
}

// authenticateUnlessPublic returns the caller of a call that needs a role, or an error if a call
// that is not public has no valid credentials. Each invalid token counts against the throttle of
// the caller's network. A valid token is accepted even if the throttle is exhausted, so that other
// callers behind the same address cannot lock its holder out. Tokens are random and cannot be
// guessed; the throttle only limits the work that invalid ones cause.
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

// checkRole returns the problem (403) of a caller that lacks the role needed, and nil if c has it.
func checkRole(c Caller, needed Role) error {
	if c.Role.Allows(needed) {
		return nil
	}
	return newProblem(http.StatusForbidden, "%s has the role %s; this call needs the role %s", c.Name, c.Role, needed)
}

// The limits of an untrustedThrottle: how often a network may present an invalid token, or cause
// an audit entry without a valid one.
const (
	guessesPerSecond  = 0.5
	guessBurst        = 20
	throttledNetworks = 10_000 // networks remembered: at least so many, at most twice as many
)

// An untrustedThrottle limits what callers without a valid token can do, by network.
type untrustedThrottle struct {
	mu       sync.Mutex                        // guards limiters
	limiters recent.Map[string, *rate.Limiter] // by connlimit.NetworkPrefix
}

// allow reports whether the network of an address is within the limits, and counts the attempt.
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

// retryAfterSeconds is the Retry-After of throttled and unavailable calls: the time after which
// guessesPerSecond allows another token.
const retryAfterSeconds = "2"

func tooManyRequestsProblem() *Problem {
	return newProblem(http.StatusTooManyRequests,
		"too many invalid tokens from this address: wait %s seconds", retryAfterSeconds)
}

// acceptsHTML reports whether the caller is a browser, which shows the answer to a person.
func acceptsHTML(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// LocalRedirectPath returns the path to redirect to after a form whose field is next. It returns
// next if that is a path of this server, and / for anything else, as //evil.example.
func LocalRedirectPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.Contains(next, `\`) {
		return "/"
	}
	return u.RequestURI()
}
