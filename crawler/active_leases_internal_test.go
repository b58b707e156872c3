package crawler

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

// checkEnded fails the test unless ctx was cancelled with want; nil means that ctx is not done.
func checkEnded(t *testing.T, what string, ctx context.Context, want error) {
	t.Helper()
	if got := context.Cause(ctx); got != want {
		t.Errorf("%s: ended by %v, want %v", what, got, want)
	}
}

// TestLeaseThatRunsOutEndsItsVisit: the context of a visit is done exactly when its lease expires,
// and the context of another lease is not.
func TestLeaseThatRunsOutEndsItsVisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var active activeLeases
		short := storage.Lease{Token: 1, Expires: time.Now().Add(time.Minute)}
		long := storage.Lease{Token: 2, Expires: time.Now().Add(time.Hour)}
		shortCtx, longCtx := active.addLease(t.Context(), short), active.addLease(t.Context(), long)
		time.Sleep(time.Minute - time.Nanosecond)
		synctest.Wait()
		checkEnded(t, "a moment before", shortCtx, nil)
		if !active.isUnexpired(short) {
			t.Error("it counts as run out a moment before")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		checkEnded(t, "the lease that ran out", shortCtx, errLeaseExpired)
		checkEnded(t, "the other", longCtx, nil)
		if active.isUnexpired(short) || !active.isUnexpired(long) {
			t.Error("the wrong lease counts as run out")
		}
		active.removeLease(short)
		active.removeLease(long)
		if n := len(active.all()); n != 0 || longCtx.Err() == nil {
			t.Errorf("%d active leases after both were released; context %v", n, longCtx.Err())
		}
		if active.isUnexpired(long) {
			t.Error("a released lease counts as active")
		}
	})
}

// TestRenewedLeaseKeepsItsVisit: a visit lasts as long as its renewed lease, and until expiry if
// the lease cannot be renewed; if another process has the lease, the visit ends at once.
func TestRenewedLeaseKeepsItsVisit(t *testing.T) {
	const ttl = time.Minute
	lost := errors.New("the store cannot be reached")
	for name, tt := range map[string]struct {
		renewErr error
		lasts    time.Duration
	}{"renewed": {nil, ttl/2 + ttl}, "not renewed": {lost, ttl}, "stale": {storage.ErrStaleLease, ttl / 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartsFixture(t)
				f := frontier.New(renewingStore{p.store, tt.renewErr}, frontier.Config{LeaseTTL: ttl})
				var active activeLeases
				begin, l := time.Now(), p.leaseURL(t, "http://a.test/")
				ctx := active.addLease(t.Context(), l)
				defer active.removeLease(l)
				time.Sleep(ttl / 2)
				active.renewLease(t.Context(), f, active.all()[0])
				<-ctx.Done()
				checkEnded(t, "the visit", ctx, errLeaseExpired)
				if lasted := time.Since(begin); lasted != tt.lasts {
					t.Errorf("it lasted %v, want %v", lasted, tt.lasts)
				}
			})
		})
	}
}

// A renewingStore is a Store whose Renew returns err.
type renewingStore struct {
	storage.Store
	err error
}

func (s renewingStore) Renew(ctx context.Context, l storage.Lease, now time.Time, ttl time.Duration) error {
	if s.err != nil {
		return s.err
	}
	return s.Store.Renew(ctx, l, now, ttl)
}

// TestRequestsToAHostAreCanceled: requests to the host are cancelled with the given cause. Their
// visits continue, as do requests to other hosts and visits without a request.
func TestRequestsToAHostAreCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, reason := newPartsFixture(t), errors.New("it is stopped")
		var active activeLeases
		visits, requests, ends := map[string]context.Context{}, map[string]context.Context{}, map[string]func(){}
		for i, name := range []string{"stopped.test", "other.test", "over.test", "none.test"} {
			u := mustParseURL(t, "http://"+name+"/")
			l := storage.Lease{Entry: storage.Entry{URL: u}, Token: uint64(i + 1), Expires: time.Now().Add(time.Hour)}
			visits[name] = active.addLease(t.Context(), l)
			defer active.removeLease(l)
			if name != "none.test" {
				requests[name], ends[name] = active.beginRequest(visits[name], l,
					Ticket{&ticketData{clearance: p.check(t, u)}})
			}
		}
		ends["over.test"]()
		checkEnded(t, "a request that is over", requests["over.test"], context.Canceled)
		asked := map[string]bool{}
		active.cancelRequestsToHosts(func(host string) error {
			asked[host] = true
			if host == "other.test" {
				return nil
			}
			return reason
		})
		if len(asked) != 2 || !asked["stopped.test"] || !asked["other.test"] {
			t.Errorf("there were requests to %v", asked)
		}
		checkEnded(t, "the request to the host", requests["stopped.test"], reason)
		checkEnded(t, "the request to another", requests["other.test"], nil)
		checkEnded(t, "a request that was over", requests["over.test"], context.Canceled)
		for name, ctx := range visits {
			checkEnded(t, "the visit to "+name, ctx, nil)
		}
		ends["stopped.test"]()
		ends["other.test"]()
	})
}
