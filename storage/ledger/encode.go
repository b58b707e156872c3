package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/internal/jsonline"
)

var errNotOneKind = errors.New("ledger: a record is of exactly one kind")

// encodeLine returns the record without its place, as JSON. Each visit makes a Request
// and a Response: they are put together by hand.
func (r *Record) encodeLine() ([]byte, error) {
	if r.countSetKinds() != 1 {
		return nil, errNotOneKind
	}
	var b []byte
	var err error
	switch {
	case r.Request != nil:
		b, err = r.Request.encodeLine()
	case r.Response != nil:
		b, err = r.Response.encodeLine()
	default:
		b, err = r.encodeGeneric()
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("ledger: %w", err)
	case len(b) > maxLineBytes-maxLinePrefixSize:
		return nil, fmt.Errorf("ledger: a record of %d bytes is too long", len(b))
	}
	return b, nil
}

// encodeGeneric is encode for the kinds of which there are few.
func (r *Record) encodeGeneric() ([]byte, error) {
	body := *r
	body.Hash, body.Number, body.Time = "", 0, time.Time{}
	return jsonline.Marshal(&body)
}

func (q *Request) encodeLine() ([]byte, error) {
	o := jsonline.NewObjectBuilder(1 << 10)
	o.OpenObject("request")
	o.String("url", q.URL)
	o.StringNonEmpty("method", q.Method)
	o.String("kind", q.Kind)
	o.String("origin", q.Origin)
	o.StringNonEmpty("ip", q.ServerIP)
	o.String("source", q.URLSource)
	o.StringNonEmpty("referrer", q.Referrer)
	if v := q.RobotsVerdict; v != nil {
		o.OpenObject("robots")
		o.Bool("allowed", v.Allowed)
		o.String("outcome", v.FetchOutcome)
		o.StringNonEmpty("file_sha256", v.FileSHA256)
		o.Time("fetched", v.FetchedAt)
		o.String("group", v.Group)
		o.StringNonEmpty("rule", v.Rule)
		o.IntNonZero("line", int64(v.RuleLine))
		o.BoolIfTrue("not_for_indexing", v.DisallowedForMainRobot)
		o.CloseObject()
	}
	o.IntNonZero("delay_required_ms", q.RequiredDelayMS)
	o.IntNonZero("delay_observed_ms", q.ObservedDelayMS)
	o.Int("slots", int64(q.Slots))
	o.StringNonEmpty("override", q.OverrideReason)
	return o.Line()
}

func (a *Response) encodeLine() ([]byte, error) {
	o := jsonline.NewObjectBuilder(256)
	o.OpenObject("answer")
	o.Int("request", a.RequestNumber)
	o.Time("end", a.EndedAt)
	o.Int("status", int64(a.Status))
	o.Int("bytes", int64(a.BodyBytes))
	o.StringNonEmpty("error", a.Error)
	o.StringNonEmpty("withheld", a.WithheldReason)
	return o.Line()
}

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
