package redis

import (
	"slices"
	"testing"

	"github.com/decorum-crawler/decorum/storage"
)

// Each host is counted once, within the limits of the crawl and of its domain.
func TestAdmittedHostCounter(t *testing.T) {
	t.Parallel()
	h := &hostAdmitter{openTestClient(t)}
	var hosts []storage.HostToAdmit
	for _, name := range []string{"a.x.example", "b.x.example", "c.x.example", "a.x.example",
		"y.example", "z.example"} {
		domain := name[max(0, len(name)-len("x.example")):]
		hosts = append(hosts, storage.HostToAdmit{Host: name, Domain: domain})
	}
	got := must1(h.AdmitHostsWithinLimits(t.Context(), hosts,
		storage.HostCountLimits{MaxHosts: 3, MaxHostsPerDomain: 2}))
	want := []storage.HostLimitResult{storage.HostAdmitted, storage.HostAdmitted, storage.DomainLimitReached,
		storage.HostAlreadyCounted, storage.HostAdmitted, storage.HostLimitReached}
	if !slices.Equal(got, want) {
		t.Errorf("hosts are admitted as %v, want %v", got, want)
	}
	for i, want := range map[int]storage.AdmittedHostTotals{
		0: {Hosts: 3, DomainHosts: 2, IncludesHost: true}, 2: {Hosts: 3, DomainHosts: 2}, 5: {Hosts: 3},
	} {
		if got := must1(h.AdmittedHostTotalsFor(t.Context(), hosts[i])); got != want {
			t.Errorf("%v: %+v, want %+v", hosts[i], got, want)
		}
	}
}
