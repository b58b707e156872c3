package ledger

import "time"

// minClockChange is from which difference on a clock was set: less may lie between the
// readings of two clocks, one after the other.
const minClockChange = 10 * time.Millisecond

// A Clock says that the clock of the machine was set while the run went on, or went
// ahead since the machine slept. Times from this record on are by the clock as it is
// now.
type Clock struct {
	// SetByUS is by how much it was set since the run began, or since the last such
	// record, in microseconds: forward, or back if it is negative.
	SetByUS int64 `json:"set_by_us"`
}

// SetBy returns by how much the clock was set: forward, or back if it is negative.
func (c *Clock) SetBy() time.Duration { return time.Duration(c.SetByUS) * time.Microsecond }

// readClock returns the time, and by how much the clock was set since it was
// compared with the monotonic one, which nobody sets. It requires the lock.
func (l *Ledger) readClock() (now time.Time, set time.Duration) {
	for range 3 { // between two readings the process may have had to wait
		now = l.cfg.now()
		set = now.Round(0).Sub(l.clock.Round(0)) - now.Sub(l.clock)
		if set.Abs() < minClockChange {
			return now, 0
		}
	}
	return now, set
}

// tick returns the time of the next record, and holds one before it if the clock was
// set. It requires the lock.
func (l *Ledger) tick() (time.Time, error) {
	now, set := l.readClock()
	if set == 0 {
		return now, nil
	}
	body, err := (&Record{Clock: &Clock{SetByUS: set.Microseconds()}}).encode()
	if err != nil {
		return now, err
	}
	l.hold(stamp(now), body)
	l.clock = now
	return now, nil
}

// timeOf returns the time of a record that comes next. Nothing comes before what
// begins a file. It requires the lock.
func (l *Ledger) timeOf(r *Record) (time.Time, error) {
	if r.Segment != nil {
		return l.cfg.now(), nil
	}
	return l.tick()
}

// tell enters the time of a record, and says what is wrong with it: no record is of
// before the one that it follows, but for what is said of the clock, and that is said
// after what begins a file. Between two runs nobody can say it.
func (v *verifier) tell(r *Record) {
	if r.Segment != nil {
		return
	}
	if r.Clock != nil {
		v.pace.set += r.Clock.SetBy()
		v.warn("the clock was set %s while the run went on; that is taken off the rests across it", ahead(r.Clock.SetBy()))
	}
	now := v.pace.real(r.Time)
	switch back := v.time.Sub(now); {
	case back <= time.Second:
	case v.run == nil || r.Run != nil || r.Recovery != nil:
		v.pace.set -= back
		v.warn("the clock was set back between two runs, by %v at least", back)
		now = v.time
	default:
		v.find("is of %s, before the one that it follows: the clock was set back, and no record says so", r.Time.Format(time.RFC3339))
	}
	v.time = now
}

// ahead words by how much a clock was set.
func ahead(by time.Duration) string {
	if by < 0 {
		return "back by " + (-by).String()
	}
	return "forward by " + by.String()
}
