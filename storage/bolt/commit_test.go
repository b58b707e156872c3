package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
)

// setUpdate replaces the function that writes to the file.
func (s *Store) setUpdate(update func(func(*bbolt.Tx) error) error) {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	s.engine.file.update = update
}

// diskFullUpdate returns a function that writes all changes and then fails as on a full disk.
func diskFullUpdate(s *Store) func(func(*bbolt.Tx) error) error {
	return func(write func(*bbolt.Tx) error) error {
		return s.engine.file.db.Update(func(tx *bbolt.Tx) error {
			return errors.Join(write(tx), &fs.PathError{Op: "write", Path: s.engine.file.path, Err: syscall.ENOSPC})
		})
	}
}

// TestDiskFull: while the store cannot write, Lease fails and other calls succeed in memory. When it can
// write again it does so, and nothing is lost.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	var reported []error
	s := openStore(t, dir, Options{FlushEvery: time.Hour, noSync: true, OnStallChange: func(err error) {
		reported = append(reported, err)
	}})
	addEntries(t, s, newEntry(t, "https://a.example/1"))
	must(t, s.Flush(t.Context()))
	s.setUpdate(diskFullUpdate(s))
	addEntries(t, s, newEntry(t, "https://a.example/2")) // the store has not tried to write yet
	must(t, s.SetNote(t.Context(), newEntry(t, "https://a.example/").URL.Origin(), "key", []byte("value")))

	want := "nothing can be written for now: " + s.engine.file.path +
		": no space left on device: free some space on the disk, and the crawl continues"
	stalled := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, storage.ErrWriteStalled) || !errors.Is(err, syscall.ENOSPC) || err.Error() != want {
			t.Fatalf("%s: %v, want %s", name, err, want)
		}
	}
	stalled("Flush", s.Flush(t.Context()))
	stalled("Flush again", s.Flush(t.Context()))
	_, _, err := s.Lease(t.Context(), time.Now(), time.Minute, 1)
	stalled("Lease", err)
	addEntries(t, s, newEntry(t, "https://a.example/3"))
	must(t, s.Hold(t.Context(), newEntry(t, "https://b.example/").URL.Origin(), time.Now(), false))
	if len(reported) != 1 || reported[0].Error() != want {
		t.Errorf("OnStallChange was called with %v, want %s, once", reported, want)
	}
	if c, err := s.Counts(t.Context()); err != nil || c.QueuedURLs != 3 {
		t.Errorf("counts %+v (%v), want 3 queued", c, err)
	}

	s.setUpdate(s.engine.file.db.Update)
	must(t, s.Flush(t.Context()))
	if len(reported) != 2 || reported[1] != nil {
		t.Errorf("OnStallChange was called with %v, want nil", reported[1:])
	}
	must(t, s.Close())
	s = openStore(t, dir, Options{})
	defer s.Close()
	for i := 1; i <= 3; i++ {
		l := mustLease(t, s, time.Now(), 1)
		if want := fmt.Sprintf("/%d", i); len(l) != 1 || l[0].URL.PathAndQuery() != want {
			t.Fatalf("leased %v, want %s", l, want)
		}
		must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l[0]}}))
	}
	if got := string(must1(s.ReadNote(t.Context(),
		newEntry(t, "https://a.example/").URL.Origin(), "key"))); got != "value" {
		t.Errorf("note %q, want %q", got, "value")
	}
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestDiskFullRecovers: the store tries again at the next tick, and recovers when the disk has space.
func TestDiskFullRecovers(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{FlushEvery: time.Millisecond, noSync: true})
	defer s.Close()
	s.setUpdate(diskFullUpdate(s))
	addEntries(t, s, newEntry(t, "https://a.example/1"))
	for s.waitForAttempt() == nil { // until a write fails
	}
	s.setUpdate(s.engine.file.db.Update)
	for s.waitForAttempt() != nil {
	}
	addEntries(t, s, newEntry(t, "https://a.example/2"))
}

// waitForAttempt waits for the end of a write, and returns the error that the store has then.
func (s *Store) waitForAttempt() error {
	s.engine.mu.Lock()
	done := s.engine.status.attemptDone
	s.engine.mu.Unlock()
	<-done
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	return s.engine.status.err
}

func TestCloseOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{FlushEvery: time.Hour, noSync: true})
	s.setUpdate(diskFullUpdate(s))
	addEntries(t, s, newEntry(t, "https://a.example/1"))
	if err := s.Close(); !errors.Is(err, syscall.ENOSPC) ||
		!strings.Contains(err.Error(), "what was not flushed is lost") {
		t.Errorf("Close: %v", err)
	}
	must(t, openStore(t, dir, Options{}).Close()) // the file is unlocked and intact
}

