package bodymem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
)

const mib = 1 << 20

// newMemory returns a Budget with a main pool of the given number of MiB.
func newMemory(t *testing.T, size int64) *Budget {
	t.Helper()
	m, err := New(size * mib * 8 / 7)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// openShare returns an open share that holds its first bytes and n MiB more.
func openShare(t *testing.T, m *Budget, url string, n int64) *VisitShare {
	t.Helper()
	s := new(VisitShare)
	m.OpenShare(s, url)
	if err := s.Reserve(t.Context(), firstBytes+n*mib); err != nil {
		t.Fatal(err)
	}
	return s
}

// checkUnused fails the test if memory is still in use.
func checkUnused(t *testing.T, m *Budget) {
	t.Helper()
	if use := m.Usage(); use.Bytes != 0 || use.WaitingVisits != 0 || len(m.mainPoolHolders) != 0 ||
		m.blockedHolderCount != 0 {
		t.Errorf("got %+v, %d holders, %d blocked at the end; want nothing in use", use,
			len(m.mainPoolHolders), m.blockedHolderCount)
	}
}

func TestNewTooSmall(t *testing.T) {
	if m, err := New(MinSize - 1); err == nil {
		t.Errorf("got a memory of %d bytes, want an error", m.Size())
	}
	if m := NewDefault(); m.Size() < MinSize {
		t.Errorf("the default is %d bytes", m.Size())
	}
}

// TestDeadlock: if two visits hold all memory and need more, the younger one is ended at once. Its
// error is of Kind LocalFailure, and its next visit has the same age and reserves ahead.
func TestDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, 10)
		old, young := openShare(t, m, "old", 5), openShare(t, m, "young", 5)
		begin := time.Now()
		granted := make(chan error, 1)
		go func() { granted <- old.Reserve(t.Context(), 3*mib) }()
		synctest.Wait()
		err := young.Reserve(t.Context(), mib)
		full := new(FullError)
		if !errors.As(err, &full) || !full.FirstInSeries ||
			!errors.Is(err, decorum.LocalFailure) || young.Err() != err {
			t.Errorf("got %v, want a new Full of Kind Local", err)
		}
		young.Close()
		if err := <-granted; err != nil || time.Since(begin) != 0 {
			t.Errorf("the older visit got %v after %v", err, time.Since(begin))
		}
		next := openShare(t, m, "next", 0)
		m.OpenShare(young, "young")
		if young.arrivalNumber > next.arrivalNumber || !young.deniedBefore {
			t.Errorf("the visit that was ended comes back with age %d, after %d",
				young.arrivalNumber, next.arrivalNumber)
		}
		if err := young.ReserveAheadIfNeeded(t.Context(), 5*mib, false); !errors.As(err, &full) || full.FirstInSeries {
			t.Errorf("got %v, want a Full that is not new", err)
		}
		if waited := time.Since(begin); waited != reserveAheadTimeout {
			t.Errorf("it waited for %v, want %v", waited, reserveAheadTimeout)
		}
		old.Close()
		m.OpenShare(young, "young")
		if err := young.ReserveAheadIfNeeded(t.Context(), 5*mib, false); err != nil ||
			m.Usage().Bytes != 5*mib+next.bytesFromFirstBytesPool {
			t.Errorf("got %v and %+v", err, m.Usage())
		}
		young.ShrinkTo(mib)
		m.OpenShare(next, "young")
		if next.deniedBefore {
			t.Error("a URL whose visit came to its end is still remembered")
		}
		young.Close()
		next.Close()
	})
}

// TestShortBodiesDoNotWait: long bodies that take everything leave space for the first bytes of
// others, and a visit that holds memory is served before one that has not sent its request.
func TestShortBodiesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, 10)
		long := openShare(t, m, "long", 6)
		unsafe := new(VisitShare)
		m.OpenShare(unsafe, "unsafe")
		ahead := make(chan error, 1)
		go func() { ahead <- unsafe.ReserveAheadIfNeeded(t.Context(), 8*mib, true) }()
		synctest.Wait()
		short := openShare(t, m, "short", 0) // does not wait
		if err := long.Reserve(t.Context(), 3*mib); err != nil {
			t.Error(err)
		}
		long.Close()
		if err := <-ahead; err != nil {
			t.Error(err)
		}
		if err := unsafe.Reserve(t.Context(), 8*mib); err != nil || m.Usage().Bytes != 8*mib+firstBytes {
			t.Errorf("got %v, %+v; want what was reserved ahead, and the other's first bytes", err, m.Usage())
		}
		unsafe.Close()
		short.Close()
		checkUnused(t, m)
	})
}

