package ledger

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/internal/jsonline/jsonlinetest"
)

// Encoding by hand gives the same bytes as encoding/json, with any fields set, and for all kinds of text.
func TestEncode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		for _, record := range []Record{{Request: new(Request)}, {Response: new(Response)}} {
			if record.Request != nil {
				jsonlinetest.FillRandom(r, record.Request)
			} else {
				jsonlinetest.FillRandom(r, record.Response)
			}
			want, err := record.encodeGeneric()
			if err != nil {
				t.Fatal(err)
			}
			got, err := record.encodeLine(nil)
			if err != nil || string(got) != string(want) {
				t.Fatalf("%v\n got %s\nwant %s", err, got, want)
			}
		}
	}
}

// encodeLine refuses records without a kind or with two, and times that JSON cannot hold.
func TestEncodeRefuses(t *testing.T) {
	late := time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, r := range []Record{{}, {Response: &Response{}, RunStart: &RunStart{}}, {Response: &Response{EndedAt: late}},
		{Request: &Request{RobotsVerdict: &RobotsVerdict{FetchedAt: late}}}} {
		if text, err := r.encodeLine(nil); err == nil {
			t.Errorf("%s", text)
		}
	}
}
