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

// A Store is a storage.Store and a storage.Inspector on Redis Cluster. Use Open.
// Any number of processes may have the same store open. Its parts have most of its methods.
type Store struct {
	client       *client.Client
	flushTimeout time.Duration // how long a Flush waits for servers

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

// Add implements storage.Store. If it fails, some entries may have been queued: of
// those it says Duplicate when it is called again.
func (s *Store) Add(ctx context.Context, entries []storage.Entry, maxPerOrigin int) ([]storage.AddOutcome, error) {
	if err := storage.ValidateEntries(entries); err != nil {
		return nil, err
	}
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
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

// addReplies are the letters that add.lua returns.
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

// SharedLimits returns the limits that all processes keep to together that have the store
// open. They can be used until Close.
func (s *Store) SharedLimits() *coord.SharedCrawlLimits { return coord.NewSharedLimits(s.client) }

// SharedValues returns the values that all processes read that have the store open. They
// can be used until Close.
func (s *Store) SharedValues() *coord.SharedValues { return coord.NewSharedValues(s.client) }

// flushTimeouts is how many times Options.Timeout a Flush waits for servers that
// do not answer: replicas take over in less.
const flushTimeouts = 6

// Flush implements storage.Store: what is not where Options.Durability wants it
// yet is waited for, though not for good: then it returns storage.ErrWriteStalled.
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

// confirmEarlierUpdates has a replica confirm a change of each partition, and so all
// before it, unless all that was changed has been confirmed.
func (s *Store) confirmEarlierUpdates(ctx context.Context) error {
	return s.client.ConfirmEarlierUpdates(ctx, lua.SetNote, "", "", "flushed", "")
}

// closeTimeout is how long Close waits for servers. What it tells them spares other
// processes a wait, and nothing is lost without it.
const closeTimeout = 2 * time.Second

// Close implements storage.Store. Of servers that do not answer, leases that are out run
// out by themselves, and what was acked last may be visited again when their replicas take
// over; then it returns an error that wraps storage.ErrWriteStalled.
func (s *Store) Close() error {
	return s.client.Close(func() error {
		ctx, cancel := context.WithTimeoutCause(context.Background(), closeTimeout, storage.ErrWriteStalled)
		defer cancel()
		return errors.Join(s.returnAll(ctx), s.confirmEarlierUpdates(ctx))
	})
}

// Open opens the store whose keys begin with Options.Prefix, and makes it if there
// is none. It returns an error if no server answers, or if one is not as a store
// needs it: see the package's documentation. The error wraps storage.ErrWriteStalled if
// the servers may be in order a moment later, without anybody changing a setting of
// ours. Close must be called in the end.
func Open(ctx context.Context, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	c, err := client.Open(ctx, client.Config{
		Addresses: opts.Addresses, Username: opts.Username, Password: opts.Password, TLS: opts.TLS, Prefix: opts.Prefix,
		Partitions: opts.Partitions, Durability: string(opts.Durability), CacheBytes: opts.NoteCacheBytes, Timeout: opts.Timeout,
		OnStallChange: opts.OnStallChange, UsesCallerTime: opts.usesCallerTime,
	})
	if err != nil {
		return nil, err
	}
	if err := ensureFormat(ctx, c, &opts); err != nil {
		return nil, errors.Join(err, c.Close(func() error { return nil }))
	}
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

// keyFormat is that of the keys.
const keyFormat = "1"

// ensureFormat notes format and partitions in a new store, and compares them in another.
func ensureFormat(ctx context.Context, c *client.Client, opts *Options) error {
	key := opts.Prefix + ":store" // wherever partitions are: that is what is asked
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

// laneArg returns the lane of a new entry.
func laneArg(e *storage.Entry) string { return strconv.Itoa(int(schedule.LaneOf(e))) }

// rankArg returns the rank of an entry within its lane.
func rankArg(e *storage.Entry) string { return strconv.FormatInt(schedule.RankOf(e), 10) }

// fingerprintArg returns a fingerprint as a signed integer: a set of such takes eight bytes
// for each.
func fingerprintArg(fingerprint uint64) string { return strconv.FormatInt(int64(fingerprint), 10) }

// encodeEntry returns the record of an entry.
func encodeEntry(e *storage.Entry) string { return string(record.AppendEntry(nil, e)) }

// chunkSize is how many URLs, or origins, one call goes through.
const chunkSize = 256

// readHostState reads the state of a host from a reply that gives the server's time as now.
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

// hostStateArgs returns the state of a host as scripts take it: see setHostState in schedule.lua.
func hostStateArgs(c *client.ScriptClock, h *storage.HostState) []string {
	return []string{c.TimeArg(h.Due), client.DurationArg(h.LostVisitDelay), strconv.Itoa(h.Slots),
		strconv.Itoa(h.ConsecutiveFailures), string(h.EncodedStats)}
}
