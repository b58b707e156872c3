package engine

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis"
)

// How well processes know each other's brakes: they look sharedPollInterval after they did
// last, and who has not seen the board for SharedBrakesMaxAge begins no visit. So a brake that
// was put on keeps all from their next visit within SharedBrakesMaxAge, whatever happens.
const (
	sharedPollInterval = 200 * time.Millisecond
	SharedBrakesMaxAge = time.Second
)

// CrossProcessBrakes are what processes share whose projects are under one prefix in Redis,
// beyond the projects: the brakes, and long rests of hosts.
type CrossProcessBrakes struct {
	StoreID   string // which they are
	openStore func(context.Context) (storage.Store, sharedValueStore, error)
	merge     mergeBrakesFunc
	log       *slog.Logger

	storeOpened        chan struct{} // closed when store is there
	store              storage.Store
	values             sharedValueStore // of store
	freshUntil         atomic.Int64     // until then the brakes are known, as Unix nanoseconds
	finishedWriteCount atomic.Uint64    // that have ended

	cancelPoll    context.CancelFunc
	pollWaitGroup sync.WaitGroup
}

// sharedValueStore is a *coord.SharedValues.
type sharedValueStore interface {
	ReadIfChanged(ctx context.Context, version string) (values map[string]string, newVersion string, err error)
	CompareAndSet(ctx context.Context, name, value, old string) (stored bool, err error)
}

// A mergeBrakesFunc is told what is on the board, nil if that is as before, and says what is to be
// put on it. It does nothing, and is not ok, if the board is outdated: something was
// posted from here since it was asked for, so that it may lack what is there by now.
type mergeBrakesFunc func(board map[string]string, outdated func() bool) (missing map[string]string, ok bool)

// sharedBrakesSuffix ends the prefix of commons: no project has a name like it.
const sharedBrakesSuffix = ":COMMONS"

// SharedBrakesID returns which commons a project belongs to.
func SharedBrakesID(r *project.RedisSettings) string {
	return fmt.Sprintf("%s at %s", r.Prefix, strings.Join(r.Addresses, ", "))
}

// NewCrossProcessBrakes returns shared brakes over values that are open, which nothing polls: the caller calls
// Sync.
func NewCrossProcessBrakes(id string, values sharedValueStore, merge mergeBrakesFunc, log *slog.Logger) *CrossProcessBrakes {
	c := &CrossProcessBrakes{StoreID: id, values: values, merge: merge, log: log, storeOpened: make(chan struct{}), cancelPoll: func() {}}
	close(c.storeOpened)
	return c
}

// StartCrossProcessBrakes makes the commons of a project's processes, and keeps an eye on them
// until Close is called.
func StartCrossProcessBrakes(r project.RedisSettings, confinement *confine.ProjectAccess, merge mergeBrakesFunc, log *slog.Logger) *CrossProcessBrakes {
	c := &CrossProcessBrakes{StoreID: SharedBrakesID(&r), merge: merge, log: log, storeOpened: make(chan struct{})}
	c.openStore = func(ctx context.Context) (storage.Store, sharedValueStore, error) {
		opts, err := datadir.RedisOptions(&r, confinement.OpenInput)
		if err != nil {
			return nil, nil, err
		}
		opts.Partitions = 0 // of a project's own it says nothing
		ctx, cancel := context.WithTimeout(ctx, datadir.RedisOpenTimeout)
		defer cancel()
		opts.Prefix = r.Prefix + sharedBrakesSuffix
		s, err := redis.Open(ctx, opts)
		if err != nil {
			return nil, nil, err
		}
		return s, s.SharedValues(), nil
	}
	ctx, stop := context.WithCancel(context.Background())
	c.cancelPoll = stop
	c.pollWaitGroup.Go(func() { c.poll(ctx) })
	return c
}

// Close ends the watch.
func (c *CrossProcessBrakes) Close() error {
	if c == nil {
		return nil
	}
	c.cancelPoll()
	c.pollWaitGroup.Wait()
	if c.store == nil {
		return nil
	}
	return c.store.Close()
}

// poll opens the store, and looks at the board, until ctx is done.
func (c *CrossProcessBrakes) poll(ctx context.Context) {
	for wait := time.Duration(0); ; wait = UnavailableRetryInterval {
		if sleep(ctx, wait) != nil {
			return
		}
		store, values, err := c.openStore(ctx)
		if err == nil {
			c.store, c.values = store, values
			close(c.storeOpened)
			break
		}
		if wait == 0 {
			c.log.Error("the brakes of other processes cannot be read; until they can, nothing is visited of projects in Redis", "redis", c.StoreID, "error", err)
		}
	}
	version := ""
	for sleep(ctx, sharedPollInterval) == nil {
		began := time.Now()
		newest, err := c.Sync(ctx, version)
		if err != nil {
			continue // what was known lasts for SharedBrakesMaxAge
		}
		version = newest
		c.freshUntil.Store(began.Add(SharedBrakesMaxAge).UnixNano())
	}
}

// Sync looks at the board, and puts on it what is missing there.
func (c *CrossProcessBrakes) Sync(ctx context.Context, version string) (newest string, err error) {
	ctx, cancel := context.WithTimeout(ctx, SharedBrakesMaxAge)
	defer cancel()
	var missing map[string]string
	for ok := false; !ok; {
		var shared map[string]string
		finishedPosts := c.finishedWriteCount.Load()
		if shared, newest, err = c.values.ReadIfChanged(ctx, version); err != nil {
			return version, err
		}
		missing, ok = c.merge(shared, func() bool { return c.finishedWriteCount.Load() != finishedPosts })
	}
	for host, brake := range missing {
		if _, err := c.values.CompareAndSet(ctx, host, brake, ""); err != nil {
			return version, err
		}
	}
	return newest, nil
}

// CheckFresh lets visits proceed while the brakes are known.
func (c *CrossProcessBrakes) CheckFresh(now time.Time) decorum.Decision {
	if now.UnixNano() < c.freshUntil.Load() {
		return decorum.Decision{}
	}
	return otherProcessesDecision("what other processes say of brakes", now.Add(sharedPollInterval))
}

// otherProcessesDecision has visits wait for what depends on other processes.
func otherProcessesDecision(what string, until time.Time) decorum.Decision {
	return decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonOtherProcesses, Until: until, Detail: what}
}

// CompareAndSet puts a value on the board, or takes it off, if it is was, or was is empty. It
// does not wait long.
func (c *CrossProcessBrakes) CompareAndSet(ctx context.Context, host, brake, previous string) error {
	select {
	case <-c.storeOpened:
	default:
		return fmt.Errorf("%s: %w", c.StoreID, storage.ErrWriteStalled)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, SharedBrakesMaxAge, storage.ErrWriteStalled)
	defer cancel()
	defer c.finishedWriteCount.Add(1)
	if _, err := c.values.CompareAndSet(ctx, host, brake, previous); err != nil {
		return fmt.Errorf("%s: %w", c.StoreID, err)
	}
	return nil
}

// WaitForStore returns the store of the commons, when it is open.
func (c *CrossProcessBrakes) WaitForStore(ctx context.Context) (storage.Store, error) {
	select {
	case <-c.storeOpened:
		return c.store, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// UnavailableRetryInterval is how long after servers did not answer they are asked again.
const UnavailableRetryInterval = 2 * time.Second
