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

// setUpdate replaces what writes the file.
func (s *Store) setUpdate(update func(func(*bbolt.Tx) error) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.update = update
}

// full does all of a write but for its end.
func full(s *Store) func(func(*bbolt.Tx) error) error {
	return func(write func(*bbolt.Tx) error) error {
		return s.db.Update(func(tx *bbolt.Tx) error {
			return errors.Join(write(tx), &fs.PathError{Op: "write", Path: s.path, Err: syscall.ENOSPC})
		})
	}
}

// While nothing can be written, no lease is given, other calls go on in memory,
// and nothing is lost; then the store goes on by itself.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	var told []error
	s := open(t, dir, Options{FlushEvery: time.Hour, noSync: true, Stalled: func(err error) { told = append(told, err) }})
	add(t, s, entry(t, "https://a.example/1"))
	must(t, s.Flush(t.Context()))
	s.setUpdate(full(s))
	add(t, s, entry(t, "https://a.example/2")) // nobody knows yet
	must(t, s.SetNote(t.Context(), entry(t, "https://a.example/").URL.Origin(), "key", []byte("value")))

	want := "nothing can be written for now: " + s.path + ": no space left on device: make room on the disk, and the crawl goes on"
	stalled := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, storage.ErrStalled) || !errors.Is(err, syscall.ENOSPC) || err.Error() != want {
			t.Fatalf("%s: %v, want %s", name, err, want)
		}
	}
	stalled("Flush", s.Flush(t.Context()))
	stalled("Flush again", s.Flush(t.Context()))
	_, _, err := s.Lease(t.Context(), time.Now(), time.Minute, 1)
	stalled("Lease", err)
	add(t, s, entry(t, "https://a.example/3"))
	must(t, s.Hold(t.Context(), entry(t, "https://b.example/").URL.Origin(), time.Now(), false))
	if len(told) != 1 || told[0].Error() != want {
		t.Errorf("told %v, want %s, once", told, want)
	}
	if c, err := s.Counts(t.Context()); err != nil || c.Queued != 3 {
		t.Errorf("counts %+v (%v), want 3 queued", c, err)
	}

	s.setUpdate(s.db.Update)
	must(t, s.Flush(t.Context()))
	if len(told) != 2 || told[1] != nil {
		t.Errorf("told %v, want that it goes on", told[1:])
	}
	must(t, s.Close())
	s = open(t, dir, Options{})
	defer s.Close()
	for i := 1; i <= 3; i++ {
		l := leaseAll(t, s, time.Now(), 1)
		if want := fmt.Sprintf("/%d", i); len(l) != 1 || l[0].URL.Path() != want {
			t.Fatalf("leased %v, want %s", l, want)
		}
		must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l[0]}}))
	}
	if got := string(must1(s.Note(t.Context(), entry(t, "https://a.example/").URL.Origin(), "key"))); got != "value" {
		t.Errorf("note %q, want %q", got, "value")
	}
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// The store finds out at the next tick that the disk has room again.
func TestDiskFullRecovers(t *testing.T) {
	s := open(t, t.TempDir(), Options{FlushEvery: time.Millisecond, noSync: true})
	defer s.Close()
	s.setUpdate(full(s))
	add(t, s, entry(t, "https://a.example/1"))
	for s.attempted() == nil { // a tick
	}
	s.setUpdate(s.db.Update)
	for s.attempted() != nil {
	}
	add(t, s, entry(t, "https://a.example/2"))
}

// attempted waits for the end of a write, and returns its error.
func (s *Store) attempted() error {
	s.mu.Lock()
	attempt := s.attempt
	s.mu.Unlock()
	<-attempt
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

func TestCloseOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{FlushEvery: time.Hour, noSync: true})
	s.setUpdate(full(s))
	add(t, s, entry(t, "https://a.example/1"))
	if err := s.Close(); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "what was not flushed is lost") {
		t.Errorf("Close: %v", err)
	}
	must(t, open(t, dir, Options{}).Close()) // the file is not locked, and in order
}

