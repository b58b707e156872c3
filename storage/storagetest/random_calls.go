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
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/storage"
)

const (
	modelRuns  = 4    // Stores that testRandomCalls opens
	modelSteps = 1500 // calls of each
)

// testRandomCalls makes random calls to Stores and to the model, which must agree. reopen, if not nil,
// closes the Store and opens it again. A failure names its seed; the environment variable
// STORAGETEST_SEED repeats it.
func testRandomCalls(t *testing.T, open func() storage.Store, reopen func(storage.Store) storage.Store) {
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("STORAGETEST_SEED"), 10, 64); err == nil {
		seed = s
	}
	for range modelRuns {
		w := &randomRun{
			fixture: newFixture(t, open()),
			model:   newModel(),
			rand:    rand.New(rand.NewPCG(seed, 0)),
			reopen:  reopen,
			now:     startTime,
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

// A randomRun is one run of random calls.
type randomRun struct {
	*fixture
	model  *model
	rand   *rand.Rand
	reopen func(storage.Store) storage.Store
	now    time.Time
	leases []storage.Lease // leases to ack, renew and mark; some are stale
}

// step makes one random call, with the probabilities of the weights, and compares the counts.
func (w *randomRun) step() error {
	if w.rand.IntN(3) == 0 {
		w.now = w.now.Add(time.Duration(w.rand.IntN(4000)) * time.Millisecond)
	}
	calls := []struct {
		weight int
		name   string
		call   func() error
	}{
		{20, "add", w.doAdd}, {30, "lease", w.doLease}, {30, "ack", w.doAck}, {3, "renew", w.doRenew},
		{4, "mark", w.doMarkSent}, {5, "hold", w.doHold}, {5, "reschedule", w.doReschedule},
		{3, "unpark", w.doUnpark}, {3, "note", w.doNote},
		{1, "flush", func() error { return w.store.Flush(w.Context()) }}, {1, "reopen", w.doReopen},
	}
	// The sum of the weights is 105.
	n := w.rand.IntN(105)
	for _, c := range calls {
		if n -= c.weight; n < 0 {
			if err := c.call(); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			break
		}
	}
	if got, want := w.mustGetCounts(), w.model.counts(); got != want {
		return fmt.Errorf("counts %+v, want %+v", got, want)
	}
	return nil
}

// randomOrigin returns one of twelve origins, of six hosts.
func (w *randomRun) randomOrigin() decorum.Origin {
	schemes := []string{"http", "https"}
	return mustOrigin(fmt.Sprintf("%s://h%d.example", schemes[w.rand.IntN(2)], w.rand.IntN(6)))
}

// doAdd adds up to five entries, some of them redirects of a robots.txt or POST requests.
func (w *randomRun) doAdd() error {
	var entries []storage.Entry
	for range w.rand.IntN(6) {
		e := linkEntry(fmt.Sprintf("%v/%d", w.randomOrigin(), w.rand.IntN(150)))
		e.PriorityClass, e.Depth = storage.PriorityClass(w.rand.IntN(storage.NumClasses)), w.rand.IntN(5)
		e.PriorityRank = uint16(max(0, w.rand.IntN(6)-3))
		// Four of ten entries are of a special kind.
		switch w.rand.IntN(10) {
		case 0:
			e.RobotsFor = w.randomOrigin()
		case 1:
			e.Referrer, e.CallbackData = "https://h0.example/from", []byte("context")
		case 2:
			e.Redirects, e.SeedOrigin = w.rand.IntN(12), w.randomOrigin()
		case 3:
			e.Request = &storage.NonGETRequest{Method: "POST", Body: []byte{byte(w.rand.IntN(3))}}
		}
		entries = append(entries, e)
	}
	maxPerOrigin := w.rand.IntN(100)
	results, err := w.store.Add(w.Context(), entries, maxPerOrigin)
	if want := w.model.addEntries(entries, maxPerOrigin); err == nil && !slices.Equal(results, want) {
		return fmt.Errorf("add at most %d: %d, want %d", maxPerOrigin, results, want)
	}
	return err
}

// doLease leases up to three URLs, and checks each lease, the number of leases, and Wait if it has none.
func (w *randomRun) doLease() error {
	ttl, maxLeases := time.Duration(1+w.rand.IntN(20))*time.Second, w.rand.IntN(4)
	leases, wait, err := w.store.Lease(w.Context(), w.now, ttl, maxLeases)
	if err != nil {
		return err
	}
	w.model.expireLeases(w.now)
	for _, l := range leases {
		if !l.Expires.Equal(w.now.Add(ttl)) {
			return fmt.Errorf("expires %v, want %v", l.Expires, w.now.Add(ttl))
		}
		if err := w.model.checkAndTakeLease(l, w.now); err != nil {
			return fmt.Errorf("leased %v at %v: %w", l.URL, w.now.Sub(startTime), err)
		}
		w.leases = append(w.leases, l)
	}
	// Fewer leases than maxLeases are correct only if no other host is due.
	if due := w.model.counts().DueHosts; len(leases) < maxLeases && due > 0 {
		return fmt.Errorf("%d leases of %d, and %d hosts are due", len(leases), maxLeases, due)
	}
	if want := w.model.expectedWait(); len(leases) == 0 && (wait.RemainingWorkKind != want.RemainingWorkKind ||
		!w.equalOrBothPast(wait.Until, want.Until)) {
		return fmt.Errorf("wait %+v, want %+v", wait, want)
	}
	return nil
}

// equalOrBothPast reports whether a and b are equal, or both not in the future: then both mean now.
func (w *randomRun) equalOrBothPast(a, b time.Time) bool {
	return a.Equal(b) || !a.After(w.now) && !b.After(w.now)
}

// doAck acks up to two leases with random outcomes. Some leases stay in w.leases and are acked again
// later, when they are stale.
func (w *randomRun) doAck() error {
	var acks []storage.Ack
	stale := false
	for range min(w.rand.IntN(3), len(w.leases)) {
		i := w.rand.IntN(len(w.leases))
		a := storage.Ack{Lease: w.leases[i], Outcome: storage.AckOutcome(w.rand.IntN(6))}
		if w.rand.IntN(4) > 0 { // otherwise it will be acked again
			w.leases[i] = w.leases[len(w.leases)-1]
			w.leases = w.leases[:len(w.leases)-1]
		}
		a.Lease.FailedAttempts += w.rand.IntN(2)
		if a.Outcome == storage.RevisitAt && w.rand.IntN(3) > 0 {
			a.Lease.VisitHistorySummary = &storage.VisitHistorySummary{VisitedAt: w.now, Status: 200, ETag: `"e"`,
				ComparedVisits: w.rand.IntN(9), FreshFor: time.Duration(w.rand.IntN(3)) * time.Hour}
		}
		a.NotBefore = w.now.Add(time.Duration(w.rand.IntN(8)-1) * time.Second)
		if w.rand.IntN(2) == 0 {
			a.HostState = &storage.HostState{
				Due:            w.now.Add(time.Duration(w.rand.IntN(6)-2) * time.Second),
				LostVisitDelay: time.Duration(w.rand.IntN(3)) * time.Second,
				Slots:          w.rand.IntN(4), ConsecutiveFailures: w.rand.IntN(3),
			}
			if n := w.rand.IntN(4); n > 0 {
				a.HostState.EncodedStats = []byte("memo")[:n]
			}
		}
		acks = append(acks, a)
		stale = !w.model.applyAck(a) || stale
	}
	if err := w.store.Ack(w.Context(), acks); errors.Is(err, storage.ErrStaleLease) != stale {
		return fmt.Errorf("error %v, want stale: %t", err, stale)
	}
	return nil
}

// doRenew renews a lease, which must fail if the lease is stale.
func (w *randomRun) doRenew() error {
	if len(w.leases) == 0 {
		return nil
	}
	l := w.leases[w.rand.IntN(len(w.leases))]
	err := w.store.Renew(w.Context(), l, w.now, 10*time.Second)
	leased := w.model.leasedURLs[l.Token]
	if leased == nil || !leased.leaseExpiresAt.After(w.now) {
		if !errors.Is(err, storage.ErrStaleLease) {
			return fmt.Errorf("error %v, want stale", err)
		}
		return nil
	}
	leased.leaseExpiresAt = w.now.Add(10 * time.Second)
	w.model.now = timecmp.Later(w.model.now, w.now)
	return err
}

// doMarkSent marks the URL of a lease, which must fail if the lease is stale.
func (w *randomRun) doMarkSent() error {
	if len(w.leases) == 0 {
		return nil
	}
	l, sent := w.leases[w.rand.IntN(len(w.leases))], w.rand.IntN(4) > 0
	if l.Request == nil {
		return nil
	}
	err := w.store.MarkSent(w.Context(), l, sent)
	if leased := w.model.leasedURLs[l.Token]; leased != nil {
		leased.Sent = sent
		return err
	}
	if !errors.Is(err, storage.ErrStaleLease) {
		return fmt.Errorf("error %v, want stale", err)
	}
	return nil
}

// doHold holds an origin, or ends its hold.
func (w *randomRun) doHold() error {
	o, hold := w.randomOrigin(), modelOriginHold{suspended: w.rand.IntN(2) == 0}
	if w.rand.IntN(3) > 0 {
		hold.until = w.now.Add(time.Duration(w.rand.IntN(20)) * time.Second)
	}
	w.model.originHolds[o] = hold
	return w.store.Hold(w.Context(), o, hold.until, hold.suspended)
}

// doReschedule makes up to 19 random pages due, and compares their number.
func (w *randomRun) doReschedule() error {
	want := 0
	var lastmods []storage.SitemapLastmod
	for range w.rand.IntN(20) {
		g := storage.SitemapLastmod{URL: mustURL(fmt.Sprintf("%v/%d", w.randomOrigin(), w.rand.IntN(150))),
			Modified: w.now.Add(time.Duration(w.rand.IntN(20)-15) * time.Second)}
		lastmods = append(lastmods, g)
		want += w.model.rescheduleIfModified(w.now, g)
	}
	n, err := w.store.RescheduleByLastmod(w.Context(), w.now, lastmods)
	if err == nil && n != want {
		return fmt.Errorf("rescheduled %d, want %d", n, want)
	}
	return err
}

// doUnpark unparks some URLs of an origin, or of all, and compares their number.
func (w *randomRun) doUnpark() error {
	o, kind := w.randomOrigin(), w.rand.IntN(3)
	if w.rand.IntN(8) == 0 {
		o = decorum.Origin{} // of all origins
	}
	shouldUnpark := func(e storage.Entry) bool { return len(e.URL.PathAndQuery())%3 != kind }
	n, err := w.store.UnparkMatchingURLs(w.Context(), o, shouldUnpark)
	if want := w.model.unpark(o, shouldUnpark); err == nil && n != want {
		return fmt.Errorf("unparked %d, want %d", n, want)
	}
	return err
}

// doNote reads, sets or deletes a note.
func (w *randomRun) doNote() error {
	o, key := w.randomOrigin(), strconv.Itoa(w.rand.IntN(3))
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

// doReopen closes the Store and opens it again.
func (w *randomRun) doReopen() error {
	if w.reopen == nil {
		return nil
	}
	w.store = w.reopen(w.store)
	w.model.reopen()
	// The new Store has not been given a time yet, which DueHosts needs: call Lease.
	_, _, err := w.store.Lease(w.Context(), w.now, leaseTTL, 0)
	w.model.expireLeases(w.now)
	return err
}
