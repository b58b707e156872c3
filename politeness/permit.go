package politeness

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A Permit is the proof that a host was due. Only Limiter.RequestPermit makes a valid
// one. Copies of it are the same permit.
type Permit struct{ issuedPermit *issuedPermit }

// An issuedPermit is what Limiter remembers of a permit. It is guarded by the lock of
// limits, but for the first three fields, which do not change.
type issuedPermit struct {
	limiter     *Limiter
	host        string
	hostSlots   int        // visits at a time that the crawl asked for
	slotAddr    netip.Addr // whose slot the visit has; zero if none
	addrBoundAt time.Time  // has it
	probeRound  uint64     // of the probes of the NetworkBreaker, if it is one
	ended       bool       // it came back
}

// Host returns the host that may be visited.
func (p Permit) Host() string { return p.state().host }

// HostSlots returns how many visits at a time the host may have, as the crawl sees it:
// the PermitRequest's. It is 0 for a permit that is not valid.
func (p Permit) HostSlots() int { return p.state().hostSlots }

// state returns what was issued; for the zero Permit, what nothing else refers to.
func (p Permit) state() *issuedPermit {
	if p.issuedPermit == nil {
		return &issuedPermit{}
	}
	return p.issuedPermit
}

// WasIssued reports whether p came from Limiter.RequestPermit.
func (p Permit) WasIssued() bool { return p.issuedPermit != nil }

// ClaimServerAddr says that the visit is about to use a connection to addr, and asks
// whether that address, too, is due. It must be asked before anything is sent
// over the connection, also over one that was kept open; asking again for the
// same address changes nothing. It returns a *VisitDelayedError if the address must not be
// visited now, or an error of Kind decorum.Unticketed if the permit is not
// valid or has come back.
func (p Permit) ClaimServerAddr(now time.Time, addr netip.Addr) error {
	if p.issuedPermit == nil {
		return &decorum.Error{Op: "connect to", URL: addr.String(), Kind: decorum.Unticketed}
	}
	return p.issuedPermit.limiter.claimServerAddr(now, p.issuedPermit, addr.Unmap().WithZone(""))
}

// NotDueError is the error of Limiter.RequestPermit for a host that rests: by how much.
type NotDueError time.Duration

// Is makes errors.Is(err, decorum.NotDue) true.
func (t NotDueError) Is(target error) bool { return target == decorum.NotDue }

// Error says by how much.
func (t NotDueError) Error() string {
	return fmt.Sprintf("the host is not due for another %v", time.Duration(t))
}

// VisitDelayedError is the error for a host that is due itself, but has to wait for
// something that it shares with others.
type VisitDelayedError struct {
	Resource string    // what has no room for it
	Until    time.Time // when to ask again
}

// Is makes errors.Is(err, decorum.NotDue) true.
func (b *VisitDelayedError) Is(target error) bool { return target == decorum.NotDue }

// Error says what, and until when.
func (b *VisitDelayedError) Error() string {
	return b.Resource + " is busy until " + b.Until.UTC().Format(time.RFC3339)
}
