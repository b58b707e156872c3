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

// noon is when the logs of these tests begin.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

const agent = "testbot/1.0 (+https://testbot.example/)"

// x returns an exchange that was answered with 200. URLs lack their http://.
func x(url string, start, end time.Duration, change ...func(*Exchange)) Exchange {
	e := Exchange{Method: "GET", URL: url, Agent: agent, Start: noon.Add(start), End: noon.Add(end), Status: 200}
	if !strings.Contains(url, "://") {
		e.URL = "http://" + url
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

func status(code int) func(*Exchange) { return func(e *Exchange) { e.Status = code } }
func retryAfter(d time.Duration) func(*Exchange) {
	return func(e *Exchange) { e.Status, e.RetryAfter = 503, d }
}
func to(location string) func(*Exchange) {
	return func(e *Exchange) { e.Status, e.Location = 301, location }
}
func broken(e *Exchange)             { e.Broken = true }
func wire(e *Exchange)               { e.Wire = true }
func unended(e *Exchange)            { e.End = time.Time{} }
func ifNew(e *Exchange)              { e.Conditional = true }
func named(s string) func(*Exchange) { return func(e *Exchange) { e.Agent = s } }
func posted(body string) func(*Exchange) {
	return func(e *Exchange) { e.Method, e.BodySHA256 = "POST", body }
}

// courtWeb is the web that the logs are of.
func courtWeb() *Web {
	private := func(path string) bool { return strings.HasPrefix(path, "/private") }
	return New(
		Site{Host: "free.example", Robots: Lasting(Robots{Answer: Text("User-agent: *\n")})},
		Site{Host: "strict.example", Robots: Lasting(Robots{Delay: 2 * time.Second, Disallow: private})},
		Site{Host: "wide.example", Concurrency: 2},
		Site{Host: "noise.example", Robots: Lasting(Robots{Clean: func(path string) string {
			before, _, _ := strings.Cut(path, "?")
			return before
		}})},
		Site{Host: "moody.example", Robots: func(at time.Time) Robots {
			if at.Before(noon.Add(time.Hour)) {
				return Robots{}
			}
			return Robots{Disallow: private, Delay: 5 * time.Second}
		}},
	)
}

const (
	s   = time.Second
	day = 24 * time.Hour
)

// judged are logs and what is wrong with them.
var judged = []struct {
	name    string
	options Options
	log     []Exchange
	want    map[Rule]int
}{
	{"nothing", Options{}, nil, nil},
	{"a right crawl", Options{MinDelay: s}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example/", 2*s, 3*s), x("free.example/a", 4*s, 5*s),
		x("strict.example/robots.txt", 0, s), x("strict.example/", 3*s, 4*s), x("strict.example/a", 6*s, 7*s),
	}, nil},

	{"disallowed", Options{}, []Exchange{
		x("strict.example/robots.txt", 0, s), x("strict.example/private/a", 10*s, 11*s),
	}, map[Rule]int{Disallowed: 1}},
	{"disallowed by rules that changed", Options{}, []Exchange{
		x("moody.example/robots.txt", 0, s), x("moody.example/private", 10*s, 11*s), x("moody.example/private/2", 2*time.Hour, 2*time.Hour+s),
		x("moody.example/robots.txt", 3*time.Hour, 3*time.Hour+s), x("moody.example/private/3", 4*time.Hour, 4*time.Hour+s),
	}, map[Rule]int{Disallowed: 1}},
	{"new rules bind from their end, not from their request", Options{}, []Exchange{
		x("moody.example/robots.txt", 0, s), x("moody.example/a", 2*s, 3*time.Hour),
		x("moody.example/robots.txt", 3*time.Hour, 4*time.Hour), x("moody.example/private", 4*time.Hour+5*s, 4*time.Hour+6*s),
	}, map[Rule]int{Disallowed: 1}},

	{"no robots.txt", Options{}, []Exchange{x("free.example/", 0, s)}, map[Rule]int{RobotsLate: 1}},
	{"robots.txt late", Options{}, []Exchange{
		x("free.example/", 0, s), x("free.example/robots.txt", 2*s, 3*s), x("free.example/a", 4*s, 5*s),
	}, map[Rule]int{RobotsLate: 1}},
	{"page while robots.txt is being read", Options{}, []Exchange{
		x("wide.example/robots.txt", 0, 2*s, status(404)), x("wide.example/", 2*s-1, 3*s),
	}, map[Rule]int{RobotsLate: 1}},
	{"robots.txt of another scheme", Options{}, []Exchange{
		x("http://free.example/robots.txt", 0, s), x("https://free.example/", 2*s, 3*s),
	}, map[Rule]int{RobotsLate: 1}},
	{"robots.txt of another port", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example:8080/", 2*s, 3*s),
	}, map[Rule]int{RobotsLate: 1}},
	{"robots.txt with a query is a page", Options{}, []Exchange{
		x("free.example/robots.txt?x", 0, s), x("free.example/", 2*s, 3*s),
	}, map[Rule]int{RobotsLate: 2}},

	{"no answer for robots.txt", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s, status(0), broken), x("free.example/", 2*s, 3*s),
	}, map[Rule]int{RobotsUnreachable: 1}},
	{"503 for robots.txt", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s, status(503)), x("free.example/", 2*s, 3*s),
	}, map[Rule]int{RobotsUnreachable: 1}},
	{"429 for robots.txt", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s, status(429)), x("free.example/", 2*s, 3*s),
	}, map[Rule]int{RobotsUnreachable: 1}},
	{"robots.txt broke off", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s, broken), x("free.example/", 2*s, 3*s),
	}, map[Rule]int{RobotsUnreachable: 1}},
	{"robots.txt cut after 500 KiB", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s, broken, func(e *Exchange) { e.Bytes = 500 << 10 }), x("free.example/", 2*s, 3*s),
	}, nil},
	{"404 for robots.txt opens everything", Options{}, []Exchange{
		x("strict.example/robots.txt", 0, s, status(404)), x("strict.example/private", 2*s, 3*s), x("strict.example/a", 3*s, 4*s),
	}, nil},
	{"good rules before an outage do not open", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example/robots.txt", day, day+s, status(500)), x("free.example/", day+2*s, day+3*s),
	}, map[Rule]int{RobotsUnreachable: 1}},
	{"outage of 30 days", Options{MaxAge: -1}, []Exchange{
		x("free.example/robots.txt", 0, s, status(500)), x("free.example/", 30*day, 30*day+s),
	}, map[Rule]int{RobotsUnreachable: 1}},
	{"outage of more than 30 days, no file", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s, status(500)), x("free.example/robots.txt", 30*day, 30*day+s, status(503)),
		x("free.example/", 30*day+2*s, 30*day+3*s),
	}, nil},
	{"outage of more than 30 days, a file before", Options{}, []Exchange{
		x("strict.example/robots.txt", 0, s), x("strict.example/robots.txt", day, day+s, status(500)),
		x("strict.example/robots.txt", 32*day, 32*day+s, status(503)), x("strict.example/private", 32*day+9*s, 32*day+10*s),
	}, map[Rule]int{Disallowed: 1}},
	{"outage with an answer in between", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s, status(500)), x("free.example/robots.txt", 20*day, 20*day+s, status(404)),
		x("free.example/robots.txt", 31*day, 31*day+s, status(500)), x("free.example/", 31*day+2*s, 31*day+3*s),
	}, map[Rule]int{RobotsUnreachable: 1}},

	{"rules of exactly a day", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example/", day+s, day+2*s),
	}, nil},
	{"rules older than a day", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example/", day+s+1, day+2*s),
	}, map[Rule]int{RobotsStale: 1}},
	{"conditional request for robots.txt", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example/robots.txt", 2*s, 3*s, ifNew), x("free.example/", 4*s, 5*s, ifNew),
	}, map[Rule]int{RobotsIfNew: 1}},

	{"redirected robots.txt read", Options{MinDelay: s}, []Exchange{
		x("strict.example/robots.txt", 0, s, to("http://free.example/rules/strict")), x("free.example/rules/strict", s, 2*s),
		x("strict.example/a", 3*s, 4*s),
	}, nil},
	{"redirected robots.txt not followed", Options{}, []Exchange{
		x("strict.example/robots.txt", 0, s, to("/rules")), x("strict.example/", 3*s, 4*s),
	}, map[Rule]int{RobotsLate: 1}},
	{"redirected robots.txt unreachable", Options{}, []Exchange{
		x("strict.example/robots.txt", 0, s, to("/rules")), x("strict.example/rules", s, 2*s, status(500)), x("strict.example/", 5*s, 6*s),
	}, map[Rule]int{RobotsUnreachable: 1}},
	{"redirected rules bind", Options{}, []Exchange{
		x("strict.example/robots.txt", 0, s, to("/rules")), x("strict.example/rules", s, 2*s), x("strict.example/private", 4*s, 5*s),
	}, map[Rule]int{Disallowed: 1}},
	{"robots.txt redirected without end is none", Options{}, []Exchange{
		x("strict.example/robots.txt", 0, s, to("/robots.txt")), x("strict.example/private", s, 2*s),
	}, nil},

	{"gap short by 1 ns of the policy", Options{MinDelay: s}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example/", 2*s-1, 3*s), x("free.example/a", 4*s, 5*s),
	}, map[Rule]int{ShortGap: 1}},
	{"gap short by 1 ns of the Crawl-delay", Options{MinDelay: s}, []Exchange{
		x("strict.example/robots.txt", 0, s), x("strict.example/", 3*s, 4*s), x("strict.example/a", 6*s-1, 7*s),
	}, map[Rule]int{ShortGap: 1}},
	{"Crawl-delay owed from robots.txt on", Options{MinDelay: s}, []Exchange{
		x("strict.example/robots.txt", 0, s), x("strict.example/", 2*s, 3*s),
	}, map[Rule]int{ShortGap: 1}},
	{"Crawl-delay owed before robots.txt is asked for again", Options{MinDelay: s}, []Exchange{
		x("strict.example/robots.txt", 0, s), x("strict.example/robots.txt", 2*s, 3*s),
	}, map[Rule]int{ShortGap: 1}},
	{"a restart may have forgotten the Crawl-delay", Options{MinDelay: s, Restarts: []time.Time{noon.Add(3 * s / 2)}}, []Exchange{
		x("strict.example/robots.txt", 0, s), x("strict.example/robots.txt", 2*s, 3*s), x("strict.example/", 5*s, 6*s),
	}, nil},
	{"a restart forgets no policy", Options{MinDelay: s, Restarts: []time.Time{noon.Add(3 * s / 2)}}, []Exchange{
		x("strict.example/robots.txt", 0, s), x("strict.example/robots.txt", 2*s-1, 3*s),
	}, map[Rule]int{ShortGap: 1}},
	{"after a restart a page without a new robots.txt owes the Crawl-delay", Options{Restarts: []time.Time{noon.Add(3 * s / 2)}}, []Exchange{
		x("strict.example/robots.txt", 0, s), x("strict.example/", 2*s, 3*s),
	}, map[Rule]int{ShortGap: 1}},
	{"schemes and ports share the pace of their host", Options{MinDelay: s}, []Exchange{
		x("http://free.example/robots.txt", 0, s), x("https://free.example/robots.txt", 2*s-1, 3*s), x("http://free.example:81/robots.txt", 4*s-1, 5*s),
	}, map[Rule]int{ShortGap: 2}},
	{"hosts do not share it", Options{MinDelay: s}, []Exchange{
		x("free.example/robots.txt", 0, s), x("noise.example/robots.txt", 0, s),
	}, nil},
	{"Retry-After", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example/a", s, 2*s, retryAfter(10*s)),
		x("free.example/b", 12*s-1, 13*s), x("free.example/c", 13*s, 14*s),
	}, map[Rule]int{ShortGap: 1}},
	{"a Retry-After that may have died with the crawler", Options{Restarts: []time.Time{noon.Add(5 * s / 2)}, Unflushed: s / 2}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example/a", s, 2*s, retryAfter(10*s)), x("free.example/b", 3*s, 4*s),
	}, nil},
	{"a Retry-After that must have been kept", Options{Restarts: []time.Time{noon.Add(5 * s / 2)}, Unflushed: s/2 - 1}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example/a", s, 2*s, retryAfter(10*s)), x("free.example/b", 3*s, 4*s),
	}, map[Rule]int{ShortGap: 1}},
	{"of two at a time one comes in the moment in which the other ends", Options{MinDelay: s}, []Exchange{
		x("wide.example/robots.txt", 0, s, status(404)), x("wide.example/a", 2*s, 3*s), x("wide.example/b", 3*s, 4*s),
	}, nil},
	{"it comes a moment later", Options{MinDelay: s}, []Exchange{
		x("wide.example/robots.txt", 0, s, status(404)), x("wide.example/a", 2*s, 3*s), x("wide.example/b", 3*s+1, 4*s),
	}, map[Rule]int{ShortGap: 1}},
	{"it would be the third", Options{MinDelay: s}, []Exchange{
		x("wide.example/robots.txt", 0, s, status(404)), x("wide.example/long", 2*s, 9*s), x("wide.example/a", 2*s, 3*s), x("wide.example/b", 3*s, 4*s),
	}, map[Rule]int{ShortGap: 1}},
	{"gap measured from the last end, not the last start", Options{MinDelay: s}, []Exchange{
		x("wide.example/robots.txt", 0, s, status(404)), x("wide.example/long", 2*s, 10*s), x("wide.example/short", 2*s, 3*s),
		x("wide.example/a", 10*s+s/2, 11*s),
	}, map[Rule]int{ShortGap: 1}},
	{"over sockets 1 ms is forgiven", Options{MinDelay: s}, []Exchange{
		x("free.example/robots.txt", 0, s, wire), x("free.example/a", 2*s-time.Millisecond, 3*s, wire), x("free.example/b", 4*s-time.Millisecond-1, 5*s, wire),
	}, map[Rule]int{ShortGap: 1}},
	{"and 50 ms after a client that went away", Options{MinDelay: s}, []Exchange{
		x("free.example/robots.txt", 0, s, wire), x("free.example/a", 2*s, 3*s, wire, broken), x("free.example/b", 4*s-50*time.Millisecond, 5*s, wire),
	}, nil},
	{"the tolerance can be set", Options{MinDelay: s, Tolerance: s / 4}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example/a", 2*s-s/4, 3*s), x("free.example/b", 4*s-s/4-1, 5*s),
	}, map[Rule]int{ShortGap: 1}},

	{"two at a time", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example/a", s, 3*s), x("free.example/b", 3*s-1, 4*s),
	}, map[Rule]int{Overlap: 1}},
	{"robots.txt and a page of another origin at a time", Options{}, []Exchange{
		x("http://free.example/robots.txt", 0, s), x("https://free.example/robots.txt", s/2, 2*s),
	}, map[Rule]int{Overlap: 1}},
	{"two at a time where two are allowed", Options{}, []Exchange{
		x("wide.example/robots.txt", 0, s, status(404)), x("wide.example/a", s, 3*s), x("wide.example/b", 2*s, 4*s), x("wide.example/c", 3*s-1, 5*s),
	}, map[Rule]int{Overlap: 1}},
	{"an answer that goes on", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example/a", s, 0, unended), x("free.example/b", time.Hour, time.Hour+s),
	}, map[Rule]int{Overlap: 1}},

	{"asked for again", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example/a", s, 2*s), x("free.example/b", 2*s, 3*s), x("free.example/a", 3*s, 4*s), x("free.example/a?", 4*s, 5*s),
	}, map[Rule]int{Duplicate: 1}},
	{"again under a noise parameter", Options{}, []Exchange{
		x("noise.example/robots.txt", 0, s), x("noise.example/a?ref=1", s, 2*s), x("noise.example/a?ref=2", 2*s, 3*s),
	}, map[Rule]int{Duplicate: 1}},
	{"as it was found, since nothing is at the clean URL", Options{}, []Exchange{
		x("noise.example/robots.txt", 0, s), x("noise.example/a", s, 2*s, status(404)), x("noise.example/a?ref=1", 2*s, 3*s),
	}, nil},
	{"under a second noise parameter, though nothing is at the clean URL", Options{}, []Exchange{
		x("noise.example/robots.txt", 0, s), x("noise.example/a", s, 2*s, status(410)),
		x("noise.example/a?ref=1", 2*s, 3*s, status(404)), x("noise.example/a?ref=2", 3*s, 4*s),
	}, map[Rule]int{Duplicate: 1}},
	{"404 asked for again", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example/a", s, 2*s, status(404)), x("free.example/a", 2*s, 3*s, status(404)),
	}, map[Rule]int{Duplicate: 1}},
	{"robots.txt asked for again", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example/robots.txt", s, 2*s),
	}, nil},
	{"different forms to a URL", Options{}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example/a", s, 2*s), x("free.example/a", 2*s, 3*s, posted("1")), x("free.example/a", 3*s, 4*s, posted("2")),
	}, nil},
	{"a form sent again, though it failed, after a restart, in a crawl that revisits",
		Options{Revisits: true, Restarts: []time.Time{noon.Add(2 * s)}}, []Exchange{
			x("free.example/robots.txt", 0, s), x("free.example/a", s, 2*s, posted("1"), status(503)),
			x("free.example/robots.txt", 2*s, 3*s), x("free.example/a", 4*s, 5*s, posted("1")),
		}, map[Rule]int{Duplicate: 1}},
	{"revisits, as agreed", Options{Revisits: true}, []Exchange{
		x("free.example/robots.txt", 0, s), x("free.example/a", s, 2*s), x("free.example/a", 3*s, 4*s),
	}, nil},

	{"no product", Options{}, []Exchange{x("free.example/robots.txt", 0, s, named("Mozilla (+https://testbot.example/)"))}, map[Rule]int{Anonymous: 1}},
	{"another product", Options{Product: "otherbot"}, []Exchange{x("free.example/robots.txt", 0, s)}, map[Rule]int{Anonymous: 1}},
	{"no contact", Options{}, []Exchange{x("free.example/robots.txt", 0, s, named("testbot/1.0"))}, map[Rule]int{Anonymous: 1}},
	{"no User-Agent", Options{}, []Exchange{x("free.example/robots.txt", 0, s, named(""))}, map[Rule]int{Anonymous: 1}},
	{"contact by mail", Options{Product: "testbot"}, []Exchange{
		x("free.example/robots.txt", 0, s, named("testbot/1.0 (mailto:a@testbot.example)")), x("free.example/", 2*s, 3*s, named("testbot/1.0 (a@testbot.example)")),
	}, nil},
}

