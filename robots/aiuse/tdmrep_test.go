package aiuse

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

func TestTDMRep(t *testing.T) {
	const rules = `[
  {"location": "/open/*.html$", "tdm-reservation": 0},
  {"location": "/caf%C3%A9/", "tdm-reservation": 1, "tdm-policy": "https://a.example/policy.json"},
  {"location": "/papers", "tdm-reservation": "1",
   "tdm-policy": 7}, {"location": "/papers/free", "tdm-reservation": 0},
  {"location": "*.pdf$", "tdm-reservation": 1}
]`
	for _, test := range []struct {
		name, file, path string
		want             string // "": no signal
		line             int
		damage           string
	}{
		{"nothing matches", rules, "/", "", 0, ""},
		{"a pattern", rules, "/open/a.html", "allow", 2, ""},
		{"its end counts", rules, "/open/a.html?x", "", 0, ""},
		{"escapes are one", rules, "/caf%c3%a9/x", "disallow https://a.example/policy.json", 3, ""},
		{"the first that matches", rules, "/papers/free/x", "disallow", 4, ""},
		{"a wildcard first", rules, "/x/y.pdf", "disallow", 6, ""},
		{"one rule alone", `{"location":"/","tdm-reservation":1}`, "/x", "disallow", 1, ""},
		{"a mark before it", "\ufeff" + `[{"location":"/","tdm-reservation":1}]`, "/x", "disallow", 1, ""},
		{"rules that say nothing", `[1, "a", null, {}, [], {"location":"/"}, {"location":"x","tdm-reservation":1},
			{"location":7,"tdm-reservation":1}, {"location":"/","tdm-reservation":2}, {"location":"/","tdm-reservation":true}]`, "/x", "", 0, ""},
		{"what follows them", `[{"location":"/","tdm-reservation":[1]},` + "\n\n" +
			`{"location":"/","tdm-reservation":1}]`, "/x", "disallow", 3, ""},
		{"empty", "", "/", "", 0, "too early"},
		{"no JSON", "<!doctype html>", "/", "", 0, "invalid character"},
		{"no list", "7", "/", "", 0, "a list of rules is expected"},
		{"cut", `[{"location":"/a","tdm-reservation":1},{"loc`, "/a", "disallow", 1, "too early"},
		{"too long", `[{"location":"/a","tdm-reservation":1},` +
			strings.Repeat(`{"location":"/b"},`, MaxTDMRepBytes/10), "/a", "disallow", 1, "longer than 65536 bytes"},
		{"deep", `[{"location":"/a","tdm-reservation":1},` + strings.Repeat("[", 30_000), "/a",
			"disallow", 1, "exceeded max depth"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file, err := ParseTDMRep([]byte(test.file))
			if (err == nil) != (test.damage == "") || err != nil && !strings.Contains(err.Error(), test.damage) {
				t.Errorf("error %v, want %q", err, test.damage)
			}
			u := robotstest.URL(t, "http://h"+test.path)
			var got string
			for _, s := range file.SignalsForURL(u) {
				got = strings.TrimSpace(fmt.Sprint(s.Preference, " ", s.TDMPolicy))
				if s.Line != test.line || s.Source != InTDMRep || s.Category != "tdm" {
					t.Errorf("%+v, want line %d", s, test.line)
				}
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			v := file.Check(u, []string{"ai-train"})
			if closed := strings.HasPrefix(test.want, "disallow"); v.Allowed == closed ||
				closed && (v.Rule != "tdm-reservation: 1" || v.Line != test.line) {
				t.Errorf("verdict %+v", v)
			}
			if !file.Check(u, []string{"search", "archive"}).Allowed {
				t.Error("a crawl that does not mine text and data is disallowed")
			}
		})
	}
	if n := len((*TDMRep)(nil).SignalsForURL(robotstest.URL(t, "http://h/"))); n != 0 {
		t.Error("a nil TDMRep has signals")
	}
}

func TestTDMRepURL(t *testing.T) {
	u := robotstest.URL(t, "https://h:8443/a/b?c")
	if got := TDMRepURL(u.Origin()).String(); got != "https://h:8443/.well-known/tdmrep.json" {
		t.Error(got)
	}
	if !TDMRepURL(decorum.Origin{}).IsZero() {
		t.Error("the zero Origin has a tdmrep.json")
	}
}

func TestUsesTDM(t *testing.T) {
	for purpose, want := range map[string]bool{"search": false, "archive": false, "ai-input": true, "ai-train": true} {
		if PurposesIncludeTDM([]string{purpose}) != want {
			t.Errorf("%s: want %v", purpose, want)
		}
	}
	if PurposesIncludeTDM(nil) {
		t.Error("without purposes, PurposesIncludeTDM is true")
	}
}

func FuzzTDMRep(f *testing.F) {
	for _, seed := range []string{`[{"location":"/a*b$","tdm-reservation":1,"tdm-policy":"x"}]`, `{"location":"/"}`,
		"[[", `[{"location":"/","tdm-reservation":"0"},`} {
		f.Add([]byte(seed))
	}
	u := robotstest.URL(f, "http://h/a/b?c")
	f.Fuzz(func(t *testing.T, body []byte) {
		file, _ := ParseTDMRep(body)
		lines := strings.Count(string(body), "\n") + 1
		for _, s := range file.SignalsForURL(u) {
			if s.Line < 1 || s.Line > lines || len(s.TDMPolicy) > maxPolicyBytes ||
				!slices.Contains([]Preference{Allowed, Disallowed}, s.Preference) {
				t.Errorf("%+v of %d lines", s, lines)
			}
		}
	})
}
