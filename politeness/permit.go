package politeness

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A Permit is the proof that a host was due. Only Limits.Request makes a valid
// one. Copies of it are the same permit.
type Permit struct{ grant *grant }

// A grant is what Limits remembers of a permit. It is guarded by the lock of
// limits, but for the first four fields, which do not change.
type grant struct {
	limits *Limits
	host   string
	at     time.Time
	slots  int        // visits at a time that the crawl asked for
	addr   netip.Addr // whose slot the visit has; zero if none
	since  time.Time  // has it
	round  uint64     // of the probes of the Breaker, if it is one
	over   bool       // it came back
}

// end takes a grant back; false if there is none, or it came back before.
func (g *grant) end() bool {
	if g == nil || g.over {
		return false
	}
	g.over = true
	return true
}

// Host returns the host that may be visited.
func (p Permit) Host() string {
	if p.grant == nil {
		return ""
	}
	return p.grant.host
}

// At returns when the permit was given.
func (p Permit) At() time.Time {
	if p.grant == nil {
		return time.Time{}
	}
	return p.grant.at
}

// Slots returns how many visits at a time the host may have, as the crawl sees it:
// the Wish's. It is 0 for a permit that is not valid.
func (p Permit) Slots() int {
	if p.grant == nil {
		return 0
	}
	return p.grant.slots
}

// Valid reports whether p came from Limits.Request.
func (p Permit) Valid() bool { return p.grant != nil }

// Bind says that the visit is about to use a connection to addr, and asks
// whether that address, too, is due. It must be asked before anything is sent
// over the connection, also over one that was kept open; asking again for the
// same address changes nothing. It returns a *Busy if the address must not be
// visited now, or an error of Kind decorum.Unticketed if the permit is not
// valid or has come back.
func (p Permit) Bind(now time.Time, addr netip.Addr) error {
	if p.grant == nil {
		return &decorum.Error{Op: "connect to", URL: addr.String(), Kind: decorum.Unticketed}
	}
	return p.grant.limits.bind(now, p.grant, addr.Unmap().WithZone(""))
}

// TooEarly is the error of Limits.Request for a host that rests: by how much.
type TooEarly time.Duration

// Is makes errors.Is(err, decorum.NotDue) true.
func (t TooEarly) Is(target error) bool { return target == decorum.NotDue }

// Error says by how much.
func (t TooEarly) Error() string {
	return fmt.Sprintf("the host is not due for another %v", time.Duration(t))
}

// Busy is the error for a host that is due itself, but has to wait for
// something that it shares with others.
type Busy struct {
	What  string    // what has no room for it
	Until time.Time // when to ask again
}

// Is makes errors.Is(err, decorum.NotDue) true.
func (b *Busy) Is(target error) bool { return target == decorum.NotDue }

// Error says what, and until when.
func (b *Busy) Error() string {
	return b.What + " is busy until " + b.Until.UTC().Format(time.RFC3339)
}
