package extract

import (
	"net/http"
	"slices"
	"testing"
)

// resourceTests are pages with resources, and their links with IncludeResources.
var resourceTests = []struct {
	name string
	page string
	want []string
}{
	{"link elements", `<link rel=stylesheet href=/1><link rel="alternate stylesheet" href=/2><link rel="shortcut icon" href=/3>
		<link rel=apple-touch-icon href=/4><link rel=manifest href=/5><link rel=modulepreload href=/6><link rel=preload href=/7 as=font>
		<link rel=prefetch as=script href=/8><link rel=preload as=image href=/9 imagesrcset="/10 1x, /11 2x">`,
		[]string{"/1 resource", "/2 resource", "/3 img", "/4 img", "/5 resource", "/6 resource",
			"/7 resource", "/8 resource", "/9 img", "/10 img", "/11 img"}},
	{"links to pages", `<link rel=prefetch href=/no><link rel=preload as=Document href=/no><link rel=preconnect href=/no>
		<link rel=dns-prefetch href=//no.example><link rel=next href=/1>`, []string{"/1 next"}},
	{"scripts", `<script src=/1>"<img src=/no>"</script><script>x</script>`, []string{"/1 resource"}},
	{"images", `<img src=/1 srcset="/2 2x" lowsrc=/3 dynsrc=/4 longdesc=/5><input type=Image src=/6><input src=/no>`,
		[]string{"/1 img", "/2 img", "/3 img", "/4 img", "/5 resource", "/6 img"}},
	{"media", `<video src=/1 poster=/2><source src=/3><track src=/4></video><audio src=/5></audio><picture><source srcset=/6></picture>
		<embed src=/7 type=video/mp4><object data=/8 type=audio/mpeg></object><amp-img src=/9>`,
		[]string{"/1 resource", "/2 img", "/3 resource", "/4 resource", "/5 resource", "/6 img", "/7 resource",
			"/8 resource", "/9 resource"}},
	{"backgrounds", `<body background=/1><table background=/2><td background=/3>`, []string{"/1 img", "/2 img", "/3 img"}},
	{"style elements", `<style>@import "/1"; a{b:url(/2?a&amp;b)}</style><svg><style/></svg>`,
		[]string{"/1 resource", "/2?a&amp;b resource"}},
	{"style attributes", `<p style="background: url('/1'), url(&quot;/2?a&amp;b&quot;)"><custom style=b:url(3)><a href=/4 style="x:url(/5)">`,
		[]string{"/1 resource", "/2?a&b resource", "/dir/3 resource", "/4 a", "/5 resource"}},
	{"svg", `<svg style="fill:url(/1)"><image href=/2 /><use xlink:href="/3#x"/><use href="#y"/><script xlink:href=/4></script>
		<a href=/5><image xlink:href=/6 style="x:url(/7)"/></a></svg><image src=/8>`,
		[]string{"/1 resource", "/2 img", "/3 resource", "/4 resource", "/5 a", "/6 img",
			"/7 resource", "/8 img"}},
	{"the base", `<img src=x><base href=/b/>`, []string{"/b/x img"}},
	{"srcdoc", `<iframe srcdoc="<img src=/1><style>a{b:url(/2)}</style>"></iframe>`, []string{"/1 img", "/2 resource"}},
	{"what is no resource", `<iframe src=/1></iframe><a href=/2 ping=/no></a><form action=/no method=post></form><param value=/no>
		<meta content="url(/no)">`, []string{"/1 iframe", "/2 a"}},
}

// TestResources: with IncludeResources, what a browser needs to show the page is a link.
func TestResources(t *testing.T) {
	for _, test := range resourceTests {
		t.Run(test.name, func(t *testing.T) {
			s := Scanner{IncludeResources: true}
			doc := s.ScanPage([]byte(test.page), "text/html", mustParse(t, "http://example.com/dir/page"))
			if got := linkStrings(doc); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
			s.IncludeResources = false
			doc = s.ScanPage([]byte(test.page), "text/html", mustParse(t, "http://example.com/dir/page"))
			if slices.ContainsFunc(doc.Links, func(l Link) bool { return l.IsImage || l.IsResource }) {
				t.Errorf("without IncludeResources: %q", linkStrings(doc))
			}
		})
	}
}

