package ledger

import (
	"time"
)

// maxBufferedBytes is how many bytes of records must wait for the next to be written at once.
const maxBufferedBytes = 16 << 10

// writeOrBufferRecord puts a record at the end, and writes it, but for a Response. It requires the
// lock.
func (l *Ledger) writeOrBufferRecord(r *Record) error {
	var now time.Time
	var err error
	if r.SegmentStart != nil { // nothing comes before what begins a file
		now = l.cfg.now()
	} else if now, err = l.recordClockChangeIfAny(); err != nil {
		return err
	}
	body, err := r.withEndAdjustedToClock(now).encodeLine()
	if err != nil {
		return err
	}
	if r.Response != nil && len(l.buffered) < maxBufferedBytes {
		l.bufferRecord(truncateTime(now), body)
		return nil
	}
	return l.writeEncoded(truncateTime(now), body)
}

// withEndAdjustedToClock returns a record whose times are by the clock as it is now.
func (r *Record) withEndAdjustedToClock(now time.Time) *Record {
	if r.Response == nil {
		return r
	}
	a := *r.Response
	a.EndedAt = truncateTime(now.Add(a.EndedAt.Sub(now)))
	return &Record{Response: &a}
}

// writeEncoded writes a record with its time, and what is held before it. It requires the
// lock.
func (l *Ledger) writeEncoded(now time.Time, body []byte) error {
	oldLen, oldHead := len(l.buffered), l.head
	l.bufferRecord(now, body)
	err := l.flushBuffered()
	if err != nil {
		l.buffered, l.head = l.buffered[:oldLen], oldHead
	}
	return err
}

// bufferRecord puts a record after those that are held.
func (l *Ledger) bufferRecord(now time.Time, body []byte) {
	l.buffered, l.head = l.head.appendRecord(l.buffered, now, body)
}

// flushBuffered writes what is held. What a failure leaves in the file is written over by the
// next try, or cut off as torn. It requires the lock.
func (l *Ledger) flushBuffered() error {
	if len(l.buffered) == 0 {
		return nil
	}
	if _, err := l.file.WriteAt(l.buffered, l.segmentSize); err != nil {
		return err
	}
	l.segmentSize += int64(len(l.buffered))
	l.buffered = l.buffered[:0]
	l.syncTracker.RecordWrite(l.file, l.segmentSize)
	return nil
}
