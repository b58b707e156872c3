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

// errNothingDue means that a host has no URL that may be requested now.
var errNothingDue = errors.New("no request is due")

// A currentHostStore keeps the state of a replay in memory. It leases URLs of one host at a time, the
// host of the ledger's next record.
type currentHostStore struct {
	*memory.Store
	currentHost string // the host whose URLs Lease returns
	// awaitsReferrer reports whether Add must leave an entry to the page on which the ledger found it.
	awaitsReferrer func(*storage.Entry) bool
}

// newCurrentHostStore returns an empty currentHostStore.
func newCurrentHostStore(awaitsReferrer func(*storage.Entry) bool) *currentHostStore {
	return &currentHostStore{Store: memory.New(memory.Config{MaxURLs: math.MaxInt}), awaitsReferrer: awaitsReferrer}
}

// Add implements storage.Store. It treats an entry that awaits its referrer as a duplicate.
func (s *currentHostStore) Add(ctx context.Context, entries []storage.Entry,
	maxPerOrigin int) ([]storage.AddOutcome, error) {
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

// Lease implements storage.Store. It leases URLs of currentHost. If none is due, it returns
// errNothingDue, which says for how long.
func (s *currentHostStore) Lease(
	ctx context.Context, now time.Time, _ time.Duration, maxLeases int,
) ([]storage.Lease, storage.Wait, error) {
	if maxLeases == 0 {
		return nil, storage.Wait{}, errNothingDue
	}
	leases, due, err := s.Store.LeaseFromHost(ctx, s.currentHost, now, forever)
	for i := range leases {
		leases[i].Expires = time.Now().Add(forever) // by the machine's clock, not the ledger's
	}
	switch {
	case err != nil || len(leases) > 0:
		return leases, storage.Wait{}, err
	case due.IsZero():
		return nil, storage.Wait{}, fmt.Errorf("%w: the host has no queued URL, or a visit to it is in flight",
			errNothingDue)
	}
	return nil, storage.Wait{}, fmt.Errorf("%w for another %v", errNothingDue, due.Sub(now))
}

// AdmitHostsWithinLimits implements storage.Store. It admits all hosts, because the visits in the
// ledger show which hosts the recorded crawl admitted.
func (s *currentHostStore) AdmitHostsWithinLimits(
	_ context.Context, hosts []storage.HostToAdmit, _ storage.HostCountLimits,
) ([]storage.HostLimitResult, error) {
	return slices.Repeat([]storage.HostLimitResult{storage.HostAlreadyCounted}, len(hosts)), nil
}

// AdmittedHostTotalsFor implements storage.Store. It says that the host is admitted already.
func (s *currentHostStore) AdmittedHostTotalsFor(context.Context,
	storage.HostToAdmit) (storage.AdmittedHostTotals, error) {
	return storage.AdmittedHostTotals{IncludesHost: true}, nil
}

// Renew implements storage.Store. It does nothing, because leases do not expire.
func (s *currentHostStore) Renew(context.Context, storage.Lease, time.Time, time.Duration) error {
	return nil
}
