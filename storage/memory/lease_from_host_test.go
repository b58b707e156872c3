package memory_test

import (
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// TestLeaseFromHost: LeaseFromHost leases a URL of the named host alone, or returns when one is due.
func TestLeaseFromHost(t *testing.T) {
	m := memory.New(memory.Config{})
	parse := func(text string) decorum.URL {
		u, err := decorum.ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	now := time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)
	first, second := parse("https://a.example/1"), parse("https://b.example/2")
	if _, err := m.Add(t.Context(), []storage.Entry{{URL: first}, {URL: second}}, 0); err != nil {
		t.Fatal(err)
	}
	if err := m.Hold(t.Context(), first.Origin(), now.Add(time.Hour), false); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, host string
		now        time.Time
		want       decorum.URL // zero: no lease
		wantDue    time.Time
	}{
		{"another host is due", "b.example", now, second, time.Time{}},
		{"its URL is leased", "b.example", now, decorum.URL{}, time.Time{}},
		{"the origin is held", "a.example", now, decorum.URL{}, now.Add(time.Hour)},
		{"the hold has ended", "a.example", now.Add(time.Hour), first, time.Time{}},
		{"an unknown host", "c.example", now, decorum.URL{}, time.Time{}},
	} {
		leases, due, err := m.LeaseFromHost(t.Context(), tt.host, tt.now, 10*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		var got decorum.URL
		if len(leases) > 0 {
			got = leases[0].URL
		}
		if got != tt.want || got.IsZero() && !due.Equal(tt.wantDue) {
			t.Errorf("%s: got %v, due %v; want %v, due %v", tt.name, got, due, tt.want, tt.wantDue)
		}
	}
}
