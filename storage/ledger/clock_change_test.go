package ledger

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// A testClock has a wall clock that can be set, and a monotonic clock, which a synctest bubble lacks. Both
// start from a real reading and advance with the time of the bubble.
type testClock struct {
	realStart, bubbleStart time.Time
	shift                  time.Duration // by how much the wall clock was set
}

// now is time.Now of the simulated machine.
func (m *testClock) now() time.Time {
	return shiftWallClock(m.realStart.Add(time.Since(m.bubbleStart)), m.shift)
}

// shiftWallClock returns t with the wall clock shifted and the monotonic clock unchanged. Time.Add shifts
// both, so it puts the monotonic reading back.
func shiftWallClock(t time.Time, by time.Duration) time.Time {
	monotonic := (*timeLayout)(unsafe.Pointer(&t)).monotonic
	t = t.Add(by)
	(*timeLayout)(unsafe.Pointer(&t)).monotonic = monotonic
	return t
}

// timeLayout has the memory layout of time.Time.
type timeLayout struct {
	_         uint64
	monotonic int64
	_         *time.Location
}

// crawlWithClockSet writes the ledger of a crawl during which the clock is set, while hosts rest and a
// visit is under way. If recorded is false, the ledger has no ClockChange. rests replaces the delays
// that hosts 0 and 3 get.
func crawlWithClockSet(t *testing.T, dir string, size int64, by time.Duration, recorded bool, rests ...time.Duration) {
	t.Helper()
	real := time.Now()
	synctest.Test(t, func(t *testing.T) {
		m := &testClock{realStart: real, bubbleStart: time.Now()}
		w := &sampleWriter{t: t, ledger: openLedger(t,
			Config{Dir: dir, MaxSegmentSize: size, SigningKey: testKey, RunStart: testRun(), now: m.now})}
		w.writeVisit(0, "/1")
		w.writeVisit(3, "/1")
		n := w.writeRequest(2, "/1")
		m.shift = by
		if !recorded { // as if the ledger did not compare clocks
			w.ledger.clockBase = m.now()
		}
		w.writeResponse(2, n)
		for i, host := range []int{0, 3} {
			if i < len(rests) {
				w.lastEnds[host] = w.lastEnds[host].Add(rests[i] - sampleDelay(host)) // the request comes too early
			}
			w.writeVisit(host, "/2")
		}
		w.writeVisit(0, "/3")
		if err := w.ledger.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// If the clock is set during a crawl, the ledger has no findings, and one warning that gives direction and
// amount.
func TestClockSet(t *testing.T) {
	for by, words := range map[time.Duration]string{
		-time.Hour:             "back by 1h0m0s",
		-3 * time.Second:       "back by 3s",
		-20 * time.Millisecond: "back by 20ms",
		time.Second:            "forward by 1s",
		8 * time.Hour:          "forward by 8h0m0s",
	} {
		for _, size := range []int64{DefaultMaxSegmentSize, 1} { // one file for all records, or one for each
			dir := t.TempDir()
			crawlWithClockSet(t, dir, size, by, true)
			r := verifyWithoutFindings(t, dir)
			if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0].Message, words) ||
				r.MeasuredDelays != 3 || !r.Closed {
				t.Errorf("%v: %+v, want one warning: %s", by, *r, words)
			}
		}
	}
	for _, by := range []time.Duration{0, time.Millisecond, -time.Millisecond} {
		dir := t.TempDir()
		crawlWithClockSet(t, dir, 0, by, true)
		if r := verifySigned(t, dir); len(r.Warnings) != 0 {
			t.Errorf("%v: %v, want no warnings", by, r.Warnings)
		}
	}
}

// A delay that was too short is a finding, whichever way the clock was set during the delay or after it. A
// clock that was set back without a ClockChange is a finding, too.
func TestClockSetShortDelays(t *testing.T) {
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
		crawlWithClockSet(t, dir, 0, tt.by, tt.tell, tt.rests...)
		var found []string
		for _, f := range verifySigned(t, dir).Findings {
			if strings.Contains(f.Message, "by the times of the records") == tt.tell {
				found = append(found, f.String())
			}
		}
		if len(found) < tt.found || tt.tell && len(found) > tt.found {
			t.Errorf("%s: %q, want %d findings", tt.name, found, tt.found)
		}
	}
}

// Between two runs, no record says by how much the clock was set back. Then only the part of a delay counts
// that the records show, and a warning says that the clock was set.
func TestClockSetBetweenRuns(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rest   time.Duration // from the visit to the end of the first run
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
			m := &testClock{realStart: real, bubbleStart: time.Now()}
			cfg := Config{Dir: dir, SigningKey: testKey, RunStart: testRun(), now: m.now}
			w := &sampleWriter{t: t, ledger: openLedger(t, cfg)}
			w.writeVisit(0, "/1")
			time.Sleep(tt.rest)
			if tt.killed {
				w.writeRequest(3, "/killed")
				closeAsKilled(t, w.ledger)
			} else if err := w.ledger.Close(); err != nil {
				t.Fatal(err)
			}
			m.shift = -time.Hour
			time.Sleep(time.Minute)
			w.ledger = openLedger(t, cfg)
			w.writeVisit(0, "/2")
			if err := w.ledger.Close(); err != nil {
				t.Fatal(err)
			}
		})
		r := verifySigned(t, dir)
		if len(r.Findings) != tt.found || len(r.Warnings) != 1 ||
			!strings.Contains(r.Warnings[0].Message, "between two runs, by 59m0s at least") {
			t.Errorf("%s: %+v, want %d findings and a warning", tt.name, *r, tt.found)
		}
	}
}
