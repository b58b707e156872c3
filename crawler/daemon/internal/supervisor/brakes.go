package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/politeness"
)

// operatorBrakes holds the brakes that operators set on hosts: the active ones, their record in
// daemon.json, and their copies in the Redis stores that projects share with other processes.
type operatorBrakes struct {
	active     *politeness.Brakes // in force for all crawls of this process
	stateStore *daemonStateStore
	events     *eventBroker
	log        *slog.Logger

	// mu serializes changes of active with their record in stateStore and their copies in Redis.
	mu               sync.Mutex
	storesMu         sync.Mutex                            // guards sharedBrakesByID
	sharedBrakesByID map[string]*engine.CrossProcessBrakes // one for each Redis store that a project uses
}

// openOperatorBrakes sets the brakes that were active when the previous daemon ended, except the
// expired ones.
func openOperatorBrakes(
	active *politeness.Brakes, stateStore *daemonStateStore, events *eventBroker, log *slog.Logger,
) (*operatorBrakes, error) {
	o := &operatorBrakes{
		active: active, stateStore: stateStore, events: events, log: log,
		sharedBrakesByID: map[string]*engine.CrossProcessBrakes{},
	}
	var brakes []politeness.Brake
	for _, b := range stateStore.current().Brakes {
		if brake := toPolitenessBrake(b); !brake.Expired(time.Now()) {
			brakes = append(brakes, brake)
		}
	}
	if err := active.Replace(brakes); err != nil {
		return nil, fmt.Errorf("%s: %w", stateStore.filePath, err)
	}
	return o, nil
}

// Brakes returns the active brakes.
func (o *operatorBrakes) Brakes(context.Context) ([]api.Brake, error) {
	brakes := []api.Brake{}
	for _, b := range o.active.All() {
		if !b.Expired(time.Now()) {
			brakes = append(brakes, toAPIBrake(b))
		}
	}
	return brakes, nil
}

// SetBrake sets a brake on a host, in all projects. The brake takes effect before it is recorded: if
// the record or the write to Redis fails, it stays active here, and the error says what is missing.
func (o *operatorBrakes) SetBrake(ctx context.Context, b api.Brake) error {
	host, ok := ParseBrakeHost(b.Host)
	if !ok {
		return api.InvalidInput("%q is not the name of a host: expected no scheme, port, path or wildcard, as in "+
			"www.example.com", b.Host)
	}
	if b.Reason == "" {
		return api.InvalidInput("a brake needs a reason, for example who wants it and why")
	}
	// Fill in the defaults, then validate.
	b.Host = host
	if b.Since.IsZero() {
		b.Since = time.Now().UTC()
	}
	brake := toPolitenessBrake(b)
	if brake.Expired(time.Now()) {
		return api.InvalidInput("the brake would have expired at %s", b.Expires.UTC().Format(time.RFC3339))
	}
	// Set it here first, then record it, then share it: a failure never delays the local brake.
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.active.Set(brake); err != nil {
		return api.InvalidInput("%w", err)
	}
	o.logAndPublish(b, brakeDescription(b))
	if err := o.save(); err != nil {
		return fmt.Errorf("the brake is active, and may not survive the daemon: %w", err)
	}
	if err := o.setOrRemoveBrakeInRedis(ctx, host, encodeSharedBrake(toAPIBrake(brake)), ""); err != nil {
		return api.Unavailable("the brake is active here, and other processes will see it when Redis answers: %w", err)
	}
	return nil
}

// maxDNSLabel and maxHostName limit a label and the whole of a DNS name, in octets (RFC 1035, section
// 2.3.4).
const maxDNSLabel, maxHostName = 63, 253

// ParseBrakeHost returns the canonical form of the host name s. It returns false if s cannot be the
// name of a server, because a brake on it would have no effect and the operator would not notice. The
// URL parser accepts more: it drops line breaks and allows empty labels.
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

// LiftBrake removes a brake here and in the processes that share a Redis store. While Redis does not
// answer, or if the removal cannot be recorded, the brake stays active here.
func (o *operatorBrakes) LiftBrake(ctx context.Context, name string) error {
	host, _ := project.CanonicalHost(name)
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.active.All()
	i := slices.IndexFunc(all, func(b politeness.Brake) bool { return b.Host == host })
	if i < 0 {
		return api.NotFound("no brake is set on %q", name)
	}
	// Remove it from Redis first and here last: a failure leaves the host braked.
	b := toAPIBrake(all[i])
	if err := o.setOrRemoveBrakeInRedis(ctx, host, "", ""); err != nil {
		return api.Unavailable("the brake is not lifted, because Redis cannot pass that on to other processes: %w", err)
	}
	if err := o.saveList(slices.Delete(all, i, i+1)); err != nil {
		return err
	}
	o.active.Remove(host)
	o.logAndPublish(b, "lifted")
	return nil
}

// dropExpired removes the brakes that have expired by now. If daemon.json cannot be written, they stay
// in it until the next change.
func (o *operatorBrakes) dropExpired(now time.Time) {
	if !slices.ContainsFunc(o.active.All(), func(b politeness.Brake) bool { return b.Expired(now) }) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range o.active.All() {
		if b.Expired(now) && o.active.Remove(b.Host) {
			o.logAndPublish(toAPIBrake(b), "expired")
			// Ignore the error: every process removes its expired brakes.
			_ = o.setOrRemoveBrakeInRedis(context.Background(), b.Host, "", encodeSharedBrake(toAPIBrake(b)))
		}
	}
	if err := o.save(); err != nil {
		o.log.Warn("an expired brake stays in the file until another is set", "error", err)
	}
}

// save records the active brakes. The caller holds o.mu.
func (o *operatorBrakes) save() error { return o.saveList(o.active.All()) }

// saveList records brakes as the active ones. The caller holds o.mu.
func (o *operatorBrakes) saveList(brakes []politeness.Brake) error {
	return o.stateStore.update(func(t *savedDaemonState) {
		t.Brakes = nil
		for _, b := range brakes {
			t.Brakes = append(t.Brakes, toAPIBrake(b))
		}
	})
}

// logAndPublish reports a change of a brake. change is "lifted", "expired", or the brakeDescription of a
// new brake.
func (o *operatorBrakes) logAndPublish(b api.Brake, change string) {
	o.log.Warn("brake", "host", b.Host, "domain", b.WithSubdomains, "what", change, "by", b.By, "reason", b.Reason)
	o.events.publish(api.Event{Type: "brake", Host: b.Host, Message: change})
}

// brakeDescription returns the effect of a brake and its reason, for people.
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

// toPolitenessBrake converts a brake of the API to one of package politeness.
func toPolitenessBrake(b api.Brake) politeness.Brake {
	return politeness.Brake{
		Host: b.Host, IncludesSubdomains: b.WithSubdomains, Stop: b.Stop, Delay: time.Duration(b.Delay),
		Reason: b.Reason, By: b.By, Since: b.Since, Until: b.Expires,
	}
}

// toAPIBrake converts a brake of package politeness to one of the API.
func toAPIBrake(b politeness.Brake) api.Brake {
	return api.Brake{
		Host: b.Host, WithSubdomains: b.IncludesSubdomains, Stop: b.Stop, Delay: api.Milliseconds(b.Delay),
		Reason: b.Reason, By: b.By, Since: b.Since, Expires: b.Until,
	}
}
