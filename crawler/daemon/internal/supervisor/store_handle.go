package supervisor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/storage"
)

// idleCloseDelay is how long the stores of a project that does not run stay open after a query,
// because another query often follows.
const idleCloseDelay = 10 * time.Second

// countTimeout limits the time that a store may take to count its URLs.
const countTimeout = time.Second

// A storeHandle opens the stores of a project when the first user acquires them, and closes them some
// time after the last user has released them. The run and each query are users.
type storeHandle struct {
	dir                 datadir.StateDir
	wantedStoreIdentity func() string // identifies the stores that the project file names now
	openStoresFunc      func() (datadir.CrawlStores, error)
	beforeClose         func() // called with mu held before the stores close

	// mu guards all fields below: userCount, stores, openedStoreIdentity, isOpeningOrClosing,
	// directoryLock, closedForGood, questionsContext, endQuestions, closeTimer and lastStats. A user may
	// read stores without mu between acquire and release: the stores do not change meanwhile.
	mu                  sync.Mutex
	userCount           int                    // calls of acquire without their release
	stores              *datadir.CrawlStores   // nil: closed
	openedStoreIdentity string                 // wantedStoreIdentity when stores were opened
	isOpeningOrClosing  bool                   // a goroutine opens or closes the stores, without mu
	directoryLock       *datadir.DirectoryLock // of dir, while stores are open
	closedForGood       bool                   // acquire fails from now on
	stateChanged        sync.Cond              // on mu; signals that userCount is 0 or isOpeningOrClosing false
	questionsContext    context.Context        // for queries of the open stores; ends when the stores must close
	endQuestions        func()                 // ends questionsContext
	closeTimer          *time.Timer            // runs closeIfUnused; nil before the first release
	lastStats           storeStats
}

// errStoreClosed is returned by acquire for a project that is being deleted, or whose daemon is ending.
var errStoreClosed = errors.New("the project is closed for good")

func newStoreHandle(
	dir datadir.StateDir, wantedLocation func() string,
	openStores func() (datadir.CrawlStores, error), beforeClose func(),
) *storeHandle {
	v := &storeHandle{dir: dir, wantedStoreIdentity: wantedLocation,
		openStoresFunc: openStores, beforeClose: beforeClose}
	v.stateChanged.L = &v.mu
	return v
}

// storeStats summarizes the content of a store.
type storeStats struct {
	isKnown               bool // the store was read in this process
	counts                storage.Counts
	largestDelayShortfall time.Duration // the largest of any host; must be 0
}

// acquire returns the stores, and opens them if they are closed. The caller must call release. If the
// project file names other stores by now, or the open ones have failed, acquire ends the queries of the
// open stores and waits until all users have released them.
func (v *storeHandle) acquire() (datadir.CrawlStores, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		// Take one step, then evaluate the state again: Wait, closeLocked and openLocked release the
		// lock, so that other goroutines can change everything meanwhile.
		mustReopen := v.needsReopenLocked()
		switch {
		case v.closedForGood:
			return datadir.CrawlStores{}, errStoreClosed
		case v.isOpeningOrClosing || mustReopen && v.userCount > 0:
			if mustReopen {
				v.endQuestions()
			}
			v.stateChanged.Wait()
		case mustReopen:
			// The run has reported storage.ErrFailed already.
			if err := v.closeLocked(); err != nil && !errors.Is(err, storage.ErrFailed) {
				return datadir.CrawlStores{}, err
			}
		case v.stores == nil:
			if err := v.openLocked(); err != nil {
				return datadir.CrawlStores{}, err
			}
		default:
			// Queries were ended for a change of the file that has been undone.
			if v.questionsContext.Err() != nil {
				v.questionsContext, v.endQuestions = context.WithCancel(context.Background())
			}
			v.userCount++
			return *v.stores, nil
		}
	}
}

// openLocked locks the directory and opens the stores. The caller holds v.mu, which is released
// meanwhile; isOpeningOrClosing keeps other users out.
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
		v.questionsContext, v.endQuestions = context.WithCancel(context.Background())
	}
	return err
}

// needsReopen reports whether the open stores have failed, or differ from those that the project file
// names now.
func (v *storeHandle) needsReopen() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.needsReopenLocked()
}

// needsReopenLocked is needsReopen. The caller holds v.mu.
func (v *storeHandle) needsReopenLocked() bool {
	return v.stores != nil && (v.openedStoreIdentity != v.wantedStoreIdentity() || v.stores.FrontierHasFailed())
}

// questionContext returns a context for a query of the stores, which the caller has acquired. It also
// ends, with cause errStoreClosing, when the stores must close. The caller must call stop.
func (v *storeHandle) questionContext(ctx context.Context) (_ context.Context, stop func()) {
	v.mu.Lock()
	questions := v.questionsContext
	v.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stopWatching := context.AfterFunc(questions, func() { cancel(errStoreClosing) })
	return ctx, func() { stopWatching(); cancel(nil) }
}

// errStoreClosing is the cause with which stores that must close end a query.
var errStoreClosing = api.Unavailable("the project is being stopped, deleted or changed: ask again")

// release ends the use that acquire began. The stores close idleCloseDelay after the last release.
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

// closeIfUnused closes the stores unless they are in use. It returns the error of the last writes.
func (v *storeHandle) closeIfUnused() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.userCount > 0 || v.stores == nil {
		return nil
	}
	return v.closeLocked()
}

// closeLocked closes the stores, and records their counts for the time while they are closed. The
// caller holds v.mu, which is released meanwhile; isOpeningOrClosing keeps other users out.
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

// closeForGood ends the queries, waits until the stores are unused, and closes them. acquire fails from
// then on.
func (v *storeHandle) closeForGood() error {
	v.mu.Lock()
	v.closedForGood = true
	if v.stores != nil {
		v.endQuestions()
	}
	for v.userCount > 0 || v.isOpeningOrClosing {
		v.stateChanged.Wait()
	}
	v.mu.Unlock()
	return v.closeIfUnused()
}

// latestStats returns the stats of the stores: the present ones if the stores are open, otherwise those
// of the moment at which they were closed. It opens stores that this process has not read yet. For a
// project that never ran it returns the zero storeStats.
func (v *storeHandle) latestStats(ctx context.Context) (storeStats, error) {
	// Closed stores are unchanged: use what was read last.
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
	// Read the shortfalls of all hosts once; visits update them. Those of a remote store are not read:
	// for them, only the visits of this process count.
	if !last.isKnown && !opened.IsRemote {
		if last.largestDelayShortfall, err = largestDelayShortfall(ctx, opened.Frontier); err != nil {
			return storeStats{}, err
		}
	}
	// Count the URLs. v.mu is free meanwhile, so merge with shortfalls that visits have recorded.
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

// lastKnownStats returns the stats that were read last, without any I/O.
func (v *storeHandle) lastKnownStats() storeStats {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lastStats
}

// updateLargestDelayShortfall records that a host was visited d before its delay had passed.
func (v *storeHandle) updateLargestDelayShortfall(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lastStats.largestDelayShortfall = max(v.lastStats.largestDelayShortfall, d)
}

// largestDelayShortfall returns the largest delay shortfall of any host in s.
func largestDelayShortfall(ctx context.Context, s datadir.StoreInspectorImporter) (shortfall time.Duration, err error) {
	err = s.Origins(ctx, func(o storage.OriginInfo) bool {
		shortfall = max(shortfall, crawler.DecodeHostStats(o.HostState.EncodedStats).LargestDelayShortfall)
		return true
	})
	return shortfall, err
}
