package bolt

import (
	"bytes"
	"cmp"
	"errors"
	"hash/fnv"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/binaryrecord"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
)

// TestFingerprintIsStable: fingerprints are in files, so they must never change.
func TestFingerprintIsStable(t *testing.T) {
	for _, path := range []string{"/", "/a?b", "/%C3%A9"} {
		h := fnv.New64a()
		h.Write([]byte(path))
		if got, want := uint64(fingerprintOfURL(newEntry(t, "https://a.example%s", path).URL)), h.Sum64(); got != want {
			t.Errorf("fingerprint of %s: %#x, want %#x", path, got, want)
		}
	}
}

// TestKeysAreInOrder: keys have the same order in the file as slots have in memory.
func TestKeysAreInOrder(t *testing.T) {
	type key struct {
		origin uint32
		slot   laneSlot
	}
	var keys []key
	numbers := []int64{math.MinInt64, -256, -1, 0, 1, 255, 256, math.MaxInt64}
	for _, at := range numbers {
		for _, seq := range numbers {
			for _, origin := range []uint32{0, 1, 256, math.MaxUint32} {
				keys = append(keys, key{origin, laneSlot{3, urlQueuePosition{at, seq}}},
					key{origin, laneSlot{parkedLane, urlQueuePosition{at, seq}}})
			}
		}
	}
	for _, a := range keys {
		b := appendURLKey(nil, a.origin, a.slot)
		if origin, at, ok := parseURLKey(b); !ok || origin != a.origin || at != a.slot {
			t.Fatalf("key %v was read as %d, %v, %t", a, origin, at, ok)
		}
		for _, c := range keys {
			want := cmp.Or(cmp.Compare(a.origin, c.origin), a.slot.compare(c.slot))
			if got := bytes.Compare(b, appendURLKey(nil, c.origin, c.slot)); got != want {
				t.Fatalf("%v and %v: %d in the file, %d in memory", a, c, got, want)
			}
		}
	}
	if _, _, ok := parseURLKey([]byte("short")); ok {
		t.Error("a short key was read")
	}
}

func TestHostRecord(t *testing.T) {
	for _, want := range []storage.HostState{
		{},
		{Due: time.Unix(1, 999_999_999).UTC(), LostVisitDelay: math.MaxInt64, Slots: 7, ConsecutiveFailures: 1 << 20},
		{Due: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), LostVisitDelay: -1, Slots: -1},
		{EncodedStats: []byte("memo")},
	} {
		got, err := record.ParseHostState(record.AppendHostState(nil, &want))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v was read as %+v (%v)", want, got, err)
		}
	}
}

// TestThirdByteOfFlags: the record of an earlier program, which ends before the third byte of flags, has no
// EncodedBodyLen. An entry with unknown flags there, or with an EncodedBodyLen but without a
// VisitHistorySummary, is damaged.
func TestThirdByteOfFlags(t *testing.T) {
	u := must1(decorum.ParseURL("https://a.example/"))
	earlier := storage.Entry{URL: u, VisitHistorySummary: &storage.VisitHistorySummary{
		VisitedAt: time.Unix(1, 0).UTC(), SitemapLastmod: time.Unix(2, 0).UTC(), VariantKey: "*"}}
	b := record.AppendEntry(nil, &earlier)
	if got, err := record.ParseEntry(b, u.Origin()); err != nil || !reflect.DeepEqual(got, earlier) {
		t.Errorf("%x was read as %+v (%v)", b, got, err)
	}
	withLength := earlier
	withLength.VisitHistorySummary = new(*earlier.VisitHistorySummary)
	withLength.VisitHistorySummary.EncodedBodyLen = 5
	if got, want := record.AppendEntry(nil, &withLength), append(bytes.Clone(b), 1, 5); !bytes.Equal(got, want) {
		t.Errorf("the record is %x, want that of an earlier program and two bytes: %x", got, want)
	}
	for _, damaged := range [][]byte{
		append(bytes.Clone(b), 0), append(bytes.Clone(b), 2), append(bytes.Clone(b), 3, 5), append(bytes.Clone(b), 1),
		append(record.AppendEntry(nil, &storage.Entry{URL: u, Redirects: 1}), 1, 5),
	} {
		if got, err := record.ParseEntry(damaged, u.Origin()); !errors.Is(err, binaryrecord.ErrDamaged) {
			t.Errorf("%x was read as %+v (%v)", damaged, got, err)
		}
	}
}

func FuzzParseEntry(f *testing.F) {
	o := must1(decorum.ParseURL("https://a.example/")).Origin()
	for _, e := range []storage.Entry{
		{URL: must1(decorum.ParseURL("https://a.example/"))},
		{
			URL: must1(decorum.ParseURL("https://a.example/p?q")), Source: storage.SourcePrerequisite,
			PriorityClass: storage.ClassLate, Depth: 300,
			Referrer: "https://a.example/from", RobotsFor: o, FailedAttempts: 2, CallbackData: []byte{0xff},
			UncleanedURL: must1(decorum.ParseURL("https://a.example/p?q&sid=1")), UseUncleanedURL: true,
			Redirects: 3, HTTPSUpgradeTried: true, SeedOrigin: o,
		},
		{URL: must1(decorum.ParseURL("https://a.example/")),
			SeedOrigin: must1(decorum.ParseURL("http://b.example:81/")).Origin()},
		{URL: must1(decorum.ParseURL("https://a.example/")), Referrer: "elsewhere"},
		{URL: must1(decorum.ParseURL("https://a.example/")),
			Request: &storage.NonGETRequest{Method: "POST", Body: []byte("x=1")}, Sent: true},
		{URL: must1(decorum.ParseURL("https://a.example/")), SeedOrigin: o,
			VisitHistorySummary: &storage.VisitHistorySummary{Status: 200, ETag: `"e"`,
				FreshFor: time.Hour, FreshBy: "max-age=3600", VariantKey: "*",
				EncodedBodyLen: math.MaxInt64}},
	} {
		f.Add(record.AppendEntry(nil, &e))
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := record.ParseEntry(b, o)
		if err != nil {
			return
		}
		again := record.AppendEntry(nil, &e)
		twice, err := record.ParseEntry(again, o)
		if err != nil || !bytes.Equal(record.AppendEntry(nil, &twice), again) {
			t.Errorf("%x: %+v was read again as %+v (%v)", b, e, twice, err)
		}
	})
}

func FuzzParseRecords(f *testing.F) {
	f.Add(record.AppendHostState(nil, &storage.HostState{Due: time.Unix(1, 1), LostVisitDelay: 1, Slots: 1}))
	o := &residentOrigin{number: 1, lastSeq: 2, parkedCount: 3}
	o.HeldUntil, o.Suspended = time.Unix(1, 1), true
	o.getOrCreateLane(6).count, o.getOrCreateLane(7).count = 4, 5
	f.Add(appendOriginRecord(nil, o))
	f.Add([]byte("00000000\x01000\x01000")) // the same lane twice
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := record.ParseHostState(b); err == nil {
			if again, err := record.ParseHostState(record.AppendHostState(nil, &c)); err != nil ||
				!reflect.DeepEqual(again, c) {
				t.Errorf("%x: host %+v was read again as %+v (%v)", b, c, again, err)
			}
		}
		var o residentOrigin
		if err := parseOriginRecord(b, &o); err != nil {
			return
		}
		var again residentOrigin
		if err := parseOriginRecord(appendOriginRecord(nil, &o), &again); err != nil ||
			again.name != o.name || again.Total != o.Total {
			t.Errorf("%x: origin %+v was read again as %+v (%v)", b, &o, &again, err)
		}
	})
}
