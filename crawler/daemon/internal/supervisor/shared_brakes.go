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

// Processes whose projects have the same prefix in Redis share their brakes there: one value per host.
// A daemon also records these brakes in daemon.json, for its other projects and for the time before
// Redis has answered.

// encodeSharedBrake returns the value of a brake in Redis.
func encodeSharedBrake(b api.Brake) string {
	text, err := json.Marshal(b)
	if err != nil {
		panic(err) // unreachable: all fields can be encoded
	}
	return string(text)
}

// decodeSharedBrake decodes the value of a brake in Redis. It returns false if the brake is invalid or
// has expired by now.
func decodeSharedBrake(encoded string, now time.Time) (politeness.Brake, bool) {
	var b api.Brake
	if json.Unmarshal([]byte(encoded), &b) != nil {
		return politeness.Brake{}, false
	}
	brake := toPolitenessBrake(b)
	return brake, brake.Validate() == nil && !brake.Expired(now)
}

// mergeSharedBrakes sets the brakes that the Redis store named key holds, and lifts those that it no
// longer holds. A nil shared means that the store is unchanged. It returns the brakes that the store
// lacks, by host: those that were set here while the store did not answer, or before a project used
// it. If outdated reports that this process has written a brake since shared was read, it does nothing
// and returns false.
func (o *operatorBrakes) mergeSharedBrakes(
	key string, shared map[string]string, outdated func() bool,
) (missing map[string]string, ok bool) {
	// Writers of shared brakes hold o.mu, too, so that outdated stays false until the merge is done.
	o.mu.Lock()
	defer o.mu.Unlock()
	if outdated() {
		return nil, false
	}
	// Apply what has changed in the store since it was read last.
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

// adoptSharedBrakeChanges applies here the changes that other processes made between lastShared and
// shared, and updates local, the active brakes of this process. A brake that was set here meanwhile
// stays if it stops its host. The caller holds o.mu.
func (o *operatorBrakes) adoptSharedBrakeChanges(lastShared, shared, local map[string]string) {
	now := time.Now()
	// Lift the brakes that another process has lifted and that are unchanged here.
	for host, encoded := range lastShared {
		if _, on := shared[host]; !on && local[host] == encoded && o.active.Remove(host) {
			if b, ok := decodeSharedBrake(encoded, now); ok {
				o.logAndPublish(toAPIBrake(b), "lifted")
			}
			delete(local, host)
		}
	}
	// Set the brakes that are new or have changed.
	for host, encoded := range shared {
		b, ok := decodeSharedBrake(encoded, now)
		localBrake, stops := decodeSharedBrake(local[host], now)
		isUnshared := local[host] != "" && local[host] != lastShared[host] // not yet written to Redis
		if !ok || b.Host != host || encoded == local[host] || isUnshared && stops && localBrake.Stop {
			continue
		}
		if o.active.Set(b) == nil {
			o.logAndPublish(toAPIBrake(b), brakeDescription(toAPIBrake(b)))
			local[host] = encoded
		}
	}
}

// saveLastSharedAndLocalBrakes records the brakes of the Redis store named key, and the active brakes.
// The caller holds o.mu.
func (o *operatorBrakes) saveLastSharedAndLocalBrakes(key string, shared map[string]string) {
	err := o.stateStore.update(func(t *savedDaemonState) {
		t.LastSharedBrakes[key] = shared
	})
	if err = errors.Join(err, o.save()); err != nil {
		o.log.Warn("the brakes that other processes have set may not survive this daemon", "error", err)
	}
}

// ReplaceBrakes sets the valid brakes of a Redis store, given by host, and lifts all others. It serves
// a crawl in the foreground, which records no brakes of its own.
func ReplaceBrakes(brakes *politeness.Brakes, shared map[string]string, log *slog.Logger) {
	now := time.Now()
	var all []politeness.Brake
	for host, encoded := range shared {
		b, ok := decodeSharedBrake(encoded, now)
		if !ok || b.Host != host {
			continue
		}
		all = append(all, b)
		log.Warn("brake", "host", b.Host, "domain", b.IncludesSubdomains, "what", brakeDescription(toAPIBrake(b)),
			"by", b.By, "reason", b.Reason)
	}
	if err := brakes.Replace(all); err != nil { // unreachable: all of them are valid
		log.Error("the brakes of other processes are not applied", "error", err)
	}
}

// setOrRemoveBrakeInRedis writes a brake to all Redis stores or, if encoded is empty, removes it from
// those that hold it. If previous is not empty, it changes only stores in which the brake of the host
// is previous. It tries all stores, and joins their errors. The caller holds o.mu.
func (o *operatorBrakes) setOrRemoveBrakeInRedis(ctx context.Context, host, encoded, previous string) (err error) {
	for _, c := range o.sharedBrakesOfAllStores() {
		// Skip the removal from a store that does not hold the brake.
		shared := cloneOrMakeMap(o.stateStore.current().LastSharedBrakes[c.StoreID])
		if _, on := shared[host]; encoded == "" && !on {
			continue
		}
		if e := c.CompareAndSet(ctx, host, encoded, previous); e != nil {
			err = errors.Join(err, e)
			continue
		}
		// Record what the store holds now, so that the next merge takes it for this process's change.
		shared[host] = encoded
		if encoded == "" {
			delete(shared, host)
		}
		o.saveLastSharedAndLocalBrakes(c.StoreID, shared)
	}
	return err
}

// getOrStartSharedBrakes returns the shared brakes of the Redis store that a project uses, and starts
// their goroutine if they are new. It returns nil for a project in local files.
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

// sharedBrakesOfAllStores returns the shared brakes of all Redis stores that projects use. After
// closeAllStores they are closed.
func (o *operatorBrakes) sharedBrakesOfAllStores() []*engine.CrossProcessBrakes {
	o.storesMu.Lock()
	defer o.storesMu.Unlock()
	return slices.Collect(maps.Values(o.sharedBrakesByID))
}

// startUsedCloseUnused starts the shared brakes of the Redis stores that projects use, including
// projects that do not run, because brakes hold for all projects. It closes those of stores that no
// project uses any longer.
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

// closeAllStores closes the shared brakes of all Redis stores. Later writes of brakes fail.
func (o *operatorBrakes) closeAllStores() { o.closeStores(o.sharedBrakesOfAllStores()) }

// closeStores ends the goroutines of shared brakes and waits for them. The caller does not hold o.mu,
// which these goroutines take.
func (o *operatorBrakes) closeStores(stores []*engine.CrossProcessBrakes) {
	for _, c := range stores {
		if err := c.Close(); err != nil {
			o.log.Warn("the shared brakes in Redis are not closed in order", "redis", c.StoreID, "error", err)
		}
	}
}
