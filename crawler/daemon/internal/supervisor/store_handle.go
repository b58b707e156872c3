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

// idleCloseDelay is for how long the stores of a project that does not run stay open after a
// query: often another follows.
const idleCloseDelay = 10 * time.Second

// countTimeout is how long a store may take to count its URLs.
const countTimeout = time.Second

// A storeHandle opens the stores of a project while they are in use, and closes them after.
type storeHandle struct {
	dir                 datadir.StateDir
	wantedStoreIdentity func() string // which stores the project file names now
	openStoresFunc      func() (datadir.CrawlStores, error)
	beforeClose         func() // is called with mu before the stores close

	mu                  sync.Mutex // guards the fields below
	userCount           int
	stores              *datadir.CrawlStores // nil: it is closed
	openedStoreIdentity string               // of stores
	isOpeningOrClosing  bool                 // stores are being opened or closed, without mu
	directoryLock       *datadir.DirectoryLock
	closedForGood       bool            // acquire fails from now on
	stateChanged        sync.Cond       // on mu: userCount is 0, or isOpeningOrClosing has ended
	questionsContext    context.Context // of questions about the open stores; ends when these have to close
	endQuestions        func()          // ends questionsContext
	closeTimer          *time.Timer
	lastStats           storeStats
}

// errStoreClosed is the error of acquire for a project that is being deleted, or whose daemon
// ends.
var errStoreClosed = errors.New("the project is closed for good")

func newStoreHandle(
	dir datadir.StateDir, wantedLocation func() string, openStores func() (datadir.CrawlStores, error), beforeClose func(),
) *storeHandle {
	v := &storeHandle{dir: dir, wantedStoreIdentity: wantedLocation, openStoresFunc: openStores, beforeClose: beforeClose}
	v.stateChanged.L = &v.mu
	return v
}

// A storeStats is what a store was found to hold.
type storeStats struct {
	isKnown               bool
	counts                storage.Counts
	largestDelayShortfall time.Duration // the most, of any host
}

// acquire returns the stores, and opens them if they are closed. The caller must call release.
// If the project file names other stores now, it waits until all users of the open ones
// have released them.
func (v *storeHandle) acquire() (datadir.CrawlStores, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		// Wait for others, close stores that are no longer wanted, or open those that are, and look
		// again: closeLocked and openLocked release the lock meanwhile.
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
			if err := v.closeLocked(); err != nil && !errors.Is(err, storage.ErrFailed) { // its run has already reported it
				return datadir.CrawlStores{}, err
			}
		case v.stores == nil:
			if err := v.openLocked(); err != nil {
				return datadir.CrawlStores{}, err
			}
		default:
			if v.questionsContext.Err() != nil { // the file names these stores again
				v.questionsContext, v.endQuestions = context.WithCancel(context.Background())
			}
			v.userCount++
			return *v.stores, nil
		}
	}
}

// openLocked opens the stores. It needs v.mu, and releases it meanwhile.
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

// needsReopen reports whether the project file names other stores than those that are open, or
// the open ones have failed.
func (v *storeHandle) needsReopen() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.needsReopenLocked()
}

// needsReopenLocked is needsReopen for callers that hold v.mu.
func (v *storeHandle) needsReopenLocked() bool {
	return v.stores != nil && (v.openedStoreIdentity != v.wantedStoreIdentity() || v.stores.FrontierHasFailed())
}

// questionContext returns a context for a question about the stores, which acquire has
// returned: it is done, too, when they have to close.
func (v *storeHandle) questionContext(ctx context.Context) (_ context.Context, stop func()) {
	v.mu.Lock()
	questions := v.questionsContext
	v.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stopWatching := context.AfterFunc(questions, func() { cancel(errStoreClosing) })
	return ctx, func() { stopWatching(); cancel(nil) }
}

// errStoreClosing is why a question about stores that have to close is broken off.
var errStoreClosing = api.Unavailable("the project is being stopped, deleted or changed: ask again")

// release ends the use that acquire began. The stores close idleCloseDelay after the last use.
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

// closeIfUnused closes the stores, unless they are in use.
func (v *storeHandle) closeIfUnused() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.userCount > 0 || v.stores == nil {
		return nil
	}
	return v.closeLocked()
}

// closeLocked closes the stores. It needs v.mu, and releases it meanwhile.
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

// closeForGood waits until the stores are unused, and closes them. acquire fails from then on.
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

// latestStats returns what the stores hold: now if they are open, else when they were closed. It
// opens them if that is not known.
func (v *storeHandle) latestStats(ctx context.Context) (storeStats, error) {
	// Closed stores hold what they held.
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
	// Read the shortfalls of all hosts once; visits update them.
	if !last.isKnown && !opened.IsRemote { // else it is of the visits that this process makes
		if last.largestDelayShortfall, err = largestDelayShortfall(ctx, opened.Frontier); err != nil {
			return storeStats{}, err
		}
	}
	// Count, and keep the result.
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

// lastKnownStats returns what the stores held when they were counted last.
func (v *storeHandle) lastKnownStats() storeStats {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lastStats
}

// updateLargestDelayShortfall records the shortfall of a rest of a host.
func (v *storeHandle) updateLargestDelayShortfall(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lastStats.largestDelayShortfall = max(v.lastStats.largestDelayShortfall, d)
}

// largestDelayShortfall returns the largest shortfall of a rest of any host in s.
func largestDelayShortfall(ctx context.Context, s datadir.StoreInspectorImporter) (shortfall time.Duration, err error) {
	err = s.Origins(ctx, func(o storage.OriginInfo) bool {
		shortfall = max(shortfall, crawler.DecodeHostStats(o.HostState.EncodedStats).LargestDelayShortfall)
		return true
	})
	return shortfall, err
}
