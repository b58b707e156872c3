package politeness

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
)

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

// BrakedError is the error for a host that a brake keeps from being visited.
type BrakedError struct {
	Brake Brake
	Until time.Time // when to ask again; zero: not before the brakes change
}

// Is makes errors.Is(err, decorum.NotDue) true.
func (b *BrakedError) Is(target error) bool { return target == decorum.NotDue }

// Error says whose brake it is, until when, and why.
func (b *BrakedError) Error() string {
	s := "a brake slows " + b.Brake.Host
	if b.Brake.Stop {
		s = "a brake stops " + b.Brake.Host
	}
	if !b.Until.IsZero() {
		s += " until " + b.Until.UTC().Format(time.RFC3339)
	}
	if b.Brake.Reason != "" {
		s += ": " + b.Brake.Reason
	}
	return s
}
