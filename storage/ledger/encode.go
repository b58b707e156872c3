package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/internal/jsonline"
)

var errKinds = errors.New("ledger: a record is of exactly one kind")

// encode returns the record without its place, as JSON. Each visit makes a Request
// and an Answer: they are put together by hand.
func (r *Record) encode() ([]byte, error) {
	if r.kinds() != 1 {
		return nil, errKinds
	}
	var b []byte
	var err error
	switch {
	case r.Request != nil:
		b, err = r.Request.encode()
	case r.Answer != nil:
		b, err = r.Answer.encode()
	default:
		b, err = r.encodeOther()
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("ledger: %w", err)
	case len(b) > maxLineBytes-placeSize:
		return nil, fmt.Errorf("ledger: a record of %d bytes is too long", len(b))
	}
	return b, nil
}

// encodeOther is encode for the kinds of which there are few.
func (r *Record) encodeOther() ([]byte, error) {
	body := *r
	body.Hash, body.N, body.Time = "", 0, time.Time{}
	return jsonline.Marshal(&body)
}

func (q *Request) encode() ([]byte, error) {
	o := jsonline.NewObjectBuilder(1 << 10)
	o.OpenObject("request")
	o.String("url", q.URL)
	o.StringNonEmpty("method", q.Method)
	o.String("kind", q.Kind)
	o.String("origin", q.Origin)
	o.StringNonEmpty("ip", q.IP)
	o.String("source", q.Source)
	o.StringNonEmpty("referrer", q.Referrer)
	if v := q.Robots; v != nil {
		o.OpenObject("robots")
		o.Bool("allowed", v.Allowed)
		o.String("outcome", v.Outcome)
		o.StringNonEmpty("file_sha256", v.SHA256)
		o.Time("fetched", v.Fetched)
		o.String("group", v.Group)
		o.StringNonEmpty("rule", v.Rule)
		o.IntNonZero("line", int64(v.RuleLine))
		o.BoolIfTrue("not_for_indexing", v.NotForIndexing)
		o.CloseObject()
	}
	o.IntNonZero("delay_required_ms", q.RequiredMS)
	o.IntNonZero("delay_observed_ms", q.ObservedMS)
	o.Int("slots", int64(q.Slots))
	o.StringNonEmpty("override", q.Override)
	return o.Line()
}

func (a *Answer) encode() ([]byte, error) {
	o := jsonline.NewObjectBuilder(256)
	o.OpenObject("answer")
	o.Int("request", a.Request)
	o.Time("end", a.End)
	o.Int("status", int64(a.Status))
	o.Int("bytes", int64(a.Bytes))
	o.StringNonEmpty("error", a.Error)
	o.StringNonEmpty("withheld", a.Withheld)
	return o.Line()
}
