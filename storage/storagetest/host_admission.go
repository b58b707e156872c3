package storagetest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/decorum-crawler/decorum/storage"
)

// newHostCandidate returns a host of a domain.
func newHostCandidate(host, domain string) storage.HostToAdmit {
	return storage.HostToAdmit{Host: host, Domain: domain}
}

// wantHostAdmission admits hosts of a domain, and checks the results.
func (f *fixture) wantHostAdmission(l storage.HostCountLimits, domain string, hosts []string,
	want ...storage.HostLimitResult) {
	f.Helper()
	var offered []storage.HostToAdmit
	for _, h := range hosts {
		offered = append(offered, newHostCandidate(h, domain))
	}
	got, err := f.store.AdmitHostsWithinLimits(f.Context(), offered, l)
	f.must(err)
	if !slices.Equal(got, want) {
		f.Fatalf("AdmitHostsWithinLimits(%v of %s) with %+v: %d, want %d", hosts, domain, l, got, want)
	}
}

// wantAdmittedHostTotals checks the totals for a host.
func (f *fixture) wantAdmittedHostTotals(host, domain string, want storage.AdmittedHostTotals) {
	f.Helper()
	got, err := f.store.AdmittedHostTotalsFor(f.Context(), newHostCandidate(host, domain))
	f.must(err)
	if got != want {
		f.Fatalf("AdmittedHostTotalsFor(%s of %s): %+v, want %+v", host, domain, got, want)
	}
}

