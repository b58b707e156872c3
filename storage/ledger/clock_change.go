package ledger

import "time"

// minClockChange is the least difference that counts as a clock that was set. A smaller one may lie
// between two readings of the same clocks.
const minClockChange = 10 * time.Millisecond

// A ClockChange records that the clock of the machine was set during the run, or went ahead of the
// monotonic clock because the machine slept. Times from this record on are by the clock as it is now.
type ClockChange struct {
	// DeltaUS is the change since the run began, or since the last ClockChange, in microseconds:
	// positive if the clock was set forward, negative if it was set back.
	DeltaUS int64 `json:"set_by_us"`
}

// Delta returns the change of the clock: positive if forward, negative if back.
func (c *ClockChange) Delta() time.Duration { return time.Duration(c.DeltaUS) * time.Microsecond }

// measureClockChange returns the time, and by how much the clock was set since clockBase, as the
// monotonic clock shows. The caller holds l.mu.
func (l *Ledger) measureClockChange() (now time.Time, delta time.Duration) {
	// Try three times: the process may have been suspended between the readings of the two clocks.
	for range 3 {
		now = l.cfg.now()
		delta = now.Round(0).Sub(l.clockBase.Round(0)) - now.Sub(l.clockBase)
		if delta.Abs() < minClockChange {
			return now, 0
		}
	}
	return now, delta
}

// recordClockChangeIfAny returns the time for the next record. If the clock was set, it buffers a
// ClockChange before that. The caller holds l.mu.
func (l *Ledger) recordClockChangeIfAny() (time.Time, error) {
	now, delta := l.measureClockChange()
	if delta == 0 {
		return now, nil
	}
	body, err := (&Record{ClockChange: &ClockChange{DeltaUS: delta.Microseconds()}}).encodeLine(nil)
	if err != nil {
		return now, err
	}
	l.bufferRecord(truncateTime(now), body)
	l.clockBase = now
	return now, nil
}

// checkTime checks that a record is not older than the one before, once the recorded clock changes are
// subtracted. A SegmentStart is skipped, because it comes before the ClockChange of its time. Between
// two runs no record can say that the clock was set back: then it assumes the least possible change,
// and warns.
func (v *verifier) checkTime(r *Record) {
	if r.SegmentStart != nil {
		return
	}
	if r.ClockChange != nil {
		v.delayChecker.clockShift += r.ClockChange.Delta()
		v.addWarningf("the clock was set %s during the run; delays across this record are measured without that change",
			describeClockChange(r.ClockChange.Delta()))
	}
	now := v.delayChecker.unshiftedTime(r.Time)
	switch back := v.lastRecordTime.Sub(now); {
	case back <= time.Second:
	case v.runStart == nil || r.RunStart != nil || r.Recovery != nil:
		// Between two runs: continue as if the next run had begun the moment the last one ended.
		v.delayChecker.clockShift -= back
		v.addWarningf("the clock was set back between two runs, by %v at least", back)
		now = v.lastRecordTime
	default:
		v.addFindingf("has the time %s, before that of the previous record: the clock was set back, and no record "+
			"says so",
			r.Time.Format(time.RFC3339))
	}
	v.lastRecordTime = now
}

// describeClockChange returns the direction and the amount of a change, such as "back by 3s".
func describeClockChange(by time.Duration) string {
	if by < 0 {
		return "back by " + (-by).String()
	}
	return "forward by " + by.String()
}
