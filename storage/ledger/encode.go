package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

var (
	errKinds = errors.New("ledger: a record is of exactly one kind")
	errYear  = errors.New("ledger: a time has no year of four digits")
)

// encode returns the record without its place, as JSON. Each visit makes a Request
// and an Answer: they are put together by hand, in the words of encoding/json.
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
		return nil, err
	case len(b) > maxLine-placeSize:
		return nil, fmt.Errorf("ledger: a record of %d bytes is too long", len(b))
	}
	return b, nil
}

// encodeOther is encode for the kinds of which there are few.
func (r *Record) encodeOther() ([]byte, error) {
	body := *r
	body.Hash, body.N, body.Time = "", 0, time.Time{}
	return inJSON(&body)
}

// inJSON returns v in JSON, as a line.
func inJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // URLs stay readable
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return b.Bytes(), nil
}

func (q *Request) encode() ([]byte, error) {
	o := object{text: make([]byte, 0, 1<<10)}
	o.open("request")
	o.string("url", q.URL)
	o.stringIfAny("method", q.Method)
	o.string("kind", q.Kind)
	o.string("origin", q.Origin)
	o.stringIfAny("ip", q.IP)
	o.string("source", q.Source)
	o.stringIfAny("referrer", q.Referrer)
	if v := q.Robots; v != nil {
		o.open("robots")
		o.bool("allowed", v.Allowed)
		o.string("outcome", v.Outcome)
		o.stringIfAny("file_sha256", v.SHA256)
		o.time("fetched", v.Fetched)
		o.string("group", v.Group)
		o.stringIfAny("rule", v.Rule)
		o.intIfAny("line", int64(v.Line))
		o.close()
	}
	o.intIfAny("delay_required_ms", q.RequiredMS)
	o.intIfAny("delay_observed_ms", q.ObservedMS)
	o.int("slots", int64(q.Slots))
	o.stringIfAny("override", q.Override)
	return o.line()
}

func (a *Answer) encode() ([]byte, error) {
	o := object{text: make([]byte, 0, 256)}
	o.open("answer")
	o.int("request", a.Request)
	o.time("end", a.End)
	o.int("status", int64(a.Status))
	o.int("bytes", int64(a.Bytes))
	o.stringIfAny("error", a.Error)
	o.stringIfAny("withheld", a.Withheld)
	return o.line()
}

// An object is the beginning of one in JSON, within one that has no other member.
type object struct {
	text []byte
	err  error
}

// open begins a member that is an object.
func (o *object) open(name string) {
	o.name(name)
	o.text = append(o.text, '{')
}

func (o *object) close() { o.text = append(o.text, '}') }

// line ends both objects, and returns them as a line.
func (o *object) line() ([]byte, error) { return append(o.text, "}}\n"...), o.err }

// name begins a member.
func (o *object) name(name string) {
	switch {
	case len(o.text) == 0:
		o.text = append(o.text, '{')
	case o.text[len(o.text)-1] != '{':
		o.text = append(o.text, ',')
	}
	o.text = append(o.text, '"')
	o.text = append(o.text, name...)
	o.text = append(o.text, `":`...)
}

func (o *object) int(name string, n int64) {
	o.name(name)
	o.text = strconv.AppendInt(o.text, n, 10)
}

func (o *object) intIfAny(name string, n int64) {
	if n != 0 {
		o.int(name, n)
	}
}

func (o *object) bool(name string, is bool) {
	o.name(name)
	o.text = strconv.AppendBool(o.text, is)
}

func (o *object) time(name string, t time.Time) {
	if y := t.Year(); y < 0 || y > 9999 {
		o.err = errYear
	}
	o.name(name)
	o.text = append(o.text, '"')
	o.text = t.AppendFormat(o.text, time.RFC3339Nano)
	o.text = append(o.text, '"')
}

func (o *object) string(name, s string) {
	o.name(name)
	if !isPlain(s) {
		quoted, err := inJSON(s)
		if err != nil {
			o.err = err
		}
		o.text = append(o.text, bytes.TrimSuffix(quoted, []byte("\n"))...)
		return
	}
	o.text = append(o.text, '"')
	o.text = append(o.text, s...)
	o.text = append(o.text, '"')
}

func (o *object) stringIfAny(name, s string) {
	if s != "" {
		o.string(name, s)
	}
}

// isPlain reports whether s stands in JSON as it is, as nearly every URL does.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
