package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/storage"
)

// linger is for how long the state of a project that does not run stays open
// after somebody has looked into it: who looks often looks again.
const linger = 10 * time.Second

// countPatience is how long a vault may take to count what is in it.
const countPatience = time.Second

// A vault keeps the state of a project, and is open while somebody is in it.
type vault struct {
	dir   stateDir
	place func() string // where the state is, as the project's file says now
	open  func() (stores, error)
	shuts func() // is called when it is about to be closed, and nobody is inside

	mu            sync.Mutex
	inside        int
	files         *stores // nil: it is closed
	at            string  // the place of files
	busy          bool    // it is being opened, or closed, which takes time where the state is elsewhere
	lock          *hold
	closedForGood bool      // for good
	turn          sync.Cond // nobody is inside any more, or it is no more busy
	leaver        *time.Timer
	last          census
}

// errLeft refuses to look into a project that is being deleted, or whose daemon
// ends.
var errLeft = errors.New("the project is closed for good")

func newVault(dir stateDir, place func() string, open func() (stores, error)) *vault {
	v := &vault{dir: dir, place: place, open: open, shuts: func() {}}
	v.turn.L = &v.mu
	return v
}

// A census is what was found in a vault.
type census struct {
	known     bool
	counts    storage.Counts
	shortfall time.Duration // the most, of any host
}

// enter opens the vault, if nobody has. Who entered leaves in the end. Where the
// state is to be in another place now, it waits until those have left who are in
// the old one.
func (v *vault) enter() (stores, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		elsewhere := v.mustReopen()
		switch {
		case v.closedForGood:
			return stores{}, errLeft
		case v.busy || elsewhere && v.inside > 0:
			v.turn.Wait()
			continue
		case elsewhere:
			if err := v.shutFiles(); err != nil && !errors.Is(err, storage.ErrFailed) { // its run has already reported it
				return stores{}, err
			}
			continue
		}
		if v.files == nil {
			if err := v.unlock(); err != nil {
				return stores{}, err
			}
			continue
		}
		v.inside++
		return *v.files, nil
	}
}

// unlock opens the state. It needs v.mu, and lets go of it meanwhile.
func (v *vault) unlock() error {
	v.busy = true
	at := v.place()
	v.mu.Unlock()
	lock, err := v.dir.lock()
	var files stores
	if err == nil {
		if files, err = v.open(); err != nil {
			err = errors.Join(err, lock.Close())
		}
	}
	v.mu.Lock()
	v.busy = false
	v.turn.Broadcast()
	if err == nil {
		v.files, v.at, v.lock = &files, at, lock
	}
	return err
}

// isElsewhere reports whether the state is to be in another place than that which
// is open, or must be opened again because it has failed.
func (v *vault) isElsewhere() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.mustReopen()
}

// mustReopen is isElsewhere for callers that hold v.mu.
func (v *vault) mustReopen() bool {
	return v.files != nil && (v.at != v.place() || v.files.hasFailed())
}

// leave is the end of a stay: the vault is closed some time after the last.
func (v *vault) leave() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.inside--
	if v.inside > 0 {
		return
	}
	v.turn.Broadcast()
	if v.leaver == nil {
		v.leaver = time.AfterFunc(linger, func() { _ = v.close() })
		return
	}
	v.leaver.Reset(linger)
}

// close closes the vault, unless somebody is inside.
func (v *vault) close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.inside > 0 || v.files == nil {
		return nil
	}
	return v.shutFiles()
}

// shutFiles closes what is open. It needs v.mu, and lets go of it meanwhile.
func (v *vault) shutFiles() error {
	v.shuts()
	files, lock := v.files, v.lock
	v.files, v.lock, v.busy = nil, nil, true
	v.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), countPatience)
	defer cancel()
	counts, uncounted := files.frontier.Counts(ctx)
	err := errors.Join(files.closeOwn(), lock.Close())
	v.mu.Lock()
	v.busy = false
	v.turn.Broadcast()
	if uncounted == nil {
		v.last.counts = counts
	}
	return err
}

// shut closes the vault for good, when everybody has left.
func (v *vault) shut() error {
	v.mu.Lock()
	v.closedForGood = true
	for v.inside > 0 || v.busy {
		v.turn.Wait()
	}
	v.mu.Unlock()
	return v.close()
}

// count returns what is in the vault: as it is now, or as it was closed, or as it
// was when it could be told last. It is opened for that once, if it was never.
func (v *vault) count(ctx context.Context) (census, error) {
	v.mu.Lock()
	open, last := v.files != nil, v.last
	v.mu.Unlock()
	if last.known && !open {
		return last, nil
	}
	if holds, err := v.dir.holdsCrawl(); err != nil || !holds {
		return census{}, err
	}
	files, err := v.enter()
	if err != nil {
		return census{}, err
	}
	defer v.leave()
	if !last.known && !files.remote { // else it is of the visits that this process makes
		if last.shortfall, err = worstShortfall(ctx, files.frontier); err != nil {
			return census{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, countPatience)
	defer cancel()
	if last.counts, err = files.frontier.Counts(ctx); err != nil {
		return census{}, err
	}
	last.known = true
	v.mu.Lock()
	defer v.mu.Unlock()
	last.shortfall = max(last.shortfall, v.last.shortfall)
	v.last = last
	return last, nil
}

// latest returns what was in the vault when it was counted last.
func (v *vault) latest() census {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last
}

// short is told of a shortfall that a host has had.
func (v *vault) short(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last.shortfall = max(v.last.shortfall, d)
}

// worstShortfall returns the most by which a rest of any host fell short.
func worstShortfall(ctx context.Context, s store) (worst time.Duration, err error) {
	err = s.Origins(ctx, func(o storage.OriginInfo) bool {
		worst = max(worst, crawler.DecodeHostStats(o.Host.Memo).LargestDelayShortfall)
		return true
	})
	return worst, err
}
