package crawltest

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"
)

// noon is the time at which the logs of these tests begin.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

const userAgent = "testbot/1.0 (+https://testbot.example/)"

// exchange returns an exchange that was answered with 200. URLs lack their http://.
func exchange(url string, start, end time.Duration, change ...func(*Exchange)) Exchange {
	e := Exchange{Method: "GET", URL: url, UserAgent: userAgent, Start: noon.Add(start),
		End: noon.Add(end), Status: 200}
	if !strings.Contains(url, "://") {
		e.URL = "http://" + url
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

func withStatus(code int) func(*Exchange) { return func(e *Exchange) { e.Status = code } }
func withRetryAfter(d time.Duration) func(*Exchange) {
	return func(e *Exchange) { e.Status, e.RetryAfter = 503, d }
}
func redirectedTo(location string) func(*Exchange) {
	return func(e *Exchange) { e.Status, e.Location = 301, location }
}
func markIncomplete(e *Exchange)             { e.Incomplete = true }
func markOverSocket(e *Exchange)             { e.OverSocket = true }
func markUnended(e *Exchange)                { e.End = time.Time{} }
func markConditional(e *Exchange)            { e.Conditional = true }
func withUserAgent(s string) func(*Exchange) { return func(e *Exchange) { e.UserAgent = s } }
func withPostBody(body string) func(*Exchange) {
	return func(e *Exchange) { e.Method, e.RequestBodySHA256 = "POST", body }
}

// judgeWeb returns the web of the logs in judgeCases.
func judgeWeb() *Web {
	private := func(path string) bool { return strings.HasPrefix(path, "/private") }
	return New(
		Site{Host: "free.example", Robots: StaticRobots(RobotsSpec{Response: Text("User-agent: *\n")})},
		Site{Host: "strict.example", Robots: StaticRobots(RobotsSpec{CrawlDelay: 2 * time.Second,
			IsDisallowed: private})},
		Site{Host: "wide.example", MaxConcurrency: 2},
		Site{Host: "noise.example", Robots: StaticRobots(RobotsSpec{RemoveCleanParams: func(path string) string {
			before, _, _ := strings.Cut(path, "?")
			return before
		}})},
		Site{Host: "moody.example", Robots: func(at time.Time) RobotsSpec {
			if at.Before(noon.Add(time.Hour)) {
				return RobotsSpec{}
			}
			return RobotsSpec{IsDisallowed: private, CrawlDelay: 5 * time.Second}
		}},
	)
}

const (
	second = time.Second
	day    = 24 * time.Hour
)

// judgeCases holds logs, and the violations in each.
var judgeCases = []struct {
	name    string
	options JudgeOptions
	log     []Exchange
	want    map[JudgeRule]int
}{
	{"nothing", JudgeOptions{}, nil, nil},
	{"a right crawl", JudgeOptions{MinDelay: second}, []Exchange{
		exchange("free.example/robots.txt", 0, second), exchange("free.example/", 2*second, 3*second),
		exchange("free.example/a", 4*second, 5*second),
		exchange("strict.example/robots.txt", 0, second), exchange("strict.example/", 3*second, 4*second),
		exchange("strict.example/a", 6*second, 7*second),
	}, nil},

	{"disallowed", JudgeOptions{}, []Exchange{
		exchange("strict.example/robots.txt", 0, second), exchange("strict.example/private/a", 10*second, 11*second),
	}, map[JudgeRule]int{Disallowed: 1}},
	{"disallowed by rules that changed", JudgeOptions{}, []Exchange{
		exchange("moody.example/robots.txt", 0, second), exchange("moody.example/private", 10*second, 11*second),
		exchange("moody.example/private/2", 2*time.Hour, 2*time.Hour+second),
		exchange("moody.example/robots.txt", 3*time.Hour, 3*time.Hour+second),
		exchange("moody.example/private/3", 4*time.Hour, 4*time.Hour+second),
	}, map[JudgeRule]int{Disallowed: 1}},
	{"new rules bind from their end, not from their request", JudgeOptions{}, []Exchange{
		exchange("moody.example/robots.txt", 0, second), exchange("moody.example/a", 2*second, 3*time.Hour),
		exchange("moody.example/robots.txt", 3*time.Hour, 4*time.Hour),
		exchange("moody.example/private", 4*time.Hour+5*second, 4*time.Hour+6*second),
	}, map[JudgeRule]int{Disallowed: 1}},

	{"no robots.txt", JudgeOptions{}, []Exchange{exchange("free.example/", 0, second)},
		map[JudgeRule]int{BeforeRobots: 1}},
	{"robots.txt late", JudgeOptions{}, []Exchange{
		exchange("free.example/", 0, second), exchange("free.example/robots.txt", 2*second, 3*second),
		exchange("free.example/a", 4*second, 5*second),
	}, map[JudgeRule]int{BeforeRobots: 1}},
	{"page while robots.txt is being read", JudgeOptions{}, []Exchange{
		exchange("wide.example/robots.txt", 0, 2*second, withStatus(404)),
		exchange("wide.example/", 2*second-1, 3*second),
	}, map[JudgeRule]int{BeforeRobots: 1}},
	{"robots.txt of another scheme", JudgeOptions{}, []Exchange{
		exchange("http://free.example/robots.txt", 0, second), exchange("https://free.example/", 2*second, 3*second),
	}, map[JudgeRule]int{BeforeRobots: 1}},
	{"robots.txt of another port", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second), exchange("free.example:8080/", 2*second, 3*second),
	}, map[JudgeRule]int{BeforeRobots: 1}},
	{"robots.txt with a query is a page", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt?x", 0, second), exchange("free.example/", 2*second, 3*second),
	}, map[JudgeRule]int{BeforeRobots: 2}},

	{"no answer for robots.txt", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second, withStatus(0), markIncomplete),
		exchange("free.example/", 2*second, 3*second),
	}, map[JudgeRule]int{RobotsUnreachable: 1}},
	{"503 for robots.txt", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second, withStatus(503)), exchange("free.example/", 2*second, 3*second),
	}, map[JudgeRule]int{RobotsUnreachable: 1}},
	{"429 for robots.txt", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second, withStatus(429)), exchange("free.example/", 2*second, 3*second),
	}, map[JudgeRule]int{RobotsUnreachable: 1}},
	{"robots.txt broke off", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second, markIncomplete), exchange("free.example/", 2*second, 3*second),
	}, map[JudgeRule]int{RobotsUnreachable: 1}},
	{"robots.txt cut after 500 KiB", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second, markIncomplete, func(e *Exchange) { e.BodyBytes = 500 << 10 }),
		exchange("free.example/", 2*second, 3*second),
	}, nil},
	{"404 for robots.txt opens everything", JudgeOptions{}, []Exchange{
		exchange("strict.example/robots.txt", 0, second, withStatus(404)),
		exchange("strict.example/private", 2*second, 3*second), exchange("strict.example/a", 3*second, 4*second),
	}, nil},
	{"good rules before an outage do not open", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second), exchange("free.example/robots.txt", day, day+second,
			withStatus(500)), exchange("free.example/", day+2*second, day+3*second),
	}, map[JudgeRule]int{RobotsUnreachable: 1}},
	{"outage of 30 days", JudgeOptions{MaxRobotsAge: -1}, []Exchange{
		exchange("free.example/robots.txt", 0, second, withStatus(500)),
		exchange("free.example/", 30*day, 30*day+second),
	}, map[JudgeRule]int{RobotsUnreachable: 1}},
	{"outage of more than 30 days, no file", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second, withStatus(500)),
		exchange("free.example/robots.txt", 30*day, 30*day+second, withStatus(503)),
		exchange("free.example/", 30*day+2*second, 30*day+3*second),
	}, nil},
	{"outage of more than 30 days, a file before", JudgeOptions{}, []Exchange{
		exchange("strict.example/robots.txt", 0, second),
		exchange("strict.example/robots.txt", day, day+second, withStatus(500)),
		exchange("strict.example/robots.txt", 32*day, 32*day+second, withStatus(503)),
		exchange("strict.example/private", 32*day+9*second, 32*day+10*second),
	}, map[JudgeRule]int{Disallowed: 1}},
	{"outage with an answer in between", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second, withStatus(500)),
		exchange("free.example/robots.txt", 20*day, 20*day+second, withStatus(404)),
		exchange("free.example/robots.txt", 31*day, 31*day+second, withStatus(500)),
		exchange("free.example/", 31*day+2*second, 31*day+3*second),
	}, map[JudgeRule]int{RobotsUnreachable: 1}},

	{"rules of exactly a day", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second), exchange("free.example/", day+second, day+2*second),
	}, nil},
	{"rules older than a day", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second), exchange("free.example/", day+second+1, day+2*second),
	}, map[JudgeRule]int{RobotsStale: 1}},
	{"conditional request for robots.txt", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second), exchange("free.example/robots.txt", 2*second, 3*second,
			markConditional), exchange("free.example/", 4*second, 5*second, markConditional),
	}, map[JudgeRule]int{RobotsConditional: 1}},

	{"redirected robots.txt read", JudgeOptions{MinDelay: second}, []Exchange{
		exchange("strict.example/robots.txt", 0, second, redirectedTo("http://free.example/rules/strict")),
		exchange("free.example/rules/strict", second, 2*second),
		exchange("strict.example/a", 3*second, 4*second),
	}, nil},
	{"redirected robots.txt not followed", JudgeOptions{}, []Exchange{
		exchange("strict.example/robots.txt", 0, second, redirectedTo("/rules")),
		exchange("strict.example/", 3*second, 4*second),
	}, map[JudgeRule]int{BeforeRobots: 1}},
	{"redirected robots.txt unreachable", JudgeOptions{}, []Exchange{
		exchange("strict.example/robots.txt", 0, second, redirectedTo("/rules")),
		exchange("strict.example/rules", second, 2*second, withStatus(500)),
		exchange("strict.example/", 5*second, 6*second),
	}, map[JudgeRule]int{RobotsUnreachable: 1}},
	{"redirected rules bind", JudgeOptions{}, []Exchange{
		exchange("strict.example/robots.txt", 0, second, redirectedTo("/rules")),
		exchange("strict.example/rules", second, 2*second), exchange("strict.example/private", 4*second, 5*second),
	}, map[JudgeRule]int{Disallowed: 1}},
	{"robots.txt redirected without end is none", JudgeOptions{}, []Exchange{
		exchange("strict.example/robots.txt", 0, second, redirectedTo("/robots.txt")),
		exchange("strict.example/private", second, 2*second),
	}, nil},

	{"gap short by 1 ns of the policy", JudgeOptions{MinDelay: second}, []Exchange{
		exchange("free.example/robots.txt", 0, second), exchange("free.example/", 2*second-1, 3*second),
		exchange("free.example/a", 4*second, 5*second),
	}, map[JudgeRule]int{ShortGap: 1}},
	{"gap short by 1 ns of the Crawl-delay", JudgeOptions{MinDelay: second}, []Exchange{
		exchange("strict.example/robots.txt", 0, second), exchange("strict.example/", 3*second, 4*second),
		exchange("strict.example/a", 6*second-1, 7*second),
	}, map[JudgeRule]int{ShortGap: 1}},
	{"Crawl-delay owed from robots.txt on", JudgeOptions{MinDelay: second}, []Exchange{
		exchange("strict.example/robots.txt", 0, second), exchange("strict.example/", 2*second, 3*second),
	}, map[JudgeRule]int{ShortGap: 1}},
	{"Crawl-delay required before robots.txt is requested again", JudgeOptions{MinDelay: second}, []Exchange{
		exchange("strict.example/robots.txt", 0, second), exchange("strict.example/robots.txt", 2*second, 3*second),
	}, map[JudgeRule]int{ShortGap: 1}},
	{"a restart may have forgotten the Crawl-delay",
		JudgeOptions{MinDelay: second, RestartTimes: []time.Time{noon.Add(3 * second / 2)}}, []Exchange{
			exchange("strict.example/robots.txt", 0, second), exchange("strict.example/robots.txt", 2*second, 3*second),
			exchange("strict.example/", 5*second, 6*second),
		}, nil},
	{"a restart forgets no policy", JudgeOptions{MinDelay: second, RestartTimes: []time.Time{noon.Add(3 * second / 2)}},
		[]Exchange{
			exchange("strict.example/robots.txt", 0, second),
			exchange("strict.example/robots.txt", 2*second-1, 3*second),
		}, map[JudgeRule]int{ShortGap: 1}},
	{"after a restart a page without a new robots.txt owes the Crawl-delay",
		JudgeOptions{RestartTimes: []time.Time{noon.Add(3 * second / 2)}}, []Exchange{
			exchange("strict.example/robots.txt", 0, second), exchange("strict.example/", 2*second, 3*second),
		}, map[JudgeRule]int{ShortGap: 1}},
	{"schemes and ports share the pace of their host", JudgeOptions{MinDelay: second}, []Exchange{
		exchange("http://free.example/robots.txt", 0, second), exchange("https://free.example/robots.txt", 2*second-1,
			3*second), exchange("http://free.example:81/robots.txt", 4*second-1, 5*second),
	}, map[JudgeRule]int{ShortGap: 2}},
	{"hosts do not share it", JudgeOptions{MinDelay: second}, []Exchange{
		exchange("free.example/robots.txt", 0, second), exchange("noise.example/robots.txt", 0, second),
	}, nil},
	{"Retry-After", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second),
		exchange("free.example/a", second, 2*second, withRetryAfter(10*second)),
		exchange("free.example/b", 12*second-1, 13*second), exchange("free.example/c", 13*second, 14*second),
	}, map[JudgeRule]int{ShortGap: 1}},
	{"a Retry-After that may have died with the crawler",
		JudgeOptions{RestartTimes: []time.Time{noon.Add(5 * second / 2)}, CrashLossWindow: second / 2}, []Exchange{
			exchange("free.example/robots.txt", 0, second),
			exchange("free.example/a", second, 2*second, withRetryAfter(10*second)),
			exchange("free.example/b", 3*second, 4*second),
		}, nil},
	{"a Retry-After that must have been kept", JudgeOptions{RestartTimes: []time.Time{noon.Add(5 * second / 2)},
		CrashLossWindow: second/2 - 1}, []Exchange{
		exchange("free.example/robots.txt", 0, second),
		exchange("free.example/a", second, 2*second, withRetryAfter(10*second)),
		exchange("free.example/b", 3*second, 4*second),
	}, map[JudgeRule]int{ShortGap: 1}},
	{"of two at a time one comes in the moment in which the other ends", JudgeOptions{MinDelay: second}, []Exchange{
		exchange("wide.example/robots.txt", 0, second, withStatus(404)), exchange("wide.example/a", 2*second, 3*second),
		exchange("wide.example/b", 3*second, 4*second),
	}, nil},
	{"it comes a moment later", JudgeOptions{MinDelay: second}, []Exchange{
		exchange("wide.example/robots.txt", 0, second, withStatus(404)), exchange("wide.example/a", 2*second, 3*second),
		exchange("wide.example/b", 3*second+1, 4*second),
	}, map[JudgeRule]int{ShortGap: 1}},
	{"it would be the third", JudgeOptions{MinDelay: second}, []Exchange{
		exchange("wide.example/robots.txt", 0, second, withStatus(404)),
		exchange("wide.example/long", 2*second, 9*second), exchange("wide.example/a", 2*second, 3*second),
		exchange("wide.example/b", 3*second, 4*second),
	}, map[JudgeRule]int{ShortGap: 1}},
	{"gap measured from the last end, not the last start", JudgeOptions{MinDelay: second}, []Exchange{
		exchange("wide.example/robots.txt", 0, second, withStatus(404)),
		exchange("wide.example/long", 2*second, 10*second), exchange("wide.example/short", 2*second, 3*second),
		exchange("wide.example/a", 10*second+second/2, 11*second),
	}, map[JudgeRule]int{ShortGap: 1}},
	{"over sockets 1 ms is forgiven", JudgeOptions{MinDelay: second}, []Exchange{
		exchange("free.example/robots.txt", 0, second, markOverSocket),
		exchange("free.example/a", 2*second-time.Millisecond, 3*second, markOverSocket),
		exchange("free.example/b", 4*second-time.Millisecond-1, 5*second, markOverSocket),
	}, map[JudgeRule]int{ShortGap: 1}},
	{"and 50 ms after a client that went away", JudgeOptions{MinDelay: second}, []Exchange{
		exchange("free.example/robots.txt", 0, second, markOverSocket),
		exchange("free.example/a", 2*second, 3*second, markOverSocket, markIncomplete),
		exchange("free.example/b", 4*second-50*time.Millisecond, 5*second, markOverSocket),
	}, nil},
	{"the tolerance can be set", JudgeOptions{MinDelay: second, GapTolerance: second / 4}, []Exchange{
		exchange("free.example/robots.txt", 0, second), exchange("free.example/a", 2*second-second/4, 3*second),
		exchange("free.example/b", 4*second-second/4-1, 5*second),
	}, map[JudgeRule]int{ShortGap: 1}},

	{"two at a time", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second), exchange("free.example/a", second, 3*second),
		exchange("free.example/b", 3*second-1, 4*second),
	}, map[JudgeRule]int{Overlap: 1}},
	{"robots.txt and a page of another origin at a time", JudgeOptions{}, []Exchange{
		exchange("http://free.example/robots.txt", 0, second),
		exchange("https://free.example/robots.txt", second/2, 2*second),
	}, map[JudgeRule]int{Overlap: 1}},
	{"two at a time where two are allowed", JudgeOptions{}, []Exchange{
		exchange("wide.example/robots.txt", 0, second, withStatus(404)), exchange("wide.example/a", second, 3*second),
		exchange("wide.example/b", 2*second, 4*second), exchange("wide.example/c", 3*second-1, 5*second),
	}, map[JudgeRule]int{Overlap: 1}},
	{"an answer that goes on", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second), exchange("free.example/a", second, 0, markUnended),
		exchange("free.example/b", time.Hour, time.Hour+second),
	}, map[JudgeRule]int{Overlap: 1}},

	{"requested again", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second), exchange("free.example/a", second, 2*second),
		exchange("free.example/b", 2*second, 3*second), exchange("free.example/a", 3*second, 4*second),
		exchange("free.example/a?", 4*second, 5*second),
	}, map[JudgeRule]int{Duplicate: 1}},
	{"again under a noise parameter", JudgeOptions{}, []Exchange{
		exchange("noise.example/robots.txt", 0, second), exchange("noise.example/a?ref=1", second, 2*second),
		exchange("noise.example/a?ref=2", 2*second, 3*second),
	}, map[JudgeRule]int{Duplicate: 1}},
	{"as it was found, since nothing is at the clean URL", JudgeOptions{}, []Exchange{
		exchange("noise.example/robots.txt", 0, second), exchange("noise.example/a", second, 2*second, withStatus(404)),
		exchange("noise.example/a?ref=1", 2*second, 3*second),
	}, nil},
	{"under a second noise parameter, though nothing is at the clean URL", JudgeOptions{}, []Exchange{
		exchange("noise.example/robots.txt", 0, second), exchange("noise.example/a", second, 2*second, withStatus(410)),
		exchange("noise.example/a?ref=1", 2*second, 3*second, withStatus(404)),
		exchange("noise.example/a?ref=2", 3*second, 4*second),
	}, map[JudgeRule]int{Duplicate: 1}},
	{"404 requested again", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second), exchange("free.example/a", second, 2*second, withStatus(404)),
		exchange("free.example/a", 2*second, 3*second, withStatus(404)),
	}, map[JudgeRule]int{Duplicate: 1}},
	{"robots.txt requested again", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second), exchange("free.example/robots.txt", second, 2*second),
	}, nil},
	{"different forms to a URL", JudgeOptions{}, []Exchange{
		exchange("free.example/robots.txt", 0, second), exchange("free.example/a", second, 2*second),
		exchange("free.example/a", 2*second, 3*second, withPostBody("1")),
		exchange("free.example/a", 3*second, 4*second, withPostBody("2")),
	}, nil},
	{"a form sent again, though it failed, after a restart, in a crawl that revisits",
		JudgeOptions{AllowRevisits: true, RestartTimes: []time.Time{noon.Add(2 * second)}}, []Exchange{
			exchange("free.example/robots.txt", 0, second),
			exchange("free.example/a", second, 2*second, withPostBody("1"), withStatus(503)),
			exchange("free.example/robots.txt", 2*second, 3*second),
			exchange("free.example/a", 4*second, 5*second, withPostBody("1")),
		}, map[JudgeRule]int{Duplicate: 1}},
	{"revisits, as agreed", JudgeOptions{AllowRevisits: true}, []Exchange{
		exchange("free.example/robots.txt", 0, second), exchange("free.example/a", second, 2*second),
		exchange("free.example/a", 3*second, 4*second),
	}, nil},

	{"no product", JudgeOptions{}, []Exchange{exchange("free.example/robots.txt", 0, second,
		withUserAgent("Mozilla (+https://testbot.example/)"))}, map[JudgeRule]int{Anonymous: 1}},
	{"another product", JudgeOptions{RequiredProductToken: "otherbot"},
		[]Exchange{exchange("free.example/robots.txt", 0, second)}, map[JudgeRule]int{Anonymous: 1}},
	{"no contact", JudgeOptions{}, []Exchange{exchange("free.example/robots.txt", 0, second,
		withUserAgent("testbot/1.0"))}, map[JudgeRule]int{Anonymous: 1}},
	{"no User-Agent", JudgeOptions{}, []Exchange{exchange("free.example/robots.txt", 0, second, withUserAgent(""))},
		map[JudgeRule]int{Anonymous: 1}},
	{"contact by mail", JudgeOptions{RequiredProductToken: "testbot"}, []Exchange{
		exchange("free.example/robots.txt", 0, second, withUserAgent("testbot/1.0 (mailto:a@testbot.example)")),
		exchange("free.example/", 2*second, 3*second, withUserAgent("testbot/1.0 (a@testbot.example)")),
	}, nil},
}