var hostCounterTests = []testCase{
	{"a host is counted once", func(f *fixture) {
		f.wantHostAdmission(storage.HostCountLimits{}, "a.example",
			[]string{"1.a.example", "1.a.example", "2.a.example"},
			storage.HostAdmitted, storage.HostAlreadyCounted, storage.HostAdmitted)
		f.wantHostAdmission(storage.HostCountLimits{}, "b.example", []string{"b.example"}, storage.HostAdmitted)
		f.wantAdmittedHostTotals("1.a.example", "a.example",
			storage.AdmittedHostTotals{Hosts: 3, DomainHosts: 2, IncludesHost: true})
		f.wantAdmittedHostTotals("3.a.example", "a.example", storage.AdmittedHostTotals{Hosts: 3, DomainHosts: 2})
		f.wantAdmittedHostTotals("c.example", "c.example", storage.AdmittedHostTotals{Hosts: 3})
	}},
	{"a domain has at most MaxHostsPerDomain hosts", func(f *fixture) {
		l := storage.HostCountLimits{MaxHostsPerDomain: 2}
		f.wantHostAdmission(l, "a.example", []string{"1.a.example", "2.a.example", "3.a.example", "2.a.example"},
			storage.HostAdmitted, storage.HostAdmitted, storage.DomainLimitReached, storage.HostAlreadyCounted)
		f.wantHostAdmission(l, "b.example", []string{"b.example"}, storage.HostAdmitted)
		f.wantAdmittedHostTotals("3.a.example", "a.example", storage.AdmittedHostTotals{Hosts: 3, DomainHosts: 2})
	}},
	{"a crawl has at most MaxHosts hosts", func(f *fixture) {
		l := storage.HostCountLimits{MaxHosts: 2}
		f.wantHostAdmission(l, "a.example", []string{"a.example"}, storage.HostAdmitted)
		f.wantHostAdmission(l, "b.example", []string{"b.example"}, storage.HostAdmitted)
		f.wantHostAdmission(l, "c.example", []string{"c.example"}, storage.HostLimitReached)
		f.wantHostAdmission(l, "b.example", []string{"b.example"}, storage.HostAlreadyCounted)
	}},
	{"a raised limit admits more hosts, a lowered one keeps those that were admitted", func(f *fixture) {
		f.wantHostAdmission(storage.HostCountLimits{MaxHostsPerDomain: 1}, "a.example",
			[]string{"1.a.example", "2.a.example"},
			storage.HostAdmitted, storage.DomainLimitReached)
		f.wantHostAdmission(storage.HostCountLimits{MaxHostsPerDomain: 2}, "a.example",
			[]string{"2.a.example"}, storage.HostAdmitted)
		f.wantHostAdmission(storage.HostCountLimits{MaxHostsPerDomain: 1, MaxHosts: 1}, "a.example",
			[]string{"1.a.example", "2.a.example", "3.a.example"},
			storage.HostAlreadyCounted, storage.HostAlreadyCounted, storage.DomainLimitReached)
	}},
	{"RefuseNewHosts admits and counts no new host", func(f *fixture) {
		f.wantHostAdmission(storage.HostCountLimits{}, "a.example", []string{"1.a.example"}, storage.HostAdmitted)
		f.wantHostAdmission(storage.HostCountLimits{RefuseNewHosts: true}, "a.example",
			[]string{"1.a.example", "2.a.example"},
			storage.HostAlreadyCounted, storage.NewHostsRefused)
		f.wantHostAdmission(storage.HostCountLimits{}, "a.example", []string{"2.a.example"}, storage.HostAdmitted)
	}},
	{"IgnoreLimits admits and counts a host beyond the limits", func(f *fixture) {
		h := newHostCandidate("seed.a.example", "a.example")
		h.IgnoreLimits = true
		l := storage.HostCountLimits{MaxHosts: 1, MaxHostsPerDomain: 1, RefuseNewHosts: true}
		for _, want := range []storage.HostLimitResult{storage.HostAdmitted, storage.HostAlreadyCounted} {
			got, err := f.store.AdmitHostsWithinLimits(f.Context(), []storage.HostToAdmit{h}, l)
			f.must(err)
			if len(got) != 1 || got[0] != want {
				f.Fatalf("AdmitHostsWithinLimits: %d, want %d", got, want)
			}
		}
		f.wantAdmittedHostTotals("seed.a.example", "a.example",
			storage.AdmittedHostTotals{Hosts: 1, DomainHosts: 1, IncludesHost: true})
	}},
	{"AdmitHostsWithinLimits counts thousands of hosts exactly", func(f *fixture) {
		const n = 2500
		var hosts []storage.HostToAdmit
		for i := range n {
			hosts = append(hosts, newHostCandidate(fmt.Sprintf("h%d.a.example", i), "a.example"))
		}
		for range 2 {
			_, err := f.store.AdmitHostsWithinLimits(f.Context(), hosts,
				storage.HostCountLimits{MaxHostsPerDomain: n - 1})
			f.must(err)
			f.must(f.store.Flush(f.Context()))
		}
		f.wantAdmittedHostTotals("h0.a.example", "a.example",
			storage.AdmittedHostTotals{Hosts: n - 1, DomainHosts: n - 1, IncludesHost: true})
		f.wantAdmittedHostTotals(fmt.Sprintf("h%d.a.example", n-1), "a.example",
			storage.AdmittedHostTotals{Hosts: n - 1, DomainHosts: n - 1})
	}},
	{"AdmitHostsWithinLimits obeys the limits in concurrent calls", func(f *fixture) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for k := range 20 {
					h := newHostCandidate(fmt.Sprintf("h%d-%d.a.example", i, k), "a.example")
					if _, err := f.store.AdmitHostsWithinLimits(f.Context(), []storage.HostToAdmit{h},
						storage.HostCountLimits{MaxHostsPerDomain: 50}); err != nil {
						f.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		f.wantAdmittedHostTotals("x.a.example", "a.example", storage.AdmittedHostTotals{Hosts: 50, DomainHosts: 50})
	}},
	{"a host without a name or domain, or with a zero byte, is refused", func(f *fixture) {
		for _, h := range []storage.HostToAdmit{{Domain: "a.example"}, {Host: "a.example"},
			{Host: "a\x00b", Domain: "b"}} {
			if _, err := f.store.AdmitHostsWithinLimits(f.Context(), []storage.HostToAdmit{h},
				storage.HostCountLimits{}); err == nil {
				f.Errorf("AdmitHostsWithinLimits(%+v): no error", h)
			}
		}
	}},
}
