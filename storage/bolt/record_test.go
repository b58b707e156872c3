package bolt

import (
	"bytes"
	"cmp"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// Fingerprints are in files: these must not change.
func TestFingerprintIsStable(t *testing.T) {
	for path, want := range map[string]uint64{
		"":       0xcbf29ce484222325, // published values of FNV-1a
		"a":      0xaf63dc4c8601ec8c,
		"foobar": 0x85944171f73967e8,
	} {
		if got := fingerprint(path); got != want {
			t.Errorf("fingerprint(%q) = %#x, want %#x", path, got, want)
		}
	}
}

// The order of keys in the file is their order in memory.
func TestKeysAreInOrder(t *testing.T) {
	var keys []urlKey
	numbers := []int64{math.MinInt64, -256, -1, 0, 1, 255, 256, math.MaxInt64}
	for _, at := range numbers {
		for _, seq := range numbers {
			for _, origin := range []uint32{0, 1, 256, math.MaxUint32} {
				keys = append(keys, urlKey{origin, 3, place{at, seq}}, urlKey{origin, parked, place{at, seq}})
			}
		}
	}
	for _, a := range keys {
		if got, ok := parseURLKey(a.appendTo(nil)); !ok || got != a {
			t.Fatalf("key %v was read as %v, %t", a, got, ok)
		}
		for _, b := range keys {
			if got := bytes.Compare(a.appendTo(nil), b.appendTo(nil)); got != a.compare(b) {
				t.Fatalf("%v and %v: %d in the file, %d in memory", a, b, got, a.compare(b))
			}
		}
	}
	if _, ok := parseURLKey([]byte("short")); ok {
		t.Error("a short key was read")
	}
}

func TestNanosKeepTheOrder(t *testing.T) {
	times := []time.Time{
		{}, time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, 0),
		time.Unix(0, 1), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	if !slices.IsSortedFunc(times, func(a, b time.Time) int { return cmp.Compare(nanos(a), nanos(b)) }) {
		t.Error("nanos changes the order of times")
	}
}

func TestHostRecord(t *testing.T) {
	for _, want := range []schedule.Clock{
		{},
		{Due: time.Unix(1, 999_999_999).UTC(), Gap: math.MaxInt64, Slots: 7, Strikes: 1 << 20},
		{Due: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), Gap: -1, Slots: -1},
		{Memo: []byte("memo")},
	} {
		got, err := parseHost(appendHost(nil, &want))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v was read as %+v (%v)", want, got, err)
		}
	}
}

func FuzzParseEntry(f *testing.F) {
	o := must1(decorum.ParseURL("https://a.example/")).Origin()
	for _, e := range []storage.Entry{
		{URL: must1(decorum.ParseURL("https://a.example/"))},
		{
			URL: must1(decorum.ParseURL("https://a.example/p?q")), Source: storage.Robots, Class: storage.Late, Depth: 300,
			Referrer: "https://a.example/from", For: o, Attempt: 2, Context: []byte{0xff},
			Found: must1(decorum.ParseURL("https://a.example/p?q&sid=1")), AsFound: true,
		},
		{URL: must1(decorum.ParseURL("https://a.example/")), Referrer: "elsewhere"},
	} {
		f.Add(appendEntry(nil, &e))
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := parseEntry(b, o)
		if err != nil {
			return
		}
		again := appendEntry(nil, &e)
		twice, err := parseEntry(again, o)
		if err != nil || !bytes.Equal(appendEntry(nil, &twice), again) {
			t.Errorf("%x: %+v was read again as %+v (%v)", b, e, twice, err)
		}
	})
}

func FuzzParseRecords(f *testing.F) {
	f.Add(appendHost(nil, &schedule.Clock{Due: time.Unix(1, 1), Gap: 1, Slots: 1}))
	o := &origin{number: 1, seq: 2, parked: lane{n: 3}}
	o.Hold, o.Dormant = time.Unix(1, 1), true
	o.lane(6).n, o.lane(7).n = 4, 5
	f.Add(appendOrigin(nil, o))
	f.Add([]byte("00000000\x01000\x01000")) // the same lane twice
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := parseHost(b); err == nil {
			if again, err := parseHost(appendHost(nil, &c)); err != nil || !reflect.DeepEqual(again, c) {
				t.Errorf("%x: host %+v was read again as %+v (%v)", b, c, again, err)
			}
		}
		var o origin
		if err := parseOrigin(b, &o); err != nil {
			return
		}
		var again origin
		if err := parseOrigin(appendOrigin(nil, &o), &again); err != nil || again.number != o.number || again.all != o.all {
			t.Errorf("%x: origin %+v was read again as %+v (%v)", b, &o, &again, err)
		}
	})
}