func TestJudge(t *testing.T) {
	for _, tt := range judged {
		t.Run(tt.name, func(t *testing.T) {
			r := courtWeb().JudgeLog(tt.log, tt.options)
			got := map[Rule]int{}
			for _, o := range r.Offences {
				got[o.Rule]++
			}
			if !maps.Equal(got, tt.want) {
				t.Errorf("got %v, want %v\n%v", got, tt.want, r)
			}
			if r.OK() != (len(tt.want) == 0) {
				t.Errorf("OK is %v with %v", r.OK(), got)
			}
			for rule, n := range got {
				if r.Count(rule) != n {
					t.Errorf("Count(%q) is %d, want %d", rule, r.Count(rule), n)
				}
			}
		})
	}
}

// What is asked for again with good reason is counted, and no offence.
func TestJudgeTellsRetriesFromDuplicates(t *testing.T) {
	var log []Exchange
	at := 0 * s
	add := func(url string, change ...func(*Exchange)) {
		log = append(log, x(url, at, at+s, change...))
		at += 2 * s
	}
	add("free.example/robots.txt")
	for i, bad := range []func(*Exchange){status(0), status(408), status(425), status(429), status(500), status(503), broken} {
		url := fmt.Sprintf("free.example/%d", i)
		add(url, bad)
		add(url)
	}
	add("free.example/again")
	restart := noon.Add(at)
	add("free.example/again")
	add("free.example/again")
	r := courtWeb().JudgeLog(log, Options{Restarts: []time.Time{restart}})
	if r.Retries != 7 || r.Redone != 1 || r.Count(Duplicate) != 1 || len(r.Offences) != 1 || r.Distinct != 8 {
		t.Errorf("got %d retries, %d redone, %d different pages, want 7, 1, 8, and one duplicate:\n%v", r.Retries, r.Redone, r.Distinct, r)
	}
}