// TestFaultOnAFullDisk: after a fault in bbolt while the disk is full, the store does not call bbolt
// again, which would wait for its own locks.
func TestFaultOnAFullDisk(t *testing.T) {
	var reported []error
	s := openWithoutCommitter(t, t.TempDir(), Options{noSync: true, OnStallChange: func(err error) {
		reported = append(reported, err)
	}})
	defer s.engine.file.db.Close()
	addEntries(t, s, newEntry(t, "https://a.example/"))
	s.setUpdate(diskFullUpdate(s))
	s.engine.committer.commit()
	writes := 0
	s.setUpdate(func(func(*bbolt.Tx) error) error {
		writes++
		panic("page 7: invalid page type")
	})
	for range 3 {
		s.engine.committer.commit()
	}
	if writes != 1 {
		t.Errorf("%d writes after the fault, want none", writes-1)
	}
	if len(reported) != 2 || !errors.Is(reported[0], syscall.ENOSPC) || !errors.Is(reported[1], errFault) ||
		!errors.Is(reported[1], storage.ErrFailed) ||
		!strings.Contains(reported[1].Error(), "restore the file from a backup") {
		t.Errorf("OnStallChange was called with %v, want a full disk, then a damaged file", reported)
	}
}

// TestBackPressure: calls wait while the journal is full, and continue after a write.
func TestBackPressure(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{FlushEvery: time.Hour, MaxBufferedChanges: 10, noSync: true})
	defer s.Close()
	free := make(chan struct{})
	s.setUpdate(func(write func(*bbolt.Tx) error) error {
		<-free
		return s.engine.file.db.Update(write)
	})
	n := 0
	call := func(ctx context.Context) error {
		n++
		_, err := s.Add(ctx, []storage.Entry{newEntry(t, "https://a.example/%d", n)}, 0)
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var err error
	for err == nil {
		if n > 100 {
			t.Fatal("no call waits")
		}
		err = call(ctx)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	close(free)
	must(t, call(t.Context()))
}

// TestCloseWhileACallWaits: a call that waits for a write returns ErrClosed when the store is closed,
// even if nothing is left to write.
func TestCloseWhileACallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openWithoutCommitter(t, t.TempDir(),
			Options{FlushEvery: time.Hour, MaxBufferedChanges: 10, noSync: true, maxCheckpointPages: 1})
		s.engine.committer.quit = make(chan struct{}) // Close closes it again
		var entries []storage.Entry
		for i := range 20 {
			entries = append(entries, newEntry(t, "https://h%d.example/", i))
		}
		addEntries(t, s, entries...)
		s.engine.committer.commit() // writes the log, and checkpoints one origin
		refused := make(chan error)
		go func() {
			_, err := s.Add(t.Context(), []storage.Entry{newEntry(t, "https://new.example/")}, 0)
			refused <- err
		}()
		synctest.Wait() // until Add waits
		must(t, s.Close())
		if err := <-refused; !errors.Is(err, storage.ErrClosed) {
			t.Errorf("Add: %v, want %v", err, storage.ErrClosed)
		}
	})
}

// TestMemoryIsBounded: MaxCachedURLs limits the cached URLs, whatever their number in the store.
func TestMemoryIsBounded(t *testing.T) {
	const cached = 100
	s := openStore(t, t.TempDir(), Options{PrefetchCount: 8, MaxCachedURLs: cached, FlushEvery: time.Hour,
		FlushAfterChanges: 1000, noSync: true})
	defer s.Close()
	now := time.Now()
	for i := range 3000 {
		addEntries(t, s, newEntry(t, "https://h%d.example/%d", i%50, i))
		if i%10 != 0 {
			continue
		}
		for _, l := range mustLease(t, s, now.Add(time.Duration(i)), 3) {
			must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l, Outcome: storage.RetryAt,
				NotBefore: now.Add(time.Hour)}}))
		}
	}
	must(t, s.Flush(t.Context()))
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	heads := 0
	for _, o := range s.engine.index.origins {
		for _, l := range o.lanes {
			for _, i := range l.headURLs {
				heads += changeWeight(i.value)
			}
		}
	}
	if heads != s.engine.heads.weight || heads > cached {
		t.Errorf("%d URLs are cached, %d are counted, the limit is %d", heads, s.engine.heads.weight, cached)
	}
}

