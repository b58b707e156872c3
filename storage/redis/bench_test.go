package redis

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
	"github.com/decorum-crawler/decorum/storage/storagetest"
)

// BenchmarkStore measures calls with 100 URLs each, one after another, on clusters of one and three
// masters, and of three masters with replicas that confirm.
func BenchmarkStore(b *testing.B) {
	for _, tt := range []struct {
		masters, replicas int
		durability        Durability
	}{{1, 0, DurabilityNone}, {3, 0, DurabilityNone}, {3, 1, DurabilityReplica}} {
		b.Run(fmt.Sprintf("%d+%d", tt.masters, tt.masters*tt.replicas), func(b *testing.B) {
			c := redistest.StartClusterForTest(b, tt.masters, tt.replicas)
			storagetest.Bench(b, func(b testing.TB) storage.Store {
				return openCallerClock(b, c, newPrefix(), Options{Durability: tt.durability})
			})
		})
	}
}

// BenchmarkProcessorTime measures the processor time of this process and of the servers for adding,
// leasing and acking a URL.
func BenchmarkProcessorTime(b *testing.B) {
	c := redistest.StartClusterForTest(b, 3, 0)
	s := openCallerClock(b, c, newPrefix(), Options{Durability: DurabilityNone})
	defer s.Close()
	processBefore, serversBefore := processCPUTime(b), serversCPUTime(b, c)
	urls := 0
	for b.Loop() {
		now := time.Unix(int64(4e9+urls), 0)
		all := pageEntries(100, 20)
		if _, err := s.Add(b.Context(), uniqueEntries(all, urls), 0); err != nil {
			b.Fatal(err)
		}
		// Lease and ack until all of these URLs are done.
		for remaining := len(all); remaining > 0; {
			leases, _, err := s.Lease(b.Context(), now, time.Hour, 100)
			if err != nil || len(leases) == 0 {
				b.Fatal(len(leases), err)
			}
			acks := make([]storage.Ack, len(leases))
			for i, l := range leases {
				acks[i] = storage.Ack{Lease: l, HostState: &storage.HostState{Due: now}}
			}
			if err := s.Ack(b.Context(), acks); err != nil {
				b.Fatal(err)
			}
			remaining -= len(leases)
		}
		urls += len(all)
	}
	b.ReportMetric(float64((processCPUTime(b)-processBefore).Microseconds())/float64(urls), "us-here/url")
	b.ReportMetric(float64((serversCPUTime(b, c)-serversBefore).Microseconds())/float64(urls), "us-servers/url")
}

// BenchmarkMemory measures how many bytes of the servers' memory a queued URL takes, with few and with
// many URLs for each host.
func BenchmarkMemory(b *testing.B) {
	for _, hosts := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("%d hosts", hosts), func(b *testing.B) {
			c := redistest.StartClusterForTest(b, 1, 0)
			s := openCallerClock(b, c, newPrefix(), Options{Durability: DurabilityNone})
			defer s.Close()
			const urls = 200_000
			before := sumServerInfo(b, c, "memory", "used_memory")
			for b.Loop() {
				for n := 0; n < urls; n += 1000 {
					entries := make([]storage.Entry, 1000)
					for i := range entries {
						k := n + i
						entries[i] = pageEntry(
							fmt.Sprintf("https://host%d.example/section/of/a/site/page-number-%d.html", k%hosts, k))
					}
					if _, err := s.Add(b.Context(), entries, 0); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric((sumServerInfo(b, c, "memory", "used_memory")-before)/urls, "B/url")
		})
	}
}

// uniqueEntries replaces the entries by ones whose URLs end in n, and returns them.
func uniqueEntries(entries []storage.Entry, n int) []storage.Entry {
	for i, e := range entries {
		entries[i] = pageEntry(e.URL.String() + "/" + strconv.Itoa(n))
	}
	return entries
}

// processCPUTime returns the processor time that this process has used.
func processCPUTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serversCPUTime returns the processor time that all servers have used.
func serversCPUTime(b *testing.B, c *redistest.Cluster) time.Duration {
	seconds := sumServerInfo(b, c, "cpu", "used_cpu_user") + sumServerInfo(b, c, "cpu", "used_cpu_sys")
	return time.Duration(seconds * float64(time.Second))
}

// sumServerInfo returns the sum of a number that INFO gives for each server.
func sumServerInfo(b *testing.B, c *redistest.Cluster, section, field string) (sum float64) {
	for _, n := range c.Nodes() {
		sum += serverNumber(b, n, section, field)
	}
	return sum
}

// BenchmarkScripts measures the servers' processor time for a call of each script, for one host or
// page at a time. bench/simulate uses these times.
func BenchmarkScripts(b *testing.B) {
	c := redistest.StartClusterForTest(b, 1, 0)
	s := openCallerClock(b, c, newPrefix(), Options{Durability: DurabilityNone})
	defer s.Close()
	sameHost := make([]storage.Entry, 40)
	for i := range sameHost {
		sameHost[i] = pageEntry(fmt.Sprintf("https://own.example/%d", i))
	}
	n := 0
	now := func() time.Time { return time.Unix(int64(4e9+n), 0) }
	var leases []storage.Lease
	for _, tt := range []struct {
		name string
		call func() error
	}{
		{"add", func() error { // one new URL
			_, err := s.Add(b.Context(), []storage.Entry{pageEntry(fmt.Sprintf("https://h%d.example/%d", n%1000, n))},
				0)
			return err
		}},
		{"add40", func() error { // 40 URLs of one host, duplicates except in the first call
			_, err := s.Add(b.Context(), sameHost, 0)
			return err
		}},
		{"ask", func() error {
			return s.urlLeaser.summaries.refresh(b.Context(), s.client.Partitions()[n%64:n%64+1])
		}},
		{"lease", func() error {
			l, _, err := s.Lease(b.Context(), now(), time.Hour, 1)
			leases = append(leases, l...)
			return err
		}},
		{"ack", func() error {
			l := leases[0]
			leases = leases[1:]
			return s.Ack(b.Context(), []storage.Ack{{Lease: l,
				HostState: &storage.HostState{Due: now(), LostVisitDelay: time.Second}}})
		}},
		{"note", func() error {
			o := sameHost[0].URL.Origin()
			return s.SetNote(b.Context(), o, "robots", []byte(strings.Repeat("x", 1000)))
		}},
	} {
		const calls = 1000
		before := serversCPUTime(b, c)
		for range calls {
			n++
			if err := tt.call(); err != nil {
				b.Fatal(tt.name, err)
			}
		}
		b.ReportMetric(float64((serversCPUTime(b, c)-before).Microseconds())/calls, "us/"+tt.name)
	}
	b.ReportMetric(0, "ns/op") // meaningless: the other metrics count
}
