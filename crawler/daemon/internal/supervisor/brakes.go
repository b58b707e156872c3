package supervisor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/politeness"
)

// Brakes returns the brakes that are on.
func (s *Supervisor) Brakes(context.Context) ([]api.Brake, error) {
	brakes := []api.Brake{}
	for _, b := range s.OperatorBrakes.All() {
		if !b.Expired(time.Now()) {
			brakes = append(brakes, toAPIBrake(b))
		}
	}
	return brakes, nil
}

// SetBrake puts a brake on, in all projects. It holds before it is kept: should
// that fail, it stays on, and the error says that it may not survive the daemon.
func (s *Supervisor) SetBrake(ctx context.Context, b api.Brake) error {
	host, ok := ParseBrakeHost(b.Host)
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
	brake := toPolitenessBrake(b)
	if brake.Expired(time.Now()) {
		return api.InvalidInput("the brake would have expired at %s", b.Expires.UTC().Format(time.RFC3339))
	}
	s.brakesMu.Lock()
	defer s.brakesMu.Unlock()
	if err := s.OperatorBrakes.Set(brake); err != nil {
		return api.InvalidInput("%w", err)
	}
	s.logAndPublishBrakeChange(b, brakeDescription(b))
	if err := s.saveBrakes(); err != nil {
		return fmt.Errorf("the brake is on, and may not survive the daemon: %w", err)
	}
	if err := s.setOrRemoveSharedBrake(ctx, host, encodeSharedBrake(toAPIBrake(brake)), ""); err != nil {
		return api.Unavailable("the brake is on here, and other processes will see it when Redis answers: %w", err)
	}
	return nil
}

// maxDNSLabel and maxHostName bound a name of the DNS and its parts, in octets (RFC 1035,
// 2.3.4).
const maxDNSLabel, maxHostName = 63, 253

// ParseBrakeHost returns the canonical name of a host, and false if no server can have the
// name s: a brake on it would hold nothing without the operator's knowledge. The URL
// parser accepts more: it drops line breaks and allows empty labels.
func ParseBrakeHost(s string) (string, bool) {
	host, ok := project.CanonicalHost(s)
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
		if label == "" || len(label) > maxDNSLabel {
			return "", false
		}
	}
	return host, true
}

// LiftBrake takes a brake off, when that is kept.
// So is it in other processes: while they cannot be told, it stays on.
func (s *Supervisor) LiftBrake(ctx context.Context, name string) error {
	host, _ := project.CanonicalHost(name)
	s.brakesMu.Lock()
	defer s.brakesMu.Unlock()
	all := s.OperatorBrakes.All()
	i := slices.IndexFunc(all, func(b politeness.Brake) bool { return b.Host == host })
	if i < 0 {
		return api.NotFound("there is no brake on %q", name)
	}
	b := toAPIBrake(all[i])
	if err := s.setOrRemoveSharedBrake(ctx, host, "", ""); err != nil {
		return api.Unavailable("the brake is not lifted, for other processes cannot be told: %w", err)
	}
	if err := s.saveBrakeList(slices.Delete(all, i, i+1)); err != nil {
		return err
	}
	s.OperatorBrakes.Remove(host)
	s.logAndPublishBrakeChange(b, "lifted")
	return nil
}

// dropExpiredBrakes forgets brakes that do not hold any more. That they are forgotten
// on the disk too is not urgent.
func (s *Supervisor) dropExpiredBrakes(now time.Time) {
	if !slices.ContainsFunc(s.OperatorBrakes.All(), func(b politeness.Brake) bool { return b.Expired(now) }) {
		return
	}
	s.brakesMu.Lock()
	defer s.brakesMu.Unlock()
	for _, b := range s.OperatorBrakes.All() {
		if b.Expired(now) && s.OperatorBrakes.Remove(b.Host) {
			s.logAndPublishBrakeChange(toAPIBrake(b), "expired")
			_ = s.setOrRemoveSharedBrake(context.Background(), b.Host, "", encodeSharedBrake(toAPIBrake(b))) // others do it as well
		}
	}
	if err := s.saveBrakes(); err != nil {
		s.env.Log.Warn("an expired brake stays in the file until another is set", "error", err)
	}
}

// loadBrakes puts those brakes on that were when the daemon ended.
func (s *Supervisor) loadBrakes() error {
	var brakes []politeness.Brake
	for _, b := range s.stateStore.brakes() {
		if brake := toPolitenessBrake(b); !brake.Expired(time.Now()) {
			brakes = append(brakes, brake)
		}
	}
	if err := s.OperatorBrakes.Replace(brakes); err != nil {
		return fmt.Errorf("%s: %w", s.stateStore.filePath, err)
	}
	return nil
}

// saveBrakes keeps the brakes that are on.
func (s *Supervisor) saveBrakes() error { return s.saveBrakeList(s.OperatorBrakes.All()) }

func (s *Supervisor) saveBrakeList(brakes []politeness.Brake) error {
	return s.stateStore.update(func(t *daemonState) {
		t.Brakes = nil
		for _, b := range brakes {
			t.Brakes = append(t.Brakes, toAPIBrake(b))
		}
	})
}

func (s *Supervisor) logAndPublishBrakeChange(b api.Brake, change string) {
	s.env.Log.Warn("brake", "host", b.Host, "domain", b.WithSubdomains, "what", change, "by", b.By, "reason", b.Reason)
	s.eventBroker.publish(api.Event{Type: "brake", Host: b.Host, Message: change})
}

// brakeDescription says what a brake does.
func brakeDescription(b api.Brake) string {
	text := "stopped"
	if !b.Stop {
		text = fmt.Sprintf("slowed to one visit in %v", time.Duration(b.Delay))
	}
	if b.WithSubdomains {
		text += ", with its subdomains"
	}
	return text + ": " + b.Reason
}

// toPolitenessBrake and toAPIBrake are the same brake in the words of politeness, and of
// the API.
func toPolitenessBrake(b api.Brake) politeness.Brake {
	return politeness.Brake{
		Host: b.Host, IncludesSubdomains: b.WithSubdomains, Stop: b.Stop, Delay: time.Duration(b.Delay),
		Reason: b.Reason, By: b.By, Since: b.Since, Until: b.Expires,
	}
}

func toAPIBrake(b politeness.Brake) api.Brake {
	return api.Brake{
		Host: b.Host, WithSubdomains: b.IncludesSubdomains, Stop: b.Stop, Delay: api.Milliseconds(b.Delay),
		Reason: b.Reason, By: b.By, Since: b.Since, Expires: b.Until,
	}
}