// TestStall: if the visits that hold memory are slow, the youngest waiter is ended after a second,
// and then the next; the oldest visit is not ended.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, 10)
		begin := time.Now()
		oldest := openShare(t, m, "oldest", 1)
		slow := openShare(t, m, "slow", 8)
		slow.ShrinkTo(8*mib + firstBytes) // its handler is slow
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		ended := make(chan string, 3)
		var shares [3]VisitShare
		for i, name := range []string{"oldest", "second", "third"} {
			s := oldest
			if i > 0 {
				s = &shares[i]
				m.OpenShare(s, name)
			}
			go func() {
				if err := s.Reserve(ctx, 4*mib); errors.Is(err, decorum.LocalFailure) {
					ended <- fmt.Sprint(name, " after ", time.Since(begin))
				}
				s.Close()
			}()
			synctest.Wait()
		}
		for _, want := range []string{"third after 2s", "second after 3s", "oldest after 30s"} {
			if got := <-ended; got != want {
				t.Errorf("ended is %q, want %q", got, want)
			}
		}
		slow.Close()
		synctest.Wait()
		checkUnused(t, m)
	})
}

// TestAnnouncedBytes: a server that announces a long body and sends little of it holds memory for
// what it has sent.
func TestAnnouncedBytes(t *testing.T) {
	m := newMemory(t, 64)
	var s VisitShare
	m.OpenShare(&s, "url")
	sent := 0
	r := readerFunc(func(b []byte) (int, error) {
		if used, maxUsed := m.Usage().Bytes, int64(max(maxPresize, 5*sent)); used > maxUsed {
			t.Errorf("%d bytes are in use after %d were sent, want at most %d", used, sent, maxUsed)
		}
		n := min(len(b), 1000)
		if sent += n; sent > mib {
			return n, io.EOF
		}
		return n, nil
	})
	if _, _, err := s.ReadAll(t.Context(), r, 20*mib, 10*mib, nil); err != nil {
		t.Fatal(err)
	}
	s.Close()
	checkUnused(t, m)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestStopped: a visit that is stopped while it waits ends with the cause of the stop.
func TestStopped(t *testing.T) {
	m := newMemory(t, 10)
	defer openShare(t, m, "other", 10).Close()
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("stopped")
	s := openShare(t, m, "stopped", 0)
	defer s.Close()
	stop(why)
	if err := s.Reserve(ctx, mib); !errors.Is(err, why) || s.Err() != nil || m.Usage().DeniedVisits != 0 {
		t.Errorf("got %v, %v, %+v; want %v", err, s.Err(), m.Usage(), why)
	}
}

// TestClosedWhileItWaits: a share that is closed while it waits, or before it reserves more, holds
// nothing.
func TestClosedWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, 10)
		other, s := openShare(t, m, "other", 8), openShare(t, m, "url", 1)
		waited := make(chan error, 1)
		go func() { waited <- s.Reserve(t.Context(), 2*mib) }()
		synctest.Wait()
		other.Release(mib / 2) // too little
		s.Close()
		if err := <-waited; err == nil {
			t.Error("a visit that is over got memory")
		}
		for _, n := range []int64{firstBytes, mib} {
			if err := s.Reserve(t.Context(), n); err == nil {
				t.Errorf("a visit that is over got %d bytes", n)
			}
		}
		other.Close()
		checkUnused(t, m)
	})
}

// TestNeverEnded: a visit that must not be ended gets more than it reserved ahead without waiting,
// and releases it.
func TestNeverEnded(t *testing.T) {
	m := newMemory(t, 10)
	s := new(VisitShare)
	m.OpenShare(s, "form")
	if err := s.ReserveAheadIfNeeded(t.Context(), 2*mib, true); err != nil {
		t.Fatal(err)
	}
	other := openShare(t, m, "other", 8)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 4 {
		if err := s.Reserve(ctx, 4*mib); err != nil {
			t.Fatalf("it was ended: %v", err)
		}
	}
	other.Close()
	s.Close()
	checkUnused(t, m)
}