func TestJudgeDoesNotMindTheOrderOfTheLog(t *testing.T) {
	for _, tt := range judged {
		want := courtWeb().JudgeLog(tt.log, tt.options)
		reversed := make([]Exchange, 0, len(tt.log))
		for i := len(tt.log) - 1; i >= 0; i-- {
			reversed = append(reversed, tt.log[i])
		}
		if got := courtWeb().JudgeLog(reversed, tt.options); len(got.Offences) != len(want.Offences) || !reflect.DeepEqual(got.Hosts, want.Hosts) {
			t.Errorf("%s: got\n%vwant\n%v", tt.name, got, want)
		}
	}
}

func TestReportReads(t *testing.T) {
	log := []Exchange{x("strict.example/robots.txt", 0, s)}
	for i := range 8 {
		at := time.Duration(10+3*i) * s
		log = append(log, x(fmt.Sprintf("strict.example/private/%d", i), at, at+s+s/2))
	}
	log = append(log, x("free.example/robots.txt", 0, s, func(e *Exchange) { e.Bytes = 14 }))
	got := courtWeb().JudgeLog(log, Options{}).String()
	want := `10 requests to 2 hosts in 32.5s: 8 pages (8 different), 2 for robots.txt, 14 bytes; 0 retries, 0 redone

  requests  pages  least gap     owed  offences  host
         1      0          -  0.000 s         0  free.example
         9      8    1.500 s  2.000 s        15  strict.example

     8 disallowed by robots.txt
         at 10.000 s  GET http://strict.example/private/0
         at 13.000 s  GET http://strict.example/private/1
         at 16.000 s  GET http://strict.example/private/2
         at 19.000 s  GET http://strict.example/private/3
         at 22.000 s  GET http://strict.example/private/4
         and 3 more
     0 asked before robots.txt
     0 asked while robots.txt was unreachable
     0 asked with rules too old
     0 robots.txt asked for conditionally
     7 gap too short
         at 13.000 s  GET http://strict.example/private/1  1.500 s of 2.000 s after http://strict.example/private/0
         at 16.000 s  GET http://strict.example/private/2  1.500 s of 2.000 s after http://strict.example/private/1
         at 19.000 s  GET http://strict.example/private/3  1.500 s of 2.000 s after http://strict.example/private/2
         at 22.000 s  GET http://strict.example/private/4  1.500 s of 2.000 s after http://strict.example/private/3
         at 25.000 s  GET http://strict.example/private/5  1.500 s of 2.000 s after http://strict.example/private/4
         and 2 more
     0 too many requests at a time
     0 asked for again
     0 User-Agent without product or contact
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Whatever is in a log, the judge comes to an end, and counts what it has read.
func FuzzJudge(f *testing.F) {
	for _, tt := range judged {
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
		r := courtWeb().JudgeLog(log, Options{})
		if r.Requests != len(log) {
			t.Errorf("%d requests judged of %d", r.Requests, len(log))
		}
		if r.String() == "" {
			t.Error("an empty report")
		}
	})
}
