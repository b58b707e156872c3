package storagetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

const (
	modelRuns  = 4
	modelSteps = 1500
)

// testModel makes random calls to a Store and to the model, which must agree.
// reopen, if not nil, closes the Store and opens it again. A failure names its
// seed; STORAGETEST_SEED repeats it.
func testModel(t *testing.T, open func() storage.Store, reopen func(storage.Store) storage.Store) {
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("STORAGETEST_SEED"), 10, 64); err == nil {
		seed = s
	}
	for range modelRuns {
		w := &walk{
			fixture: newFixture(t, open()),
			model:   newModel(),
			rand:    rand.New(rand.NewPCG(seed, 0)),
			reopen:  reopen,
			now:     start,
		}
		for step := range modelSteps {
			if err := w.step(); err != nil {
				t.Fatalf("STORAGETEST_SEED=%d, step %d: %v", seed, step, err)
			}
		}
		w.must(w.store.Close())
		seed++
	}
}

// A walk is one run of random calls.
type walk struct {
	*fixture
	model  *model
	rand   *rand.Rand
	reopen func(storage.Store) storage.Store
	now    time.Time
	leases []storage.Lease // some are stale
}

// step makes one call, with the odds the weights give, and compares.
func (w *walk) step() error {
	if w.rand.IntN(3) == 0 {
		w.now = w.now.Add(time.Duration(w.rand.IntN(4000)) * time.Millisecond)
	}
	calls := []struct {
		weight int
		name   string
		call   func() error
	}{
		{20, "add", w.doAdd}, {30, "lease", w.doLease}, {30, "ack", w.doAck}, {3, "renew", w.doRenew},
		{4, "mark", w.doMark}, {5, "hold", w.doHold}, {5, "recall", w.doRecall}, {3, "revive", w.doRevive}, {3, "note", w.doNote},
		{1, "flush", func() error { return w.store.Flush(w.Context()) }}, {1, "reopen", w.doReopen},
	}
	n := w.rand.IntN(105)
	for _, c := range calls {
		if n -= c.weight; n < 0 {
			if err := c.call(); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			break
		}
	}
	if got, want := w.counts(), w.model.counts(); got != want {
		return fmt.Errorf("counts %+v, want %+v", got, want)
	}
	return nil
}

// origin picks one of twelve, of six hosts.
func (w *walk) origin() decorum.Origin {
	schemes := []string{"http", "https"}
	return origin(fmt.Sprintf("%s://h%d.example", schemes[w.rand.IntN(2)], w.rand.IntN(6)))
}

func (w *walk) doAdd() error {
	var entries []storage.Entry
	for range w.rand.IntN(6) {
		e := page(fmt.Sprintf("%v/%d", w.origin(), w.rand.IntN(150)))
		e.Class, e.Depth = storage.Class(w.rand.IntN(storage.NumClasses)), w.rand.IntN(5)
		e.Rank = uint16(max(0, w.rand.IntN(6)-3))
		switch w.rand.IntN(10) {
		case 0:
			e.RobotsFor = w.origin()
		case 1:
			e.Referrer, e.Context = "https://h0.example/from", []byte("context")
		case 2:
			e.Redirects = w.rand.IntN(12)
		case 3:
			e.Request = &storage.Request{Method: "POST", Body: []byte{byte(w.rand.IntN(3))}}
		}
		entries = append(entries, e)
	}
	maxPerOrigin := w.rand.IntN(100)
	fates, err := w.store.Add(w.Context(), entries, maxPerOrigin)
	if want := w.model.add(entries, maxPerOrigin); err == nil && !slices.Equal(fates, want) {
		return fmt.Errorf("add at most %d: %d, want %d", maxPerOrigin, fates, want)
	}
	return err
}

func (w *walk) doLease() error {
	ttl, maxLeases := time.Duration(1+w.rand.IntN(20))*time.Second, w.rand.IntN(4)
	leases, next, err := w.store.Lease(w.Context(), w.now, ttl, maxLeases)
	if err != nil {
		return err
	}
	w.model.expire(w.now)
	for _, l := range leases {
		if !l.Expires.Equal(w.now.Add(ttl)) {
			return fmt.Errorf("expires %v, want %v", l.Expires, w.now.Add(ttl))
		}
		if err := w.model.lease(l, w.now); err != nil {
			return fmt.Errorf("leased %v at %v: %w", l.URL, w.now.Sub(start), err)
		}
		w.leases = append(w.leases, l)
	}
	if due := w.model.counts().DueHosts; len(leases) < maxLeases && due > 0 {
		return fmt.Errorf("%d leases of %d, and %d hosts are due", len(leases), maxLeases, due)
	}
	if want := w.model.next(); len(leases) == 0 && (next.RemainingWork != want.RemainingWork || !w.sameTime(next.Until, want.Until)) {
		return fmt.Errorf("next %+v, want %+v", next, want)
	}
	return nil
}

// sameTime compares times to come: one that is not says that it is time now.
func (w *walk) sameTime(a, b time.Time) bool {
	return a.Equal(b) || !a.After(w.now) && !b.After(w.now)
}

