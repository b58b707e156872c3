package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/internal/jsonline"
)

// errNotOneKind is returned for a record with no kind, or with several.
var errNotOneKind = errors.New("ledger: a record must have exactly one kind")

// encodeLine returns the record as a line of JSON, without hash, number and time; in buf if it fits. It encodes
// Requests and Responses by hand, because that is faster and each visit makes one of both.
func (r *Record) encodeLine(buf []byte) ([]byte, error) {
	if r.countSetKinds() != 1 {
		return nil, errNotOneKind
	}
	var b []byte
	var err error
	switch {
	case r.Request != nil:
		b, err = r.Request.encodeLine(buf)
	case r.Response != nil:
		b, err = r.Response.encodeLine(buf)
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

// encodeGeneric is encodeLine by encoding/json, for the kinds that are rare.
func (r *Record) encodeGeneric() ([]byte, error) {
	body := *r
	body.Hash, body.Number, body.Time = "", 0, time.Time{}
	return jsonline.Marshal(&body)
}

// encodeLine returns the line of a Request, in buf if it fits. Its members are those of the struct tags, in their
// order.
func (q *Request) encodeLine(buf []byte) ([]byte, error) {
	o := jsonline.NewObjectBuilder(buf)
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

// encodeLine returns the line of a Response, in buf if it fits. Its members are those of the struct tags, in their
// order.
func (a *Response) encodeLine(buf []byte) ([]byte, error) {
	o := jsonline.NewObjectBuilder(buf)
	o.OpenObject("answer")
	o.Int("request", a.RequestNumber)
	o.Time("end", a.EndedAt)
	o.Int("status", int64(a.Status))
	o.Int("bytes", int64(a.BodyBytes))
	o.StringNonEmpty("error", a.Error)
	o.StringNonEmpty("withheld", a.WithheldReason)
	return o.Line()
}
