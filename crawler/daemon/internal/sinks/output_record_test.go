package sinks

import (
	"math/rand/v2"
	"testing"

	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/jsonline/jsonlinetest"
)

// encodeLine returns the same line as encoding/json, so that the fields of a line are those of the tags.
func TestRecordLine(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var r OutputRecord
		jsonlinetest.FillRandom(random, &r)
		want, err := jsonline.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.encodeLine(nil); err != nil || string(got) != string(want) {
			t.Fatalf("%v\n got %s\nwant %s", err, got, want)
		}
	}
}
