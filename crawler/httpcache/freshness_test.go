package httpcache_test

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/httpcache"
)

var receivedAt = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// httpTime returns the HTTP date that is d after receivedAt.
func httpTime(d time.Duration) string { return receivedAt.Add(d).Format(http.TimeFormat) }

// header returns the header with these lines, as "Name: value".
func header(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

const (
	hour = time.Hour
	day  = 24 * hour
)

// TestFreshness has a case for each rule of RFC 9111 about how long an answer is fresh. The answer has the
// status 200 unless the case says otherwise, and came at once unless delay says how long it took.
func TestFreshness(t *testing.T) {
	for _, tt := range []struct {
		name    string // with the section of RFC 9111
		status  int
		header  http.Header
		delay   time.Duration
		private time.Duration // FreshFor in a private cache
		shared  time.Duration // FreshFor in a shared cache
		by      string        // in a private cache
	}{
		{"4.2.1 nothing is stated", 0, header(), 0, 0, 0, ""},
		{"4.2.1 max-age", 0, header("Cache-Control: max-age=3600"), 0, hour, hour, "max-age=3600"},
		{"4.2.1 max-age is 0", 0, header("Cache-Control: max-age=0"), 0, 0, 0, "max-age=0"},
		{"4.2.1 max-age with an error status", 500, header("Cache-Control: max-age=3600"), 0, hour, hour,
			"max-age=3600"},
		{"4.2.1 max-age with a temporary redirect", 302, header("Cache-Control: max-age=3600"), 0, hour, hour,
			"max-age=3600"},
		{"4.2.1 s-maxage counts in shared caches", 0, header("Cache-Control: max-age=60, s-maxage=3600"), 0,
			time.Minute, hour, "max-age=60"},
		{"4.2.1 s-maxage alone", 0, header("Cache-Control: s-maxage=3600"), 0, 0, hour, ""},
		{"4.2.1 Expires", 0, header("Date: "+httpTime(0), "Expires: "+httpTime(hour)), 0, hour, hour, "Expires"},
		{"5.3 Expires counts from Date", 0, header("Date: "+httpTime(-hour), "Expires: "+httpTime(hour)), 0,
			hour, hour, "Expires"},
		{"5.3 Expires without Date", 0, header("Expires: " + httpTime(hour)), 0, hour, hour, "Expires"},
		{"5.3 max-age goes before Expires", 0, header("Cache-Control: max-age=60", "Expires: "+httpTime(hour)), 0,
			time.Minute, time.Minute, "max-age=60"},
		{"5.3 s-maxage goes before Expires", 0, header("Cache-Control: s-maxage=60", "Expires: "+httpTime(hour)), 0,
			hour, time.Minute, "Expires"},
		{"5.3 Expires in the past", 0, header("Expires: " + httpTime(-hour)), 0, 0, 0, "Expires"},
		{"5.3 Expires: 0 is invalid, and so past", 0, header("Expires: 0", "Last-Modified: "+httpTime(-100*day)), 0,
			0, 0, ""},
		{"5.3 empty Expires", 0, header("Expires: ", "Last-Modified: "+httpTime(-100*day)), 0, 0, 0, ""},
		{"5.3 Expires in the form of RFC 850", 0, header("Expires: Sunday, 01-Mar-26 13:00:00 GMT"), 0, hour, hour,
			"Expires"},
		{"5.3 Expires in the form of asctime", 0, header("Expires: Sun Mar  1 13:00:00 2026"), 0, hour, hour,
			"Expires"},
		{"4.2.1 the earlier of two Expires", 0, header("Expires: "+httpTime(2*hour), "Expires: "+httpTime(hour)), 0,
			hour, hour, "Expires"},
		{"4.2.1 one of two Expires is invalid", 0, header("Expires: "+httpTime(hour), "Expires: -1"), 0, 0, 0, ""},
		{"1.2.2 Expires in the year 9999", 0, header("Expires: Fri, 31 Dec 9999 23:59:59 GMT"), 0, maxDelta, maxDelta,
			"Expires"},
		{"4.2.1 invalid max-age is stale", 0, header("Cache-Control: max-age=x", "Expires: "+httpTime(hour)), 0,
			0, 0, ""},
		{"4.2.1 duplicate max-age", 0, header("Cache-Control: max-age=60", "Cache-Control: max-age=60"), 0,
			time.Minute, time.Minute, "max-age=60"},
		{"4.2.1 conflicting max-age", 0, header("Cache-Control: max-age=3600, max-age=60"), 0,
			time.Minute, time.Minute, "max-age=60"},
		{"4.2.1 invalid s-maxage is stale", 0, header("Cache-Control: max-age=3600, s-maxage=x"), 0, hour, 0,
			"max-age=3600"},
		{"4.2.1 the most restrictive directive wins", 0, header("Cache-Control: max-age=3600, no-cache"), 0, 0, 0,
			"max-age=3600"},

		{"4.2.3 Age", 0, header("Cache-Control: max-age=3600", "Age: 600"), 0, 50 * time.Minute, 50 * time.Minute,
			"max-age=3600"},
		{"4.2.3 Age is beyond max-age", 0, header("Cache-Control: max-age=3600", "Age: 3601"), 0, 0, 0,
			"max-age=3600"},
		{"5.1 invalid Age", 0, header("Cache-Control: max-age=3600", "Age: -5"), 0, hour, hour, "max-age=3600"},
		{"5.1 the first Age of a list", 0, header("Cache-Control: max-age=3600", "Age: 600, 5"), 0,
			50 * time.Minute, 50 * time.Minute, "max-age=3600"},
		{"5.1 the first Age of two lines", 0, header("Cache-Control: max-age=3600", "Age: 600", "Age: 5"), 0,
			50 * time.Minute, 50 * time.Minute, "max-age=3600"},
		{"1.2.2 Age of more than 2^31", 0, header("Cache-Control: max-age=9999999999", "Age: 99999999999999999999"), 0,
			0, 0, "max-age=2147483648"},
		{"4.2.3 the delay of the answer", 0, header("Cache-Control: max-age=3600", "Age: 600"), 10 * time.Minute,
			40 * time.Minute, 40 * time.Minute, "max-age=3600"},
		{"4.2.3 Date is older than Age says", 0, header("Cache-Control: max-age=3600", "Age: 5",
			"Date: "+httpTime(-10*time.Minute)), 0, 50 * time.Minute, 50 * time.Minute, "max-age=3600"},
		{"4.2.3 Age is older than Date says", 0, header("Cache-Control: max-age=3600", "Age: 600",
			"Date: "+httpTime(-5*time.Second)), 0, 50 * time.Minute, 50 * time.Minute, "max-age=3600"},
		{"4.2.3 the server's clock is fast", 0, header("Cache-Control: max-age=3600", "Date: "+httpTime(5*hour)), 0,
			hour, hour, "max-age=3600"},
		{"4.2.3 the server's clock is slow", 0, header("Cache-Control: max-age=3600", "Date: "+httpTime(-5*hour)), 0,
			0, 0, "max-age=3600"},
		{"4.2.3 Expires of a server whose clock is fast", 0, header("Expires: "+httpTime(6*hour),
			"Date: "+httpTime(5*hour)), 0, hour, hour, "Expires"},
		{"4.2.3 invalid Date", 0, header("Cache-Control: max-age=3600", "Date: yesterday"), 0, hour, hour,
			"max-age=3600"},

		{"4.2.2 10 % of the time since Last-Modified", 0, header("Last-Modified: " + httpTime(-100*day)), 0,
			10 * day, 10 * day, "heuristic"},
		{"4.2.2 from Date", 0, header("Last-Modified: "+httpTime(-101*day), "Date: "+httpTime(-day)), 0,
			9 * day, 9 * day, "heuristic"},
		{"4.2.2 Last-Modified in the future", 0, header("Last-Modified: " + httpTime(day)), 0, 0, 0, ""},
		{"4.2.2 invalid Last-Modified", 0, header("Last-Modified: long ago"), 0, 0, 0, ""},
		{"4.2.2 Last-Modified in the year 1", 0, header("Last-Modified: Mon, 01 Jan 0001 00:00:01 GMT"), 0,
			math.MaxInt64 / 10, math.MaxInt64 / 10, "heuristic"},
		{"4.2.2 404", 404, header("Last-Modified: " + httpTime(-100*day)), 0, 10 * day, 10 * day, "heuristic"},
		{"4.2.2 302 is not heuristically cacheable", 302, header("Last-Modified: " + httpTime(-100*day)), 0, 0, 0, ""},
		{"4.2.2 302 that is public", 302, header("Cache-Control: public", "Last-Modified: "+httpTime(-100*day)), 0,
			10 * day, 10 * day, "heuristic"},
		{"4.2.2 not if an expiration is stated", 0, header("Cache-Control: max-age=0",
			"Last-Modified: "+httpTime(-100*day)), 0, 0, 0, "max-age=0"},
		{"4.2.2 a query does not matter, nor must-revalidate", 0, header("Cache-Control: must-revalidate",
			"Last-Modified: "+httpTime(-100*day)), 0, 10 * day, 10 * day, "heuristic"},

		{"5.2.2.4 no-cache", 0, header("Cache-Control: no-cache", "Expires: "+httpTime(hour)), 0, 0, 0, "Expires"},
		{"5.2.2.4 no-cache with a field counts as without", 0,
			header(`Cache-Control: no-cache="Set-Cookie", max-age=3600`), 0, 0, 0, "max-age=3600"},
		{"5.2.2.5 no-store", 0, header("Cache-Control: no-store, max-age=3600"), 0, 0, 0, "max-age=3600"},
		{"5.2.2.7 private", 0, header("Cache-Control: private, max-age=3600"), 0, hour, 0, "max-age=3600"},
		{"5.2.2.2 must-revalidate", 0, header("Cache-Control: must-revalidate, max-age=3600"), 0, hour, hour,
			"max-age=3600"},
		{"5.4 Pragma in an answer means nothing", 0, header("Pragma: no-cache", "Cache-Control: max-age=3600"), 0,
			hour, hour, "max-age=3600"},
	} {
		if tt.status == 0 {
			tt.status = http.StatusOK
		}
		r := httpcache.Response{Status: tt.status, Header: tt.header,
			RequestedAt: receivedAt.Add(-tt.delay), ReceivedAt: receivedAt}
		private, shared := httpcache.Private.Evaluate(r), httpcache.Shared.Evaluate(r)
		if private.FreshFor() != tt.private || private.By != tt.by || shared.FreshFor() != tt.shared {
			t.Errorf("%s: fresh for %v by %q, in a shared cache for %v; want %v by %q, %v", tt.name,
				private.FreshFor(), private.By, shared.FreshFor(), tt.private, tt.by, tt.shared)
		}
	}
}

// TestStoring: what RFC 9111, section 3, allows a cache to store, and when it must ask before it uses it.
func TestStoring(t *testing.T) {
	for _, tt := range []struct {
		name                            string
		status                          int
		header, request                 http.Header
		privateMayStore, sharedMayStore bool
		mustRevalidate, noCache         bool // in a shared cache
	}{
		{"a status that is cacheable by itself", 200, header(), nil, true, true, false, false},
		{"a status that is not", 302, header(), nil, false, false, false, false},
		{"such a status with max-age", 302, header("Cache-Control: max-age=0"), nil, true, true, false, false},
		{"such a status with Expires", 302, header("Expires: 0"), nil, true, true, false, false},
		{"such a status, public", 500, header("Cache-Control: public"), nil, true, true, false, false},
		{"such a status, private", 500, header("Cache-Control: private"), nil, true, false, false, false},
		{"such a status with s-maxage", 302, header("Cache-Control: s-maxage=1"), nil, false, true, true, false},
		{"private", 200, header("Cache-Control: private"), nil, true, false, false, false},
		{"no-store", 200, header("Cache-Control: no-store, public, max-age=9"), nil, false, false, false, false},
		{"must-understand of a known status", 200, header("Cache-Control: no-store, must-understand"), nil, true, true,
			false, false},
		{"must-understand of an unknown status", 299, header("Cache-Control: must-understand, max-age=9"), nil,
			false, false, false, false},
		{"a part", 206, header("Cache-Control: max-age=9"), nil, false, false, false, false},
		{"no-cache", 200, header("Cache-Control: no-cache"), nil, true, true, false, true},
		{"must-revalidate", 200, header("Cache-Control: must-revalidate"), nil, true, true, true, false},
		{"proxy-revalidate", 200, header("Cache-Control: proxy-revalidate"), nil, true, true, true, false},
		{"s-maxage", 200, header("Cache-Control: s-maxage=9"), nil, true, true, true, false},
		{"3.5 Authorization", 200, header("Cache-Control: max-age=9"), header("Authorization: x"), true, false,
			false, false},
		{"3.5 Authorization, public", 200, header("Cache-Control: public"), header("Authorization: x"), true, true,
			false, false},
	} {
		r := httpcache.Response{Status: tt.status, Header: tt.header, RequestHeader: tt.request,
			RequestedAt: receivedAt, ReceivedAt: receivedAt}
		private, shared := httpcache.Private.Evaluate(r), httpcache.Shared.Evaluate(r)
		if private.NoStore == tt.privateMayStore || shared.NoStore == tt.sharedMayStore ||
			shared.MustRevalidate != tt.mustRevalidate || shared.NoCache != tt.noCache {
			t.Errorf("%s: private %+v, shared %+v; want %+v", tt.name, private, shared, tt)
		}
	}
}

// FuzzEvaluate proves that no header makes a lifetime or an age exceed its bounds, or an answer fresh that
// may not be stored.
func FuzzEvaluate(f *testing.F) {
	f.Add(200, "max-age=60", "5", httpTime(0), httpTime(hour), httpTime(-day), int64(0))
	f.Add(404, "no-store", "99999999999999999999", "x", "0", "Mon, 01 Jan 0001 00:00:00 GMT", int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, status int, cacheControl, age, date, expires, modified string, delay int64) {
		r := httpcache.Response{Status: status,
			ReceivedAt: receivedAt, RequestedAt: receivedAt.Add(-time.Duration(delay)),
			Header: http.Header{"Cache-Control": {cacheControl}, "Age": {age}, "Date": {date}, "Expires": {expires},
				"Last-Modified": {modified}}}
		for _, kind := range []httpcache.Kind{httpcache.Private, httpcache.Shared} {
			got := kind.Evaluate(r)
			if got.Lifetime < 0 || got.Lifetime > maxDelta || got.InitialAge < 0 || got.InitialAge > maxDelta ||
				got.FreshFor() < 0 || got.FreshFor() > got.Lifetime || got.NoStore && got.FreshFor() > 0 {
				t.Errorf("%+v: %+v, fresh for %v", r, got, got.FreshFor())
			}
			if len(got.By) > 32 {
				t.Errorf("%+v: by %q", r, got.By)
			}
		}
	})
}