func TestJudge(t *testing.T) {
	for _, tt := range judgeCases {
		t.Run(tt.name, func(t *testing.T) {
			r := judgeWeb().JudgeLog(tt.log, tt.options)
			got := map[JudgeRule]int{}
			for _, o := range r.Violations {
				got[o.Rule]++
			}
			if !maps.Equal(got, tt.want) {
				t.Errorf("got %v, want %v\n%v", got, tt.want, r)
			}
			if r.OK() != (len(tt.want) == 0) {
				t.Errorf("OK is %v with %v", r.OK(), got)
			}
			for rule, n := range got {
				if r.CountViolationsOfRule(rule) != n {
					t.Errorf("Count(%q) is %d, want %d", rule, r.CountViolationsOfRule(rule), n)
				}
			}
		})
	}
}

// Requests that are repeated for a good reason are counted, and are not violations.
func TestJudgeTellsRetriesFromDuplicates(t *testing.T) {
	var log []Exchange
	at := 0 * second
	add := func(url string, change ...func(*Exchange)) {
		log = append(log, exchange(url, at, at+second, change...))
		at += 2 * second
	}
	add("free.example/robots.txt")
	for i, bad := range []func(*Exchange){withStatus(0), withStatus(408), withStatus(425), withStatus(429),
		withStatus(500), withStatus(503), markIncomplete} {
		url := fmt.Sprintf("free.example/%d", i)
		add(url, bad)
		add(url)
	}
	add("free.example/again")
	restart := noon.Add(at)
	add("free.example/again")
	add("free.example/again")
	r := judgeWeb().JudgeLog(log, JudgeOptions{RestartTimes: []time.Time{restart}})
	if r.Retries != 7 || r.RestartRefetches != 1 || r.CountViolationsOfRule(Duplicate) != 1 ||
		len(r.Violations) != 1 || r.DistinctPages != 8 {
		t.Errorf("got %d retries, %d repeated after a restart, %d different pages, want 7, 1, 8, and one "+
			"duplicate:\n%v", r.Retries, r.RestartRefetches, r.DistinctPages, r)
	}
	const parts = "17 for pages and sitemaps " +
		"(8 different, 7 retries, 1 repeated after a restart, 1 other repetitions), "
	if !strings.Contains(r.String(), parts) {
		t.Errorf("the report lacks %q:\n%v", parts, r)
	}
}