// TestEveryVisitEnds: with memory for two long bodies, many workers visit all URLs in the end. No
// visit is ended twice, unsafe ones are never ended, and the reserved bytes never exceed the
// memory.
func TestEveryVisitEnds(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(t, 7)
			limit := m.MaxBodyLen(1)
			const visits = 150
			var mu sync.Mutex
			ended := map[int]int{}
			urls := make(chan int, 400)
			for u := range visits {
				urls <- u
			}
			visit := func(u int) error {
				s := new(VisitShare)
				m.OpenShare(s, fmt.Sprint(u))
				defer s.Close()
				if err := s.ReserveAheadIfNeeded(t.Context(), m.mainPoolSize, u%10 == 0); err != nil {
					return nil // nothing was sent
				}
				random := rand.New(rand.NewPCG(seed, uint64(u)))
				body := io.LimitReader(slowReader{random}, random.Int64N(limit))
				got, _, err := s.ReadAll(t.Context(), body, limit, 0, nil)
				if err != nil {
					return err
				}
				s.ShrinkTo(int64(cap(got)))
				time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond) // its handler
				return errDone
			}
			var left sync.WaitGroup
			left.Add(visits)
			for range 64 {
				go func() {
					for u := range urls {
						switch err := visit(u); {
						case errors.Is(err, errDone):
							left.Done()
							continue
						case errors.Is(err, decorum.LocalFailure):
							mu.Lock()
							ended[u]++
							mu.Unlock()
						case err != nil:
							t.Error(err)
						}
						time.Sleep(time.Second)
						urls <- u
					}
				}()
			}
			left.Wait()
			close(urls)
			synctest.Wait()
			for u, n := range ended {
				if n > 1 || u%10 == 0 {
					t.Errorf("visit %d was ended %d times", u, n)
				}
			}
			if use := m.Usage(); use.PeakBytes > m.size || len(ended) == 0 {
				t.Errorf("got %+v of %d bytes; want no more, and visits that were ended", use, m.size)
			}
			checkUnused(t, m)
		})
	}
}

var errDone = errors.New("done")

// A slowReader reads pieces, each after a pause.
type slowReader struct{ random *rand.Rand }

func (r slowReader) Read(p []byte) (int, error) {
	time.Sleep(time.Duration(r.random.IntN(40)) * time.Millisecond)
	return min(len(p), 256<<10), nil
}

// TestReadAll: a body is read to its end or to the limit, whatever length was announced, and at the
// end exactly its memory is reserved.
func TestReadAll(t *testing.T) {
	m := newMemory(t, 64)
	text := numberedText(3 * mib)
	for _, length := range []int{0, 1, 4095, 4096, 65535, 65536, 65537, 262144, 300000, 3 * mib} {
		for _, announced := range []int64{0, int64(length), 3 * mib} {
			for _, limit := range []int64{1, 65536, 262144, int64(length) + 1, 4 * mib} {
				for _, bufSize := range []int{-1, 0, 100, 65536, 262144} { // -1: the buffer of another visit
					s := new(VisitShare)
					m.OpenShare(s, "url")
					r := iotest.HalfReader(bytes.NewReader(text[:length]))
					read := s.ReadAllReusing
					if bufSize >= 0 {
						read = func(ctx context.Context, r io.Reader, limit, size int64) ([]byte, bool, error) {
							return s.ReadAll(ctx, r, limit, size, make([]byte, bufSize))
						}
					}
					got, more, err := read(t.Context(), r, limit, announced)
					want := text[:min(int64(length), limit)]
					if err != nil || !bytes.Equal(got, want) || more != (int64(length) > limit) {
						t.Fatalf("%d bytes, %d announced, limit %d: got %d, %v, %v", length, announced,
							limit, len(got), more, err)
					}
					s.ShrinkTo(int64(cap(got)))
					if held := s.bytesFromFirstBytesPool + s.bytesFromMainPool; held > int64(cap(got)) ||
						held < min(int64(cap(got)), s.bytesFromFirstBytesPool) {
						t.Fatalf("%d bytes are held for %d", held, cap(got))
					} else if bufSize < 0 && held != int64(cap(got)) {
						t.Fatalf("%d bytes are held for a buffer of %d that stays in use", held, cap(got))
					}
					s.Close()
					checkUnused(t, m)
				}
			}
		}
	}
	broken := errors.New("broken")
	s := openShare(t, m, "url", 0)
	defer s.Close()
	if got, _, err := s.ReadAll(t.Context(), io.MultiReader(bytes.NewReader(text), iotest.ErrReader(broken)), 9*mib, 0,
		nil); err != broken || len(got) != len(text) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

// numberedText returns n bytes in runs of 256 equal ones. Neighbouring runs differ.
func numberedText(n int) []byte {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(i >> 8)
	}
	return text
}

// TestReadAllReusing: a body stays as it was read until Close, while other visits read theirs into buffers
// of visits that are over.
func TestReadAllReusing(t *testing.T) {
	t.Parallel()
	m := newMemory(t, 128)
	text := numberedText(8 * mib)
	var visits sync.WaitGroup
	for visitor := range 8 {
		visits.Go(func() {
			for i := range 100 {
				// Most bodies outgrow a buffer; some are longer than any that is reused.
				body := text[visitor<<8:][:(i*i%97)<<10+(i%50/49)*5*mib]
				s := new(VisitShare)
				m.OpenShare(s, "url")
				got, _, err := s.ReadAllReusing(t.Context(), bytes.NewReader(body), 9*mib, 0)
				runtime.Gosched()
				if err != nil || !bytes.Equal(got, body) {
					t.Errorf("a body of %d bytes is not as it was read: %d bytes, %v", len(body), len(got), err)
				}
				s.Close()
			}
		})
	}
	visits.Wait()
	checkUnused(t, m)
}
