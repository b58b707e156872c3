package politeness_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
)

func TestBrakeFor(t *testing.T) {
	var bs politeness.Brakes
	err := bs.Replace([]politeness.Brake{
		{Host: "example.com", IncludesSubdomains: true, Delay: time.Minute},
		{Host: "a.example.com", Delay: time.Hour},
		{Host: "b.example.com", Delay: sec},
		{Host: "shut.example.com", IncludesSubdomains: true, Stop: true, Reason: "outer"},
		{Host: "x.shut.example.com", Stop: true, Reason: "inner"},
		{Host: "y.shut.example.com", Delay: time.Hour},
		{Host: "alone.test", Stop: true},
		{Host: "until.test", Stop: true, Until: noon},
		{Host: "[::1]", Stop: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		host   string
		stop   bool
		delay  time.Duration
		reason string
	}{
		{host: "example.com", delay: time.Minute},
		{host: "www.example.com", delay: time.Minute},
		{host: "a.example.com", delay: time.Hour},
		{host: "b.example.com", delay: time.Minute},
		{host: "c.a.example.com", delay: time.Minute}, // the hour applies to another host only
		{host: "shut.example.com", stop: true, reason: "outer"},
		{host: "x.shut.example.com", stop: true, reason: "inner"},
		{host: "y.shut.example.com", stop: true, reason: "outer"},
		{host: "alone.test", stop: true},
		{host: "not.alone.test"},
		{host: "notexample.com"},
		{host: "until.test"},
		{host: "[::1]", stop: true},
	} {
		b, ok := bs.ForHost(tt.host, noon)
		if ok != (tt.stop || tt.delay > 0) || b.Stop != tt.stop || b.Delay != tt.delay || b.Reason != tt.reason {
			t.Errorf("%s: %+v, %t", tt.host, b, ok)
		}
		d := bs.CheckStopped(tt.host, noon)
		if err := d.Err(); (d.Action == decorum.Suspend && d.Reason == decorum.ReasonBrake) != tt.stop ||
			errors.Is(err, decorum.NotDue) != tt.stop {
			t.Errorf("%s: CheckStopped: %v", tt.host, err)
		}
		if by, braked := politeness.BrakeOf(d); braked != tt.stop || braked && (by != b || d.Rule != b.Host) {
			t.Errorf("%s: BrakeOf returns %+v, %t", tt.host, by, braked)
		}
	}
	if bs.CheckStopped("until.test", noon.Add(-1)).Action == decorum.Proceed {
		t.Error("a brake does not apply before it ends")
	}
	if !bs.Remove("alone.test") || bs.Remove("alone.test") ||
		bs.CheckStopped("alone.test", noon).Action != decorum.Proceed {
		t.Error("a removed brake applies")
	}
}

func TestBrakesThatMakeNoSense(t *testing.T) {
	for _, b := range []politeness.Brake{
		{Stop: true},
		{Host: "example.com"},
		{Host: "example.com", Stop: true, Delay: sec},
		{Host: "example.com", Delay: -1},
		{Host: "example.com", Delay: 1 << 62},
		{Host: "Example.com", Stop: true},
		{Host: "example.com.", Stop: true},
		{Host: "example.com:8080", Stop: true},
		{Host: "example.com/a", Stop: true},
		{Host: "user@example.com", Stop: true},
		{Host: "http://example.com", Stop: true},
		{Host: "bücher.example", Stop: true},
		{Host: "a b", Stop: true},
		{Host: "::1", Stop: true},
		{Host: "0x7f.1", Stop: true},
		{Host: "127.0.0.1", Stop: true, IncludesSubdomains: true},
		{Host: "[::1]", Stop: true, IncludesSubdomains: true},
	} {
		var bs politeness.Brakes
		if err := bs.Set(b); err == nil {
			t.Errorf("Set accepts %+v", b)
		}
		good := politeness.Brake{Host: "good.test", Stop: true}
		if err := bs.Replace([]politeness.Brake{good, b}); err == nil || len(bs.All()) > 0 {
			t.Errorf("beside %+v: %v, %v", b, err, bs.All())
		}
	}
}

func TestBrakesAsJSON(t *testing.T) {
	var bs, decoded politeness.Brakes
	want := []politeness.Brake{
		{Host: "a.test", Stop: true, IncludesSubdomains: true, Reason: "asked to", By: "owner", Since: noon,
			Until: noon.Add(time.Hour)},
		{Host: "b.test", Delay: 90 * sec},
	}
	if err := bs.Replace(want); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(bs.All())
	if err != nil {
		t.Fatal(err)
	}
	const wantJSON = `[{"host":"a.test","domain":true,"stop":true,"reason":"asked to","by":"owner","since":"2026-03-01T12:00:00Z","until":"2026-03-01T13:00:00Z"},{"host":"b.test","delay":"1m30s"}]`
	if string(text) != wantJSON {
		t.Errorf("%s\nwant\n%s", text, wantJSON)
	}
	var read []politeness.Brake
	if err := errors.Join(json.Unmarshal(text, &read), decoded.Replace(read)); err != nil {
		t.Fatal(err)
	}
	if got := decoded.All(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := json.Unmarshal([]byte(`[{"host":"b.test","delay":"soon"}]`), &read); err == nil {
		t.Error("an invalid delay was accepted")
	}
}

// TestBrakesNotifyAtOnce: callbacks run before Set returns, and no longer after stop.
func TestBrakesNotifyAtOnce(t *testing.T) {
	var bs politeness.Brakes
	notified := 0
	stop := bs.NotifyOnChange(func() {
		if notified++; bs.CheckStopped("a.test", noon).Action == decorum.Proceed {
			t.Error("notified before the brake applies")
		}
	})
	if err := bs.Set(politeness.Brake{Host: "a.test", Stop: true}); err != nil || notified != 1 {
		t.Errorf("notified %d times: %v", notified, err)
	}
	stop()
	bs.Remove("a.test")
	if notified != 1 {
		t.Error("notified after stop")
	}
	var none *politeness.Brakes
	none.NotifyOnChange(nil)()
	if _, ok := none.ForHost("a.test", noon); ok || len(none.All()) > 0 {
		t.Error("nil Brakes have brakes")
	}
}

func TestBrakesAtTheSameTime(t *testing.T) {
	var bs politeness.Brakes
	var all sync.WaitGroup
	for _, host := range []string{"a.test", "b.test", "c.test", "d.test"} {
		all.Go(func() {
			for range 100 {
				if err := bs.Set(politeness.Brake{Host: host, Stop: true}); err != nil {
					t.Error(err)
				}
				if bs.CheckStopped(host, noon).Action == decorum.Proceed {
					t.Errorf("%s is not stopped", host)
				}
				bs.Remove(host)
				bs.NotifyOnChange(func() {})()
			}
		})
	}
	all.Wait()
	if n := len(bs.All()); n != 0 {
		t.Errorf("%d brakes are left", n)
	}
}

// BenchmarkBrakesFor measures what a visit pays while brakes of other hosts are in force.
func BenchmarkBrakesFor(b *testing.B) {
	var bs politeness.Brakes
	if err := bs.Set(politeness.Brake{Host: "other.test", Stop: true}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, ok := bs.ForHost("www.example.com", noon); ok {
			b.Fatal("braked")
		}
	}
}