func TestJudgeDoesNotMindTheOrderOfTheLog(t *testing.T) {
	for _, tt := range judgeCases {
		want := judgeWeb().JudgeLog(tt.log, tt.options)
		reversed := make([]Exchange, 0, len(tt.log))
		for i := len(tt.log) - 1; i >= 0; i-- {
			reversed = append(reversed, tt.log[i])
		}
		if got := judgeWeb().JudgeLog(reversed, tt.options); len(got.Violations) != len(want.Violations) ||
			!reflect.DeepEqual(got.Hosts, want.Hosts) {
			t.Errorf("%s: got\n%vwant\n%v", tt.name, got, want)
		}
	}
}

func TestReportString(t *testing.T) {
	log := []Exchange{exchange("strict.example/robots.txt", 0, second)}
	for i := range 8 {
		at := time.Duration(10+3*i) * second
		log = append(log, exchange(fmt.Sprintf("strict.example/private/%d", i), at, at+second+second/2))
	}
	log = append(log, exchange("free.example/robots.txt", 0, second, func(e *Exchange) { e.BodyBytes = 14 }))
	got := judgeWeb().JudgeLog(log, JudgeOptions{}).String()
	want := `10 requests to 2 hosts in 32.5s: 8 for pages and sitemaps (8 different, 0 retries), 2 for robots.txt; 14 bytes

  requests  pages  shortest gap  required  violations  host
         1      0             -   0.000 s           0  free.example
         9      8       1.500 s   2.000 s          15  strict.example

     8 disallowed by robots.txt
         at 10.000 s  GET http://strict.example/private/0
         at 13.000 s  GET http://strict.example/private/1
         at 16.000 s  GET http://strict.example/private/2
         at 19.000 s  GET http://strict.example/private/3
         at 22.000 s  GET http://strict.example/private/4
         and 3 more
     0 requested before robots.txt
     0 requested while robots.txt was unreachable
     0 requested with rules too old
     0 robots.txt requested conditionally
     7 gap too short
         at 13.000 s  GET http://strict.example/private/1  1.500 s of 2.000 s after http://strict.example/private/0
         at 16.000 s  GET http://strict.example/private/2  1.500 s of 2.000 s after http://strict.example/private/1
         at 19.000 s  GET http://strict.example/private/3  1.500 s of 2.000 s after http://strict.example/private/2
         at 22.000 s  GET http://strict.example/private/4  1.500 s of 2.000 s after http://strict.example/private/3
         at 25.000 s  GET http://strict.example/private/5  1.500 s of 2.000 s after http://strict.example/private/4
         and 2 more
     0 too many requests at a time
     0 requested again
     0 User-Agent without product or contact
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The judge terminates on any log, and counts every request in it.
func FuzzJudge(f *testing.F) {
	for _, tt := range judgeCases {
		var b bytes.Buffer
		if err := WriteLog(&b, tt.log); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte(`{"url":""}{"url":"://","status":301,"location":"%"}{"url":"http://[::1"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		log, err := ReadLog(bytes.NewReader(data))
		if err != nil {
			return
		}
		r := judgeWeb().JudgeLog(log, JudgeOptions{})
		if r.Requests != len(log) {
			t.Errorf("%d requests judged of %d", r.Requests, len(log))
		}
		if r.String() == "" {
			t.Error("an empty report")
		}
	})
}
