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

// Brakes are the brakes in force, one a host; those of a domain besides. Crawls
// of one process share them, and act at once when they change. The zero Brakes
// are none. Methods may be called at the same time; those that change nothing on
// nil, too.
type Brakes struct {
	mu              sync.Mutex // held while brakes change, and watchers are told
	brakes          atomic.Pointer[map[string]Brake]
	changeCallbacks map[*func()]struct{}
}

// Set puts a brake on, in place of that of the same host, if there is one. When
// it returns, all who watch have been told.
func (bs *Brakes) Set(b Brake) error {
	if err := b.Validate(); err != nil {
		return err
	}
	bs.update(func(brakes map[string]Brake) { brakes[b.Host] = b })
	return nil
}

// Remove takes the brake of a host off, and reports whether there was one.
func (bs *Brakes) Remove(host string) (lifted bool) {
	bs.update(func(brakes map[string]Brake) {
		_, lifted = brakes[host]
		delete(brakes, host)
	})
	return lifted
}

// Replace puts these brakes on and takes all others off. If one of them makes no
// sense it changes nothing.
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

// update changes a copy of the brakes, so that ForHost needs no lock, and tells of it.
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

func (bs *Brakes) snapshot() map[string]Brake {
	if bs == nil {
		return nil
	}
	if p := bs.brakes.Load(); p != nil {
		return *p
	}
	return nil
}

// All returns the brakes by host, those that have expired too.
func (bs *Brakes) All() []Brake {
	brakes := bs.snapshot()
	all := make([]Brake, 0, len(brakes))
	for _, host := range slices.Sorted(maps.Keys(brakes)) {
		all = append(all, brakes[host])
	}
	return all
}

// ForHost returns the brake that holds for a host at now: of those of the host and of
// its domains the one that stops, the most specific if there are several, or else
// the one with the longest delay.
func (bs *Brakes) ForHost(host string, now time.Time) (strictest Brake, ok bool) {
	brakes := bs.snapshot()
	if len(brakes) == 0 {
		return Brake{}, false
	}
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

// CheckStopped says whether a brake stops the host at now: then its Decision is to Suspend.
func (bs *Brakes) CheckStopped(host string, now time.Time) decorum.Decision {
	if b, ok := bs.ForHost(host, now); ok && b.Stop {
		return b.Decision(b.Until)
	}
	return decorum.Decision{}
}

// NotifyOnChange has notify called after each change, before Set, Remove or Replace returns,
// until stop is called. It must not block, and must not change brakes.
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

// A Brake is the word of somebody, a site's owner say, that a host is to be
// visited more slowly than the crawl would, or not at all.
type Brake struct {
	Host               string        // as decorum.Origin.Host spells it
	IncludesSubdomains bool          // it holds for all subdomains of Host too
	Stop               bool          // no visits; those under way are broken off
	Delay              time.Duration // else: the least rest between visits, which are made one at a time
	Reason             string        // for people
	By                 string        // who said so, for people
	Since              time.Time     // for people
	Until              time.Time     // it holds before; zero: for good
}

// maxBrakeDelay bounds Brake.Delay: who wants a longer rest wants a stop.
const maxBrakeDelay = 365 * 24 * time.Hour

// Validate reports a brake that makes no sense: one for what is no host, or one
// that neither stops nor slows, or does both.
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

// Expired reports whether the brake no longer holds at now.
func (b Brake) Expired(now time.Time) bool { return !b.Until.IsZero() && !now.Before(b.Until) }

// brakeJSON is a Brake as JSON has it: a Delay is written "1m30s".
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

// MarshalJSON writes the fields by their names in small letters, those that are
// not set left out, and Delay as time.Duration prints it.
func (b Brake) MarshalJSON() ([]byte, error) {
	j := brakeJSON{Host: b.Host, IncludesSubdomains: b.IncludesSubdomains, Stop: b.Stop, Reason: b.Reason, By: b.By, Since: b.Since, Until: b.Until}
	if b.Delay != 0 {
		j.Delay = b.Delay.String()
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes. It does not validate.
func (b *Brake) UnmarshalJSON(data []byte) error {
	var j brakeJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*b = Brake{Host: j.Host, IncludesSubdomains: j.IncludesSubdomains, Stop: j.Stop, Reason: j.Reason, By: j.By, Since: j.Since, Until: j.Until}
	if j.Delay == "" {
		return nil
	}
	var err error
	b.Delay, err = time.ParseDuration(j.Delay)
	return err
}

// Decision returns the Decision for a host that the brake keeps from being visited until then, or,
// if that is zero, until the brakes change: to Suspend if it stops the host, else to Postpone.
func (b Brake) Decision(until time.Time) decorum.Decision {
	d := decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonBrake, Until: until, Rule: b.Host,
		Detail: b.Reason, Cause: &brakedError{b, until}}
	if b.Stop {
		d.Action = decorum.Suspend
	}
	return d
}

// BrakeOf returns the brake that made a Decision; false if none did.
func BrakeOf(d decorum.Decision) (Brake, bool) {
	if e, ok := errors.AsType[*brakedError](d.Cause); ok {
		return e.brake, true
	}
	return Brake{}, false
}

// A brakedError is the cause of a Decision of a brake.
type brakedError struct {
	brake Brake
	until time.Time // see Brake.Decision
}

// Error says whose brake it is, until when, and why.
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
