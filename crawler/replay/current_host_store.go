package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// errNothingDue says that a host has nothing that may be asked for now.
var errNothingDue = errors.New("nothing may be asked for")

// A currentHostStore keeps the state of a replay in memory, and hands out the URLs of one host
// at a time: whose turn it is, the ledger says.
type currentHostStore struct {
	*memory.Store
	currentHost string // the host whose URLs Lease hands out
	// awaitsReferrer reports whether an entry is left for another page to be found on.
	awaitsReferrer func(*storage.Entry) bool
}

// newCurrentHostStore returns an empty currentHostStore.
func newCurrentHostStore(awaitsReferrer func(*storage.Entry) bool) *currentHostStore {
	return &currentHostStore{Store: memory.New(memory.Config{MaxURLs: math.MaxInt}), awaitsReferrer: awaitsReferrer}
}

// Add implements storage.Store.
func (s *currentHostStore) Add(ctx context.Context, entries []storage.Entry, maxPerOrigin int) ([]storage.AddOutcome, error) {
	results := make([]storage.AddOutcome, len(entries))
	for i, e := range entries {
		if s.awaitsReferrer(&e) {
			results[i] = storage.Duplicate
			continue
		}
		added, err := s.Store.Add(ctx, []storage.Entry{e}, maxPerOrigin)
		if err != nil {
			return nil, err
		}
		results[i] = added[0]
	}
	return results, nil
}

// forever is longer than any crawl.
const forever = 100 * 365 * 24 * time.Hour

// Lease hands out a URL of the host whose turn it is. If there is none, it returns an
// error that says when there will be.
func (s *currentHostStore) Lease(ctx context.Context, now time.Time, _ time.Duration, maxLeases int) ([]storage.Lease, storage.Wait, error) {
	if maxLeases == 0 {
		return nil, storage.Wait{}, errNothingDue
	}
	leases, due, err := s.Store.LeaseFromHost(ctx, s.currentHost, now, forever)
	for i := range leases {
		leases[i].Expires = time.Now().Add(forever) // by the clock of the machine
	}
	switch {
	case err != nil || len(leases) > 0:
		return leases, storage.Wait{}, err
	case due.IsZero():
		return nil, storage.Wait{}, fmt.Errorf("%w: nothing is queued, or a visit to the host goes on", errNothingDue)
	}
	return nil, storage.Wait{}, fmt.Errorf("%w for another %v", errNothingDue, due.Sub(now))
}

// AdmitHostsWithinLimits implements storage.Store. It admits all hosts: which of them the
// recorded crawl admitted, its ledger says by their visits.
func (s *currentHostStore) AdmitHostsWithinLimits(
	_ context.Context, hosts []storage.HostToAdmit, _ storage.HostCountLimits,
) ([]storage.HostLimitResult, error) {
	return slices.Repeat([]storage.HostLimitResult{storage.HostAlreadyCounted}, len(hosts)), nil
}

// AdmittedHostTotalsFor implements storage.Store.
func (s *currentHostStore) AdmittedHostTotalsFor(context.Context, storage.HostToAdmit) (storage.AdmittedHostTotals, error) {
	return storage.AdmittedHostTotals{IncludesHost: true}, nil
}

// Renew implements storage.Store: leases do not run out.
func (s *currentHostStore) Renew(context.Context, storage.Lease, time.Time, time.Duration) error {
	return nil
}
