package daemon

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/storage"
)

// linger is for how long the state of a project that does not run stays open
// after somebody has looked into it: who looks often looks again.
const linger = 10 * time.Second

// A vault keeps the state of a project, and is open while somebody is in it.
type vault struct {
	dir  stateDir
	open func() (store, error)

	mu     sync.Mutex
	inside int
	store  store // nil: it is closed
	lock   *os.File
	closed bool // for good
	empty  sync.Cond
	leaver *time.Timer
	last   census
}

// errLeft refuses to look into a project that is being deleted, or whose daemon
// ends.
var errLeft = errors.New("the project is closed for good")

func newVault(dir stateDir, open func() (store, error)) *vault {
	v := &vault{dir: dir, open: open}
	v.empty.L = &v.mu
	return v
}

// A census is what was found in a vault.
type census struct {
	known     bool
	counts    storage.Counts
	shortfall time.Duration // the most, of any host
}

// enter opens the vault, if nobody has. Who entered leaves in the end.
func (v *vault) enter() (store, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, errLeft
	}
	if v.store == nil {
		if err := v.unlock(); err != nil {
			return nil, err
		}
	}
	v.inside++
	return v.store, nil
}

func (v *vault) unlock() error {
	lock, err := v.dir.lock()
	if err != nil {
		return err
	}
	s, err := v.open()
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	v.store, v.lock = s, lock
	return nil
}

// leave is the end of a stay: the vault is closed some time after the last.
func (v *vault) leave() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.inside--
	if v.inside > 0 {
		return
	}
	v.empty.Broadcast()
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
	if v.inside > 0 || v.store == nil {
		return nil
	}
	v.last.counts, _ = v.store.Counts(context.Background())
	err := errors.Join(v.store.Close(), v.lock.Close())
	v.store, v.lock = nil, nil
	return err
}

// shut closes the vault for good, when everybody has left.
func (v *vault) shut() error {
	v.mu.Lock()
	v.closed = true
	for v.inside > 0 {
		v.empty.Wait()
	}
	v.mu.Unlock()
	return v.close()
}

// count returns what is in the vault: as it is now, or as it was closed. It is
// opened for that once, if it was never.
func (v *vault) count(ctx context.Context) (census, error) {
	v.mu.Lock()
	s, last := v.store, v.last
	v.mu.Unlock()
	if last.known && s == nil {
		return last, nil
	}
	if holds, err := v.dir.holdsCrawl(); err != nil || !holds {
		return census{}, err
	}
	s, err := v.enter()
	if err != nil {
		return census{}, err
	}
	defer v.leave()
	if !last.known {
		if last.shortfall, err = worstShortfall(ctx, s); err != nil {
			return census{}, err
		}
		last.known = true
	}
	if last.counts, err = s.Counts(ctx); err != nil {
		return census{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	last.shortfall = max(last.shortfall, v.last.shortfall)
	v.last = last
	return last, nil
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
		worst = max(worst, crawler.ReadHostMemo(o.Host.Memo).Shortfall)
		return true
	})
	return worst, err
}
