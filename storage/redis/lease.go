package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
)

// retryDown is how often servers that do not answer are asked again.
const retryDown = time.Second

// refresh is when all partitions were looked at last, and when they were asked.
type refresh struct {
	sync.Mutex
	looked, asked time.Time
}

// askRarely is how often all partitions are asked, though nothing seems to have
// changed, in multiples of Options.Refresh: a replica that took over may count changes
// otherwise than the master did.
const askRarely = 20

// Lease implements storage.Store. It goes by what calls have said of the
// partitions, and asks all of them when there seems to be nothing, or when others
// may have changed much.
func (s *Store) Lease(ctx context.Context, now time.Time, ttl time.Duration, max int) ([]storage.Lease, storage.Next, error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return nil, storage.Next{}, err
	}
	defer end()
	s.clock.advance(now)
	if !s.isFresh(&s.refresh.looked, s.opts.Refresh) {
		if err := s.look(ctx); err != nil {
			return nil, storage.Next{}, err
		}
	}
	leases, err := s.take(ctx, now, ttl, max)
	if err == nil && len(leases) == 0 && (s.opts.usesCallerTime || s.left(now).Left != storage.Waiting) {
		if err = s.askAll(ctx); err == nil {
			leases, err = s.take(ctx, now, ttl, max)
		}
	}
	if err != nil {
		return leases, storage.Next{}, err
	}
	if len(leases) == 0 && s.allDown() {
		return nil, storage.Next{}, fmt.Errorf("no server of the store answers: %w", storage.ErrStalled)
	}
	return leases, s.left(now), nil
}

// isFresh reports whether what was done at a time was done lately.
func (s *Store) isFresh(at *time.Time, lately time.Duration) bool {
	s.refresh.Lock()
	defer s.refresh.Unlock()
	return time.Since(*at) < lately
}

// look asks those partitions what there is that have changed: to read the number of
// changes takes a server a small part of what it takes to say what there is.
func (s *Store) look(ctx context.Context) error {
	if !s.isFresh(&s.refresh.asked, askRarely*s.opts.Refresh) {
		return s.askAll(ctx)
	}
	began := time.Now()
	err := s.askSome(ctx, s.changed(ctx))
	s.refresh.Lock()
	defer s.refresh.Unlock()
	s.refresh.looked = began
	return err
}

// changed returns the partitions of which something else is known than what they say
// of themselves, or whose servers do not answer.
func (s *Store) changed(ctx context.Context) (changed []*partition) {
	limited, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	commands := make([]rueidis.Completed, len(s.partitions))
	for i, p := range s.partitions {
		commands[i] = s.client.B().Hget().Key(p.base + "m").Field("version").Build()
	}
	for i, answer := range s.client.DoMulti(limited, commands...) {
		version, err := answer.AsInt64()
		if sum, up := s.partitions[i].known(); !up || version != sum.version || err != nil && !rueidis.IsRedisNil(err) {
			changed = append(changed, s.partitions[i])
		}
	}
	return changed
}

// askAll asks all partitions what there is.
func (s *Store) askAll(ctx context.Context) error {
	began := time.Now()
	err := s.askSome(ctx, s.partitions)
	s.refresh.Lock()
	defer s.refresh.Unlock()
	s.refresh.looked, s.refresh.asked = began, began
	return err
}

// askSome asks partitions what there is, and has them deal with what has run out.
func (s *Store) askSome(ctx context.Context, some []*partition) error {
	began := s.calls.Load()
	for i, a := range s.tryAll(ctx, leaseScript, callsTo(some, s.leaseArgs(0, 0, 0)...)) {
		if _, err := s.leased(ctx, some[i], began, time.Now(), a); err != nil {
			return err
		}
	}
	return nil
}

// take takes leases, of the hosts first that are due longest.
func (s *Store) take(ctx context.Context, now time.Time, ttl time.Duration, max int) (leases []storage.Lease, err error) {
	if err := s.settle(ctx, now); err != nil {
		return nil, err
	}
	for attempts := 0; len(leases) < max && attempts < max+len(s.partitions); attempts++ {
		shares := s.shares(s.clock.at(now), max-len(leases))
		if len(shares) == 0 {
			break
		}
		shares, err := s.announced(ctx, shares, ttl)
		if err != nil {
			return leases, err
		}
		more, err := s.leaseFrom(ctx, shares, ttl)
		leases = append(leases, more...)
		if err != nil {
			return leases, err
		}
	}
	return leases, nil
}

