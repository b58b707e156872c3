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

// Each process reads the shared brakes every sharedPollInterval. A process whose last successful read is
// older than SharedBrakesMaxAge begins no visit. A new brake therefore holds in all processes within
// SharedBrakesMaxAge, even after a failure.
const (
	sharedPollInterval = 200 * time.Millisecond
	SharedBrakesMaxAge = time.Second
)

// CrossProcessBrakes is the state that all processes share whose projects have the same prefix in Redis:
// the brakes, as shared values, and the long rests of hosts, in a store of their own. A goroutine keeps
// a local copy of the brakes current.
type CrossProcessBrakes struct {
	StoreID   string // see SharedBrakesID
	openStore func(context.Context) (storage.Store, sharedValueStore, error)
	merge     mergeBrakesFunc
	log       *slog.Logger

	storeOpened        chan struct{}    // closed when store and values are set
	store              storage.Store    // holds the rests of hosts: see WaitForStore
	values             sharedValueStore // the brakes of store: the encoded brake by host
	freshUntil         atomic.Int64     // when the local copy becomes too old, in Unix nanoseconds
	finishedWriteCount atomic.Uint64    // calls of CompareAndSet that have ended

	cancelPoll    context.CancelFunc
	pollWaitGroup sync.WaitGroup
}

// A sharedValueStore reads and writes the shared values of a store. *coord.SharedValues implements it.
type sharedValueStore interface {
	ReadIfChanged(ctx context.Context, version string) (values map[string]string, newVersion string, err error)
	CompareAndSet(ctx context.Context, name, value, old string) (stored bool, err error)
}

// A mergeBrakesFunc merges the shared brakes, encoded and by host, into the local ones, and returns the
// brakes that the store lacks. A nil map means that the shared brakes are unchanged. If outdated returns
// true, this process has written a brake since the map was read: then the function changes nothing and
// returns ok false, and is called again with a new map.
type mergeBrakesFunc func(board map[string]string, outdated func() bool) (missing map[string]string, ok bool)

// sharedBrakesSuffix is appended to the prefix of a project in Redis for the shared state. No project
// can have a name like it.
const sharedBrakesSuffix = ":COMMONS"

// SharedBrakesID identifies the shared brakes that a project uses, by its prefix and its servers, for
// messages and as a key.
func SharedBrakesID(r *project.RedisSettings) string {
	return fmt.Sprintf("%s at %s", r.Prefix, strings.Join(r.Addresses, ", "))
}

// NewCrossProcessBrakes returns shared brakes over values that are open, for tests. It starts no
// goroutine: the caller calls Sync.
func NewCrossProcessBrakes(id string, values sharedValueStore, merge mergeBrakesFunc,
	log *slog.Logger) *CrossProcessBrakes {
	c := &CrossProcessBrakes{StoreID: id, values: values, merge: merge, log: log,
		storeOpened: make(chan struct{}), cancelPoll: func() {}}
	close(c.storeOpened)
	return c
}

// StartCrossProcessBrakes starts a goroutine that opens the shared store of settings r, retrying until
// that succeeds, and then passes its brakes to merge after every change. The caller must call Close.
// confinement limits the files that r names.
func StartCrossProcessBrakes(r project.RedisSettings, confinement *confine.ProjectAccess, merge mergeBrakesFunc,
	log *slog.Logger) *CrossProcessBrakes {
	c := &CrossProcessBrakes{StoreID: SharedBrakesID(&r), merge: merge, log: log, storeOpened: make(chan struct{})}
	c.openStore = func(ctx context.Context) (storage.Store, sharedValueStore, error) {
		opts, err := datadir.RedisOptions(&r, confinement.OpenInput)
		if err != nil {
			return nil, nil, err
		}
		opts.Partitions = 0 // the default: a project's setting applies to its own store only
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

// Close ends the goroutine, waits for it, and closes the store. A nil *CrossProcessBrakes is closed
// already.
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

// poll opens the store, and then reads the shared brakes every sharedPollInterval, until ctx is done.
func (c *CrossProcessBrakes) poll(ctx context.Context) {
	// Open the store. While Redis does not answer, freshUntil stays in the past, and no visit begins.
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
			c.log.Error("the brakes of other processes cannot be read; until then, projects in Redis visit nothing",
				"redis", c.StoreID, "error", err)
		}
	}
	// Count the age of the copy from the start of the read: a brake may be set while it is under way.
	version := ""
	for sleep(ctx, sharedPollInterval) == nil {
		began := time.Now()
		newest, err := c.Sync(ctx, version)
		if err != nil {
			continue // the copy stays valid until freshUntil
		}
		version = newest
		c.freshUntil.Store(began.Add(SharedBrakesMaxAge).UnixNano())
	}
}

// Sync reads the shared brakes, merges them, and writes those that the store lacks. version is the one
// that the last Sync returned, or empty; if it is still current, merge receives nil.
func (c *CrossProcessBrakes) Sync(ctx context.Context, version string) (newest string, err error) {
	ctx, cancel := context.WithTimeout(ctx, SharedBrakesMaxAge)
	defer cancel()
	// Read again while a local write has overtaken the read: its result may lack that write.
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

// CheckFresh returns Proceed while the copy of the brakes is younger than SharedBrakesMaxAge, and
// otherwise postpones the visit by sharedPollInterval.
func (c *CrossProcessBrakes) CheckFresh(now time.Time) decorum.Decision {
	if now.UnixNano() < c.freshUntil.Load() {
		return decorum.Decision{}
	}
	return otherProcessesDecision("the exchange of brakes with other processes", now.Add(sharedPollInterval))
}

// otherProcessesDecision returns a decision that postpones a visit until then, because it depends on
// other processes. what is the subject of the message: "… is busy until …".
func otherProcessesDecision(what string, until time.Time) decorum.Decision {
	return decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonOtherProcesses, Until: until, Detail: what}
}

// CompareAndSet writes the encoded brake of a host to the store or, if brake is empty, removes it. If
// previous is not empty, it does so only while the stored brake is previous. It returns
// storage.ErrWriteStalled if the store is not open yet, or does not answer within SharedBrakesMaxAge.
func (c *CrossProcessBrakes) CompareAndSet(ctx context.Context, host, brake, previous string) error {
	select {
	case <-c.storeOpened:
	default:
		return fmt.Errorf("%s: %w", c.StoreID, storage.ErrWriteStalled)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, SharedBrakesMaxAge, storage.ErrWriteStalled)
	defer cancel()
	defer c.finishedWriteCount.Add(1) // after a failure, too: the write may have reached the store
	if _, err := c.values.CompareAndSet(ctx, host, brake, previous); err != nil {
		return fmt.Errorf("%s: %w", c.StoreID, err)
	}
	return nil
}

// WaitForStore waits until the shared store is open, and returns it. If ctx ends first, it returns the
// cause.
func (c *CrossProcessBrakes) WaitForStore(ctx context.Context) (storage.Store, error) {
	select {
	case <-c.storeOpened:
		return c.store, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// UnavailableRetryInterval is the wait before a store that was unavailable is tried again.
const UnavailableRetryInterval = 2 * time.Second