// A file that turns out to be damaged while the disk is full is left alone from
// then on: bbolt keeps its locks, and would wait for them.
func TestFaultOnAFullDisk(t *testing.T) {
	var told []error
	s := openStill(t, t.TempDir(), Options{noSync: true, Stalled: func(err error) { told = append(told, err) }})
	defer s.db.Close()
	add(t, s, entry(t, "https://a.example/"))
	s.setUpdate(full(s))
	s.commit()
	writes := 0
	s.setUpdate(func(func(*bbolt.Tx) error) error {
		writes++
		panic("page 7: invalid page type")
	})
	for range 3 {
		s.commit()
	}
	if writes != 1 {
		t.Errorf("%d writes after the fault, want none", writes-1)
	}
	if len(told) != 2 || !errors.Is(told[0], syscall.ENOSPC) || !errors.Is(told[1], errFault) || !errors.Is(told[1], storage.ErrFailed) ||
		!strings.Contains(told[1].Error(), "restore the file from a backup") {
		t.Errorf("told %v, want that there is no room, then that the file is damaged", told)
	}
}

// Calls wait while too much is not written, and go on when it is.
func TestBackPressure(t *testing.T) {
	s := open(t, t.TempDir(), Options{FlushEvery: time.Hour, Held: 10, noSync: true})
	defer s.Close()
	free := make(chan struct{})
	s.setUpdate(func(write func(*bbolt.Tx) error) error {
		<-free
		return s.db.Update(write)
	})
	n := 0
	call := func(ctx context.Context) error {
		n++
		_, err := s.Add(ctx, []storage.Entry{entry(t, "https://a.example/%d", n)}, 0)
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

// A call that waits while the store is closed is refused, even if there is
// nothing left to write that it could wait for.
func TestCloseWhileACallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStill(t, t.TempDir(), Options{FlushEvery: time.Hour, Held: 10, noSync: true, foldPages: 1})
		s.quit = make(chan struct{}) // for Close
		var entries []storage.Entry
		for i := range 20 {
			entries = append(entries, entry(t, "https://h%d.example/", i))
		}
		add(t, s, entries...)
		s.commit() // the log, and one of the origins
		refused := make(chan error)
		go func() {
			_, err := s.Add(t.Context(), []storage.Entry{entry(t, "https://new.example/")}, 0)
			refused <- err
		}()
		synctest.Wait() // until it waits
		must(t, s.Close())
		if err := <-refused; !errors.Is(err, storage.ErrClosed) {
			t.Errorf("Add: %v, want %v", err, storage.ErrClosed)
		}
	})
}

// Memory is bounded by settings, not by URLs.
func TestBounded(t *testing.T) {
	const cached = 100
	s := open(t, t.TempDir(), Options{Window: 8, Cached: cached, FlushEvery: time.Hour, FlushSize: 1000, noSync: true})
	defer s.Close()
	now := time.Now()
	for i := range 3000 {
		add(t, s, entry(t, "https://h%d.example/%d", i%50, i))
		if i%10 != 0 {
			continue
		}
		for _, l := range leaseAll(t, s, now.Add(time.Duration(i)), 3) {
			must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l, Outcome: storage.Later, At: now.Add(time.Hour)}}))
		}
	}
	must(t, s.Flush(t.Context()))
	s.mu.Lock()
	defer s.mu.Unlock()
	heads := 0
	for _, o := range s.origins {
		for _, l := range o.lanes {
			for _, i := range l.head {
				heads += sizeOf(i.value)
			}
		}
	}
	if heads != s.cached || heads > cached {
		t.Errorf("%d URLs are cached, %d are counted, the limit is %d", heads, s.cached, cached)
	}
}