// TestCheckpointsBesideLittleWork: a store that is never idle checkpoints while it has little to write.
// Only a store that has much to write, or one change for each origin, keeps most of MaxBufferedChanges.
func TestCheckpointsBesideLittleWork(t *testing.T) {
	const limit = 4000
	maxBuffered := func(flushSize, hosts int) (maxSeen int) {
		s := openWithoutCommitter(t, t.TempDir(),
			Options{FlushEvery: time.Hour, FlushAfterChanges: flushSize, MaxBufferedChanges: limit, noSync: true})
		for i := 0; i < limit; i += 20 {
			var entries []storage.Entry
			for n := range 20 {
				entries = append(entries, newEntry(t, "https://h%d.example/%d", (i+n)%hosts, i))
			}
			addEntries(t, s, entries...)
			s.engine.committer.commit()
			maxSeen = max(maxSeen, s.engine.journal.bufferedChangeCount)
		}
		return maxSeen
	}
	if maxSeen := maxBuffered(0, 20); maxSeen > limit/4 {
		t.Errorf("%d changes are in memory while little else is to be written, want an eighth of %d", maxSeen, limit)
	}
	if maxSeen := maxBuffered(20, 20); maxSeen < limit/2 {
		t.Errorf("%d changes are in memory while much is to be written, want more than half of %d", maxSeen, limit)
	}
	if maxSeen := maxBuffered(0, limit); maxSeen < limit/2 {
		t.Errorf("%d changes of one page each are in memory, want more than half of %d", maxSeen, limit)
	}
}

// TestBufferedChangesAreCounted: bufferedChangeCount is the sum of the weights of all changes in memory,
// and zero after all are checkpointed.
func TestBufferedChangesAreCounted(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{FlushEvery: time.Hour, MaxBufferedChanges: 1 << 30, noSync: true})
	defer s.Close()
	for i := range 100 {
		addEntries(t, s, newEntry(t, "https://h%d.example/%d", i%7, i))
		must(t, s.SetNote(t.Context(), newEntry(t, "https://h%d.example/", i%7).URL.Origin(),
			"key", make([]byte, 1000*i)))
		for _, l := range mustLease(t, s, time.Now(), 1) {
			must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l,
				Outcome: storage.AckOutcome(i % 6), NotBefore: time.Now()}}))
		}
	}
	must(t, s.Flush(t.Context()))
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	buffered := 0
	for _, o := range s.engine.index.origins {
		for _, c := range o.pendingLayers() {
			buffered += c.weightedChangeCount
		}
	}
	if s.engine.journal.bufferedChangeCount != buffered || buffered == 0 {
		t.Errorf("%d changes are counted, the sum is %d", buffered, s.engine.journal.bufferedChangeCount)
	}
	s.engine.mu.Unlock()
	checkpointAll(s)
	s.engine.mu.Lock()
	if s.engine.journal.bufferedChangeCount != 0 || s.engine.journal.loggedChangeCount != 0 {
		t.Errorf("after all checkpoints, %d changes are in memory and %d in the log",
			s.engine.journal.bufferedChangeCount, s.engine.journal.loggedChangeCount)
	}
}

// checkpointAll writes until all changes are checkpointed, or a write fails.
func checkpointAll(s *Store) {
	for more := true; more; {
		s.engine.committer.commit()
		s.engine.mu.Lock()
		more = s.engine.status.err == nil && s.engine.journal.loggedChangeCount > 0
		s.engine.mu.Unlock()
	}
}

// TestCallsDuringCheckpoint: calls see changes while a checkpoint of them is being written, when they are
// neither pending nor in the file.
func TestCallsDuringCheckpoint(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{FlushEvery: time.Hour, FlushAfterChanges: 1 << 20, MaxBufferedChanges: 12,
		PrefetchCount: 2, MaxCachedURLs: 1, noSync: true})
	defer s.Close()
	begun, free := make(chan struct{}), make(chan struct{})
	s.setUpdate(func(write func(*bbolt.Tx) error) error {
		close(begun)
		<-free
		s.setUpdate(s.engine.file.db.Update)
		return s.engine.file.db.Update(write)
	})
	var entries []storage.Entry
	for i := range 10 {
		entries = append(entries, newEntry(t, "https://a.example/%d", i))
	}
	addEntries(t, s, entries...)
	o := entries[0].URL.Origin()
	must(t, s.SetNote(t.Context(), o, "key", []byte("value")))
	s.engine.committer.wake()
	<-begun
	s.engine.mu.Lock()
	s.engine.opts.MaxBufferedChanges = 1 << 20 // so that no call waits
	s.engine.mu.Unlock()

	if added := storage.CountAdded(must1(s.Add(t.Context(), entries, 0))); added != 0 {
		t.Errorf("%d URLs were added twice", added)
	}
	if got := string(must1(s.ReadNote(t.Context(), o, "key"))); got != "value" {
		t.Errorf("note %q, want %q", got, "value")
	}
	leaseAndAck := func(i int) {
		l := mustLease(t, s, time.Now(), 1)
		if len(l) != 1 || l[0].URL != entries[i].URL {
			t.Fatalf("leased %v, want %v", l, entries[i].URL)
		}
		must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l[0]}}))
	}
	for i := range 5 {
		leaseAndAck(i)
	}
	close(free)
	must(t, s.Flush(t.Context()))
	for i := 5; i < 10; i++ {
		leaseAndAck(i)
	}
}
