package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
)

// A holding is a lease that this process has.
type holding struct {
	*partition
	order  uint64         // of all that it had
	hop    decorum.Origin // Entry.For
	record string         // of the entry, as it is kept
	sent   bool           // Entry.Sent
}

func (s *Store) hold(p *partition, l storage.Lease, record string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[l.Token] = holding{p, s.calls.Load(), l.For, record, l.Sent}
}

// release forgets a lease, and returns what was known of it.
func (s *Store) release(token uint64) holding {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.held[token]
	delete(s.held, token)
	return h
}

// Renew implements storage.Store.
func (s *Store) Renew(ctx context.Context, l storage.Lease, now time.Time, ttl time.Duration) error {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	p := s.partition(l.URL.Origin().Host())
	if err := s.announce(ctx, p, ttl); err != nil {
		return fmt.Errorf("renew %v: %w", l.URL, err)
	}
	said, _, err := s.call(ctx, p, false, renewScript,
		s.clock.offset(now.UnixMicro()), strconv.FormatInt(lengthOf(ttl), 10), strconv.FormatUint(l.Token, 10))
	if err != nil {
		return fmt.Errorf("renew %v: %w", l.URL, err)
	}
	if said != "1" {
		return fmt.Errorf("renew %v: %w", l.URL, storage.ErrStale)
	}
	s.clock.advance(now)
	return nil
}

// Mark implements storage.Store. It is as safe as Add, at once.
func (s *Store) Mark(ctx context.Context, l storage.Lease, sent bool) error {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	s.mu.Lock()
	h, ok := s.held[l.Token]
	s.mu.Unlock()
	if !ok {
		return fmt.Errorf("mark %v: %w", l.URL, storage.ErrStale)
	}
	e, err := record.ParseEntry([]byte(h.record), l.URL.Origin())
	if err != nil {
		return fmt.Errorf("mark %v: %w", l.URL, err)
	}
	e.Sent = sent
	h.record, h.sent = encodeEntry(&e), sent
	said, _, err := s.call(ctx, h.partition, true, markScript, strconv.FormatUint(l.Token, 10), l.URL.Origin().String(), h.record)
	if err != nil {
		return fmt.Errorf("mark %v: %w", l.URL, err)
	}
	if said != "1" {
		return fmt.Errorf("mark %v: %w", l.URL, storage.ErrStale)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.held[l.Token]; ok { // else it was acked meanwhile
		s.held[l.Token] = h
	}
	return nil
}

// Ack implements storage.Store. An ack that had to be sent again is not called
// stale: the lease may have been ended by the first.
func (s *Store) Ack(ctx context.Context, acks []storage.Ack) error {
	if err := storage.CheckAcks(acks); err != nil {
		return err
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if len(acks) == 0 {
		return nil
	}
	if err := s.barrier.pass(s.opts.Before); err != nil {
		return fmt.Errorf("ack: %w", err)
	}
	batches := s.batches(len(acks), func(i int) (string, []string) {
		a := &acks[i]
		return a.Lease.URL.Origin().Host(), s.ackArgs(a, s.release(a.Lease.Token))
	})
	var mu sync.Mutex
	var stale []error
	var long []*storage.Ack
	err = s.send(ctx, batches, false, ackScript, nil, func(i int, said byte, again bool) error {
		mu.Lock()
		defer mu.Unlock()
		switch a := &acks[i]; {
		case said != '1' && !again:
			stale = append(stale, fmt.Errorf("ack %v: %w", a.Lease.URL, storage.ErrStale))
		case s.outlastsFence(a):
			long = append(long, a)
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("ack: %w", err)
	} else {
		err = s.owe(ctx, long)
	}
	return errors.Join(append(stale, err)...)
}

// ackArgs returns an ack as ack.lua takes it. What passed by the seen set stays a
// hop, and what was marked as sent stays so.
func (s *Store) ackArgs(a *storage.Ack, h holding) []string {
	e := a.Lease.Entry
	if h.partition != nil {
		e.For, e.Sent = h.hop, h.sent
	}
	lane, at, outcome := laneOf(&e), "", "done"
	switch {
	case a.Outcome == storage.Again:
		outcome, lane = "again", lane.Back()
	case a.Outcome == storage.Later:
		outcome, lane, at = "later", lane.Later(), s.clock.out(a.At)
	case a.Outcome == storage.Rest && e.For.IsZero():
		outcome, at = "rest", s.clock.out(a.At)
	case a.Outcome == storage.Parked:
		outcome = "parked"
	}
	args := []string{strconv.FormatUint(a.Lease.Token, 10), e.URL.Origin().String(), outcome,
		strconv.Itoa(int(lane)), at, rankOf(&e), printOf(e.Fingerprint()), encodeEntry(&e)}
	if a.Host == nil {
		return append(args, "0", "", "0", "0", "0", "")
	}
	return append(append(args, "1"), s.clockArgs(a.Host)...)
}

// clockArgs returns the clock of a host as scripts take it: see setClock.
func (s *Store) clockArgs(h *storage.Host) []string {
	return []string{s.clock.out(h.Due), strconv.FormatInt(lengthOf(h.Gap), 10), strconv.Itoa(h.Slots),
		strconv.Itoa(h.Strikes), string(h.Memo)}
}

// doneArgs returns an ack of a lease whose record makes no sense.
func doneArgs(token uint64, origin string) []string {
	return []string{strconv.FormatUint(token, 10), origin, "done", "0", "", "0", "", "", "0", "", "0", "0", "0", ""}
}

// undo gives all leases back that this process has.
func (s *Store) undo(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tokens := make(map[*partition][]uint64)
	for token, h := range s.held {
		tokens[h.partition] = append(tokens[h.partition], token)
	}
	var touched []*partition
	for p, all := range tokens {
		slices.SortFunc(all, func(a, b uint64) int { return int(s.held[b].order) - int(s.held[a].order) })
		touched = append(touched, p)
	}
	return inParallel(ctx, touched, func(p *partition) error {
		for part := range slices.Chunk(tokens[p], portionItems) {
			args := []string{strconv.FormatInt(lengthOf(s.opts.rest()), 10)}
			for _, token := range part {
				args = append(args, strconv.FormatUint(token, 10))
			}
			if _, _, err := s.call(ctx, p, false, undoScript, args...); err != nil {
				return fmt.Errorf("leases run out by themselves: %w", err)
			}
		}
		return nil
	})
}

// A barrier has many wait for one call of a func that begins after they came.
type barrier struct {
	mu      sync.Mutex
	running sync.Mutex
	waiting *pass
}

type pass struct {
	once sync.Once
	err  error
}

// pass returns what do returns, which is called after pass was.
func (b *barrier) pass(do func() error) error {
	b.mu.Lock()
	if b.waiting == nil {
		b.waiting = &pass{}
	}
	p := b.waiting
	b.mu.Unlock()
	p.once.Do(func() {
		b.running.Lock() // while another runs, more gather here
		defer b.running.Unlock()
		b.mu.Lock()
		b.waiting = nil
		b.mu.Unlock()
		p.err = do()
	})
	return p.err
}
