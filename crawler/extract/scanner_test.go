package extract

import (
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// linkStrings returns the links as strings, relative to the tests' page.
func linkStrings(doc *ScanResult) []string {
	var refs []string
	for _, l := range doc.Links {
		ref := strings.TrimPrefix(l.URL.String(), "http://example.com") + " " + l.Kind.String()
		if l.IsFeed && l.Kind != Feed {
			ref += ", a feed"
		}
		if l.NoFollow() {
			ref += " nofollow"
		}
		refs = append(refs, ref)
	}
	return refs
}

var linkTests = []struct {
	name string
	page string
	want []string
}{
	{"every kind",
		`<link rel=canonical href=/c><link rel=alternate hreflang=de href=/de><link rel=next href=/n><link rel=prev href=/p>
		<link rel=alternate type="Application/RSS+xml; charset=utf-8" href=/rss><link rel=stylesheet href=/s><link href=/none>
		<a href=/a></a><area href=/m><iframe src=/i></iframe><meta http-equiv=Refresh content="5; URL='/r'">
		<frameset><frame src=/f></frameset><link rel=amphtml href=/amp><img src=/img srcset=/set><form action=/form>`,
		[]string{"/c canonical", "/de alternate", "/n next", "/p prev", "/rss feed", "/a a", "/m area", "/i iframe",
			"/r refresh", "/f frame", "/amp amphtml"}},
	{"citations", `<blockquote cite=/1></blockquote><q cite="/2">x</q><p cite=/no>`, []string{"/1 cite", "/2 cite"}},
	{"links for information", `<link rel=author href=/1><link rel="HELP x" href=/2><link rel=license href=/3>
		<link rel=privacy-policy href=/4><link rel=terms-of-service href=/5><link rel=search href=/no>`,
		[]string{"/1 link", "/2 link", "/3 link", "/4 link", "/5 link"}},
	{"an alternate icon is not a page", `<link rel="alternate icon" href=/no>`, nil},
	{"previous is prev", `<link rel=previous href=/p>`, []string{"/p prev"}},
	{"links of an svg", `<svg><a href=/1><a xlink:href=/2><a href=/3 xlink:href=/4><link rel=next href=/5></svg><a xlink:href=/6>`, []string{"/1 a", "/2 a", "/3 a"}},
	{"relative to the page", `<a href=x><a href=../y><a href=?q><a href=//other.example/z>`,
		[]string{"/dir/x a", "/y a", "/dir/page?q a", "http://other.example/z a"}},
	{"relative to the base", `<base href="/b/c"><a href=x>`, []string{"/b/x a"}},
	{"base after links counts for all", `<a href=x><base href="/b/"><a href=y>`, []string{"/b/x a", "/b/y a"}},
	{"only the first base with href counts", `<base target=t><base href="/b/"><base href="/c/"><a href=x>`,
		[]string{"/b/x a"}},
	{"a base longer than a link may be", `<base href="/` + strings.Repeat("x", maxRefBytes) +
		`/"><a href=x>`, []string{"/dir/x a"}},
	{"unusable base", `<base href="mailto:x"><a href=x>`, []string{"/dir/x a"}},
	{"entities and blanks", "<a href=' /x?a=1&amp;b=2\n'><a href=\"/a\tb\nc\">", []string{"/x?a=1&b=2 a", "/abc a"}},
	{"an ampersand that begins no entity", `<a href="/x?a=1&copy=2&lang=en">`, []string{"/x?a=1&copy=2&lang=en a"}},
	{"schemes that are not crawled",
		`<a href=javascript:void(0)><a href="JAVASCRIPT:x"><a href="java&#10;script:x"><a href=mailto:a@b><a href=tel:1><a href=data:,x><a href=about:blank>`, nil},
	{"fragments and empty", `<a href="#top"><a href=""><a href=" "><a href><a name=x>`, nil},
	{"each URL once", `<a href=/x><a href="/x#part"><a href="http://EXAMPLE.com:80/x">`, []string{"/x a"}},
	{"the lowest kind counts", `<link rel=canonical href=/x><a href=/x>`, []string{"/x a"}},
	{"a feed is one whatever else points to it",
		`<a href=/x>RSS</a><link rel=alternate type=application/rss+xml href=/x><a href=/y>`,
		[]string{"/x a, a feed", "/y a"}},
	{"nofollow, ugc, sponsored", `<a href=/1 rel="noopener NOFOLLOW"><a href=/2 rel=ugc><area href=/3 rel=sponsored><a href=/4 rel=nofollowing>`,
		[]string{"/1 a nofollow", "/2 a nofollow", "/3 area nofollow", "/4 a"}},
	{"embed and object", `<embed src=/1.pdf><object data="/2.pdf" type="application/pdf"><a href=/3>x</a></object>` +
		`<object><param value=/no></object><object type=x/y classid=/no></object>`,
		[]string{"/1.pdf embed", "/2.pdf embed", "/3 a"}},
	{"not what can only be seen or played", `<embed src=/1 type=image/png><object data=/2 type="IMAGE/svg+xml"></object>` +
		`<embed src=/3 type="video/mp4"><object data=/4 type=application/x-shockwave-flash></object><embed src=data:,x>`, nil},
	{"srcdoc", `<a href=0><iframe src=/1 srcdoc="<title>x</title><a href=&quot;/2?a&amp;amp;b&quot;>x</a>` +
		`<!-- <a href=/no> --><a href=3 rel=nofollow>"></iframe><a href=4>`,
		[]string{"/dir/0 a", "/1 iframe", "/2?a&b a", "/dir/3 a nofollow", "/dir/4 a"}},
	{"base of a srcdoc", `<iframe srcdoc="<a href=1><base href=/b/><a href=2>"></iframe><a href=3>`,
		[]string{"/dir/1 a", "/b/2 a", "/dir/3 a"}},
	{"base of the page in a srcdoc", `<iframe srcdoc="<a href=1>"></iframe><base href=/b/>`, []string{"/b/1 a"}},
	{"nofollow in a srcdoc", `<a href=/1><iframe srcdoc="<a href=/1><a href=/2><meta name=robots content=none>` +
		`<a href=/3>"></iframe><a href=/3><a href=/4>`, []string{"/1 a", "/2 a nofollow", "/3 a", "/4 a"}},
	{"srcdoc in a srcdoc", `<iframe srcdoc="<iframe srcdoc='<a href=/1>'></iframe><a href=/2>"></iframe>`,
		[]string{"/1 a", "/2 a"}},
	{"too many srcdocs in each other", nestedSrcdocs(maxSrcdocDepth + 1), []string{"/1 a", "/2 a", "/3 a", "/4 a"}},
	{"nofollow only if every mention is",
		`<a href=/x rel=nofollow><a href=/x><a href=/y rel=nofollow><a href=/y rel=ugc>`,
		[]string{"/x a", "/y a nofollow"}},
	{"noscript is content", `<noscript><a href=/x></noscript><noscript><meta http-equiv=refresh content="0;/y"></noscript>`,
		[]string{"/x a", "/y refresh"}},
	{"text is not content",
		`<script>"<a href=/1>"</script><style><a href=/2></style><textarea><a href=/3></textarea><!-- <a href=/4> --><title><a href=/5></title>`, nil},
	{"entities are decoded once", `<a href="/?x=&amp;amp;"><meta http-equiv=refresh content="0;/?y=&amp;amp;">`,
		[]string{"/?x=&amp; a", "/?y=&amp; refresh"}},
	{"longer than a link may be, though not once decoded", `<a href="/?` + strings.Repeat("&amp;", maxRefBytes/4) +
		`"><a href=/y>`, []string{"/y a"}},
	{"longer than a link may be", `<a href="/` + strings.Repeat("x", maxRefBytes) + `"><a href=/y>`, []string{"/y a"}},
}

// nestedSrcdocs returns a page with links to /1, /2 and so on, each in the srcdoc of one more iframe.
func nestedSrcdocs(depth int) (page string) {
	for i := depth; i > 0; i-- {
		page = fmt.Sprintf(`<iframe srcdoc="<a href=/%d>%s"></iframe>`, i, html.EscapeString(page))
	}
	return page
}

// imageTests are pages with images, and their links with IncludeImages.
var imageTests = []struct {
	name string
	page string
	want []string
}{
	{"img", `<img src=/1><IMG SRC="2.png"><image src=/3><img alt=none>`,
		[]string{"/1 img", "/dir/2.png img", "/3 img"}},
	{"srcset", `<img src=/1 srcset="/2 480w, /3 2x,/4,/5 , /6">`,
		[]string{"/1 img", "/2 img", "/3 img", "/4,/5 img", "/6 img"}},
	{"picture", `<picture><source srcset="/1, /2 2x"><img src=/3></picture>`, []string{"/1 img", "/2 img", "/3 img"}},
	{"the src of a source is not an image", `<video><source src=/1></video>`, nil},
	{"commas and parentheses", `<img srcset=",, /1,,, /2 calc(1, 2) 3x, /3 (never closed, /4">`,
		[]string{"/1 img", "/2 img", "/3 img"}},
	{"decoded", `<img srcset="/?a=1&amp;b=2 2x, data:,x 1x">`, []string{"/?a=1&b=2 img"}},
	{"an anchor to an image", `<a href=/1 rel=nofollow><img src=/1></a>`, []string{"/1 a"}},
	{"embed and object", `<embed src=/1 type=image/png><object data=/2 type="image/svg+xml"></object>`,
		[]string{"/1 img", "/2 img"}},
	{"not in an svg", `<svg><image src=/1 href=/2></svg>`, nil},
}

// TestKindWithoutRel: a nofollow mention does not affect how a URL may be followed that other
// mentions name without nofollow.
func TestKindWithoutRel(t *testing.T) {
	for page, want := range map[string]LinkKind{
		`<link rel=alternate href=/x><a rel=nofollow href=/x>`:                   Alternate,
		`<a rel=nofollow href=/x><link rel=alternate href=/x>`:                   Alternate,
		`<a rel=ugc href=/x><link rel=alternate href=/x><link rel=next href=/x>`: Next,
		`<a rel=ugc href=/x><link rel=alternate href=/x><a href=/x>`:             Anchor,
		`<area rel=ugc href=/x><a rel=nofollow href=/x>`:                         Area,
	} {
		if links := new(Scanner).ScanPage([]byte(page), "text/html",
			mustParse(t, "http://example.com/")).Links; len(links) != 1 || links[0].FollowableKind != want {
			t.Errorf("%s: links %v, want one, free as %v", page, links, want)
		}
	}
}

// TestBase: links are relative to the base element, also when the caller resolves them with BaseURL.
func TestBase(t *testing.T) {
	for page, want := range map[string]string{
		"<a href=x>": "http://example.com/dir/page", "<base href='/b/c'>": "http://example.com/b/c",
		"<a href=x><base href=../y/>":        "http://example.com/y/",
		"<base href=mailto:x><base href=/z>": "http://example.com/dir/page",
	} {
		if got := new(Scanner).ScanPage([]byte(page), "text/html",
			mustParse(t, "http://example.com/dir/page")).BaseURL.String(); got != want {
			t.Errorf("%s: links are relative to %s, want %s", page, got, want)
		}
	}
}

// TestLongBase: short links that a long base expands do not fill the memory.
func TestLongBase(t *testing.T) {
	const written, wanted = 600, 1000
	var b strings.Builder
	fmt.Fprintf(&b, "<base href='/%s/'>", strings.Repeat("x", maxRefBytes/2))
	for i := range written {
		fmt.Fprintf(&b, "<a href=%d>", i)
	}
	page := b.String()
	doc := (&Scanner{MaxLinks: wanted}).ScanPage([]byte(page), "text/html", mustParse(t, "http://example.com/"))
	size := 0
	for _, l := range doc.Links {
		size += len(l.URL.String())
	}
	if maxBytes := max(wanted*avgURLBytes, minTotalURLBytes); !doc.LinksTruncated || size > maxBytes ||
		size < maxBytes-maxRefBytes {
		t.Errorf("%d links of %d bytes, more: %v; want some, of %d bytes at most, and LinksTruncated", len(doc.Links),
			size, doc.LinksTruncated, maxBytes)
	}
	short := (&Scanner{MaxLinks: 2}).ScanPage([]byte(page), "text/html", mustParse(t, "http://example.com/"))
	if len(short.Links) != 2 {
		t.Errorf("%d links, want 2: few may be long", len(short.Links))
	}
}

var formTests = []struct {
	name, page string
	want       []string
}{
	{"forms", `<form action="/1?a=b#c"></form><form action=/2 METHOD=POST></form><form action=/3 method=dialog></form>
		<form action=""></form><form action="?x"></form><form action=/4 method=unknown rel=nofollow></form>`,
		[]string{"/1 form", "/4 form nofollow"}},
	{"formaction", `<form><button formaction=/1?x></button><input type=submit formaction=/2>
		<button formaction=/no formmethod=post></button></form>`, []string{"/1 form", "/2 form"}},
	{"formaction of a form that posts", `<form method=post><button formaction=/no></button>
		<button formaction=/1 formmethod=GET></button></form><form><button formaction=/no></button></form>`,
		[]string{"/1 form"}},
	{"formaction without a form", `<button formaction=/no></button>`, nil},
}

// TestForms: the actions of forms that submit by GET are links, if the caller asks for them.
func TestForms(t *testing.T) {
	for _, test := range formTests {
		t.Run(test.name, func(t *testing.T) {
			home := mustParse(t, "http://example.com/dir/page")
			s := Scanner{IncludeForms: true}
			if got := linkStrings(s.ScanPage([]byte(test.page), "text/html", home)); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
			s.IncludeForms = false
			if got := linkStrings(s.ScanPage([]byte(test.page), "text/html", home)); len(got) > 0 {
				t.Errorf("without IncludeForms: %q", got)
			}
		})
	}
}

func TestImages(t *testing.T) {
	s := Scanner{IncludeImages: true}
	for _, test := range imageTests {
		t.Run(test.name, func(t *testing.T) {
			doc := s.ScanPage([]byte(test.page), "text/html", mustParse(t, "http://example.com/dir/page"))
			if got := linkStrings(doc); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// TestRel: a link has the NoFollowRels of all its mentions, or none if one of its mentions has none.
func TestRel(t *testing.T) {
	page := `<a href=/1 rel=nofollow><a href=/2 rel="UGC external"><area href=/3 rel="sponsored nofollow"><a href=/4 rel=me>
		<a href=/5 rel=ugc><a href=/5 rel=sponsored><a href=/6 rel=ugc><a href=/6><a href=/6 rel=ugc><link rel="next nofollow" href=/7>`
	doc := new(Scanner).ScanPage([]byte(page), "text/html", mustParse(t, "http://example.com/"))
	want := []NoFollowRels{NoFollow, UGC, NoFollow | Sponsored, 0, UGC | Sponsored, 0, 0}
	for i, link := range doc.Links {
		if link.Rel != want[i] {
			t.Errorf("%s: got %03b, want %03b", link.URL, link.Rel, want[i])
		}
	}
	if len(doc.Links) != len(want) {
		t.Errorf("%d links", len(doc.Links))
	}
}

func TestLinks(t *testing.T) {
	for _, test := range linkTests {
		t.Run(test.name, func(t *testing.T) {
			doc := new(Scanner).ScanPage([]byte(test.page), "text/html", mustParse(t, "http://example.com/dir/page"))
			if got := linkStrings(doc); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

var refreshTests = []struct{ content, want string }{
	{"0;url=/x", "/x"}, {"0; URL = /x", "/x"}, {"0;/x", "/x"}, {"0 /x", "/x"},
	{"0,url='/x'y", "/x"}, {`.5;url="/x`, "/x"},
	{"3", ""}, {"3;", ""}, {"url=/x", ""}, {"", ""}, {"0url=/x", ""}, {"0;url", "url"},
	{"0;urlx", "urlx"}, {"0;url=", ""},
}

func TestRefreshTarget(t *testing.T) {
	for _, test := range refreshTests {
		if got := string(refreshTarget([]byte(test.content))); got != test.want {
			t.Errorf("%q: got %q, want %q", test.content, got, test.want)
		}
	}
}

var titleTests = []struct{ name, page, want string }{
	{"decoded and folded", "<title>\n A &amp;\t B&nbsp;&eacute;  </title>", "A & B é"},
	{"first wins", "<title>1</title><title>2</title>", "1"},
	{"not that of an svg", "<svg><title>icon</title></svg><title>page</title>", "page"},
	{"not in an attribute or comment", `<a title="<title>1</title>"><!-- <title>2</title> --><title>3</title>`, "3"},
	{"none", "<p>text", ""},
	{"at most 512 bytes", "<title>" + strings.Repeat("x", 600) + "</title>", strings.Repeat("x", 512)},
	{"whole runes", "<title>x" + strings.Repeat("é", 300) + "</title>", "x" + strings.Repeat("é", 255)},
	{"never closed", "<title>rest <b>of the page", "rest <b>of the page"},
}

func TestTitle(t *testing.T) {
	for _, test := range titleTests {
		t.Run(test.name, func(t *testing.T) {
			doc := new(Scanner).ScanPage([]byte(test.page), "text/html", mustParse(t, "http://example.com/"))
			if doc.Title != test.want {
				t.Errorf("got %q, want %q", doc.Title, test.want)
			}
		})
	}
}

func TestCanonical(t *testing.T) {
	page := `<link rel=canonical href=#no><link rel="canonical" href="/1#x"><link rel=canonical href=/2>`
	doc := new(Scanner).ScanPage([]byte(page), "text/html", mustParse(t, "http://example.com/"))
	if got := doc.CanonicalURL.String(); got != "http://example.com/1" {
		t.Errorf("got %q", got)
	}
}

// encodingTests are pages in windows-1251, Shift_JIS, UTF-16 and others, and their titles and links.
var encodingTests = []struct{ name, contentType, page, title, link string }{
	{"UTF-8 in the header", "text/html;charset=UTF-8", "<title>é</title><a href=/é>", "é", "/%C3%A9"},
	{"UTF-8 by its bytes", "text/html", "<title>é</title><a href=/é>", "é", "/%C3%A9"},
	{"byte order mark", "text/html", "\xEF\xBB\xBF<title>é</title><a href=/é>", "é", "/%C3%A9"},
	{"byte order mark over header", "text/html; charset=windows-1251",
		"\xEF\xBB\xBF<title>é</title><a href=/é>", "é", "/%C3%A9"},
	{"windows-1251 in the header", `text/html; charset="windows-1251"`,
		"<title>\xCF\xD0</title><a href='/\xCF?q=\xD0'>", "ПР", "/%D0%9F?q=%D0"},
	{"windows-1251 in meta charset", "text/html", "<meta charset=windows-1251><title>\xCF\xD0</title><a href=/\xCF>",
		"ПР", "/%D0%9F"},
	{"meta after the title and a link", "text/html", "<a href=/\xCF><title>\xCF\xD0</title><meta charset=windows-1251>",
		"ПР", "/%D0%9F"},
	{"meta content-type", "text/html", "<meta http-equiv=Content-Type content='text/html; " +
		"charset=windows-1251'><title>\xCF</title><a href=/\xCF>", "П", "/%D0%9F"},
	{"header over meta", "text/html; charset=utf-8", "<meta charset=windows-1251><title>é</title><a href=/é>", "é",
		"/%C3%A9"},
	{"first meta counts", "text/html", "<meta charset=utf-8><meta charset=windows-1251><title>é</title><a href=/é>",
		"é", "/%C3%A9"},
	{"unknown name in the header", "text/html; charset=klingon",
		"<meta charset=windows-1251><title>\xCF</title><a href=/\xCF>", "П", "/%D0%9F"},
	{"UTF-16 in meta is a lie", "text/html", "<meta charset=utf-16><title>é</title><a href=/é>", "é", "/%C3%A9"},
	{"nothing said and not UTF-8", "text/html", "<title>caf\xE9</title><a href=/\xE9>", "café", "/%C3%A9"},
	{"Shift_JIS with ASCII trail bytes", "text/html; charset=shift_jis",
		"<title>\x83\x5C</title><a href=/\x83\x5C>", "ソ", "/%E3%82%BD"},
	{"base in a late encoding", "text/html", "<base href=/\xCF/><meta charset=windows-1251><title>\xCF</title><a " +
		"href=x>", "П", "/%D0%9F/x"},
	{"UTF-16, big end first", "text/html",
		"\xFE\xFF\x00<\x00t\x00i\x00t\x00l\x00e\x00>\x04\x1F\x00<\x00/\x00t\x00i\x00t\x00l\x00e\x00>\x00<\x00a\x00 " +
			"\x00h\x00r\x00e\x00f\x00=\x00x\x00>", "П", "/x"},
	{"UTF-16 with a mark", "text/html", "\xFF\xFE<\x00t\x00i\x00t\x00l\x00e\x00" +
		">\x00\x1F\x04<\x00/\x00t\x00i\x00t\x00l\x00e\x00>" +
		"\x00<\x00a\x00 \x00h\x00r\x00e\x00f\x00=\x00x\x00>\x00", "П", "/x"},
	{"x-user-defined in meta", "text/html", "<meta charset=x-user-defined><title>\xE9</title><a href=/\xE9?\xE9>", "é",
		"/%C3%A9?%E9"},
	{"a query that is in no known encoding comes back byte for byte", "text/html",
		"<title>\xD6\xD0</title><a href=?\xD6\xD0\x81\x8D\x90>", "ÖÐ", "/?%D6%D0%81%8D%90"},
	{"UTF-8 in the header and other bytes", "text/html; charset=utf-8",
		"<title>\xD6\xD0</title><a href=/\xD6\xD0\xE4\xB8x?\xD6>", "\uFFFD",
		"/%EF%BF%BD%EF%BF%BD%EF%BF%BDx?%EF%BF%BD"},
	{"UTF-8 by its mark and other bytes in the base", "text/html",
		"\xEF\xBB\xBF<title>é</title><base href=/\xD6/><a href=x>", "é", "/%EF%BF%BD/x"},
	{"an XML declaration in HTML", "text/html", "<?xml version='1.0' encoding='windows-1251'?><title>\xCF</title><a " +
		"href=/\xCF?\xCF>", "П", "/%D0%9F?%CF"},
	{"meta over an XML declaration in HTML", "text/html", "<?xml version='1.0' encoding='koi8-r'?>" +
		"<meta charset=windows-1251><title>\xCF</title><a href=/\xCF>", "П", "/%D0%9F"},
	{"an XML declaration in XHTML over meta", "application/xhtml+xml", "<?xml version='1.0' encoding = " +
		"\"windows-1251\" ?><meta charset='koi8-r'/><title>\xCF</title><a href='/\xCF'/>", "П", "/%D0%9F"},
	{"header over an XML declaration", "application/xhtml+xml; charset=windows-1251",
		"<?xml version='1.0' encoding='koi8-r'?><title>\xCF</title><a href='/\xCF'/>", "П", "/%D0%9F"},
	{"an XML declaration without a value", "text/html", "<?xml encoding=koi8-r?><title>é</title><a href=/é>", "é",
		"/%C3%A9"},
	{"UTF-16 in an XML declaration is a lie", "text/html", "<?xml encoding='utf-16'?><title>é</title><a href=/é?é>",
		"é", "/%C3%A9?%C3%A9"},
}

func TestEncoding(t *testing.T) {
	for _, test := range encodingTests {
		t.Run(test.name, func(t *testing.T) {
			doc := new(Scanner).ScanPage([]byte(test.page), test.contentType, mustParse(t, "http://example.com/"))
			if doc.Title != test.title {
				t.Errorf("title %q, want %q", doc.Title, test.title)
			}
			if got := linkStrings(doc); !slices.Equal(got, []string{test.link + " a"}) {
				t.Errorf("links %q, want %q", got, test.link)
			}
		})
	}
}

var charsetTests = []struct{ value, want string }{
	{"text/html; charset=utf-8", "utf-8"}, {"charset = 'a b';x", "a b"}, {`CharSet="x"`, "x"}, {`charset="x`, ""},
	{"charset charset=x;y", "x"}, {"charset=x y", "x"}, {"charset=", ""}, {"text/html", ""}, {"", ""},
}

func TestCharsetIn(t *testing.T) {
	for _, test := range charsetTests {
		if got := charsetFromContentType([]byte(test.value)); got != test.want {
			t.Errorf("%q: got %q, want %q", test.value, got, test.want)
		}
	}
}

var contentTypeTests = []struct {
	contentType, body string
	html              bool
}{
	{"text/html", "", true}, {"TEXT/HTML ; charset=x", "", true}, {"application/xhtml+xml", "", true},
	{"text/plain", "<html>", false}, {"application/pdf", "<html>", false}, {"text/htmlx", "<html>", false},
	{"application/xml", "<html>", true}, {"", "<!DOCTYPE html><p>", true}, {"", "%PDF-1.7", false}, {"", "", false},
	{"text/xml; charset=utf-8", "<?xml version='1.0'?>\n<!DOCTYPE html [<!ENTITY x 'y'>]><!-- <rss> --><html/>", true},
	{"text/xml", "<?xml version='1.0'?><rss><link>http://example.com/</link></rss>", false},
	{"application/xml", "<!-- <html> --><urlset/>", false}, {"application/xml", "", false},
	{"", "<?xml version='1.0' encoding='koi8-r'?><html>", true}, {"application/rss+xml", "<html>", false},
}

func TestContentType(t *testing.T) {
	for _, test := range contentTypeTests {
		doc := new(Scanner).ScanPage([]byte(test.body), test.contentType, mustParse(t, "http://example.com/"))
		if got := doc != nil; got != test.html {
			t.Errorf("%q, body %q: read %v, want %v", test.contentType, test.body, got, test.html)
		}
	}
}

func TestXHTML(t *testing.T) {
	page := `<title/><script src="/s.js"/><a href="/1">x</a><![CDATA[ > <a href="/2"> ]]><iframe src="/3"/><a href="/4"/>`
	doc := new(Scanner).ScanPage([]byte(page), "application/xhtml+xml", mustParse(t, "http://example.com/"))
	if got, want := linkStrings(doc), []string{"/1 a", "/3 iframe", "/4 a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMaxLinks(t *testing.T) {
	var page strings.Builder
	for i := range 10 {
		fmt.Fprintf(&page, "<a href=/%d>", i)
	}
	s := Scanner{MaxLinks: 3}
	for _, test := range []struct {
		page string
		want int
		more bool
	}{{page.String(), 3, true}, {"<a href=/1><a href=/2><a href=/3><a href=/1>", 3, false}, {"<p>", 0, false}} {
		doc := s.ScanPage([]byte(test.page), "text/html", mustParse(t, "http://example.com/"))
		if len(doc.Links) != test.want || doc.LinksTruncated != test.more {
			t.Errorf("%q: %d links, more %v", test.page, len(doc.Links), doc.LinksTruncated)
		}
	}
}

// TestScannerKeepsNothing: a ScanResult survives the scan of the next page and the reuse of the body.
func TestScannerKeepsNothing(t *testing.T) {
	var s Scanner
	home := mustParse(t, "http://example.com/dir/page")
	body := []byte(`<title>one</title><a href=http://example.com/1><a href="/2?a&amp;b">`)
	doc := s.ScanPage(body, "text/html", home)
	copy(body, strings.Repeat("#", len(body)))
	s.ScanPage([]byte("<title>two</title><a href=/3><a href=/4>"), "text/html", home)
	if want := []string{"/1 a", "/2?a&b a"}; !slices.Equal(linkStrings(doc), want) || doc.Title != "one" {
		t.Errorf("got %q %q", doc.Title, linkStrings(doc))
	}
}

// TestLinear: every page is read in linear time. Each of these pages would take hours if the
// scanner searched the same bytes again and again.
func TestLinear(t *testing.T) {
	for _, piece := range []string{
		"<!--", "<!-- >", "<!", "</", "<?", "<a", "<a href='", "<a href=\"x", "<a href=x ", "<script>",
		"<script><!--", "<script><!--<script>",
		"<title>", "</title", "&", "<svg><![CDATA[", "<svg>", "<svg><title>", "<svg></title></p>", "<img srcset='",
		"<img srcset=',,(", "<base href=x><meta charset=koi8-r>", "<meta name=x content=noindex>", "<a href='&&&&'>",
		"<iframe srcdoc='", "<iframe srcdoc='<iframe srcdoc=\"", "<iframe srcdoc='<a href=x><base href=/>'>",
	} {
		body := []byte(strings.Repeat(piece, 1<<20/len(piece)))
		(&Scanner{IncludeImages: true}).ScanPage(body, "text/html", mustParse(t, "http://example.com/"))
		(&Scanner{IncludeForms: true, IncludeResources: true}).ScanPage(body, "text/html", mustParse(t, "http://example.com/"))
		new(Scanner).ScanHeaderLinks(http.Header{"Link": {string(body)}}, mustParse(t, "http://example.com/"))
	}
}