// TestPageThatIsAResource: a URL that the page links to and needs as well says so.
func TestPageThatIsAResource(t *testing.T) {
	s := Scanner{IncludeResources: true}
	doc := s.ScanPage([]byte(`<a href=/1><img src=/1></a><script src=/2></script><a href=/2>`), "text/html",
		mustParse(t, "http://example.com/"))
	if len(doc.Links) != 2 || doc.Links[0].Kind != Anchor || !doc.Links[0].IsImage || doc.Links[0].IsResource ||
		doc.Links[1].Kind != Anchor || !doc.Links[1].IsResource || doc.Links[1].IsImage {
		t.Errorf("links %+v, want two anchors, of which one is an image and one a resource", doc.Links)
	}
}

// TestResourcesInHeader: a Link field may announce resources.
func TestResourcesInHeader(t *testing.T) {
	header := http.Header{"Link": {`</1>; rel=preload; as=style, </2>; rel="next", </3>; rel=preload`}}
	for _, include := range []bool{true, false} {
		s, want := Scanner{IncludeResources: include}, []string{"/2 next"}
		if include {
			want = []string{"/1 resource", "/2 next"}
		}
		if got := linkStrings(s.ScanHeaderLinks(header, mustParse(t, "http://example.com/"))); !slices.Equal(got, want) {
			t.Errorf("include %v: %q, want %q", include, got, want)
		}
	}
}

var styleTests = []struct {
	name  string
	style string
	want  []string
}{
	{"url", `a { b: url(/1) url( "/2" ) URL('/3' ) url(
		/4	) }`, []string{"/1", "/2", "/3", "/4"}},
	{"import", `@import "/1"; @IMPORT '/2' screen; @import url(/3); @import/**/url("/4");@import "/5" layer("/no");`,
		[]string{"/1", "/2", "/3", "/4", "/5"}},
	{"font", `@font-face { font-family: "/no"; src: local("/no"), url(f.woff2) format("woff2"), url("/1?#iefix") }`,
		[]string{"/css/f.woff2", "/1?"}},
	{"comments and strings", `/* url(/no) */ a::before { content: "url(/no) \" url(/no)" } b { c: url(/1) } /* url(/no)`,
		[]string{"/1"}},
	{"other functions and rules", `a { b: my-url(/no) curl(/no) url (/no) } @namespace url(/no); @namespace x "/no"; @charset "/no"; c{d:url(/1)}`,
		[]string{"/1"}},
	{"escapes", `a { b: url(/\31 ) url("/\32\33 4") url("/5\
6") url(/7\)) \75 rl(/no) }`, []string{"/1", "/234", "/56", "/7)"}},
	{"broken", `a { b: url(/n o) url(/n"o) url("/no
		) } c { d: url(/1) } e { f: url(/2`, []string{"/1", "/2"}},
	{"nothing to fetch", `a { b: url(#x) url(data:image/png;base64,AA==) url() url("") url(javascript:x) }`, nil},
	{"odd ends", `a { b: url(\`, nil},
	{"odd ends of strings", `a { b: url("\`, nil},
	{"an at sign", `@`, nil},
}

// TestStyleSheets: a style sheet yields what url() and @import name.
func TestStyleSheets(t *testing.T) {
	s := Scanner{IncludeResources: true}
	for _, test := range styleTests {
		t.Run(test.name, func(t *testing.T) {
			doc := s.ScanStyleSheet([]byte(test.style), "Text/CSS; charset=utf-8", mustParse(t, "http://example.com/css/a.css"))
			var want []string
			for _, ref := range test.want {
				want = append(want, ref+" resource")
			}
			if got := linkStrings(doc); !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
	if doc := s.ScanStyleSheet([]byte("@import '/x'"), "text/html", mustParse(t, "http://example.com/")); doc != nil {
		t.Errorf("an HTML page was read as a style sheet: %q", linkStrings(doc))
	}
	if doc := s.ScanStyleSheet([]byte("\xff\xfe@\x00i\x00m\x00p\x00o\x00r\x00t\x00'\x00x\x00'\x00"), "text/css",
		mustParse(t, "http://example.com/")); !slices.Equal(linkStrings(doc), []string{"/x resource"}) {
		t.Errorf("a style sheet in UTF-16: %q", linkStrings(doc))
	}
}

// FuzzStyleSheet: no style sheet makes the scanner panic or run without end.
func FuzzStyleSheet(f *testing.F) {
	for _, test := range styleTests {
		f.Add([]byte(test.style))
	}
	s := Scanner{IncludeResources: true}
	f.Fuzz(func(t *testing.T, body []byte) {
		s.ScanStyleSheet(body, "text/css", mustParse(t, "http://example.com/"))
	})
}
