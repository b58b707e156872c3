package extract

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// headerTests are header fields of a response for http://example.com/dir/page, and their links.
var headerTests = []struct {
	name   string
	header http.Header
	want   []string
}{
	{"none", http.Header{}, nil},
	{"canonical", http.Header{"Link": {`</c>; rel="canonical"`}}, []string{"/c canonical"}},
	{"relative to the page", http.Header{"Link": {`<x>; rel=next, <?p=2>; rel=prev`}},
		[]string{"/dir/x next", "/dir/page?p=2 prev"}},
	{"several in a field and several fields",
		http.Header{"Link": {`</1>;rel=next,</2>;rel=prev ,, </3>; rel=alternate`, `</4>;rel=next`}},
		[]string{"/1 next", "/2 prev", "/3 alternate", "/4 next"}},
	{"feed", http.Header{"Link": {`</f>; rel=alternate; type="application/atom+xml;type=feed"`}}, []string{"/f feed"}},
	{"a list of relations", http.Header{"Link": {`</n>; rel="start http://example.com/rel NEXT"`}},
		[]string{"/n next"}},
	{"previous and amphtml", http.Header{"Link": {`</p>; rel=previous, </a>; rel=amphtml`}},
		[]string{"/p prev", "/a amphtml"}},
	{"relations that lead nowhere", http.Header{"Link": {`</s.css>; rel=preload; as=style, </s>; rel="alternate stylesheet", </x>`}}, nil},
	{"the first rel counts", http.Header{"Link": {`</n>; rel=next; rel=canonical, </x>; rel=search; rel=next`}},
		[]string{"/n next"}},
	{"comma and semicolon in quotes", http.Header{"Link": {`</n>; title="a, <b>; c"; rel="next", </p>; rel=prev`}},
		[]string{"/n next", "/p prev"}},
	{"escapes in quotes", http.Header{"Link": {`</n>; title="\"; rel=prev; \\"; rel="\n\e\x\t"`}}, []string{"/n next"}},
	{"comma in the target", http.Header{"Link": {`</a,b;c>; rel=next`}}, []string{"/a,b;c next"}},
	{"blanks anywhere", http.Header{"Link": {"  <\t/n >\t;  REL = \"next\"\t; x , </p>;rel= prev ;"}},
		[]string{"/n next", "/p prev"}},
	{"parameters without value", http.Header{"Link": {`</n>; crossorigin; rel=next; x=`, `</p>;rel=prev;;;`}},
		[]string{"/n next", "/p prev"}},
	{"anchor on the page", http.Header{"Link": {`</n>; rel=next; anchor="#part", </p>; rel=prev; anchor="/dir/page"`}},
		[]string{"/n next", "/p prev"}},
	{"anchor on another page", http.Header{"Link": {`</c>; rel=canonical; anchor="/other", </n>; rel=next`}},
		[]string{"/n next"}},
	{"a syntax error ends the field", http.Header{"Link": {`</n>; rel=next, oops, </p>; rel=prev`, `</q>; rel=prev`}},
		[]string{"/n next", "/q prev"}},
	{"never closed", http.Header{"Link": {`</n; rel=next`, `</p>; rel="prev`, `<`, `;`, `</n>;`}}, []string{"/p prev"}},
	{"schemes that are not crawled", http.Header{"Link": {`<mailto:x@example.com>; rel=alternate, <#x>; rel=next, <>; rel=next`}}, nil},
	{"references are not decoded", http.Header{"Link": {`</?a&amp;b>; rel=next`}}, []string{"/?a&amp;b next"}},
	{"longer than a link may be", http.Header{"Link": {"</" + strings.Repeat("x", maxRefBytes) +
		">; rel=next, </p>; rel=prev"}}, []string{"/p prev"}},
	{"refresh", http.Header{"Refresh": {`5; url="/r"`}}, []string{"/r refresh"}},
	{"refresh of the page itself", http.Header{"Refresh": {"5"}}, nil},
	{"both", http.Header{"Refresh": {"0;url=/x"}, "Link": {"</x>; rel=next"}}, []string{"/x refresh"}},
}

func TestScanHeader(t *testing.T) {
	home := mustParse(t, "http://example.com/dir/page")
	var s Scanner // reused for every page
	for _, test := range headerTests {
		t.Run(test.name, func(t *testing.T) {
			if got := linkStrings(s.ScanHeaderLinks(test.header, home)); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestScanHeaderCanonical(t *testing.T) {
	header := http.Header{"Link": {`<#>; rel=canonical, </1>; rel=canonical; anchor=/x, </2#x>; rel=canonical, </3>; rel=canonical`}}
	if got := new(Scanner).ScanHeaderLinks(header,
		mustParse(t, "http://example.com/")).CanonicalURL.String(); got != "http://example.com/2" {
		t.Errorf("got %q", got)
	}
}

func TestScanHeaderIsBounded(t *testing.T) {
	s := Scanner{MaxLinks: 2}
	doc := s.ScanHeaderLinks(http.Header{"Link": {"</1>;rel=next,</2>;rel=next,</3>;rel=next"}},
		mustParse(t, "http://example.com/"))
	if len(doc.Links) != 2 || !doc.LinksTruncated {
		t.Errorf("%d links, more %v", len(doc.Links), doc.LinksTruncated)
	}
}

func FuzzScanHeader(f *testing.F) {
	for _, h := range headerTests {
		for _, field := range h.header {
			f.Add(field[0])
		}
	}
	home := mustParse(f, "http://example.com/dir/page")
	f.Fuzz(func(t *testing.T, field string) {
		link := `</before>; rel=next, ` + field
		doc := new(Scanner).ScanHeaderLinks(http.Header{"Link": {link}, "Refresh": {field}}, home)
		if !slices.ContainsFunc(doc.Links, func(l Link) bool { return l.URL.PathAndQuery() == "/before" }) {
			t.Errorf("%q hides the link before it", field)
		}
	})
}
