package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis"
)

// How well processes know each other's brakes: they look boardPoll after they did
// last, and who has not seen the board for boardTrust begins no visit. So a brake that
// was put on keeps all from their next visit within boardTrust, whatever happens.
const (
	boardPoll  = 200 * time.Millisecond
	boardTrust = time.Second
)

// Commons are what processes share whose projects are under one prefix in Redis,
// beyond the projects: the brakes, and long rests of hosts.
type commons struct {
	key  string // which they are
	open func(context.Context) (boardStore, error)
	heed heed
	log  *slog.Logger

	opened chan struct{} // closed when store is there
	store  boardStore
	known  atomic.Int64  // until then the brakes are known, as Unix nanoseconds
	posts  atomic.Uint64 // that have ended

	stop    context.CancelFunc
	running sync.WaitGroup
}

// A boardStore is a store that has a board.
type boardStore interface {
	storage.Store
	Board(ctx context.Context, version string) (board map[string]string, newest string, err error)
	Post(ctx context.Context, name, value, was string) (posted bool, err error)
}

// A heed is told what is on the board, nil if that is as before, and says what is to be
// put on it. It does nothing, and is not ok, if the board is outdated: something was
// posted from here since it was asked for, so that it may lack what is there by now.
type heed func(board map[string]string, outdated func() bool) (missing map[string]string, ok bool)

// commonsName ends the prefix of commons: no project has a name like it.
const commonsName = ":COMMONS"

// key says which commons a project belongs to.
func (r *Redis) commonsKey() string {
	return fmt.Sprintf("%s at %s", r.Prefix, strings.Join(r.Addresses, ", "))
}

// startCommons makes the commons of a project's processes, and keeps an eye on them
// until Close is called.
func startCommons(r Redis, in *confinement, heed heed, log *slog.Logger) *commons {
	c := &commons{key: r.commonsKey(), heed: heed, log: log, opened: make(chan struct{})}
	c.open = func(ctx context.Context) (boardStore, error) {
		opts, err := r.options(in)
		if err != nil {
			return nil, err
		}
		opts.Partitions = 0 // of a project's own it says nothing
		ctx, cancel := context.WithTimeout(ctx, redisPatience)
		defer cancel()
		opts.Prefix = r.Prefix + commonsName
		return redis.Open(ctx, opts) // nil in it goes with an error
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.running.Go(func() { c.watch(ctx) })
	return c
}

// Close ends the watch.
func (c *commons) Close() error {
	if c == nil {
		return nil
	}
	c.stop()
	c.running.Wait()
	if c.store == nil {
		return nil
	}
	return c.store.Close()
}

// watch opens the store, and looks at the board, until ctx is done.
func (c *commons) watch(ctx context.Context) {
	for wait := time.Duration(0); ; wait = retryServers {
		if sleep(ctx, wait) != nil {
			return
		}
		store, err := c.open(ctx)
		if err == nil {
			c.store = store
			close(c.opened)
			break
		}
		if wait == 0 {
			c.log.Error("the brakes of other processes cannot be read; until they can, nothing is visited of projects in Redis", "redis", c.key, "error", err)
		}
	}
	version := ""
	for sleep(ctx, boardPoll) == nil {
		began := time.Now()
		newest, err := c.look(ctx, version)
		if err != nil {
			continue // what was known lasts for boardTrust
		}
		version = newest
		c.known.Store(began.Add(boardTrust).UnixNano())
	}
}

// look looks at the board, and puts on it what is missing there.
func (c *commons) look(ctx context.Context, version string) (newest string, err error) {
	ctx, cancel := context.WithTimeout(ctx, boardTrust)
	defer cancel()
	var missing map[string]string
	for ok := false; !ok; {
		var board map[string]string
		posts := c.posts.Load()
		if board, newest, err = c.store.Board(ctx, version); err != nil {
			return version, err
		}
		missing, ok = c.heed(board, func() bool { return c.posts.Load() != posts })
	}
	for host, brake := range missing {
		if _, err := c.store.Post(ctx, host, brake, ""); err != nil {
			return version, err
		}
	}
	return newest, nil
}

// May returns nil while the brakes are known.
func (c *commons) May(now time.Time) error {
	if now.UnixNano() < c.known.Load() {
		return nil
	}
	return &politeness.Busy{What: "what other processes say of brakes", Until: now.Add(boardPoll)}
}

// post puts a value on the board, or takes it off, if it is was, or was is empty. It
// does not wait long.
func (c *commons) post(ctx context.Context, host, brake, was string) error {
	select {
	case <-c.opened:
	default:
		return fmt.Errorf("%s: %w", c.key, storage.ErrStalled)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, boardTrust, storage.ErrStalled)
	defer cancel()
	defer c.posts.Add(1)
	if _, err := c.store.Post(ctx, host, brake, was); err != nil {
		return fmt.Errorf("%s: %w", c.key, err)
	}
	return nil
}

// shared returns the store of the commons, when it is open.
func (c *commons) shared(ctx context.Context) (storage.Store, error) {
	select {
	case <-c.opened:
		return c.store, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
