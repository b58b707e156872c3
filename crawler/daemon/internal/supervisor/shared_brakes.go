package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/politeness"
)

// Processes that share a prefix in Redis share brakes there, each under its host. A daemon
// records them in its file as well, for its other projects, and for the time before Redis
// has answered.

// encodeSharedBrake returns the value that Redis has for a brake.
func encodeSharedBrake(b api.Brake) string {
	text, err := json.Marshal(b)
	if err != nil {
		panic(err) // its fields are all encodable
	}
	return string(text)
}

// decodeSharedBrake decodes a brake from Redis; it returns false if the brake is invalid or has
// expired by now.
func decodeSharedBrake(encoded string, now time.Time) (politeness.Brake, bool) {
	var b api.Brake
	if json.Unmarshal([]byte(encoded), &b) != nil {
		return politeness.Brake{}, false
	}
	brake := toPolitenessBrake(b)
	return brake, brake.Validate() == nil && !brake.Expired(now)
}

// mergeSharedBrakes puts the brakes on that a Redis store has, and lifts those that it has no
// longer; nil for shared: they are as they were. It returns those that the store lacks:
// they were put on here while it did not answer, or before a project used it. If outdated
// reports that a brake was written since shared was read, it does nothing and returns false.
func (o *operatorBrakes) mergeSharedBrakes(
	key string, shared map[string]string, outdated func() bool,
) (missing map[string]string, ok bool) {
	o.mu.Lock() // held by writers of shared brakes, too: see outdated
	defer o.mu.Unlock()
	if outdated() {
		return nil, false
	}
	// Compare what the store has with what it had, and take its changes over.
	lastShared := o.stateStore.current().LastSharedBrakes[key]
	if shared == nil {
		shared = lastShared
	}
	local := map[string]string{}
	for _, b := range o.active.All() {
		local[b.Host] = encodeSharedBrake(toAPIBrake(b))
	}
	changed := !maps.Equal(lastShared, shared)
	if changed {
		o.adoptSharedBrakeChanges(lastShared, shared, local)
	}
	// Find what the store lacks.
	missing = map[string]string{}
	for host, encoded := range local {
		if shared[host] != encoded {
			missing[host] = encoded
		}
	}
	if changed {
		o.saveLastSharedAndLocalBrakes(key, shared)
	}
	return missing, true
}

// adoptSharedBrakeChanges makes the changes here that other processes have made from lastShared to
// shared, and updates local, the brakes that are on here. A brake that was put on here
// meanwhile stays if it stops its host.
func (o *operatorBrakes) adoptSharedBrakeChanges(lastShared, shared, local map[string]string) {
	now := time.Now()
	// Lift what was lifted elsewhere and has not changed here.
	for host, encoded := range lastShared {
		if _, on := shared[host]; !on && local[host] == encoded && o.active.Remove(host) {
			if b, ok := decodeSharedBrake(encoded, now); ok {
				o.logAndPublish(toAPIBrake(b), "lifted")
			}
			delete(local, host)
		}
	}
	// Put on what is new or has changed.
	for host, encoded := range shared {
		b, ok := decodeSharedBrake(encoded, now)
		localBrake, stops := decodeSharedBrake(local[host], now)
		isUnshared := local[host] != "" && local[host] != lastShared[host] // Redis does not have it yet
		if !ok || b.Host != host || encoded == local[host] || isUnshared && stops && localBrake.Stop {
			continue
		}
		if o.active.Set(b) == nil {
			o.logAndPublish(toAPIBrake(b), brakeDescription(toAPIBrake(b)))
			local[host] = encoded
		}
	}
}

// saveLastSharedAndLocalBrakes records what a Redis store has, and which brakes are on.
func (o *operatorBrakes) saveLastSharedAndLocalBrakes(key string, shared map[string]string) {
	err := o.stateStore.update(func(t *savedDaemonState) {
		t.LastSharedBrakes[key] = shared
	})
	if err = errors.Join(err, o.save()); err != nil {
		o.log.Warn("the brakes that other processes have put on may not survive the daemon here", "error", err)
	}
}

