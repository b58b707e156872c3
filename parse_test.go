package decorum_test

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/decorum-crawler/decorum"
)

// mustParse returns the URL s, which must be in canonical form.
func mustParse(t testing.TB, s string) decorum.URL {
	t.Helper()
	u, err := decorum.ParseURL(s)
	if err != nil {
		t.Fatal(err)
	}
	if u.String() != s {
		t.Fatalf("%q is not canonical: it is %q", s, u)
	}
	return u
}

// resolve resolves l.ref on l.base, or parses it if the row has no base.
func (l resolveCase) resolve(t testing.TB) (decorum.URL, error) {
	t.Helper()
	if l.base == "" {
		return decorum.ParseURL(l.ref)
	}
	return mustParse(t, l.base).Resolve(l.ref)
}

func TestCanonicalForm(t *testing.T) {
	for _, topic := range resolveCases {
		t.Run(topic.topic, func(t *testing.T) {
			for _, l := range topic.cases {
				if u, err := l.resolve(t); err != nil || u.String() != l.want {
					t.Errorf("%q on %q\n got %q, %v\nwant %q", l.ref, l.base, u, err, l.want)
				}
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for _, l := range refusedCases {
		u, err := l.resolve(t)
		var e *decorum.Error
		if !errors.As(err, &e) || !errors.Is(err, decorum.Invalid) || e.Err.Error() != l.want {
			t.Errorf("%q on %q\n got %q, %v\nwant the cause %q", l.ref, l.base, u, err, l.want)
			continue
		}
		if !u.IsZero() || e.Op != "parse" || e.URL != l.ref {
			t.Errorf("%q: got %q and Op %q, URL %q; want no URL, and both", l.ref, u, e.Op, e.URL)
		}
	}
}

// TestTheSamePage lists pairs of spellings that must name the same page, and pairs that must not.
func TestTheSamePage(t *testing.T) {
	for _, tt := range []struct {
		name, a, b string
		same       bool
	}{
		{"LOC-07 IDN and Punycode", "https://www.exämple.com/", "https://www.xn--exmple-cua.com/", true},
		{"LOC-10 standard port", "https://example.com:443/x", "https://example.com/x", true},
		{"LOC-11 other port", "https://example.com:8181/", "https://example.com/", false},
		{"LOC-12 scheme", "https://example.com/", "http://example.com/", false},
		{"LOC-17 case of host", "HTTPS://User@Example.COM:443/x", "https://example.com/x", true},
		{"MATCH-04 escaped UTF-8", "https://example.com/Овощи",
			"https://example.com/%d0%9E%D0%B2%D0%BE%D1%89%D0%B8", true},
		{"MATCH-22 unreserved", "https://example.com/%62%61%7A", "https://example.com/baz", true},
		{"MATCH-22 reserved", "https://example.com/a%2Fb", "https://example.com/a/b", false},
		{"FMT-14 two encodings", "https://example.com/caf\xe9", "https://example.com/café", false},
		{"case of path", "https://example.com/A", "https://example.com/a", false},
		{"final slash", "https://example.com/a/", "https://example.com/a", false},
		{"final dot of host", "https://example.com./", "https://example.com/", false},
		{"empty query", "https://example.com/a?", "https://example.com/a", false},
		{"empty fragment", "https://example.com/a#", "https://example.com/a", true},
		{"an escape that decoding would make", "https://example.com/%%341", "https://example.com/%41", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, errA := decorum.ParseURL(tt.a)
			b, errB := decorum.ParseURL(tt.b)
			if errA != nil || errB != nil {
				t.Fatal(errA, errB)
			}
			if (a == b) != tt.same {
				t.Errorf("got %q and %q, want same = %v", a, b, tt.same)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	const origin = "https://example.com/"
	available := decorum.MaxURLBytes - len(origin)
	base := mustParse(t, origin)
	label := strings.Repeat("a", 49) + "."
	for _, tt := range []struct {
		name, ref, cause string // an empty cause: accepted
	}{
		{"absolute, as long as may be", origin + strings.Repeat("a", available), ""},
		{"absolute, too long", origin + strings.Repeat("a", available+1), "longer than 64 KiB"},
		{"relative, as long as may be", strings.Repeat("a", available), ""},
		{"relative, too long once resolved", strings.Repeat("a", available+1), "longer than 64 KiB"},
		{"too long once escaped", strings.Repeat(" ", decorum.MaxURLBytes/3) + "\xff" +
			strings.Repeat(" é", 11000), "longer than 64 KiB"},
		{"short once cleaned", strings.Repeat(" ", decorum.MaxURLBytes-1) + "a", ""},
		{"fragment, too long", "#" + strings.Repeat("a", decorum.MaxURLBytes), "longer than 64 KiB"},
		{"host, as long as may be", "//" + strings.Repeat(label, 5) + "bcd./", ""},
		{"host, too long", "//" + strings.Repeat(label, 5) + "bcde./", "host is longer than 254 octets"},
		{"canonical host, too long", "https://" + strings.Repeat(label, 5) + "bcde.f/",
			"host is longer than 254 octets"},
		{"international host, too long to map", "//" + strings.Repeat("例", 20000) + "/",
			"host is longer than 254 octets"},
		{"international host, too long mapped", "//" + strings.Repeat("例", 300) + "/",
			"host is longer than 254 octets"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, err := base.Resolve(tt.ref)
			if tt.cause == "" {
				if err != nil {
					t.Fatal(err)
				}
				mustParse(t, u.String())
				return
			}
			var e *decorum.Error
			if !errors.As(err, &e) || e.Err.Error() != tt.cause {
				t.Fatalf("got %q, %v; want the cause %q", u, err, tt.cause)
			}
			if len(e.URL) > 256 {
				t.Errorf("the error shows %d bytes", len(e.URL))
			}
		})
	}
}

// TestResolveBytes proves that the buffer of a page can be reused after its links were resolved.
func TestResolveBytes(t *testing.T) {
	for _, ref := range []string{
		"https://example.com/x", "https://other.example/x", "/x", "x", "../x", "?x", "#x", "", "é", "//other.example",
	} {
		t.Run(ref, func(t *testing.T) {
			base := mustParse(t, basePage)
			want, err := base.Resolve(ref)
			if err != nil {
				t.Fatal(err)
			}
			buffer := []byte(ref)
			got, err := base.ResolveBytes(buffer)
			clear(buffer)
			if err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
	t.Run("error", func(t *testing.T) {
		buffer := []byte("mailto:someone@example.com")
		_, err := mustParse(t, basePage).ResolveBytes(buffer)
		clear(buffer)
		var e *decorum.Error
		if !errors.As(err, &e) || e.URL != "mailto:someone@example.com" {
			t.Errorf("got %v", err)
		}
	})
}

// TestAllocations limits the allocations for each form of link.
func TestAllocations(t *testing.T) {
	base := mustParse(t, basePage)
	for _, tt := range []struct {
		ref               string
		ofString, ofBytes float64
	}{
		{"#top", 0, 0},
		{"", 0, 0},
		{"https://example.com/some/page/of/the/site.html?x=y#z", 0, 1},
		{"https://other.example/some/page/of/another/site.html", 0, 1},
		{"/some/page/of/the/site/that/is/rather/deep.html?x=y", 1, 1},
		{"../some/page/of/the/site/that/is/rather/deep.html?x=y", 1, 1},
		{"?query=that-is-not-so-short&but=still-not-very-long", 1, 1},
		{"https://www.bücher-müller.example/katalog/", 1, 2},
		{"https://www.xn--bcher-mller-uhb4g.example/katalog/", 0, 1},
		{"HTTPS://Example.COM:443/./caf%c3%a9/%7eso and so on and on", 1, 2},
	} {
		if n := testing.AllocsPerRun(100, func() { base.Resolve(tt.ref) }); n != tt.ofString {
			t.Errorf("Resolve(%q) allocates %v times, want %v", tt.ref, n, tt.ofString)
		}
		ref := []byte(tt.ref)
		if n := testing.AllocsPerRun(100, func() { base.ResolveBytes(ref) }); n != tt.ofBytes {
			t.Errorf("ResolveBytes(%q) allocates %v times, want %v", tt.ref, n, tt.ofBytes)
		}
	}
}

// TestCanonicalIsNotCopied proves that ParseURL does not copy a canonical string.
func TestCanonicalIsNotCopied(t *testing.T) {
	u := mustParse(t, basePage)
	if unsafe.StringData(u.String()) != unsafe.StringData(basePage) {
		t.Error("a canonical string was copied")
	}
}

// checkInvariants fails the test if ref, a link on base, breaks an invariant that the crawl relies
// on: both parsers agree, and the result is stable.
func checkInvariants(t *testing.T, base decorum.URL, ref string) {
	t.Helper()
	u, err := base.Resolve(ref)
	full, fullErr := decorum.ResolveFull(base, ref)
	if (err == nil) != (fullErr == nil) || err == nil && u != full {
		t.Fatalf("%q on %q: got %q, %v, but the full parser says %q, %v", ref, base, u, err, full, fullErr)
	}
	if b, bErr := base.ResolveBytes([]byte(ref)); b != u || (bErr == nil) != (err == nil) {
		t.Fatalf("%q on %q: got %q, %v, but as bytes %q, %v", ref, base, u, err, b, bErr)
	}
	if err != nil {
		return
	}
	if again, err := decorum.ParseURL(u.String()); again != u {
		t.Fatalf("%q is not stable: parsed again it is %q, %v", u, again, err)
	}
	if again, err := decorum.ResolveFull(u, u.String()); again != u {
		t.Fatalf("%q is not stable: resolved against itself it is %q, %v", u, again, err)
	}
	if again, err := decorum.ResolveFull(u, u.PathAndQuery()); !strings.HasPrefix(u.PathAndQuery(), "//") &&
		again != u {
		t.Fatalf("path %q is not stable: %q, %v", u.PathAndQuery(), again, err)
	}
	checkPath(t, u)
}

// checkPath checks what PathAndQuery promises to the matching of rules.
func checkPath(t *testing.T, u decorum.URL) {
	t.Helper()
	path := u.PathAndQuery()
	if !strings.HasPrefix(path, "/") || strings.Contains(path, "#") {
		t.Fatalf("%q: path is %q", u, path)
	}
	if strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r >= 0x7F }) {
		t.Fatalf("%q: path is not printable ASCII", u)
	}
	pathOnly, _, _ := strings.Cut(path, "?")
	for segment := range strings.SplitSeq(pathOnly, "/") {
		if segment == "." || segment == ".." {
			t.Fatalf("%q: path has a dot segment", u)
		}
	}
}

func TestInvariants(t *testing.T) {
	var bases []decorum.URL
	for _, s := range []string{
		basePage, "http://example.com/", "ftp://example.com/a//b/", "https://example.com/a?b/../c?d",
		"https://[::1]:8080/%%341/%4", "https://www.xn--exmple-cua.com/%C3%A9/",
	} {
		bases = append(bases, mustParse(t, s))
	}
	bases = append(bases, decorum.URL{})
	for _, base := range bases {
		for _, topic := range resolveCases {
			for _, l := range topic.cases {
				checkInvariants(t, base, l.ref)
				checkInvariants(t, base, l.want)
			}
		}
		for _, l := range refusedCases {
			checkInvariants(t, base, l.ref)
		}
	}
}

// TestFastPathIsUsed proves that the fast path resolves the usual forms of links.
func TestFastPathIsUsed(t *testing.T) {
	base := mustParse(t, basePage)
	for _, ref := range []string{
		"https://example.com/x", "https://www.other.example/a-b/c.html?d=e%26#f",
		"http://other.example/", "ftp://other.example/x",
		"/", "/x/y.html?a=b", "x.html", "./x", "../y/z.html#top", "../../..a/.b/", "?page=2", "#x", "", "/%D0%9E/a:b@c",
	} {
		if _, ok := decorum.ResolveFast(base, ref); !ok {
			t.Errorf("%q is left to the full parser", ref)
		}
	}
}

// addResolveSeeds adds the links of the tests to the corpus of f.
func addResolveSeeds(f *testing.F) {
	for _, topic := range resolveCases {
		for _, l := range topic.cases {
			f.Add(l.base, l.ref)
		}
	}
	for _, l := range refusedCases {
		f.Add(l.base, l.ref)
	}
}

func FuzzResolve(f *testing.F) {
	addResolveSeeds(f)
	f.Fuzz(func(t *testing.T, base, ref string) {
		page, _ := decorum.ParseURL(base) // an invalid base tests links without a base
		checkInvariants(t, page, ref)
	})
}
