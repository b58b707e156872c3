package storagetest

import (
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/storage"
)

// newPOSTEntry returns an entry with a POST request, as of a form.
func newPOSTEntry(s, body string) storage.Entry {
	e := linkEntry(s)
	e.Request = &storage.NonGETRequest{Method: "POST", Body: []byte(body)}
	return e
}

var requestTests = []testCase{
	{"different requests to a URL are queued, equal ones once", func(f *fixture) {
		put := newPOSTEntry("https://a.example/", "x=1")
		put.Request.Method = "PUT"
		f.mustAddExactly(4, linkEntry("https://a.example/"), newPOSTEntry("https://a.example/", "x=1"),
			newPOSTEntry("https://a.example/", "x=2"), put)
		f.mustAddExactly(0, linkEntry("https://a.example/"), newPOSTEntry("https://a.example/", "x=1"),
			newPOSTEntry("https://a.example/", "x=2"), put)
		if c := f.mustGetCounts(); c.SeenURLs != 4 || c.QueuedURLs != 4 {
			f.Errorf("counts %+v, want 4 seen and queued", c)
		}
		f.mustAddExactly(1, newPOSTEntry("https://b.example/", "x=1"))
	}},
	{"a lease has the request", func(f *fixture) {
		want := newPOSTEntry("https://a.example/", strings.Repeat("x", 70_000))
		f.mustAddExactly(1, want)
		if diff := cmp.Diff(want, f.mustLeaseURL(at(0), "https://a.example/").Entry, entryCmpOptions); diff != "" {
			f.Errorf("entry (-added +leased):\n%s", diff)
		}
	}},
	{"bad requests are refused", func(f *fixture) {
		for name, e := range map[string]storage.Entry{
			"no method": {URL: mustURL("https://a.example/"), Request: &storage.NonGETRequest{}},
			"GET":       {URL: mustURL("https://a.example/"), Request: &storage.NonGETRequest{Method: "GET"}},
			"ftp":       newPOSTEntry("ftp://a.example/", "x"),
			"too long":  newPOSTEntry("https://a.example/", strings.Repeat("x", storage.MaxBodyBytes+1)),
			"prerequisite": {URL: mustURL("https://a.example/"), Source: storage.SourcePrerequisite,
				Request: &storage.NonGETRequest{Method: "POST"}},
			"sent": {URL: mustURL("https://a.example/"), Sent: true},
		} {
			if _, err := f.store.Add(f.Context(), []storage.Entry{e}, 0); err == nil {
				f.Errorf("%s: Add returned no error", name)
			}
		}
	}},
	{"MarkSent stays, however the lease ends", func(f *fixture) {
		f.mustAddExactly(1, newPOSTEntry("https://a.example/", "x=1"))
		for i, outcome := range []storage.AckOutcome{storage.Requeue, storage.RetryAt, storage.Park} {
			l := f.mustLeaseURL(at(0), "https://a.example/")
			if l.Sent != (i > 0) {
				f.Fatalf("lease %d: sent %t, want %t", i, l.Sent, i > 0)
			}
			f.must(f.store.MarkSent(f.Context(), l, true))
			f.mustAck(storage.Ack{Lease: storage.Lease{Entry: l.Entry, Token: l.Token},
				Outcome: outcome, NotBefore: at(0)})
		}
		_, err := f.store.UnparkMatchingURLs(f.Context(), mustOrigin("https://a.example"), func(e storage.Entry) bool {
			return e.Sent
		})
		f.must(err)
		f.mustLeaseURL(at(0), "https://a.example/") // and expires
		if l := f.mustLeaseURL(at(100), "https://a.example/"); !l.Sent {
			f.Error("the mark was lost")
		}
	}},
	{"MarkSent with false clears the mark", func(f *fixture) {
		f.mustAddExactly(1, newPOSTEntry("https://a.example/", "x=1"))
		l := f.mustLeaseURL(at(0), "https://a.example/")
		f.must(f.store.MarkSent(f.Context(), l, true))
		f.must(f.store.MarkSent(f.Context(), l, false))
		f.mustAck(storage.Ack{Lease: l, Outcome: storage.Requeue})
		if l := f.mustLeaseURL(at(0), "https://a.example/"); l.Sent {
			f.Error("the mark is still there")
		}
	}},
	{"MarkSent refuses a lease that has ended", func(f *fixture) {
		f.mustAddExactly(1, newPOSTEntry("https://a.example/", "x=1"))
		old := f.mustLeaseURL(at(0), "https://a.example/")
		l := f.mustLeaseURL(at(60), "https://a.example/")
		f.wantStale(f.store.MarkSent(f.Context(), old, true))
		f.mustAck(storage.Ack{Lease: l, Outcome: storage.Requeue})
		f.wantStale(f.store.MarkSent(f.Context(), l, true))
		if l := f.mustLeaseURL(at(60), "https://a.example/"); l.Sent {
			f.Error("the URL is marked as sent")
		}
	}},
	{"RescheduleByLastmod skips requests other than GET", func(f *fixture) {
		f.mustAddExactly(1, newPOSTEntry("https://a.example/", "x=1"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/"),
			Outcome: storage.RevisitAt, NotBefore: at(100)})
		n, err := f.store.RescheduleByLastmod(f.Context(), at(1),
			[]storage.SitemapLastmod{{URL: mustURL("https://a.example/"), Modified: at(1)}})
		f.must(err)
		if n != 0 {
			f.Errorf("%d were rescheduled", n)
		}
		f.mustLeaseURL(at(100), "https://a.example/")
	}},
	{"long requests are leased in their order", func(f *fixture) {
		const n = 40
		for i := range n {
			f.mustAddExactly(1, newPOSTEntry("https://a.example/", strings.Repeat(string(rune('A'+i)), 50_000)))
		}
		for i := range n {
			l := f.mustLeaseURL(at(0), "https://a.example/")
			if l.Request.Body[0] != byte('A'+i) {
				f.Fatalf("lease %d has body %q", i, l.Request.Body[0])
			}
			f.ackVisit(l, time.Time{})
		}
		f.wantNoLease(at(0))
	}},
}
