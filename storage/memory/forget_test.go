package memory_test

import (
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// TestForgetURLs: ForgetOriginURLs keeps the leased URLs of an origin, the clock of its host, its hold
// and its notes, and everything of other origins.
func TestForgetURLs(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	m := memory.New(memory.Config{})
	parse := func(text string) decorum.URL {
		u, err := decorum.ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	leaseFromA := func(now time.Time) storage.Lease {
		t.Helper()
		leases, _, err := m.LeaseFromHost(ctx, "a.test", now, time.Hour)
		must(err)
		if len(leases) == 0 {
			return storage.Lease{}
		}
		return leases[0]
	}
	a, b := parse("http://a.test/").Origin(), parse("http://b.test/").Origin()
	entries := []storage.Entry{{URL: parse("http://b.test/")}}
	for _, path := range []string{"parked", "resting", "done", "later", "leased", "queued"} {
		entries = append(entries, storage.Entry{URL: parse("http://a.test/" + path)})
	}
	hop := storage.Entry{URL: parse("http://a.test/hop"), RobotsFor: b, PriorityClass: storage.ClassLate,
		Source: storage.SourcePrerequisite}
	add := func(entries ...storage.Entry) int {
		t.Helper()
		results, err := m.Add(ctx, entries, 0)
		must(err)
		return storage.CountAdded(results)
	}

	add(entries...)
	for _, ack := range []storage.Ack{
		{Outcome: storage.Park}, {Outcome: storage.RevisitAt, NotBefore: now.Add(time.Hour)}, {Outcome: storage.Done},
		{Outcome: storage.RetryAt, NotBefore: now.Add(time.Hour)},
	} {
		ack.Lease = leaseFromA(now)
		must(m.Ack(ctx, []storage.Ack{ack}))
	}
	leased := leaseFromA(now)
	add(hop)
	must(m.SetNote(ctx, a, "note", []byte("kept")))
	must(m.ForgetOriginURLs(ctx, a))
	must(m.ForgetOriginURLs(ctx, parse("http://unknown.test/").Origin()))
	counts, err := m.Counts(ctx)
	if want := (storage.Counts{QueuedHosts: 2, DueHosts: 1, QueuedURLs: 1, LeasedURLs: 1, SeenURLs: 2}); err != nil ||
		counts != want {
		t.Errorf("counts %+v, %v; want %+v", counts, err, want)
	}

	due := now.Add(time.Minute)
	must(m.Ack(ctx, []storage.Ack{{Lease: leased, Outcome: storage.Requeue, HostState: &storage.HostState{Due: due}}}))
	if l := leaseFromA(now); !l.URL.IsZero() {
		t.Errorf("%v is leased before its host is due", l.URL)
	}
	if l := leaseFromA(due); l.URL != leased.URL {
		t.Errorf("%v is leased, want the URL that was leased before", l.URL)
	} else {
		must(m.Ack(ctx, []storage.Ack{{Lease: l, Outcome: storage.Requeue}}))
	}
	must(m.ForgetOriginURLs(ctx, a))
	if n := add(entries...); n != len(entries)-1 {
		t.Errorf("%d URLs are new, want all but the leased one", n)
	}
	info, _, err := m.Origin(ctx, a)
	if err != nil || !info.HostState.Due.Equal(due) || info.QueuedURLs != 6 || info.SeenURLs != 6 ||
		info.ParkedURLs+info.AwaitingRevisit != 0 {
		t.Errorf("origin %+v, %v", info, err)
	}
	if note, err := m.ReadNote(ctx, a, "note"); err != nil || string(note) != "kept" {
		t.Errorf("the note is %q, %v", note, err)
	}
}
