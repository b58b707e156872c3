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

// operatorBrakes are the brakes that operators put on hosts: those that are on, their record
// in the file of the daemon, and their copies in the Redis stores that projects share with
// other processes. mu is taken before storesMu.
type operatorBrakes struct {
	active     *politeness.Brakes // in force for all crawls of this process
	stateStore *daemonStateStore
	events     *eventBroker
	log        *slog.Logger

	mu               sync.Mutex                            // serializes changes of active with their record in stateStore
	storesMu         sync.Mutex                            // guards sharedBrakesByID
	sharedBrakesByID map[string]*engine.CrossProcessBrakes // of each Redis store that a project uses
}

// openOperatorBrakes puts those brakes on that were on when the previous daemon ended.
func openOperatorBrakes(
	active *politeness.Brakes, stateStore *daemonStateStore, events *eventBroker, log *slog.Logger,
) (*operatorBrakes, error) {
	o := &operatorBrakes{
		active: active, stateStore: stateStore, events: events, log: log, sharedBrakesByID: map[string]*engine.CrossProcessBrakes{},
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

// Brakes returns the brakes that are on.
func (o *operatorBrakes) Brakes(context.Context) ([]api.Brake, error) {
	brakes := []api.Brake{}
	for _, b := range o.active.All() {
		if !b.Expired(time.Now()) {
			brakes = append(brakes, toAPIBrake(b))
		}
	}
	return brakes, nil
}

// SetBrake puts a brake on, in all projects. The brake holds before it is recorded: if the record
// fails, it stays on, and the error says that it may not survive the daemon.
func (o *operatorBrakes) SetBrake(ctx context.Context, b api.Brake) error {
	host, ok := ParseBrakeHost(b.Host)
	if !ok {
		return api.InvalidInput("%q is not the name of a host: expected no scheme, port, path or wildcard, as in www.example.com", b.Host)
	}
	if b.Reason == "" {
		return api.InvalidInput("a brake needs a reason: who wants it, say, and why")
	}
	// Complete the brake, and check it.
	b.Host = host
	if b.Since.IsZero() {
		b.Since = time.Now().UTC()
	}
	brake := toPolitenessBrake(b)
	if brake.Expired(time.Now()) {
		return api.InvalidInput("the brake would have expired at %s", b.Expires.UTC().Format(time.RFC3339))
	}
	// Put it on here first, then record it, then tell other processes.
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.active.Set(brake); err != nil {
		return api.InvalidInput("%w", err)
	}
	o.logAndPublish(b, brakeDescription(b))
	if err := o.save(); err != nil {
		return fmt.Errorf("the brake is on, and may not survive the daemon: %w", err)
	}
	if err := o.setOrRemoveBrakeInRedis(ctx, host, encodeSharedBrake(toAPIBrake(brake)), ""); err != nil {
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

// LiftBrake takes a brake off here and in the processes that share a Redis store, once that is
// recorded. While Redis does not answer, the brake stays on.
func (o *operatorBrakes) LiftBrake(ctx context.Context, name string) error {
	host, _ := project.CanonicalHost(name)
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.active.All()
	i := slices.IndexFunc(all, func(b politeness.Brake) bool { return b.Host == host })
	if i < 0 {
		return api.NotFound("there is no brake on %q", name)
	}
	b := toAPIBrake(all[i])
	if err := o.setOrRemoveBrakeInRedis(ctx, host, "", ""); err != nil {
		return api.Unavailable("the brake is not lifted, for other processes cannot be told: %w", err)
	}
	if err := o.saveList(slices.Delete(all, i, i+1)); err != nil {
		return err
	}
	o.active.Remove(host)
	o.logAndPublish(b, "lifted")
	return nil
}

// dropExpired removes brakes that have expired by now. If the file cannot be written, they stay
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
			// Other processes remove it as well, so that an error needs no report.
			_ = o.setOrRemoveBrakeInRedis(context.Background(), b.Host, "", encodeSharedBrake(toAPIBrake(b)))
		}
	}
	if err := o.save(); err != nil {
		o.log.Warn("an expired brake stays in the file until another is set", "error", err)
	}
}

// save records the brakes that are on.
func (o *operatorBrakes) save() error { return o.saveList(o.active.All()) }

func (o *operatorBrakes) saveList(brakes []politeness.Brake) error {
	return o.stateStore.update(func(t *savedDaemonState) {
		t.Brakes = nil
		for _, b := range brakes {
			t.Brakes = append(t.Brakes, toAPIBrake(b))
		}
	})
}

// logAndPublish reports a change of a brake: "lifted", "expired", or what the new brake does.
func (o *operatorBrakes) logAndPublish(b api.Brake, change string) {
	o.log.Warn("brake", "host", b.Host, "domain", b.WithSubdomains, "what", change, "by", b.By, "reason", b.Reason)
	o.events.publish(api.Event{Type: "brake", Host: b.Host, Message: change})
}

// brakeDescription returns what a brake does, and its reason.
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

// toPolitenessBrake returns a brake of the API as package politeness has it.
func toPolitenessBrake(b api.Brake) politeness.Brake {
	return politeness.Brake{
		Host: b.Host, IncludesSubdomains: b.WithSubdomains, Stop: b.Stop, Delay: time.Duration(b.Delay),
		Reason: b.Reason, By: b.By, Since: b.Since, Until: b.Expires,
	}
}

// toAPIBrake returns a brake of package politeness as the API has it.
func toAPIBrake(b politeness.Brake) api.Brake {
	return api.Brake{
		Host: b.Host, WithSubdomains: b.IncludesSubdomains, Stop: b.Stop, Delay: api.Milliseconds(b.Delay),
		Reason: b.Reason, By: b.By, Since: b.Since, Expires: b.Until,
	}
}
