package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/decorum-crawler/decorum/internal/connlimit"
)

// A Role is what somebody may do.
type Role string

// The roles. Who may operate may read as well.
const (
	Open    Role = ""        // what anybody may have: no token is asked for
	Read    Role = "read"    // look at everything but project files, which may hold passwords
	Operate Role = "operate" // and change it
)

// May reports whether r is enough for what needs another role.
func (r Role) May(needed Role) bool {
	return needed == Open || r == Operate || r == Read && needed == Read
}

// A Key lets who presents a token in.
type Key struct {
	Name string // of its holder, in the audit
	Role Role
	Hash [sha256.Size]byte // SHA-256 of the token
}

// NewKey returns the key of a token.
func NewKey(name string, role Role, token string) Key {
	return Key{Name: name, Role: role, Hash: sha256.Sum256([]byte(token))}
}

// A Caller is who makes a call.
type Caller struct {
	Name string // of the Key; empty: nobody that is known
	Role Role   // Open if nobody is known
}

// find returns whose token it is. It compares hashes, and looks at all keys
// whatever it finds, so that its time says nothing of how near a guess was.
func find(keys []Key, token string) (Caller, bool) {
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

type callerKey struct{}

// CallerOf returns who makes the call that ctx is of: the zero Caller if it is
// one that needs no token.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// caller identifies the caller of a call, and trusts the connection if it knows the
// caller. It returns an error for an invalid token.
func (s *Server) caller(r *http.Request) (Caller, error) {
	c, err := s.identify(r)
	if c != (Caller{}) {
		connlimit.Of(r.Context()).Trust()
	}
	return c, err
}

// identify finds the caller by the token, by the session, or by the socket that the
// call came through, in this order.
func (s *Server) identify(r *http.Request) (Caller, error) {
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, token, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return Caller{}, unauthorized("the scheme of Authorization must be Bearer")
		}
		c, ok := find(s.cfg.Keys, strings.TrimSpace(token))
		if !ok {
			return Caller{}, unauthorized("the token is not one of this daemon's")
		}
		return c, nil
	}
	if cookie, err := r.Cookie(cookieName(r)); err == nil {
		return s.sessions.find(cookie.Value), nil
	}
	if fromSocket(r) {
		return Caller{Name: SocketCaller, Role: Operate}, nil
	}
	return Caller{}, nil
}

func unauthorized(detail string) *Problem { return problem(http.StatusUnauthorized, "%s", detail) }

// enter lets a call in that needs a role, and returns why not. A token that is
// none costs its address a slot of the throttle. One that is good always opens,
// so that nobody is locked out by what others do from behind the same address:
// tokens are random, and guessing them is not what the throttle is against.
func (s *Server) enter(r *http.Request, needed Role) (Caller, error) {
	c, err := s.caller(r)
	switch {
	case err != nil && !s.throttle.allow(r.RemoteAddr):
		return c, tooMany()
	case err != nil && needed != Open:
		return c, err
	case needed == Open:
		return c, nil
	case c == Caller{}:
		return c, unauthorized("send a token as Authorization: Bearer TOKEN, or log in")
	}
	return c, nil
}

// allowed returns why a caller may not do what needs a role.
func allowed(c Caller, needed Role) error {
	if c.Role.May(needed) {
		return nil
	}
	return problem(http.StatusForbidden, "%s has the role %s, and this needs %s", c.Name, c.Role, needed)
}
