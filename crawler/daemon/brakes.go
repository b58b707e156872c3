package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/politeness"
)

// Brakes returns the brakes that are on.
func (s *supervisor) Brakes(context.Context) ([]api.Brake, error) {
	brakes := []api.Brake{}
	for _, b := range s.brakes.All() {
		if !b.Expired(time.Now()) {
			brakes = append(brakes, shownBrake(b))
		}
	}
	return brakes, nil
}

// SetBrake puts a brake on, in all projects. It holds before it is kept: should
// that fail, it stays on, and the error says that it may not survive the daemon.
func (s *supervisor) SetBrake(ctx context.Context, b api.Brake) error {
	host, ok := brakeHost(b.Host)
	if !ok {
		return api.InvalidInput("%q is not the name of a host: expected no scheme, port, path or wildcard, as in www.example.com", b.Host)
	}
	if b.Reason == "" {
		return api.InvalidInput("a brake needs a reason: who wants it, say, and why")
	}
	b.Host = host
	if b.Since.IsZero() {
		b.Since = time.Now().UTC()
	}
	brake := politeBrake(b)
	if brake.Expired(time.Now()) {
		return api.InvalidInput("the brake would have expired at %s", b.Expires.UTC().Format(time.RFC3339))
	}
	s.braking.Lock()
	defer s.braking.Unlock()
	if err := s.brakes.Set(brake); err != nil {
		return api.InvalidInput("%w", err)
	}
	s.tellBrake(b, brakeText(b))
	if err := s.keepBrakes(); err != nil {
		return fmt.Errorf("the brake is on, and may not survive the daemon: %w", err)
	}
	if err := s.postBrake(ctx, host, encodeSharedBrake(shownBrake(brake)), ""); err != nil {
		return api.Unavailable("the brake is on here, and other processes will see it when Redis answers: %w", err)
	}
	return nil
}

// maxLabel and maxHostName bound a name of the DNS and its parts, in octets (RFC 1035,
// 2.3.4).
const maxLabel, maxHostName = 63, 253

// brakeHost returns the canonical name of a host, and false if no server can have the
// name s: a brake on it would hold nothing without the operator's knowledge. The URL
// parser accepts more: it drops line breaks and allows empty labels.
func brakeHost(s string) (string, bool) {
	host, ok := hostName(s)
	isBlank := func(r rune) bool { return r <= ' ' || unicode.IsControl(r) || unicode.IsSpace(r) }
	if !ok || strings.ContainsFunc(s, isBlank) {
		return "", false
	}
	if strings.HasPrefix(host, "[") { // an IPv6 address
		return host, true
	}
	name := strings.TrimSuffix(host, ".")
	if len(name) > maxHostName {
		return "", false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel {
			return "", false
		}
	}
	return host, true
}

// LiftBrake takes a brake off, when that is kept.
// So is it in other processes: while they cannot be told, it stays on.
func (s *supervisor) LiftBrake(ctx context.Context, name string) error {
	host, _ := hostName(name)
	s.braking.Lock()
	defer s.braking.Unlock()
	all := s.brakes.All()
	i := slices.IndexFunc(all, func(b politeness.Brake) bool { return b.Host == host })
	if i < 0 {
		return api.NotFound("there is no brake on %q", name)
	}
	b := shownBrake(all[i])
	if err := s.postBrake(ctx, host, "", ""); err != nil {
		return api.Unavailable("the brake is not lifted, for other processes cannot be told: %w", err)
	}
	if err := s.writeBrakes(slices.Delete(all, i, i+1)); err != nil {
		return err
	}
	s.brakes.Lift(host)
	s.tellBrake(b, "lifted")
	return nil
}

// dropExpired forgets brakes that do not hold any more. That they are forgotten
// on the disk too is not urgent.
func (s *supervisor) dropExpired(now time.Time) {
	if !slices.ContainsFunc(s.brakes.All(), func(b politeness.Brake) bool { return b.Expired(now) }) {
		return
	}
	s.braking.Lock()
	defer s.braking.Unlock()
	for _, b := range s.brakes.All() {
		if b.Expired(now) && s.brakes.Lift(b.Host) {
			s.tellBrake(shownBrake(b), "expired")
			_ = s.postBrake(context.Background(), b.Host, "", encodeSharedBrake(shownBrake(b))) // others do it as well
		}
	}
	if err := s.keepBrakes(); err != nil {
		s.app.log.Warn("an expired brake stays in the file until another is set", "error", err)
	}
}

// loadBrakes puts those brakes on that were when the daemon ended.
func (s *supervisor) loadBrakes() error {
	var brakes []politeness.Brake
	for _, b := range s.wishes.brakes() {
		if brake := politeBrake(b); !brake.Expired(time.Now()) {
			brakes = append(brakes, brake)
		}
	}
	if err := s.brakes.Replace(brakes); err != nil {
		return fmt.Errorf("%s: %w", s.wishes.file, err)
	}
	return nil
}

// keepBrakes keeps the brakes that are on.
func (s *supervisor) keepBrakes() error { return s.writeBrakes(s.brakes.All()) }

func (s *supervisor) writeBrakes(brakes []politeness.Brake) error {
	return s.wishes.change(func(t *daemonState) {
		t.Brakes = nil
		for _, b := range brakes {
			t.Brakes = append(t.Brakes, shownBrake(b))
		}
	})
}

func (s *supervisor) tellBrake(b api.Brake, what string) {
	s.app.log.Warn("brake", "host", b.Host, "domain", b.WithSubdomains, "what", what, "by", b.By, "reason", b.Reason)
	s.hub.tell(api.Event{Type: "brake", Host: b.Host, Message: what})
}

// brakeText says what a brake does.
func brakeText(b api.Brake) string {
	text := "stopped"
	if !b.Stop {
		text = fmt.Sprintf("slowed to one visit in %v", time.Duration(b.Delay))
	}
	if b.WithSubdomains {
		text += ", with its subdomains"
	}
	return text + ": " + b.Reason
}

// politeBrake and shownBrake are the same brake in the words of politeness, and of
// the API.
func politeBrake(b api.Brake) politeness.Brake {
	return politeness.Brake{
		Host: b.Host, Domain: b.WithSubdomains, Stop: b.Stop, Delay: time.Duration(b.Delay),
		Reason: b.Reason, By: b.By, Since: b.Since, Until: b.Expires,
	}
}

func shownBrake(b politeness.Brake) api.Brake {
	return api.Brake{
		Host: b.Host, WithSubdomains: b.Domain, Stop: b.Stop, Delay: api.Milliseconds(b.Delay),
		Reason: b.Reason, By: b.By, Since: b.Since, Expires: b.Until,
	}
}
