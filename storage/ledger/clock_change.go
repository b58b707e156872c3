package ledger

import "time"

// minClockChange is from which difference on a clock was set: less may lie between the
// readings of two clocks, one after the other.
const minClockChange = 10 * time.Millisecond

// A ClockChange says that the clock of the machine was set while the run went on, or went
// ahead since the machine slept. Times from this record on are by the clock as it is
// now.
type ClockChange struct {
	// DeltaUS is by how much it was set since the run began, or since the last such
	// record, in microseconds: forward, or back if it is negative.
	DeltaUS int64 `json:"set_by_us"`
}

// Delta returns by how much the clock was set: forward, or back if it is negative.
func (c *ClockChange) Delta() time.Duration { return time.Duration(c.DeltaUS) * time.Microsecond }

// measureClockChange returns the time, and by how much the clock was set since it was
// compared with the monotonic one, which nobody sets. It requires the lock.
func (l *Ledger) measureClockChange() (now time.Time, delta time.Duration) {
	for range 3 { // between two readings the process may have had to wait
		now = l.cfg.now()
		delta = now.Round(0).Sub(l.clockBase.Round(0)) - now.Sub(l.clockBase)
		if delta.Abs() < minClockChange {
			return now, 0
		}
	}
	return now, delta
}

// recordClockChangeIfAny returns the time of the next record, and holds one before it if the clock was
// set. It requires the lock.
func (l *Ledger) recordClockChangeIfAny() (time.Time, error) {
	now, delta := l.measureClockChange()
	if delta == 0 {
		return now, nil
	}
	body, err := (&Record{ClockChange: &ClockChange{DeltaUS: delta.Microseconds()}}).encodeLine()
	if err != nil {
		return now, err
	}
	l.bufferRecord(truncateTime(now), body)
	l.clockBase = now
	return now, nil
}

// checkTime enters the time of a record, and says what is wrong with it: no record is of
// before the one that it follows, but for what is said of the clock, and that is said
// after what begins a file. Between two runs nobody can say it.
func (v *verifier) checkTime(r *Record) {
	if r.SegmentStart != nil {
		return
	}
	if r.ClockChange != nil {
		v.delayChecker.clockShift += r.ClockChange.Delta()
		v.addWarningf("the clock was set %s while the run went on; that is taken off the rests across it", describeClockChange(r.ClockChange.Delta()))
	}
	now := v.delayChecker.unshiftedTime(r.Time)
	switch back := v.lastRecordTime.Sub(now); {
	case back <= time.Second:
	case v.runStart == nil || r.RunStart != nil || r.Recovery != nil:
		v.delayChecker.clockShift -= back
		v.addWarningf("the clock was set back between two runs, by %v at least", back)
		now = v.lastRecordTime
	default:
		v.addFindingf("is of %s, before the one that it follows: the clock was set back, and no record says so", r.Time.Format(time.RFC3339))
	}
	v.lastRecordTime = now
}

// describeClockChange words by how much a clock was set.
func describeClockChange(by time.Duration) string {
	if by < 0 {
		return "back by " + (-by).String()
	}
	return "forward by " + by.String()
}
