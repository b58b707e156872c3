package supervisor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/storage"
)

// idleCloseDelay is for how long the state of a project that does not run stays open
// after somebody has looked into it: who looks often looks again.
const idleCloseDelay = 10 * time.Second

// countTimeout is how long a vault may take to count what is in it.
const countTimeout = time.Second

// A storeHandle keeps the state of a project, and is open while somebody is in it.
type storeHandle struct {
	dir                 datadir.StateDir
	wantedStoreIdentity func() string // where the state is, as the project's file says now
	openStoresFunc      func() (datadir.CrawlStores, error)
	beforeClose         func() // is called when it is about to be closed, and nobody is inside

	mu                  sync.Mutex
	userCount           int
	stores              *datadir.CrawlStores // nil: it is closed
	openedStoreIdentity string               // the place of files
	isOpeningOrClosing  bool                 // it is being opened, or closed, which takes time where the state is elsewhere
	directoryLock       *datadir.DirectoryLock
	closedForGood       bool      // for good
	stateChanged        sync.Cond // nobody is inside any more, or it is no more busy
	closeTimer          *time.Timer
	lastStats           storeStats
}

// errStoreClosed refuses to look into a project that is being deleted, or whose daemon
// ends.
var errStoreClosed = errors.New("the project is closed for good")

func newStoreHandle(dir datadir.StateDir, wantedLocation func() string, openStores func() (datadir.CrawlStores, error)) *storeHandle {
	v := &storeHandle{dir: dir, wantedStoreIdentity: wantedLocation, openStoresFunc: openStores, beforeClose: func() {}}
	v.stateChanged.L = &v.mu
	return v
}

// A storeStats is what was found in a vault.
type storeStats struct {
	isKnown               bool
	counts                storage.Counts
	largestDelayShortfall time.Duration // the most, of any host
}

// acquire opens the vault, if nobody has. Who entered leaves in the end. Where the
// state is to be in another place now, it waits until those have left who are in
// the old one.
func (v *storeHandle) acquire() (datadir.CrawlStores, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		mustReopen := v.needsReopenLocked()
		switch {
		case v.closedForGood:
			return datadir.CrawlStores{}, errStoreClosed
		case v.isOpeningOrClosing || mustReopen && v.userCount > 0:
			v.stateChanged.Wait()
			continue
		case mustReopen:
			if err := v.closeLocked(); err != nil && !errors.Is(err, storage.ErrFailed) { // its run has already reported it
				return datadir.CrawlStores{}, err
			}
			continue
		}
		if v.stores == nil {
			if err := v.openLocked(); err != nil {
				return datadir.CrawlStores{}, err
			}
			continue
		}
		v.userCount++
		return *v.stores, nil
	}
}

// openLocked opens the state. It needs v.mu, and lets go of it meanwhile.
func (v *storeHandle) openLocked() error {
	v.isOpeningOrClosing = true
	at := v.wantedStoreIdentity()
	v.mu.Unlock()
	lock, err := v.dir.Lock()
	var opened datadir.CrawlStores
	if err == nil {
		if opened, err = v.openStoresFunc(); err != nil {
			err = errors.Join(err, lock.Close())
		}
	}
	v.mu.Lock()
	v.isOpeningOrClosing = false
	v.stateChanged.Broadcast()
	if err == nil {
		v.stores, v.openedStoreIdentity, v.directoryLock = &opened, at, lock
	}
	return err
}

// needsReopen reports whether the state is to be in another place than that which
// is open, or must be opened again because it has failed.
func (v *storeHandle) needsReopen() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.needsReopenLocked()
}

// needsReopenLocked is needsReopen for callers that hold v.mu.
func (v *storeHandle) needsReopenLocked() bool {
	return v.stores != nil && (v.openedStoreIdentity != v.wantedStoreIdentity() || v.stores.FrontierHasFailed())
}

// release is the end of a stay: the vault is closed some time after the last.
func (v *storeHandle) release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.userCount--
	if v.userCount > 0 {
		return
	}
	v.stateChanged.Broadcast()
	if v.closeTimer == nil {
		v.closeTimer = time.AfterFunc(idleCloseDelay, func() { _ = v.closeIfUnused() })
		return
	}
	v.closeTimer.Reset(idleCloseDelay)
}

// closeIfUnused closes the vault, unless somebody is inside.
func (v *storeHandle) closeIfUnused() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.userCount > 0 || v.stores == nil {
		return nil
	}
	return v.closeLocked()
}

// closeLocked closes what is open. It needs v.mu, and lets go of it meanwhile.
func (v *storeHandle) closeLocked() error {
	v.beforeClose()
	closing, lock := v.stores, v.directoryLock
	v.stores, v.directoryLock, v.isOpeningOrClosing = nil, nil, true
	v.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	counts, countErr := closing.Frontier.Counts(ctx)
	err := errors.Join(closing.CloseProjectStores(), lock.Close())
	v.mu.Lock()
	v.isOpeningOrClosing = false
	v.stateChanged.Broadcast()
	if countErr == nil {
		v.lastStats.counts = counts
	}
	return err
}

// closeForGood closes the vault for good, when everybody has left.
func (v *storeHandle) closeForGood() error {
	v.mu.Lock()
	v.closedForGood = true
	for v.userCount > 0 || v.isOpeningOrClosing {
		v.stateChanged.Wait()
	}
	v.mu.Unlock()
	return v.closeIfUnused()
}

// latestStats returns what is in the vault: as it is now, or as it was closed, or as it
// was when it could be told last. It is opened for that once, if it was never.
func (v *storeHandle) latestStats(ctx context.Context) (storeStats, error) {
	v.mu.Lock()
	open, last := v.stores != nil, v.lastStats
	v.mu.Unlock()
	if last.isKnown && !open {
		return last, nil
	}
	if hasCrawl, err := v.dir.HasCrawl(); err != nil || !hasCrawl {
		return storeStats{}, err
	}
	opened, err := v.acquire()
	if err != nil {
		return storeStats{}, err
	}
	defer v.release()
	if !last.isKnown && !opened.IsRemote { // else it is of the visits that this process makes
		if last.largestDelayShortfall, err = largestDelayShortfall(ctx, opened.Frontier); err != nil {
			return storeStats{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	if last.counts, err = opened.Frontier.Counts(ctx); err != nil {
		return storeStats{}, err
	}
	last.isKnown = true
	v.mu.Lock()
	defer v.mu.Unlock()
	last.largestDelayShortfall = max(last.largestDelayShortfall, v.lastStats.largestDelayShortfall)
	v.lastStats = last
	return last, nil
}

// lastKnownStats returns what was in the vault when it was counted last.
func (v *storeHandle) lastKnownStats() storeStats {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lastStats
}

// updateLargestDelayShortfall is told of a shortfall that a host has had.
func (v *storeHandle) updateLargestDelayShortfall(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lastStats.largestDelayShortfall = max(v.lastStats.largestDelayShortfall, d)
}

// largestDelayShortfall returns the most by which a rest of any host fell short.
func largestDelayShortfall(ctx context.Context, s datadir.StoreInspectorImporter) (shortfall time.Duration, err error) {
	err = s.Origins(ctx, func(o storage.OriginInfo) bool {
		shortfall = max(shortfall, crawler.DecodeHostStats(o.HostState.EncodedStats).LargestDelayShortfall)
		return true
	})
	return shortfall, err
}
