package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
	"github.com/decorum-crawler/decorum/storage/redis/coord"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// A Store is a storage.Store, a storage.Inspector and a storage.Importer on Redis Cluster. Open
// returns one. Any number of processes may have the same store open. All methods may be called
// at the same time. Most of them are those of its embedded parts.
type Store struct {
	client       *client.Client
	flushTimeout time.Duration // how long Flush waits for servers that do not answer

	urlLeaser
	leaseManager
	parking
	noteStore
	hostAdmitter
	inspector
	importer
}

var (
	_ storage.Store     = (*Store)(nil)
	_ storage.Inspector = (*Store)(nil)
	_ storage.Importer  = (*Store)(nil)
)

// Add implements storage.Store. It returns when a replica has confirmed all entries, unless
// Options.Durability is DurabilityNone. If it fails, some entries may have been queued; another
// call with the same entries returns Duplicate for them. Entries with RobotsFor set are an
// exception: a repeated call, also one that Add repeats after a lost reply, queues them again.
func (s *Store) Add(ctx context.Context, entries []storage.Entry, maxPerOrigin int) ([]storage.AddOutcome, error) {
	if err := storage.ValidateEntries(entries); err != nil {
		return nil, err
	}
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	// Each item of a batch holds the arguments that add.lua takes for one entry. Entries with
	// RobotsFor set have no fingerprint: they bypass the seen set.
	batches := s.client.Partitions().Batches(len(entries), func(i int) (string, []string) {
		e := &entries[i]
		o, fingerprint := e.URL.Origin(), ""
		if e.RobotsFor.IsZero() {
			fingerprint = fingerprintArg(e.RequestFingerprint())
		}
		return o.Host(), []string{o.String(), o.Host(), laneArg(e), rankArg(e), fingerprint, encodeEntry(e)}
	})
	results := make([]storage.AddOutcome, len(entries))
	commonArgs := []string{strconv.Itoa(maxPerOrigin)}
	err = s.client.SendBatches(ctx, batches, true, lua.Add, commonArgs, func(i int, reply byte, _ bool) error {
		result, ok := addReplies[reply]
		if !ok {
			return client.ErrBadReply
		}
		results[i] = result
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("add: %w", err)
	}
	return results, nil
}

// addReplies maps the letters that add.lua returns to outcomes.
var addReplies = map[byte]storage.AddOutcome{'a': storage.Added, 'k': storage.Duplicate, 'o': storage.OverLimit}

// Hold implements storage.Store.
func (s *Store) Hold(ctx context.Context, o decorum.Origin, until time.Time, suspended bool) error {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	args := []string{o.String(), o.Host(), s.client.ScriptClock().TimeArg(until), client.BoolArg(suspended)}
	_, _, err = s.client.RunUpdate(ctx, s.client.PartitionOfHost(o.Host()), false, lua.Hold, args...)
	return err
}

// Counts implements storage.Inspector.
func (s *Store) Counts(ctx context.Context) (storage.Counts, error) {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return storage.Counts{}, err
	}
	defer end()
	if err := s.client.RefreshSummaries(ctx, lua.Summary); err != nil {
		return storage.Counts{}, fmt.Errorf("counts: %w", err)
	}
	all, _ := s.client.Partitions().Total()
	return all.Counts, nil
}

// SharedLimits returns the limits that all processes of this store share. They can be used until
// Close.
func (s *Store) SharedLimits() *coord.SharedCrawlLimits { return coord.NewSharedLimits(s.client) }

// SharedValues returns the values that all processes of this store share. They can be used until
// Close.
func (s *Store) SharedValues() *coord.SharedValues { return coord.NewSharedValues(s.client) }

// flushTimeouts is how long Flush waits for servers that do not answer, as a multiple of
// Options.Timeout. A replica takes over in less time.
const flushTimeouts = 6

// Flush implements storage.Store. It waits until a replica has confirmed all earlier changes, for
// at most flushTimeouts times Options.Timeout, and then returns storage.ErrWriteStalled. With
// DurabilityNone it returns at once.
func (s *Store) Flush(ctx context.Context) error {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	ctx, cancel := context.WithTimeoutCause(ctx, s.flushTimeout, storage.ErrWriteStalled)
	defer cancel()
	return s.confirmEarlierUpdates(ctx)
}

// confirmEarlierUpdates waits until a replica of each partition has confirmed all earlier changes.
// It writes a note into each partition: a confirmation of that write covers those before it. It
// does nothing if all changes have been confirmed already.
func (s *Store) confirmEarlierUpdates(ctx context.Context) error {
	return s.client.ConfirmEarlierUpdates(ctx, lua.SetNote, "", "", "flushed", "")
}

// closeTimeout is how long Close waits for servers. Close returns leases so that other processes
// need not wait for their expiry; nothing is lost if it cannot.
const closeTimeout = 2 * time.Second

