package forecast_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/forecast"
	"github.com/decorum-crawler/decorum/politeness"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// host returns a host with the given number of pages. Each visit takes a second, and then the host
// waits for rest.
func host(pages int64, rest time.Duration) forecast.HostWorkload {
	return forecast.HostWorkload{
		Due: noon, VisitDuration: time.Second, BytesPerPage: 1000, Origins: []forecast.OriginWorkload{{Pages: pages}},
		PolicyAt: func(time.Time) politeness.Policy {
			return politeness.Policy{Delay: rest, AdaptiveFactor: -1}.WithDefaults()
		},
		RobotsDelayAndNextAllowedTime: func(at time.Time) (time.Duration, time.Time) { return 0, at },
	}
}

// modifyHost returns h after change.
func modifyHost(h forecast.HostWorkload, change func(*forecast.HostWorkload)) forecast.HostWorkload {
	change(&h)
	return h
}

// withWindow sets the visit window of a host.
func withWindow(hours string) func(*forecast.HostWorkload) {
	return func(h *forecast.HostWorkload) {
		w, err := politeness.ParseWindow(hours, "UTC")
		if err != nil {
			panic(err)
		}
		policy := h.PolicyAt
		h.PolicyAt = func(at time.Time) politeness.Policy {
			p := policy(at)
			p.VisitWindow = w
			return p
		}
	}
}

// withAddr sets the IP address of a host.
func withAddr(addr string) func(*forecast.HostWorkload) {
	return func(h *forecast.HostWorkload) { h.Addr = netip.MustParseAddr(addr) }
}

func repeatHost(n int, h forecast.HostWorkload) (hosts []forecast.HostWorkload) {
	for range n {
		hosts = append(hosts, modifyHost(h, func(h *forecast.HostWorkload) {
			h.Origins = append([]forecast.OriginWorkload(nil), h.Origins...)
		}))
	}
	return hosts
}