// ReplaceBrakes puts the brakes on that a Redis store has, and lifts all others.
func ReplaceBrakes(brakes *politeness.Brakes, shared map[string]string, log *slog.Logger) {
	now := time.Now()
	var all []politeness.Brake
	for host, encoded := range shared {
		b, ok := decodeSharedBrake(encoded, now)
		if !ok || b.Host != host {
			continue
		}
		all = append(all, b)
		log.Warn("brake", "host", b.Host, "domain", b.IncludesSubdomains, "what", brakeDescription(toAPIBrake(b)), "by", b.By, "reason", b.Reason)
	}
	if err := brakes.Replace(all); err != nil { // all of them are valid
		log.Error("the brakes of other processes are not followed", "error", err)
	}
}

// setOrRemoveBrakeInRedis writes a brake to all Redis stores, or, if encoded is empty, removes it from
// those that have it. If previous is not empty, it changes only stores whose brake on the
// host is previous. It needs o.mu.
func (o *operatorBrakes) setOrRemoveBrakeInRedis(ctx context.Context, host, encoded, previous string) (err error) {
	for _, c := range o.sharedBrakesOfAllStores() {
		// A store without the brake has none to remove.
		shared := cloneOrMakeMap(o.stateStore.current().LastSharedBrakes[c.StoreID])
		if _, on := shared[host]; encoded == "" && !on {
			continue
		}
		if e := c.CompareAndSet(ctx, host, encoded, previous); e != nil {
			err = errors.Join(err, e)
			continue
		}
		// Record what it has now.
		shared[host] = encoded
		if encoded == "" {
			delete(shared, host)
		}
		o.saveLastSharedAndLocalBrakes(c.StoreID, shared)
	}
	return err
}

// getOrStartSharedBrakes returns the brakes of the Redis store that a project uses, and starts them if
// they are new; nil if the project uses none.
func (o *operatorBrakes) getOrStartSharedBrakes(loaded *loadedProject) *engine.CrossProcessBrakes {
	r := loaded.project.Store.Redis
	if !r.IsUsed() {
		return nil
	}
	o.storesMu.Lock()
	defer o.storesMu.Unlock()
	key := engine.SharedBrakesID(&r)
	c := o.sharedBrakesByID[key]
	if c == nil {
		merge := func(shared map[string]string, outdated func() bool) (map[string]string, bool) {
			return o.mergeSharedBrakes(key, shared, outdated)
		}
		c = engine.StartCrossProcessBrakes(r, loaded.pathConfinement, merge, o.log)
		o.sharedBrakesByID[key] = c
	}
	return c
}

// sharedBrakesOfAllStores returns those that have been started and not been closed.
func (o *operatorBrakes) sharedBrakesOfAllStores() []*engine.CrossProcessBrakes {
	o.storesMu.Lock()
	defer o.storesMu.Unlock()
	return slices.Collect(maps.Values(o.sharedBrakesByID))
}

// startUsedCloseUnused joins the Redis stores of all projects, also of those that do not run:
// brakes are for all. It leaves the stores that no project uses any more.
func (o *operatorBrakes) startUsedCloseUnused(projects []*loadedProject) {
	used := map[string]bool{}
	for _, loaded := range projects {
		if o.getOrStartSharedBrakes(loaded) != nil {
			used[engine.SharedBrakesID(&loaded.project.Store.Redis)] = true
		}
	}
	o.storesMu.Lock()
	var unused []*engine.CrossProcessBrakes
	for key, c := range o.sharedBrakesByID {
		if !used[key] {
			unused = append(unused, c)
			delete(o.sharedBrakesByID, key)
		}
	}
	o.storesMu.Unlock()
	o.closeStores(unused)
}

// closeAllStores leaves all Redis stores. Calls from then on reach none.
func (o *operatorBrakes) closeAllStores() { o.closeStores(o.sharedBrakesOfAllStores()) }

// closeStores waits for the goroutines of stores that are left.
func (o *operatorBrakes) closeStores(stores []*engine.CrossProcessBrakes) {
	for _, c := range stores {
		if err := c.Close(); err != nil {
			o.log.Warn("what processes share in Redis is not closed in order", "redis", c.StoreID, "error", err)
		}
	}
}
