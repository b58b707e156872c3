package politeness

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
)

// Brakes holds the brakes in force, at most one for each host name. Crawls of one process share it
// and react to changes at once. The zero Brakes is empty. Methods may be called concurrently;
// methods that change nothing may be called on nil.
type Brakes struct {
	// mu guards changeCallbacks, and serialises changes of brakes with the callbacks that report
	// them. It is held while callbacks run.
	mu              sync.Mutex
	brakes          atomic.Pointer[map[string]Brake] // by host; the map is never changed, only replaced
	changeCallbacks map[*func()]struct{}             // the functions of NotifyOnChange
}

// Set puts a brake on its host, replacing the host's brake if there is one. All callbacks of
// NotifyOnChange have returned when it returns. It returns the error of b.Validate.
func (bs *Brakes) Set(b Brake) error {
	if err := b.Validate(); err != nil {
		return err
	}
	bs.update(func(brakes map[string]Brake) { brakes[b.Host] = b })
	return nil
}

// Remove removes the brake of host, and reports whether there was one.
func (bs *Brakes) Remove(host string) (lifted bool) {
	bs.update(func(brakes map[string]Brake) {
		_, lifted = brakes[host]
		delete(brakes, host)
	})
	return lifted
}

// Replace replaces all brakes. If one of them is invalid it changes nothing and returns the error
// of Validate.
func (bs *Brakes) Replace(all []Brake) error {
	for _, b := range all {
		if err := b.Validate(); err != nil {
			return err
		}
	}
	bs.update(func(brakes map[string]Brake) {
		clear(brakes)
		for _, b := range all {
			brakes[b.Host] = b
		}
	})
	return nil
}

// update applies edit to a copy of the brakes, so that ForHost needs no lock, and runs the
// callbacks.
func (bs *Brakes) update(edit func(map[string]Brake)) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	brakes := maps.Clone(bs.snapshot())
	if brakes == nil {
		brakes = map[string]Brake{}
	}
	edit(brakes)
	bs.brakes.Store(&brakes)
	for notify := range bs.changeCallbacks {
		(*notify)()
	}
}

// snapshot returns the brakes in force, by host. The caller must not change the map.
func (bs *Brakes) snapshot() map[string]Brake {
	if bs == nil {
		return nil
	}
	if p := bs.brakes.Load(); p != nil {
		return *p
	}
	return nil
}

// All returns the brakes sorted by host, including those that have expired.
func (bs *Brakes) All() []Brake {
	brakes := bs.snapshot()
	all := make([]Brake, 0, len(brakes))
	for _, host := range slices.Sorted(maps.Keys(brakes)) {
		all = append(all, brakes[host])
	}
	return all
}

// ForHost returns the brake that applies to host at now, out of the unexpired brakes of the host
// and of its domains. A brake that stops takes precedence, the most specific one first; otherwise
// the longest delay applies.
func (bs *Brakes) ForHost(host string, now time.Time) (strictest Brake, ok bool) {
	brakes := bs.snapshot()
	if len(brakes) == 0 {
		return Brake{}, false
	}
	// Visit the host and then its parent domains, from the most specific one.
	for name, more := host, true; more; _, name, more = strings.Cut(name, ".") {
		b, found := brakes[name]
		switch {
		case !found || b.Expired(now) || name != host && !b.IncludesSubdomains:
		case b.Stop:
			return b, true
		case !ok || b.Delay > strictest.Delay:
			strictest, ok = b, true
		}
	}
	return strictest, ok
}

// CheckStopped returns the Decision to Suspend if a brake stops host at now, otherwise the Decision
// to Proceed.
func (bs *Brakes) CheckStopped(host string, now time.Time) decorum.Decision {
	if b, ok := bs.ForHost(host, now); ok && b.Stop {
		return b.Decision(b.Until)
	}
	return decorum.Decision{}
}

// NotifyOnChange registers a callback, which each change of the brakes calls before Set, Remove or
// Replace returns, until stop is called. notify runs while the lock of Brakes is held: it must not
// block, and must not call stop, Set, Remove, Replace or NotifyOnChange. It may read the brakes.
func (bs *Brakes) NotifyOnChange(notify func()) (stop func()) {
	if bs == nil {
		return func() {}
	}
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if bs.changeCallbacks == nil {
		bs.changeCallbacks = map[*func()]struct{}{}
	}
	bs.changeCallbacks[&notify] = struct{}{}
	return func() {
		bs.mu.Lock()
		defer bs.mu.Unlock()
		delete(bs.changeCallbacks, &notify)
	}
}

