package httpcache_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/httpcache"
)

// TestVariants: an answer stands for the requests that have the same headers as its own where Vary says
// that it matters (RFC 9111, section 4.1).
func TestVariants(t *testing.T) {
	request := header("User-Agent: bot/1.0", "Accept-Language: en", "Accept: text/html", "Accept: */*")
	for _, tt := range []struct {
		name    string
		vary    http.Header
		another http.Header
		want    bool
	}{
		{"no Vary", header(), header("User-Agent: other"), true},
		{"empty Vary", header("Vary: , ,"), header("User-Agent: other"), true},
		{"the same", header("Vary: User-Agent, Accept-Language"), request, true},
		{"another User-Agent", header("Vary: User-Agent"), header("User-Agent: bot/2.0"), false},
		{"case of the value", header("Vary: User-Agent"), header("User-Agent: Bot/1.0"), false},
		{"another header that does not matter", header("Vary: User-Agent"), header("User-Agent: bot/1.0", "X: y"),
			true},
		{"a header is missing now", header("Vary: Accept-Language"), header(), false},
		{"a header is new", header("Vary: Cookie"), header("Cookie: a=b"), false},
		{"a header is new and empty", header("Vary: Cookie"), header("Cookie: "), false},
		{"a header is missing in both", header("Vary: Cookie"), header(), true},
		{"lines of one header are a list", header("Vary: accept"), header("Accept: text/html, */*"), true},
		{"blanks around the value", header("Vary: accept-LANGUAGE"), header("Accept-Language:  en "), true},
		{"two lines of Vary", header("Vary: Accept", "Vary: Accept-Language"), header("Accept: text/html, */*"), false},
		{"names in another order, and twice", header("Vary: accept-language, user-agent, Accept-Language"),
			header("Accept-Language: en", "User-Agent: bot/1.0"), true},
		{"any", header("Vary: *"), request, false},
		{"any among others", header("Vary: Accept, *"), request, false},
		{"not a name", header("Vary: User Agent"), request, false},
		{"an ignored name", header("Vary: Accept-Encoding"), header("Accept-Encoding: gzip"), true},
		{"too many names", header("Vary: " + strings.Repeat("x", httpcache.MaxVariantKeyBytes)), request, false},
	} {
		key := httpcache.VariantKey(tt.vary, request, "ACCEPT-encoding")
		if got := httpcache.MatchesVariant(key, tt.another); got != tt.want {
			t.Errorf("%s: key %q matches: %v, want %v", tt.name, key, got, tt.want)
		}
	}
	key := httpcache.VariantKey(header("Vary: A, B"), header("A: x"))
	if httpcache.MatchesVariant(key, header("B: x")) {
		t.Errorf("key %q matches a request in which two headers have changed places", key)
	}
}

// TestVariantKeyIsStable: keys are in files, so they must never change.
func TestVariantKeyIsStable(t *testing.T) {
	for vary, want := range map[string]string{
		"":                            "",
		"*":                           "*",
		"User-Agent, Accept-Language": "accept-language,user-agent:a255b2243adf59e9",
	} {
		if got := httpcache.VariantKey(header("Vary: "+vary), header("User-Agent: bot/1.0")); got != want {
			t.Errorf("Vary %q: %q, want %q", vary, got, want)
		}
	}
}

// FuzzVariantKey proves that every Vary gives a key of limited length that stands for the request itself,
// or for none, and that every stored key can be compared.
func FuzzVariantKey(f *testing.F) {
	for _, seed := range []string{"*", "Accept, Cookie", ",:,", "a:b"} {
		f.Add(seed, "x", seed)
	}
	f.Fuzz(func(t *testing.T, vary, value, stored string) {
		request := http.Header{"Cookie": {value}}
		key := httpcache.VariantKey(http.Header{"Vary": {vary}}, request)
		if len(key) > httpcache.MaxVariantKeyBytes || key != "*" && !httpcache.MatchesVariant(key, request) {
			t.Errorf("Vary %q: key %q", vary, key)
		}
		httpcache.MatchesVariant(stored, request)
	})
}
