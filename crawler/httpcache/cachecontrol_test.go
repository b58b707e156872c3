package httpcache_test

import (
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/httpcache"
)

const maxDelta = 1 << 31 * time.Second

// TestMaxAge: max-age of each header, with lines separated by "|". Section numbers are those of RFC 9111.
func TestMaxAge(t *testing.T) {
	const none, invalid = time.Duration(-1), time.Duration(-2)
	for _, tt := range []struct {
		header string
		want   time.Duration
	}{
		{"", none},
		{"public", none},
		{"max-age=3600", time.Hour},
		{"public, max-age=3600, must-revalidate", time.Hour},
		{"Max-Age=3600", time.Hour},      // 5.2: names have no case
		{`max-age="3600"`, time.Hour},    // 5.2: also as a quoted string
		{`max-age="36\00"`, time.Hour},   // with an escape (RFC 9110, 5.6.4)
		{"\tmax-age = 3600 ", time.Hour}, // blanks around it
		{",,=,max-age=60,", time.Minute}, // empty elements (RFC 9110, 5.6.1.2)
		{"max-age=0", 0},
		{"max-age=60|public", time.Minute},       // several lines are one list
		{"max-age=60, max-age=60", time.Minute},  // 4.2.1: a duplicate
		{"max-age=60|max-age=3600", time.Minute}, // 4.2.1: the smallest of several
		{"max-age=3600, max-age=60", time.Minute},
		{"s-maxage=60", none},
		{"x-max-age=60", none},
		{`x="max-age=60"`, none},                       // inside the value of another
		{`x="a, max-age=60, b"`, none},                 // and behind a comma in it
		{`x="\", max-age=1", max-age=60`, time.Minute}, // and behind an escaped quote
		{`x="open, max-age=60`, time.Minute},           // a quote without an end is none
		{`private="x"junk, max-age=60`, time.Minute},   // text after a quoted string does not count
		{"max-age", invalid},                           // 4.2.1: invalid values are stale
		{"max-age=", invalid},
		{"max-age=-1", invalid},
		{"max-age=+1", invalid},
		{"max-age=1e3", invalid},
		{"max-age=1.5", invalid},
		{"max-age=1d", invalid},
		{"max-age=٣", invalid},
		{"max-age=60;no-store", invalid},
		{"max-age=60 no-store", invalid},
		{"max-age=60, max-age=x", invalid}, // also beside a valid one
		{"max-age=x, max-age=60", invalid},
		{"max-age=2147483648", maxDelta}, // 1.2.2: 2^31 is enough
		{"max-age=2147483649", maxDelta},
		{"max-age=99999999999999999999999999", maxDelta},
		{"max-age=00000000000000000000000060", time.Minute},
	} {
		d := httpcache.ParseCacheControl(strings.Split(tt.header, "|"))
		got := d.MaxAge.Value
		switch {
		case !d.MaxAge.IsStated:
			got = none
		case d.MaxAge.IsInvalid:
			got = invalid
		}
		if got != tt.want {
			t.Errorf("%q: %v, want %v", tt.header, got, tt.want)
		}
	}
}

// TestDirectives: the directives without a value, also with one, and in bad company.
func TestDirectives(t *testing.T) {
	for header, want := range map[string]httpcache.Directives{
		"no-store":                       {NoStore: true},
		"NO-STORE=1, x":                  {NoStore: true},
		`no-cache="Set-Cookie", private`: {NoCache: true, Private: true},
		`private="a, no-store"`:          {Private: true},
		`private="a, no-store`:           {Private: true, NoStore: true},
		"max-age=x, no-store":            {NoStore: true, MaxAge: httpcache.Delta{IsStated: true, IsInvalid: true}},
		"must-revalidate, proxy-revalidate, public, must-understand": {MustRevalidate: true, ProxyRevalidate: true,
			Public: true, MustUnderstand: true},
		"nostore, no-storex, no store, \"no-store\"": {},
		"s-maxage=5": {SMaxAge: httpcache.Delta{IsStated: true, Value: 5 * time.Second}},
	} {
		if got := httpcache.ParseCacheControl([]string{header}); got != want {
			t.Errorf("%q: %+v, want %+v", header, got, want)
		}
	}
}

// FuzzParseCacheControl proves for all headers that values are within their bounds, and that a broken
// header hides neither what is before it nor what is on the next line.
func FuzzParseCacheControl(f *testing.F) {
	for _, seed := range []string{"max-age=60", `a="b, c", max-age="1"`, `x="`, `\`, "=,=", "max-age=-1,s-maxage=1",
		"max-age=1 no-store"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		d := httpcache.ParseCacheControl([]string{header})
		for _, delta := range []httpcache.Delta{d.MaxAge, d.SMaxAge} {
			if delta.Value < 0 || delta.Value > maxDelta || delta.Value%time.Second != 0 ||
				delta.Value > 0 && (!delta.IsStated || delta.IsInvalid) || delta.IsInvalid && !delta.IsStated {
				t.Errorf("%q: %+v", header, delta)
			}
		}
		for _, lines := range [][]string{{header, "no-store, max-age=1"}, {"max-age=1, no-store, " + header}} {
			after := httpcache.ParseCacheControl(lines)
			if !after.NoStore || !after.MaxAge.IsStated || after.MaxAge.Value > time.Second {
				t.Errorf("%q: %+v", lines, after)
			}
		}
	})
}