// simulationTests holds crawls whose results were computed by hand.
var simulationTests = []struct {
	name   string
	crawl  forecast.CrawlLimits
	hosts  []forecast.HostWorkload
	end    forecast.EndReason
	last   time.Duration // from noon to the end of the last visit
	pages  int64
	robots int64
	tdmrep int64
	left   int64
}{
	{name: "nothing", hosts: repeatHost(1, host(0, time.Second))},
	{name: "one host", hosts: repeatHost(1, host(10, 4*time.Second)), last: 46 * time.Second, pages: 10},
	{name: "hosts side by side", crawl: forecast.CrawlLimits{Workers: 3},
		hosts: repeatHost(3, host(10, 4*time.Second)), last: 46 * time.Second, pages: 30},
	{name: "one worker does three hosts one after the other", crawl: forecast.CrawlLimits{Workers: 1},
		hosts: repeatHost(3, host(10, time.Second)), last: 30 * time.Second, pages: 30},
	{name: "a Crawl-delay", hosts: repeatHost(1, modifyHost(host(10, time.Second), func(h *forecast.HostWorkload) {
		h.RobotsDelayAndNextAllowedTime = func(at time.Time) (time.Duration, time.Time) { return 9 * time.Second, at }
	})), last: 91 * time.Second, pages: 10},
	{name: "two at a time", crawl: forecast.CrawlLimits{Workers: 8},
		hosts: repeatHost(1, modifyHost(host(10, 4*time.Second), func(h *forecast.HostWorkload) {
			h.PolicyAt = func(time.Time) politeness.Policy {
				return politeness.Policy{Delay: 4 * time.Second, AdaptiveFactor: -1, Concurrency: 2}.WithDefaults()
			}
		})), last: 21 * time.Second, pages: 10},
	{name: "a slow host rests as long as it takes",
		hosts: repeatHost(1, modifyHost(host(10, time.Second), func(h *forecast.HostWorkload) {
			h.VisitDuration = 5 * time.Second
			h.PolicyAt = func(time.Time) politeness.Policy { return politeness.Policy{}.WithDefaults() }
		})), last: 95 * time.Second, pages: 10},
	{name: "hours", hosts: repeatHost(1, modifyHost(host(3, time.Minute-time.Second), withWindow("13:00-13:02"))),
		last: 25*time.Hour + time.Second, pages: 3},
	{name: "hours that do not meet", end: forecast.NeverDue,
		hosts: repeatHost(1, modifyHost(modifyHost(host(3, time.Second), withWindow("13:00-14:00")),
			func(h *forecast.HostWorkload) {
				h.RobotsDelayAndNextAllowedTime = func(at time.Time) (time.Duration, time.Time) {
					if at.Hour() >= 20 {
						return 0, at
					}
					return 0, at.Truncate(24 * time.Hour).Add(20 * time.Hour)
				}
			})), left: 3},
	{name: "four hosts share an address", crawl: forecast.CrawlLimits{Workers: 9, IPConcurrency: 2},
		hosts: repeatHost(4, modifyHost(host(10, time.Second), withAddr("192.0.2.1"))),
		last:  20 * time.Second, pages: 40},
	{name: "an address rests", crawl: forecast.CrawlLimits{Workers: 9, IPConcurrency: 1, IPDelay: 2 * time.Second},
		hosts: repeatHost(2, modifyHost(host(5, time.Second), withAddr("192.0.2.1"))),
		last:  28 * time.Second, pages: 10},
	{name: "loopback does not", crawl: forecast.CrawlLimits{Workers: 9, IPConcurrency: 1, IPDelay: 2 * time.Second},
		hosts: repeatHost(2, modifyHost(host(5, time.Second), withAddr("127.0.0.1"))),
		last:  9 * time.Second, pages: 10},
	{name: "requests a second", crawl: forecast.CrawlLimits{Workers: 9, RequestsPerSecond: 0.5},
		hosts: repeatHost(5, host(2, time.Second)), last: 19 * time.Second, pages: 10},
	{name: "bytes a second", crawl: forecast.CrawlLimits{Workers: 9, BytesPerSecond: 100},
		hosts: repeatHost(1, host(5, time.Second)), last: 41 * time.Second, pages: 5},
	{name: "pages", crawl: forecast.CrawlLimits{MaxPages: 7}, end: forecast.PageLimit,
		hosts: repeatHost(1, host(10, 4*time.Second)), last: 31 * time.Second, pages: 7, left: 3},
	{name: "bytes", crawl: forecast.CrawlLimits{MaxReceivedBytes: 3500, AlreadyReceivedBytes: 1000},
		end:   forecast.ByteLimit,
		hosts: repeatHost(1, host(10, 4*time.Second)), last: 11 * time.Second, pages: 3, left: 7},
	{name: "time", crawl: forecast.CrawlLimits{MaxTime: 12 * time.Second}, end: forecast.TimeLimit,
		hosts: repeatHost(1, host(10, 4*time.Second)), last: 11 * time.Second, pages: 3, left: 7},
	{name: "robots.txt again, and a page each time",
		hosts: repeatHost(1, modifyHost(host(4, 9*time.Second), func(h *forecast.HostWorkload) {
			h.Origins[0].Robots = forecast.RefetchedControlFile{ExpiresAt: noon.Add(5 * time.Second), TTL: time.Second}
		})), last: 61 * time.Second, pages: 4, robots: 3},
	{name: "robots.txt again, by a redirect",
		hosts: repeatHost(1, modifyHost(host(4, 9*time.Second), func(h *forecast.HostWorkload) {
			h.Origins[0].Robots = forecast.RefetchedControlFile{ExpiresAt: noon.Add(5 * time.Second),
				TTL: time.Second, RequestsPerFetch: 2}
		})), last: 91 * time.Second, pages: 4, robots: 6},
	{name: "origins take turns", hosts: repeatHost(1,
		modifyHost(host(4, 9*time.Second), func(h *forecast.HostWorkload) {
			h.Origins = append(h.Origins,
				forecast.OriginWorkload{Pages: 1,
					Robots: forecast.RefetchedControlFile{ExpiresAt: noon.Add(5 * time.Second), TTL: time.Hour}})
		})), last: 51 * time.Second, pages: 5, robots: 1},
	{name: "tdmrep.json again, after robots.txt, and a page each time",
		hosts: repeatHost(1, modifyHost(host(3, 9*time.Second), func(h *forecast.HostWorkload) {
			h.Origins[0].Robots = forecast.RefetchedControlFile{ExpiresAt: noon.Add(5 * time.Second),
				TTL: 15 * time.Second}
			h.Origins[0].TDMRep = forecast.RefetchedControlFile{ExpiresAt: noon.Add(5 * time.Second), TTL: time.Second}
		})), last: 81 * time.Second, pages: 3, robots: 4, tdmrep: 2},
}

func TestSimulate(t *testing.T) {
	for _, p := range simulationTests {
		t.Run(p.name, func(t *testing.T) {
			p.crawl.Start = noon
			tallies, end := p.crawl.Simulate(p.hosts)
			var all forecast.Result
			last := noon
			for _, h := range tallies {
				all.Pages += h.Pages
				all.RobotsRefetchRequests += h.RobotsRefetchRequests
				all.TDMRepRefetchRequests += h.TDMRepRefetchRequests
				all.PagesLeft += h.PagesLeft
				all.Bytes += h.Bytes
				if h.LastVisitEnd.After(last) {
					last = h.LastVisitEnd
				}
			}
			if end != p.end || last.Sub(noon) != p.last || all.Pages != p.pages ||
				all.RobotsRefetchRequests != p.robots || all.TDMRepRefetchRequests != p.tdmrep ||
				all.PagesLeft != p.left || all.Bytes != 1000*p.pages {
				t.Errorf("end %d, last after %v, %+v; want end %d, last after %v, pages %d, robots %d, tdmrep %d, "+
					"left %d",
					end, last.Sub(noon), all, p.end, p.last, p.pages, p.robots, p.tdmrep, p.left)
			}
		})
	}
}

// A forecast of many hosts at one address takes no longer than one of hosts with separate addresses.
func BenchmarkSharedAddress(b *testing.B) {
	const hosts, pages = 1000, 20
	for b.Loop() {
		forecast.CrawlLimits{Start: noon, Workers: 64,
			IPConcurrency: 2}.Simulate(repeatHost(hosts, modifyHost(host(pages, time.Second), withAddr("192.0.2.1"))))
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/(hosts*pages), "ns/visit")
}
