package politeness

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
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

// CheckStopped returns a *BrakedError if a brake stops the host at now, else nil.
func (bs *Brakes) CheckStopped(host string, now time.Time) error {
	if b, ok := bs.ForHost(host, now); ok && b.Stop {
		return &BrakedError{Brake: b, Until: b.Until}
	}
	return nil
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
