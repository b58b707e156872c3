package politeness

import (
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A Permit is the proof that a host was due. Only Limits.Admit makes a valid
// one.
type Permit struct {
	host string
	at   time.Time
}

// Host returns the host that may be visited.
func (p Permit) Host() string { return p.host }

// At returns when the permit was given.
func (p Permit) At() time.Time { return p.at }

// Valid reports whether p came from Limits.Admit.
func (p Permit) Valid() bool { return !p.at.IsZero() }

// TooEarly is the error of Limits.Admit: by how much.
type TooEarly time.Duration

// Is makes errors.Is(err, decorum.NotDue) true.
func (t TooEarly) Is(target error) bool { return target == decorum.NotDue }

// Error says by how much.
func (t TooEarly) Error() string {
	return fmt.Sprintf("the host is not due for another %v", time.Duration(t))
}