// A store that is never idle folds all the same, when there is not much to write:
// what is held is for crawls that have no time for it.
func TestFoldsBesideALittleWork(t *testing.T) {
	const limit = 4000
	held := func(flushSize, hosts int) (maxSeen int) {
		s := openStill(t, t.TempDir(), Options{FlushEvery: time.Hour, FlushSize: flushSize, Held: limit, noSync: true})
		for i := 0; i < limit; i += 20 {
			var entries []storage.Entry
			for n := range 20 {
				entries = append(entries, entry(t, "https://h%d.example/%d", (i+n)%hosts, i))
			}
			add(t, s, entries...)
			s.commit()
			maxSeen = max(maxSeen, s.held)
		}
		return maxSeen
	}
	if maxSeen := held(0, 20); maxSeen > limit/4 {
		t.Errorf("%d changes are held while little else is to be written, want an eighth of %d", maxSeen, limit)
	}
	if maxSeen := held(20, 20); maxSeen < limit/2 {
		t.Errorf("%d changes are held while much is to be written, want more than half of %d", maxSeen, limit)
	}
	if maxSeen := held(0, limit); maxSeen < limit/2 {
		t.Errorf("%d changes are held of which each has a page for itself, want more than half of %d", maxSeen, limit)
	}
}

// How much is held is what all changes in memory count, before they are folded
// and after, and in the end nothing.
func TestHeldIsCounted(t *testing.T) {
	s := open(t, t.TempDir(), Options{FlushEvery: time.Hour, Held: 1 << 30, noSync: true})
	defer s.Close()
	for i := range 100 {
		add(t, s, entry(t, "https://h%d.example/%d", i%7, i))
		must(t, s.SetNote(t.Context(), entry(t, "https://h%d.example/", i%7).URL.Origin(), "key", make([]byte, 1000*i)))
		for _, l := range leaseAll(t, s, time.Now(), 1) {
			must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l, Outcome: storage.Outcome(i % 6), At: time.Now()}}))
		}
	}
	must(t, s.Flush(t.Context()))
	s.mu.Lock()
	defer s.mu.Unlock()
	held := 0
	for _, o := range s.origins {
		for _, c := range o.layers() {
			held += c.size
		}
	}
	if s.held != held || held == 0 {
		t.Errorf("%d changes are held, %d are counted", held, s.held)
	}
	s.mu.Unlock()
	foldAll(s)
	s.mu.Lock()
	if s.held != 0 || s.logged != 0 {
		t.Errorf("when all is folded, %d changes are held, and %d in the log", s.held, s.logged)
	}
}

// foldAll writes until all is in its place.
func foldAll(s *Store) {
	for more := true; more; {
		s.commit()
		s.mu.Lock()
		more = s.failed == nil && s.logged > 0
		s.mu.Unlock()
	}
}

// What is being folded is neither fresh nor in the file, and counts all the same.
func TestCallsWhileChangesAreFolded(t *testing.T) {
	s := open(t, t.TempDir(), Options{FlushEvery: time.Hour, FlushSize: 1 << 20, Held: 12, Window: 2, Cached: 1, noSync: true})
	defer s.Close()
	begun, free := make(chan struct{}), make(chan struct{})
	s.setUpdate(func(write func(*bbolt.Tx) error) error {
		close(begun)
		<-free
		s.setUpdate(s.db.Update)
		return s.db.Update(write)
	})
	var entries []storage.Entry
	for i := range 10 {
		entries = append(entries, entry(t, "https://a.example/%d", i))
	}
	add(t, s, entries...)
	o := entries[0].URL.Origin()
	must(t, s.SetNote(t.Context(), o, "key", []byte("value")))
	s.wake()
	<-begun
	s.mu.Lock()
	s.opts.Held = 1 << 20 // no call waits
	s.mu.Unlock()

	if added := storage.CountAdded(must1(s.Add(t.Context(), entries, 0))); added != 0 {
		t.Errorf("%d URLs were added twice", added)
	}
	if got := string(must1(s.Note(t.Context(), o, "key"))); got != "value" {
		t.Errorf("note %q, want %q", got, "value")
	}
	take := func(i int) {
		l := leaseAll(t, s, time.Now(), 1)
		if len(l) != 1 || l[0].URL != entries[i].URL {
			t.Fatalf("leased %v, want %v", l, entries[i].URL)
		}
		must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l[0]}}))
	}
	for i := range 5 {
		take(i)
	}
	close(free)
	must(t, s.Flush(t.Context()))
	for i := 5; i < 10; i++ {
		take(i)
	}
}
