package ledger

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// A machine has a clock that can be set, and a monotonic one, of which a bubble has
// none: both go on from a real reading as time does in the bubble.
type machine struct {
	real, began time.Time
	set         time.Duration
}

// now is time.Now on the machine.
func (m *machine) now() time.Time { return setBy(m.real.Add(time.Since(m.began)), m.set) }

// setBy returns a reading of two clocks of which one was set: that cannot be done
// with a time.Time, of which the monotonic part goes along, but here it is put back.
func setBy(t time.Time, by time.Duration) time.Time {
	was := (*timeLayout)(unsafe.Pointer(&t)).monotonic
	t = t.Add(by)
	(*timeLayout)(unsafe.Pointer(&t)).monotonic = was
	return t
}

// timeLayout is a time.Time.
type timeLayout struct {
	_         uint64
	monotonic int64
	_         *time.Location
}

// setting crawls on a machine whose clock is set in the midst of it: when hosts have
// rested for a part of what they are owed, and a visit is under way.
func setting(t *testing.T, dir string, size int64, by time.Duration, tell bool, rests ...time.Duration) {
	t.Helper()
	real := time.Now()
	synctest.Test(t, func(t *testing.T) {
		m := &machine{real: real, began: time.Now()}
		w := &writer{t: t, l: open(t, Config{Dir: dir, MaxSize: size, Key: testKey, Run: testRun(), now: m.now})}
		w.visit(0, "/1")
		w.visit(3, "/1")
		n := w.ask(2, "/1")
		m.set = by
		if !tell { // as a ledger that does not look
			w.l.clock = m.now()
		}
		w.answer(2, n)
		for i, host := range []int{0, 3} {
			if i < len(rests) {
				w.ends[host] = w.ends[host].Add(rests[i] - rest(host)) // it does not wait for as long as it says
			}
			w.visit(host, "/2")
		}
		w.visit(0, "/3")
		if err := w.l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestClockSet: where the clock is set while a crawl goes on, all is right, and the
// verifier says that it was, and by how much.
func TestClockSet(t *testing.T) {
	for by, words := range map[time.Duration]string{
		-time.Hour:             "back by 1h0m0s",
		-3 * time.Second:       "back by 3s",
		-20 * time.Millisecond: "back by 20ms",
		time.Second:            "forward by 1s",
		8 * time.Hour:          "forward by 8h0m0s",
	} {
		for _, size := range []int64{DefaultMaxSize, 1} { // a file for all records, or for each
			dir := t.TempDir()
			setting(t, dir, size, by, true)
			r := right(t, dir)
			if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0].What, words) || r.Rests != 3 || !r.Closed {
				t.Errorf("%v: %+v, want one warning: %s", by, *r, words)
			}
		}
	}
	for _, by := range []time.Duration{0, time.Millisecond, -time.Millisecond} {
		dir := t.TempDir()
		setting(t, dir, 0, by, true)
		if r := verify(t, dir); len(r.Warnings) != 0 {
			t.Errorf("%v: %v, want no warnings", by, r.Warnings)
		}
	}
}

// TestClockSetHidesNothing: a rest that was short is found, whichever way the clock
// was set while it lasted, and after; and so is a clock that was set back unsaid.
func TestClockSetHidesNothing(t *testing.T) {
	const short = 500 * time.Millisecond
	for _, tt := range []struct {
		name  string
		by    time.Duration
		tell  bool
		rests []time.Duration
		found int
	}{
		{"not set", 0, true, []time.Duration{short}, 1},
		{"back", -time.Hour, true, []time.Duration{short}, 1},
		{"back, both", -time.Hour, true, []time.Duration{short, short}, 2},
		{"forward while the machine slept", 8 * time.Hour, true, []time.Duration{short}, 1},
		{"forward", 10 * time.Second, true, []time.Duration{short, short}, 2},
		{"back, unsaid", -time.Hour, false, nil, 1},
	} {
		dir := t.TempDir()
		setting(t, dir, 0, tt.by, tt.tell, tt.rests...)
		var found []string
		for _, f := range verify(t, dir).Findings {
			if strings.Contains(f.What, "by the times of the records") == tt.tell {
				found = append(found, f.String())
			}
		}
		if len(found) < tt.found || tt.tell && len(found) > tt.found {
			t.Errorf("%s: %q, want %d findings", tt.name, found, tt.found)
		}
	}
}

// TestClockSetBetweenRuns: nobody knows by how much the clock was set back while no
// run went on. What the records show of a rest across it counts, and no more; and
// that it was set is said.
func TestClockSetBetweenRuns(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rest   time.Duration // before the first run ends: what follows is not known
		killed bool
		found  int
	}{
		{"rested", time.Second, false, 0},
		{"rested, killed", time.Second, true, 0},
		{"not shown to have rested", time.Second / 2, false, 1},
	} {
		dir := t.TempDir()
		real := time.Now()
		synctest.Test(t, func(t *testing.T) {
			m := &machine{real: real, began: time.Now()}
			cfg := Config{Dir: dir, Key: testKey, Run: testRun(), now: m.now}
			w := &writer{t: t, l: open(t, cfg)}
			w.visit(0, "/1")
			time.Sleep(tt.rest)
			if tt.killed {
				w.ask(3, "/killed")
				kill(t, w.l)
			} else if err := w.l.Close(); err != nil {
				t.Fatal(err)
			}
			m.set = -time.Hour
			time.Sleep(time.Minute)
			w.l = open(t, cfg)
			w.visit(0, "/2")
			if err := w.l.Close(); err != nil {
				t.Fatal(err)
			}
		})
		r := verify(t, dir)
		if len(r.Findings) != tt.found || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0].What, "between two runs, by 59m0s at least") {
			t.Errorf("%s: %+v, want %d findings and a warning", tt.name, *r, tt.found)
		}
	}
}