func (w *walk) doAck() error {
	var acks []storage.Ack
	stale := false
	for range min(w.rand.IntN(3), len(w.leases)) {
		i := w.rand.IntN(len(w.leases))
		a := storage.Ack{Lease: w.leases[i], Outcome: storage.Outcome(w.rand.IntN(6))}
		if w.rand.IntN(4) > 0 { // else it will be acked again
			w.leases[i] = w.leases[len(w.leases)-1]
			w.leases = w.leases[:len(w.leases)-1]
		}
		a.Lease.FailedAttempts += w.rand.IntN(2)
		if a.Outcome == storage.RevisitAt && w.rand.IntN(3) > 0 {
			a.Lease.History = &storage.VisitHistory{VisitedAt: w.now, Status: 200, ETag: `"e"`, ComparedVisits: w.rand.IntN(9)}
		}
		a.NotBefore = w.now.Add(time.Duration(w.rand.IntN(8)-1) * time.Second)
		if w.rand.IntN(2) == 0 {
			a.Host = &storage.HostState{
				Due: w.now.Add(time.Duration(w.rand.IntN(6)-2) * time.Second), Delay: time.Duration(w.rand.IntN(3)) * time.Second,
				Slots: w.rand.IntN(4), ConsecutiveFailures: w.rand.IntN(3),
			}
			if n := w.rand.IntN(4); n > 0 {
				a.Host.Stats = []byte("memo")[:n]
			}
		}
		acks = append(acks, a)
		stale = !w.model.ack(a) || stale
	}
	if err := w.store.Ack(w.Context(), acks); errors.Is(err, storage.ErrStaleLease) != stale {
		return fmt.Errorf("error %v, want stale: %t", err, stale)
	}
	return nil
}

func (w *walk) doRenew() error {
	if len(w.leases) == 0 {
		return nil
	}
	l := w.leases[w.rand.IntN(len(w.leases))]
	err := w.store.Renew(w.Context(), l, w.now, 10*time.Second)
	out := w.model.out[l.Token]
	if out == nil || !out.expires.After(w.now) {
		if !errors.Is(err, storage.ErrStaleLease) {
			return fmt.Errorf("error %v, want stale", err)
		}
		return nil
	}
	out.expires = w.now.Add(10 * time.Second)
	w.model.now = latest(w.model.now, w.now)
	return err
}

func (w *walk) doMark() error {
	if len(w.leases) == 0 {
		return nil
	}
	l, sent := w.leases[w.rand.IntN(len(w.leases))], w.rand.IntN(4) > 0
	if l.Request == nil {
		return nil
	}
	err := w.store.MarkSent(w.Context(), l, sent)
	if out := w.model.out[l.Token]; out != nil {
		out.Sent = sent
		return err
	}
	if !errors.Is(err, storage.ErrStaleLease) {
		return fmt.Errorf("error %v, want stale", err)
	}
	return nil
}

func (w *walk) doHold() error {
	o, hold := w.origin(), modelHold{dormant: w.rand.IntN(2) == 0}
	if w.rand.IntN(3) > 0 {
		hold.until = w.now.Add(time.Duration(w.rand.IntN(20)) * time.Second)
	}
	w.model.holds[o] = hold
	return w.store.Hold(w.Context(), o, hold.until, hold.dormant)
}

func (w *walk) doRecall() error {
	want := 0
	var sightings []storage.SitemapLastmod
	for range w.rand.IntN(20) {
		g := storage.SitemapLastmod{URL: url(fmt.Sprintf("%v/%d", w.origin(), w.rand.IntN(150))),
			Modified: w.now.Add(time.Duration(w.rand.IntN(20)-15) * time.Second)}
		sightings = append(sightings, g)
		want += w.model.recall(w.now, g)
	}
	n, err := w.store.RescheduleModified(w.Context(), w.now, sightings)
	if err == nil && n != want {
		return fmt.Errorf("recalled %d, want %d", n, want)
	}
	return err
}

func (w *walk) doRevive() error {
	o, kind := w.origin(), w.rand.IntN(3)
	shouldUnpark := func(e storage.Entry) bool { return len(e.URL.PathAndQuery())%3 != kind }
	n, err := w.store.Unpark(w.Context(), o, shouldUnpark)
	if want := w.model.revive(o, shouldUnpark); err == nil && n != want {
		return fmt.Errorf("revived %d, want %d", n, want)
	}
	return err
}

func (w *walk) doNote() error {
	o, key := w.origin(), strconv.Itoa(w.rand.IntN(3))
	id := o.String() + key
	if w.rand.IntN(2) == 0 {
		got, err := w.store.ReadNote(w.Context(), o, key)
		if string(got) != w.model.notes[id] {
			return fmt.Errorf("%q, want %q", got, w.model.notes[id])
		}
		return err
	}
	var value []byte
	if w.rand.IntN(3) > 0 {
		value = []byte(strconv.Itoa(w.rand.Int()))
	}
	w.model.notes[id] = string(value)
	return w.store.SetNote(w.Context(), o, key, value)
}

func (w *walk) doReopen() error {
	if w.reopen == nil {
		return nil
	}
	w.store = w.reopen(w.store)
	w.model.reopen()
	// The new Store knows no time yet, and so not what is due: it is told.
	_, _, err := w.store.Lease(w.Context(), w.now, ttl, 0)
	w.model.expire(w.now)
	return err
}