// settle has the partitions deal with what has run out.
func (s *Store) settle(ctx context.Context, now time.Time) error {
	for {
		var unsettled []*partition
		for _, p := range s.partitions {
			if sum, up := p.known(); up && sum.isUnsettled(s.clock.at(now)) {
				unsettled = append(unsettled, p)
			}
		}
		if len(unsettled) == 0 {
			return nil
		}
		if err := s.askSome(ctx, unsettled); err != nil || !s.clock.usesCallerTime {
			return err // by the server's clock it may not have run out yet
		}
	}
}

// leaseFrom takes shares of leases. A server that does not answer gives none.
func (s *Store) leaseFrom(ctx context.Context, shares []share, ttl time.Duration) (leases []storage.Lease, err error) {
	calls := make([]call, len(shares))
	for i, h := range shares {
		calls[i] = call{h.partition, s.leaseArgs(ttl, h.bound, min(h.maxLeases, portionItems))}
	}
	began, sent := s.calls.Load(), time.Now()
	var all []taken
	defer s.loose.Add(1)
	for i, a := range s.tryAll(ctx, leaseScript, calls) {
		more, e := s.leased(ctx, shares[i].partition, began, sent, a)
		all, err = append(all, more...), errors.Join(err, e)
		if len(more) == 0 && a.err == nil && !s.opts.usesCallerTime {
			s.yield(&shares[i])
		}
	}
	slices.SortStableFunc(all, func(a, b taken) int { return cmp.Compare(a.turn, b.turn) })
	for _, t := range all {
		leases = append(leases, t.Lease)
	}
	return leases, err
}

// leaseArgs returns the arguments of lease.lua.
func (s *Store) leaseArgs(ttl time.Duration, bound int64, max int) []string {
	args := []string{strconv.FormatInt(lengthOf(ttl), 10), s.clock.offset(bound), strconv.FormatInt(lengthOf(s.opts.rest()), 10)}
	for range max {
		args = append(args, strconv.FormatUint(rand.Uint64(), 10))
	}
	return args
}

// A taken is a lease and since when its host was due.
type taken struct {
	storage.Lease
	turn int64
}

// leased reads the answer of lease.lua, or why there is none.
func (s *Store) leased(ctx context.Context, p *partition, began uint64, sent time.Time, a answer) ([]taken, error) {
	if a.err != nil {
		return nil, s.excuse(ctx, p, a.err)
	}
	answer, err := a.message.ToArray()
	if err != nil || len(answer) != 2 {
		return nil, errAnswer
	}
	if err := s.learn(p, began, answer[0]); err != nil {
		return nil, err
	}
	return s.parseLeases(ctx, p, answer, sent)
}

// parseLeases reads what lease.lua returns. Records that make no sense are given up.
func (s *Store) parseLeases(ctx context.Context, p *partition, answer []rueidis.RedisMessage, sent time.Time) ([]taken, error) {
	header, err := answer[0].AsIntSlice()
	if err != nil {
		return nil, errAnswer
	}
	made, err := answer[1].ToArray()
	if err != nil {
		return nil, errAnswer
	}
	var leases []taken
	for _, m := range made {
		l, name, written, err := s.parseLease(m, header[1], sent)
		if err != nil {
			s.opts.Damaged(fmt.Errorf("a URL of %s is given up: %w", name, err))
			_, _, err := s.call(ctx, p, false, ackScript, doneArgs(l.Token, name)...)
			if err != nil {
				return leases, err
			}
			continue
		}
		s.hold(p, l.Lease, written)
		leases = append(leases, l)
	}
	return leases, nil
}

// parseLease reads one lease, the name of its origin, and its record.
func (s *Store) parseLease(m rueidis.RedisMessage, now int64, sent time.Time) (l taken, origin, written string, err error) {
	f := fieldsOf(m)
	l.Token = f.uint64()
	l.Expires = s.clock.until(f.int(), now, sent)
	origin = f.string()
	written = f.string()
	l.Host = f.host(&s.clock, now)
	l.turn = s.clock.local(f.int(), now)
	if f.err != nil {
		return l, origin, written, f.err
	}
	o, ok := record.ParseOrigin(origin)
	if !ok {
		return l, origin, written, record.ErrDamaged
	}
	l.Entry, err = record.ParseEntry([]byte(written), o)
	return l, origin, written, err
}
