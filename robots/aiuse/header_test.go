package aiuse

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// describeSignals returns signals in a short form.
func describeSignals(all Signals) []string {
	var got []string
	for _, s := range all {
		got = append(got, strings.TrimSpace(fmt.Sprint(s.Field, " ", s.Category, " ", s.Preference, " ", s.TDMPolicy)))
	}
	return got
}

func TestHeaderSignals(t *testing.T) {
	for _, test := range []struct {
		name   string
		header http.Header
		want   []string
	}{
		{"nothing", http.Header{"Content-Type": {"text/html"}}, nil},
		{"usage", http.Header{"Content-Usage": {"train-ai=n, search=y"}},
			[]string{"content-usage train-ai disallow", "content-usage search allow"}},
		{"signal", http.Header{"Content-Signal": {"search=yes,ai-train=no ,ai-input=NO"}},
			[]string{"content-signal search allow", "content-signal ai-train disallow",
				"content-signal ai-input disallow"}},
		{"each on its own", http.Header{"Content-Usage": {"search=n"}, "Content-Signal": {"search=yes"}},
			[]string{"content-usage search disallow", "content-signal search allow"}},
		{"the stricter line", http.Header{"Content-Usage": {"train-ai=n", "train-ai=y"}},
			[]string{"content-usage train-ai disallow"}},
		{"the last of a line", http.Header{"Content-Usage": {"train-ai=n, train-ai=y"}},
			[]string{"content-usage train-ai allow"}},
		{"parameters", http.Header{"Content-Usage": {`train-ai=n;because="a, b", search;train-ai=n`}},
			[]string{"content-usage train-ai disallow", "content-usage search unset"}},
		{"a string hides", http.Header{"Content-Usage": {`x="a, train-ai=n \", search=n", train-ai=y`}},
			[]string{"content-usage x unset", "content-usage train-ai allow"}},
		{"an inner list hides", http.Header{"Content-Usage": {`x=(a, search=n), train-ai=n`}},
			[]string{"content-usage x unset", "content-usage train-ai disallow"}},
		{"a string that never ends", http.Header{"Content-Usage": {`x="a, train-ai=n, search=y`}},
			[]string{"content-usage x unset", "content-usage train-ai disallow", "content-usage search allow"}},
		{"a list that never ends", http.Header{"Content-Usage": {`x=(a, train-ai=n`}},
			[]string{"content-usage x unset", "content-usage train-ai disallow"}},
		{"no values", http.Header{"Content-Usage": {",,=,;, =n,", ""}}, nil},
		{"a long name", http.Header{"Content-Usage": {strings.Repeat("a", syntax.MaxCategoryBytes+1) + "=n"}}, nil},
		{"reserved", http.Header{"Tdm-Reservation": {" 1 "}, "Tdm-Policy": {"https://a.example/p.json"}},
			[]string{"tdm-reservation tdm disallow https://a.example/p.json"}},
		{"not reserved", http.Header{"Tdm-Reservation": {"0"}}, []string{"tdm-reservation tdm allow"}},
		{"the stricter of two", http.Header{"Tdm-Reservation": {"0", "1"}}, []string{"tdm-reservation tdm disallow"}},
		{"neither", http.Header{"Tdm-Reservation": {"2", "yes", ""}, "Tdm-Policy": {"/p"}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := HeaderSignals(test.header)
			if !slices.Equal(describeSignals(got), test.want) {
				t.Errorf("got %q, want %q", describeSignals(got), test.want)
			}
			for _, s := range got {
				if s.Source != InHeader || s.Line != 0 {
					t.Errorf("%+v is not of a header", s)
				}
			}
		})
	}
}

// TestHeaderSignalsAreLinear proves that deeply nested lists take no longer than flat ones.
func TestHeaderSignalsAreLinear(t *testing.T) {
	const long = 1 << 20
	for _, list := range []string{"(,", `a="(,`, "a=n,", `\",`, ")(,", `",`} {
		if n := len(HeaderSignals(
			http.Header{"Content-Usage": {strings.Repeat(list, long/len(list))}})); n > syntax.MaxCategories {
			t.Errorf("%q: %d categories", list, n)
		}
	}
}

func FuzzHeaderSignals(f *testing.F) {
	for _, seed := range []string{"train-ai=n, search=y", `a="x, y=n`, "a=(b, c);d, e=n", "search=yes,ai-train=no"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		got := HeaderSignals(http.Header{"Content-Usage": {list}})
		if len(got) > syntax.MaxCategories {
			t.Errorf("%d categories", len(got))
		}
		if strings.ContainsAny(list, `"()\`) {
			return
		}
		for _, s := range got { // compare with an independent parser for plain lists
			last := Unset
			for part := range strings.SplitSeq(list, ",") {
				part, _, _ = strings.Cut(part, ";")
				if name, value, _ := strings.Cut(part, "="); strings.ToLower(strings.Trim(name, " \t")) == s.Category {
					last = map[string]Preference{"y": Allowed, "yes": Allowed, "n": Disallowed,
						"no": Disallowed}[strings.ToLower(strings.Trim(value, " \t"))]
					last = cmp.Or(last, Unset)
				}
			}
			if s.Preference != last && len(got) < syntax.MaxCategories {
				t.Errorf("%q: %s is %s, want %s", list, s.Category, s.Preference, last)
			}
		}
	})
}
