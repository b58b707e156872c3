package jsonline_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/jsonline/jsonlinetest"
)

// TestLine compares the output of each method with that of encoding/json.
func TestLine(t *testing.T) {
	type inner struct {
		Text string `json:"text,omitempty"`
		N    int64  `json:"n,omitempty"`
	}
	type line struct {
		Text  string    `json:"text"`
		N     int64     `json:"n"`
		Is    bool      `json:"is"`
		At    time.Time `json:"at"`
		Inner inner     `json:"inner"`
		Any   []inner   `json:"any"`
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		var v line
		jsonlinetest.FillRandom(r, &v)
		want, err := jsonline.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		o := jsonline.NewObjectBuilder(nil)
		o.String("text", v.Text)
		o.Int("n", v.N)
		o.Bool("is", v.Is)
		o.Time("at", v.At)
		o.OpenObject("inner")
		o.StringNonEmpty("text", v.Inner.Text)
		o.IntNonZero("n", v.Inner.N)
		o.CloseObject()
		o.Value("any", v.Any)
		if got, err := o.Line(); err != nil || string(got) != string(want) {
			t.Fatalf("%v\n got %s\nwant %s", err, got, want)
		}
	}
}

// TestLineEndsWhatIsOpen: Line closes objects at any depth.
func TestLineEndsWhatIsOpen(t *testing.T) {
	o := jsonline.NewObjectBuilder(nil)
	o.OpenObject("a")
	o.OpenObject("b")
	if got, err := o.Line(); err != nil || string(got) != "{\"a\":{\"b\":{}}}\n" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestLineRefuses: Line returns the first error of a value that JSON cannot represent.
func TestLineRefuses(t *testing.T) {
	late := time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, add := range map[string]func(*jsonline.ObjectBuilder){
		"year":        func(o *jsonline.ObjectBuilder) { o.Time("at", late) },
		"unsupported": func(o *jsonline.ObjectBuilder) { o.Value("at", func() {}) },
	} {
		o := jsonline.NewObjectBuilder(nil)
		add(o)
		o.Value("then", make(chan int))
		o.Int("n", 1)
		if line, err := o.Line(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %s, %v", name, line, err)
		}
	}
}