// A Brake is an order, for example of a site's owner, to visit a host more slowly than the crawl
// would, or not at all.
type Brake struct {
	Host               string        // as decorum.Origin.Host spells it
	IncludesSubdomains bool          // the brake applies to all subdomains of Host too
	Stop               bool          // no visits; those under way are cancelled
	Delay              time.Duration // if Stop is not set: least rest between visits, one at a time
	Reason             string        // shown to people
	By                 string        // author of the order; shown to people
	Since              time.Time     // when it was ordered; shown to people
	Until              time.Time     // the brake applies before Until; zero: for good
}

// maxBrakeDelay bounds Brake.Delay. A longer rest is expressed by Stop.
const maxBrakeDelay = 365 * 24 * time.Hour

// Validate returns an error if Host is not a host in the spelling of decorum.Origin.Host, if an IP
// address is to include subdomains, if Delay is negative or longer than 365 days, or if the brake
// does not do exactly one of stopping and slowing.
func (b Brake) Validate() error {
	u, err := decorum.ParseURL("http://" + b.Host + "/")
	switch {
	case b.Host == "":
		return errors.New("a brake needs a host")
	case err != nil || u.String() != "http://"+b.Host+"/" || u.Origin().Host() != b.Host:
		return fmt.Errorf("brake: %q is not a host as URLs spell it", b.Host)
	case b.IncludesSubdomains && isIPAddress(b.Host):
		return fmt.Errorf("brake of %s: an address has no subdomains", b.Host)
	case b.Delay < 0 || b.Delay > maxBrakeDelay:
		return fmt.Errorf("brake of %s: the delay must be from 0 to %v", b.Host, maxBrakeDelay)
	case b.Stop == (b.Delay > 0):
		return fmt.Errorf("brake of %s: it must either stop or have a delay", b.Host)
	}
	return nil
}

// isIPAddress reports whether a host is an IP address.
func isIPAddress(host string) bool {
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}

// Expired reports whether the brake has ended by now.
func (b Brake) Expired(now time.Time) bool { return !b.Until.IsZero() && !now.Before(b.Until) }

// brakeJSON is the JSON form of a Brake: Delay is written "1m30s".
type brakeJSON struct {
	Host               string    `json:"host"`
	IncludesSubdomains bool      `json:"domain,omitempty"`
	Stop               bool      `json:"stop,omitempty"`
	Delay              string    `json:"delay,omitempty"`
	Reason             string    `json:"reason,omitempty"`
	By                 string    `json:"by,omitempty"`
	Since              time.Time `json:"since,omitzero"`
	Until              time.Time `json:"until,omitzero"`
}

// MarshalJSON writes the fields of brakeJSON without the unset ones. IncludesSubdomains is named
// "domain", and Delay has the form of time.Duration.String.
func (b Brake) MarshalJSON() ([]byte, error) {
	j := brakeJSON{Host: b.Host, IncludesSubdomains: b.IncludesSubdomains, Stop: b.Stop, Reason: b.Reason, By: b.By,
		Since: b.Since, Until: b.Until}
	if b.Delay != 0 {
		j.Delay = b.Delay.String()
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes. It does not validate the brake.
func (b *Brake) UnmarshalJSON(data []byte) error {
	var j brakeJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*b = Brake{Host: j.Host, IncludesSubdomains: j.IncludesSubdomains, Stop: j.Stop, Reason: j.Reason, By: j.By,
		Since: j.Since, Until: j.Until}
	if j.Delay == "" {
		return nil
	}
	var err error
	b.Delay, err = time.ParseDuration(j.Delay)
	return err
}

// Decision returns the Decision for a host that the brake applies to: to Suspend if the brake stops
// the host, otherwise to Postpone. It holds until the given time; zero means until the brakes
// change.
func (b Brake) Decision(until time.Time) decorum.Decision {
	d := decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonBrake, Until: until, Rule: b.Host,
		Detail: b.Reason, Cause: &brakedError{b, until}}
	if b.Stop {
		d.Action = decorum.Suspend
	}
	return d
}

// BrakeOf returns the brake that caused d, and false if d has another cause.
func BrakeOf(d decorum.Decision) (Brake, bool) {
	if e, ok := errors.AsType[*brakedError](d.Cause); ok {
		return e.brake, true
	}
	return Brake{}, false
}

// A brakedError is the Cause of a brake's Decision.
type brakedError struct {
	brake Brake
	until time.Time // see Brake.Decision
}

// Error names the braked host, the end of the Decision and the reason.
func (e *brakedError) Error() string {
	s := "a brake slows " + e.brake.Host
	if e.brake.Stop {
		s = "a brake stops " + e.brake.Host
	}
	if !e.until.IsZero() {
		s += " until " + e.until.UTC().Format(time.RFC3339)
	}
	if e.brake.Reason != "" {
		s += ": " + e.brake.Reason
	}
	return s
}
