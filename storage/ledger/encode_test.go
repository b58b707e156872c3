package ledger

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// TestEncode compares what is put together by hand with what encoding/json makes of
// it: any member set or not, and text of all kinds.
func TestEncode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		for _, record := range []Record{{Request: new(Request)}, {Answer: new(Answer)}} {
			fill(r, reflect.ValueOf(record.Request))
			fill(r, reflect.ValueOf(record.Answer))
			want, err := record.encodeOther()
			if err != nil {
				t.Fatal(err)
			}
			got, err := record.encode()
			if err != nil || string(got) != string(want) {
				t.Fatalf("%v\n got %s\nwant %s", err, got, want)
			}
		}
	}
}

var someText = []string{
	"", "GET", "http://a.test/?a=1&b=<2>", `quote " and \ slash`, "line\nand\ttab\x00\x1b\x7f", "über 漢字 \U0001f600",
	"separators \u2028 \u2029", "not UTF-8 \xff\xc3(", "cut \xe6\xbc",
}

// fill sets what p points to: each member to something, or to nothing.
func fill(r *rand.Rand, p reflect.Value) {
	if p.IsNil() {
		return
	}
	for _, f := range p.Elem().Fields() {
		switch {
		case r.IntN(4) == 0:
			f.SetZero()
		case f.Type() == reflect.TypeFor[time.Time]():
			f.Set(reflect.ValueOf(stamp(time.Unix(r.Int64N(4e9), r.Int64N(1e9)))))
		case f.Kind() == reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
			fill(r, f)
		case f.Kind() == reflect.String:
			f.SetString(someText[r.IntN(len(someText))])
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.CanInt():
			f.SetInt(r.Int64N(1<<40) - 1<<20)
		default:
			panic(f.Type())
		}
	}
}

// TestEncodeRefuses pins what no reader would take.
func TestEncodeRefuses(t *testing.T) {
	late := time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, r := range []Record{{}, {Answer: &Answer{}, Run: &Run{}}, {Answer: &Answer{End: late}}, {Request: &Request{Robots: &Verdict{Fetched: late}}}} {
		if text, err := r.encode(); err == nil {
			t.Errorf("%s", text)
		}
	}
}