// Close implements storage.Store. It cancels the calls that run, returns the leases of this
// process to their queues, and waits for at most 2 s for servers that do not answer. If that was
// too short, it returns an error that wraps storage.ErrWriteStalled: the leases then expire, and
// URLs that were acked last may be visited again if a replica takes over.
func (s *Store) Close() error {
	return s.client.Close(func() error {
		ctx, cancel := context.WithTimeoutCause(context.Background(), closeTimeout, storage.ErrWriteStalled)
		defer cancel()
		return errors.Join(s.returnAll(ctx), s.confirmEarlierUpdates(ctx))
	})
}

// Open opens the store whose keys begin with Options.Prefix, or creates it if it does not exist. It
// returns an error if no server answers, or if a server does not meet the requirements in the
// package documentation. The error wraps storage.ErrWriteStalled if another attempt may succeed
// without a change of Options. The caller must call Close.
func Open(ctx context.Context, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	c, err := client.Open(ctx, client.Config{
		Addresses: opts.Addresses, Username: opts.Username, Password: opts.Password, TLS: opts.TLS, Prefix: opts.Prefix,
		Partitions: opts.Partitions, Durability: string(opts.Durability),
		CacheBytes: opts.NoteCacheBytes, Timeout: opts.Timeout,
		OnStallChange: opts.OnStallChange, UsesCallerTime: opts.usesCallerTime,
	})
	if err != nil {
		return nil, err
	}
	if err := ensureFormat(ctx, c, &opts); err != nil {
		return nil, errors.Join(err, c.Close(func() error { return nil }))
	}
	// The parts share what this process knows of its leases and of the recorded longest lease.
	held, ttls, interrupted := newHeldLeases(), newLeaseTTLRecorder(c, opts.Timeout), opts.interruptedDelay()
	summaries := &summaryRefresher{client: c, interval: opts.PartitionRefreshInterval, interruptedDelay: interrupted}
	return &Store{
		client:       c,
		flushTimeout: flushTimeouts * opts.Timeout,
		urlLeaser:    urlLeaser{client: c, summaries: summaries, held: held, ttls: ttls, onDamaged: opts.OnDamaged},
		leaseManager: leaseManager{
			client: c, held: held, ttls: ttls, interruptedDelay: interrupted, beforeAck: opts.BeforeAck,
		},
		parking:      parking{c, opts.OnDamaged},
		noteStore:    noteStore{c},
		hostAdmitter: hostAdmitter{c},
		inspector:    inspector{c},
		importer:     importer{c},
	}, nil
}

// keyFormat is the format of the keys and values, as prefix:store records it.
const keyFormat = "1"

// ensureFormat records the format and the number of partitions if the store is new. Otherwise it
// returns an error if the store was made with different ones.
func ensureFormat(ctx context.Context, c *client.Client, opts *Options) error {
	// The key has no hash tag of a partition: it must be found before the number of partitions is
	// known to be right.
	key := opts.Prefix + ":store"
	for field, want := range map[string]string{"format": keyFormat, "partitions": fmt.Sprint(opts.Partitions)} {
		got, err := c.SetHashFieldOnce(ctx, key, field, want)
		if err != nil {
			return client.AsTransient(fmt.Errorf("store %s: %w", opts.Prefix, err))
		}
		if got != want {
			return fmt.Errorf("store %s was made with %s %s, and is opened with %s", opts.Prefix, field, got, want)
		}
	}
	return nil
}

// laneArg returns the lane of a new entry as an argument of a script.
func laneArg(e *storage.Entry) string { return strconv.Itoa(int(schedule.LaneOf(e))) }

// rankArg returns the rank of an entry within its lane as an argument of a script.
func rankArg(e *storage.Entry) string { return strconv.FormatInt(schedule.RankOf(e), 10) }

// fingerprintArg returns a fingerprint as a signed decimal integer, because Redis stores a set of
// 64-bit signed integers in eight bytes each.
func fingerprintArg(fingerprint uint64) string { return strconv.FormatInt(int64(fingerprint), 10) }

// encodeEntry returns the record of an entry, as the servers store it.
func encodeEntry(e *storage.Entry) string { return string(record.AppendEntry(nil, e)) }

// chunkSize is how many URLs, or origins, one call reads: a longer call would keep its server busy.
const chunkSize = 256

// readHostState reads the state of a host from a reply. now is the server's time, in its
// microseconds, as the same reply gives it.
func readHostState(f *client.ReplyReader, c *client.ScriptClock, now int64) storage.HostState {
	h := storage.HostState{
		Due: c.ToLocalTime(f.ReadInt(), now), LostVisitDelay: client.MicrosToDuration(f.ReadInt()),
		Slots: int(f.ReadInt()), ConsecutiveFailures: int(f.ReadInt()),
	}
	if memo := f.ReadString(); memo != "" {
		h.EncodedStats = []byte(memo)
	}
	return h
}

// hostStateArgs returns the five arguments from which setHostState in schedule.lua sets the state
// of a host.
func hostStateArgs(c *client.ScriptClock, h *storage.HostState) []string {
	return []string{c.TimeArg(h.Due), client.DurationArg(h.LostVisitDelay), strconv.Itoa(h.Slots),
		strconv.Itoa(h.ConsecutiveFailures), string(h.EncodedStats)}
}
