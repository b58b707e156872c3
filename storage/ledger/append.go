package ledger

import "time"

// maxBufferedBytes is how many bytes of Answers there must be for the next to be written at once.
const maxBufferedBytes = 16 << 10

// write puts a record at the end, and writes it, but for an Answer. It requires the
// lock.
func (l *Ledger) write(r *Record) error {
	now, err := l.timeOf(r)
	if err != nil {
		return err
	}
	body, err := r.withAdjustedEnd(now).encode()
	if err != nil {
		return err
	}
	if r.Answer != nil && len(l.held) < maxBufferedBytes {
		l.hold(stamp(now), body)
		return nil
	}
	return l.writeAt(stamp(now), body)
}

// withAdjustedEnd returns a record whose times are by the clock as it is now.
func (r *Record) withAdjustedEnd(now time.Time) *Record {
	if r.Answer == nil {
		return r
	}
	a := *r.Answer
	a.End = stamp(now.Add(a.End.Sub(now)))
	return &Record{Answer: &a}
}

// writeAt writes a record with its time, and what is held before it. It requires the
// lock.
func (l *Ledger) writeAt(now time.Time, body []byte) error {
	before, end := len(l.held), l.end
	l.hold(now, body)
	err := l.flush()
	if err != nil {
		l.held, l.end = l.held[:before], end
	}
	return err
}

// hold puts a record after those that are held.
func (l *Ledger) hold(now time.Time, body []byte) { l.held, l.end = l.end.append(l.held, now, body) }

// flush writes what is held. What a failure leaves in the file is written over by the
// next try, or cut off as torn. It requires the lock.
func (l *Ledger) flush() error {
	if len(l.held) == 0 {
		return nil
	}
	if _, err := l.file.WriteAt(l.held, l.size); err != nil {
		return err
	}
	l.size += int64(len(l.held))
	l.held = l.held[:0]
	l.tail.RecordWrite(l.file, l.size)
	return nil
}
