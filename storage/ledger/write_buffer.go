package ledger

import (
	"time"
)

// maxBufferedBytes is how many bytes may be buffered before a Response is written at once.
const maxBufferedBytes = 16 << 10

// writeOrBufferRecord appends a record and writes it, but only buffers a Response. If the clock was set,
// a ClockChange precedes the record. The caller holds l.mu.
func (l *Ledger) writeOrBufferRecord(r *Record) error {
	var now time.Time
	var err error
	if r.SegmentStart != nil { // must be the first record of its file
		now = l.cfg.now()
	} else if now, err = l.recordClockChangeIfAny(); err != nil {
		return err
	}
	body, err := r.withEndAdjustedToClock(now).encodeLine(l.lineBuffer)
	if err != nil {
		return err
	}
	if cap(body) <= maxBufferedBytes {
		l.lineBuffer = body // for the next record; this one is copied from it
	}
	if r.Response != nil && len(l.buffered) < maxBufferedBytes {
		l.bufferRecord(truncateTime(now), body)
		return nil
	}
	return l.writeEncoded(truncateTime(now), body)
}

// withEndAdjustedToClock returns r with Response.EndedAt by the clock as it is now: the clock may have
// been set since the transfer ended. The monotonic part of EndedAt gives the difference.
func (r *Record) withEndAdjustedToClock(now time.Time) *Record {
	if r.Response == nil {
		return r
	}
	a := *r.Response
	a.EndedAt = truncateTime(now.Add(a.EndedAt.Sub(now)))
	return &Record{Response: &a}
}

// writeEncoded writes the buffered records and one more, of time now. If it fails, the record is not in
// the ledger, and the others stay buffered. The caller holds l.mu.
func (l *Ledger) writeEncoded(now time.Time, body []byte) error {
	oldLen, oldHead := len(l.buffered), l.head
	l.bufferRecord(now, body)
	err := l.flushBuffered()
	if err != nil {
		l.buffered, l.head = l.buffered[:oldLen], oldHead
	}
	return err
}

// bufferRecord appends a record to the buffered ones. The caller holds l.mu.
func (l *Ledger) bufferRecord(now time.Time, body []byte) {
	l.buffered, l.head = l.head.appendRecord(l.buffered, now, body)
}

// flushBuffered writes the buffered records. Bytes that a failed write leaves in the file are
// overwritten by the next attempt, or cut as a torn record. The caller holds l.mu.
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
