package sitemap

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/decorum-crawler/decorum"
)

const sitemapURL = "http://example.com/maps/sitemap.xml"

func mustParseURL(t testing.TB, s string) decorum.URL {
	t.Helper()
	u, err := decorum.ParseURL(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// readURLs reads a file and returns its URLs.
func readURLs(t testing.TB, r io.Reader, options Options) (urls []string, err error) {
	t.Helper()
	err = Read(r, mustParseURL(t, sitemapURL), options, func(e Entry) error {
		urls = append(urls, e.URL.String())
		return nil
	})
	return urls, err
}

// urlset returns a sitemap with the given locations.
func urlset(locations ...string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
		`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n")
	for _, loc := range locations {
		b.WriteString("<url><loc>" + loc + "</loc></url>\n")
	}
	return b.String() + "</urlset>"
}

// utf16le encodes ASCII and Latin-1 text in UTF-16.
func utf16le(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.Write([]byte{byte(r), 0})
	}
	return b.String()
}

func gzipString(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(s))
	w.Close()
	return b.String()
}

// validFiles holds files that are read to the end, and their URLs.
var validFiles = []struct {
	name, file string
	want       []string
}{
	{"urlset", urlset("http://example.com/1", "http://example.com/2"),
		[]string{"http://example.com/1", "http://example.com/2"}},
	{"empty", `<urlset/>`, nil},
	{"index", `<sitemapindex><sitemap><loc>http://example.com/a.xml</loc></sitemap></sitemapindex>`,
		[]string{"http://example.com/a.xml"}},
	{"entities", urlset("http://example.com/?a=1&amp;b=2&#38;c=&#x33;&apos;"),
		[]string{"http://example.com/?a=1&b=2&c=3%27"}},
	{"references that are none", urlset("/&#0;", "/&#xD800;", "/&#x110000;", "/&#;", "/&#x;", "/&eacute;", "/&;&a b;&"),
		[]string{"http://example.com/&;&a%20b;&"}},
	{"CDATA", urlset("http://example.com/<![CDATA[?a=1&b=<]]>&amp;c"), []string{"http://example.com/?a=1&b=%3C&c"}},
	{"bare ampersand", urlset("http://example.com/?a=1&b=2&copy=3"), []string{"http://example.com/?a=1&b=2&copy=3"}},
	{"xml:base of a feed and of its entries", `<feed xml:base="/blog/"><entry><link href="1"/></entry>` +
		`<entry xml:base="2026/?a=1&amp;b=2"><link href="2"/></entry><entry><content xml:base="/no/"/><link href="3"/></entry>` +
		`<entry xml:base="http://[broken/"><link href="4"/></entry></feed>`,
		[]string{"http://example.com/blog/1", "http://example.com/blog/2026/2", "http://example.com/blog/3",
			"http://example.com/blog/4"}},
	{"xml:base longer than a URL may be", `<feed xml:base="/` + strings.Repeat("x", 2048) +
		`/"><entry><link href="1"/></entry></feed>`, []string{"http://example.com/maps/1"}},
	{"xml:base of RSS", `<rss xml:base="http://other.example/"><channel xml:base="c/"><item><link>1</link></item></channel><item><link>2</link></item></rss>`,
		[]string{"http://other.example/c/1", "http://other.example/2"}},
	{"xml:base of a sitemap, which has none", `<urlset xml:base="/b/"><url xml:base="/c/"><loc>1</loc></url></urlset>`,
		[]string{"http://example.com/maps/1"}},
	{"comments and instructions", "<?x y?><!-- <urlset> -->" + urlset("http://example.com/<!-- > -- -->1<?x >?>") +
		"<!-- end", []string{"http://example.com/1"}},
	{"byte order mark and blanks first", "\xEF\xBB\xBF \r\n" + urlset("http://example.com/"),
		[]string{"http://example.com/"}},
	{"blanks around", urlset("\n\t http://example.com/1\u00a0 \n"), []string{"http://example.com/1"}},
	{"no namespace", "<urlset><url><loc>http://example.com/</loc></url></urlset>", []string{"http://example.com/"}},
	{"wrong namespace", "<urlset xmlns='x'><url><loc>http://example.com/</loc></url></urlset>",
		[]string{"http://example.com/"}},
	{"prefixed", "<s:urlset xmlns:s='x'><s:url><s:loc>http://example.com/</s:loc></s:url></s:urlset>",
		[]string{"http://example.com/"}},
	{"locations of other vocabularies", `<urlset><url><loc>/1</loc><image:image><image:loc>/2</image:loc></image:image>` +
		`<image:loc>/3</image:loc><video><loc>/4</loc></video><xhtml:link href="/5"/></url></urlset>`,
		[]string{"http://example.com/1"}},
	{"relative", urlset("/1", "2", "//example.org/3"),
		[]string{"http://example.com/1", "http://example.com/maps/2", "http://example.org/3"}},
	{"unusable locations", urlset("", "  ", "mailto:a@b", "http://", "http://example.com/"),
		[]string{"http://example.com/"}},
	{"over-long location", urlset("/"+strings.Repeat("x", maxTextLen), "/1"), []string{"http://example.com/1"}},
	{"over-long CDATA", urlset("<![CDATA[/"+strings.Repeat("x", maxTextLen)+"]]>", "/1"),
		[]string{"http://example.com/1"}},
	{"end of CDATA at the border of the window", urlset("<![CDATA[" + strings.Repeat("]", bufferSize) + "]]>"), nil},
	{"several locations in one entry", `<sitemapindex><sitemap><loc>/1</loc><loc>/2</loc></sitemap></sitemapindex>`,
		[]string{"http://example.com/1", "http://example.com/2"}},
	{"text of other vocabularies", "<urlset><url><image:image>http://example.com/no</image:image></url></urlset>", nil},
	{"element inside location", urlset("<url>http://example.com/</url>"), []string{"http://example.com/"}},
	{"location without its element", `<sitemapindex><sitemap> http://example.com/?a&amp;b </sitemap></sitemapindex>`,
		[]string{"http://example.com/?a&b"}},
	{"quoted end of tag", `<urlset a="x>y"><url b='">'><loc>http://example.com/</loc></url></urlset>`,
		[]string{"http://example.com/"}},
	{"after the end", urlset("http://example.com/") + "<junk", []string{"http://example.com/"}},
	{"entity is not expanded", `<!DOCTYPE urlset [<!ENTITY x "<url><loc>http://example.com/no</loc></url>"><!ENTITY y SYSTEM "file:///etc/passwd">]>` +
		urlset("&x;", "http://example.com/&y;", "http://example.com/yes"), []string{"http://example.com/yes"}},
	{"another encoding", "<?xml version='1.0' " +
		"encoding='windows-1251'?><urlset><url><loc>http://example.com/\xCF</loc></url></urlset>",
		[]string{"http://example.com/%D0%9F"}},
	{"UTF-16, little end first", "\xFF\xFE" + utf16le(urlset("/é")), []string{"http://example.com/%C3%A9"}},
	{"UTF-16 without a mark", utf16le("<?xml version='1.0' " +
		"encoding='UTF-16'?><urlset><url><loc>/1</loc></url></urlset>"), []string{"http://example.com/1"}},
	{"UTF-16 without a mark, big end first", "\x00<\x00u\x00r\x00l\x00s\x00e\x00t\x00/\x00>", nil},
	{"UTF-16, big end first", "\xFE\xFF\x00h\x00t\x00t\x00p\x00:\x00/\x00/\x00a\x00/", []string{"http://a/"}},
	{"says UTF-16 and is not", "<?xml version='1.0' encoding='UTF-16'?><urlset><url><loc>/1</loc></url></urlset>",
		[]string{"http://example.com/1"}},
	{"Latin-1", "<?xml version='1.0' encoding='ISO-8859-1'?><urlset><url><loc>/\xE9</loc></url></urlset>",
		[]string{"http://example.com/%C3%A9"}},
	{"unknown encoding", "<?xml version='1.0' encoding='klingon'?><urlset><url><loc>/1</loc></url></urlset>",
		[]string{"http://example.com/1"}},
	{"alternates are no entries", `<urlset xmlns:xhtml="http://www.w3.org/1999/xhtml"><url><loc>/en</loc><xhtml:link rel="alternate" hreflang="de" href="http://example.com/de"/></url></urlset>`,
		[]string{"http://example.com/en"}},
	{"text", "http://example.com/1\r\n\r\n \thttp://example.com/2 \nno URL\n/3\nhttp://example.com/4",
		[]string{"http://example.com/1", "http://example.com/2", "http://example.com/4"}},
	{"text with a byte order mark", "\xEF\xBB\xBFhttp://example.com/1\n", []string{"http://example.com/1"}},
	{"text with an over-long line", "http://example.com/" + strings.Repeat("x", 2*bufferSize) +
		"\nhttp://example.com/1\n", []string{"http://example.com/1"}},
	{"gzip", gzipString(urlset("http://example.com/")), []string{"http://example.com/"}},
	{"gzip of text", gzipString("http://example.com/\n"), []string{"http://example.com/"}},
	{"RSS", ` <!-- c --><rss><channel><link>http://example.com/no</link><item><title>t</title><link>http://example.com/1</link><guid>http://example.com/no</guid></item>` +
		`<item><guid>http://example.com/2</guid></item><item><guid>tag:3</guid></item><item><guid>http://example.com/&no;</guid></item></channel></rss>`, []string{"http://example.com/1", "http://example.com/2"}},
	{"Atom with a long location", `<feed><entry><link href="/?` + strings.Repeat("&amp;", 9000) +
		`">text</link></entry><entry><link href="/1"/></entry></feed>`, []string{"http://example.com/1"}},
	{"RSS 1.0", `<rdf:RDF><channel><link>http://example.com/no</link></channel><item><link>http://example.com/1</link></item></rdf:RDF>`, []string{"http://example.com/1"}},
	{"Atom", `<feed><link href="/no"/><entry><link rel="edit" href="/no"/><link href = '/1?a&amp;b'/><link href="/no"/>` +
		`<content><div><link href="/no"/></div></content></entry></feed>`, []string{"http://example.com/1?a&b"}},
}

func TestRead(t *testing.T) {
	for _, test := range validFiles {
		t.Run(test.name, func(t *testing.T) {
			got, err := readURLs(t, strings.NewReader(test.file), Options{})
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got  %q, %v\nwant %q", got, err, test.want)
			}
		})
		t.Run(test.name+", byte by byte", func(t *testing.T) {
			got, err := readURLs(t, iotest.OneByteReader(strings.NewReader(test.file)), Options{})
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got  %q, %v\nwant %q", got, err, test.want)
			}
		})
	}
}

func TestEntry(t *testing.T) {
	file := `<urlset>
	<url><loc>/maps/1</loc><lastmod>2024-05-06</lastmod><changefreq> Daily </changefreq><priority>0.8</priority></url>
	<url><loc>/2</loc><changefreq>often</changefreq><priority>5</priority><lastmod>yesterday</lastmod></url>
	<url><lastmod>2024-05-06T07:08:09+02:00</lastmod><priority>0.0</priority><loc>/3</loc></url>
	<url><loc>/4</loc><priority>NaN</priority></url><url><loc>/5</loc><priority>-1e999</priority></url></urlset>`
	at := func(ref string) decorum.URL { return mustParseURL(t, "http://example.com"+ref) }
	want := []Entry{
		{URL: at("/maps/1"), AllowedByLocation: true, LastMod: time.Date(2024, 5, 6, 0, 0, 0, 0, time.UTC),
			Priority: 0.8, ChangeFreq: "daily"},
		{URL: at("/2"), Priority: 1},
		{URL: at("/3"), LastMod: time.Date(2024, 5, 6, 5, 8, 9, 0, time.UTC)},
		{URL: at("/4"), Priority: DefaultPriority},
		{URL: at("/5")},
	}
	got, err := readEntries(t, file, sitemapURL, Options{})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got  %v, %v\nwant %v", got, err, want)
	}
}

// readEntries reads a file whose URL is base.
func readEntries(t testing.TB, file, base string, options Options) (got []Entry, err error) {
	t.Helper()
	var at decorum.URL
	if base != "" {
		at = mustParseURL(t, base)
	}
	err = Read(strings.NewReader(file), at, options, func(e Entry) error { got = append(got, e); return nil })
	return got, err
}

func TestIndexEntry(t *testing.T) {
	file := `<sitemapindex><sitemap><loc>/1</loc><lastmod>2024</lastmod><loc>/2</loc></sitemap></sitemapindex>`
	got, err := readEntries(t, file, sitemapURL, Options{})
	if err != nil || len(got) != 2 || !got[0].IsSitemap || !got[1].IsSitemap {
		t.Fatalf("got %v, %v", got, err)
	}
	if got[0].LastMod.IsZero() || !got[1].LastMod.IsZero() {
		t.Errorf("a date belongs to the location before it: got %v", got)
	}
}

// TestAllowedByLocation checks the rules of sitemaps.org, "Sitemap file location".
func TestAllowedByLocation(t *testing.T) {
	index := `<sitemapindex><sitemap><loc>%s</loc></sitemap></sitemapindex>`
	for _, tt := range []struct {
		base, form, loc string
		want            bool
	}{
		{"http://example.com/catalog/sitemap.xml", "", "http://example.com/catalog/show?item=23", true},
		{"http://example.com/catalog/sitemap.xml", "", "http://example.com/catalog/a/b", true},
		{"http://example.com/catalog/sitemap.xml", "", "http://example.com/image/show?item=23", false},
		{"http://example.com/catalog/sitemap.xml", "", "http://example.com/catalog", false},
		{"http://example.com/catalog/sitemap.xml", "", "http://example.com/catalogs/", false},
		{"http://example.com/catalog/sitemap.xml", "", "https://example.com/catalog/a", false},
		{"http://example.com/catalog/sitemap.xml", "", "http://www.example.com/catalog/a", false},
		{"http://example.com/sitemap.xml", "", "http://example.com.evil.example/a", false},
		{"http://example.com:100/sitemap.xml", "", "http://example.com/a", false},
		{"http://example.com/sitemap.php?file=/a/b", "", "http://example.com/c", true},
		{"http://example.com/a/index.xml", index, "http://example.com/b/sitemap.xml", true},
		{"http://example.com/a/index.xml", index, "http://other.example/a/sitemap.xml", false},
		{"", "", "http://example.com/", false},
		{"", index, "http://example.com/", false},
	} {
		file := urlset(tt.loc)
		if tt.form != "" {
			file = fmt.Sprintf(tt.form, tt.loc)
		}
		got, err := readEntries(t, file, tt.base, Options{})
		if err != nil || len(got) != 1 || got[0].AllowedByLocation != tt.want {
			t.Errorf("%s at %q: got %v, %v; want within %v", tt.loc, tt.base, got, err, tt.want)
		}
		if got, err := readEntries(t, file, tt.base, Options{StrictLocation: true}); err != nil ||
			(len(got) == 1) != tt.want {
			t.Errorf("%s at %q, strictly: got %v, %v; want within %v", tt.loc, tt.base, got, err, tt.want)
		}
	}
}

// A robots.txt that names a sitemap entitles it to list any URL of the origin of the robots.txt.
func TestCrossSubmit(t *testing.T) {
	declaring := mustParseURL(t, "http://friend.example/").Origin()
	var entryErrs []EntryError
	got, err := readEntries(t, urlset("/maps/1", "/2", "http://friend.example/3", "https://friend.example/4"),
		sitemapURL, Options{
			StrictLocation: true, AllowsCrossSubmit: func(o decorum.Origin) bool { return o == declaring },
			OnEntryError: func(f EntryError) { entryErrs = append(entryErrs, f) },
		})
	if err != nil || len(got) != 2 || got[1].URL.String() != "http://friend.example/3" || got[1].AllowedByLocation {
		t.Errorf("got %v, %v", got, err)
	}
	if len(entryErrs) != 2 || !errors.Is(entryErrs[0], ErrLocation) ||
		entryErrs[1].FieldText != "https://friend.example/4" {
		t.Errorf("entry errors %v", entryErrs)
	}
}

func TestWithoutBase(t *testing.T) {
	var entryErrs []EntryError
	got, err := readEntries(t, urlset("/1", "http://example.com/2"), "", Options{OnEntryError: func(f EntryError) {
		entryErrs = append(entryErrs, f)
	}})
	if err != nil || len(got) != 1 || len(entryErrs) != 1 || entryErrs[0].FieldText != "/1" {
		t.Errorf("got %v, %v, entry errors %v", got, err, entryErrs)
	}
}

// flawedFiles holds files that are read to the end, and the EntryErrors they cause.
var flawedFiles = []struct {
	name, file string
	want       []string
}{
	{"nothing", urlset("/1"), nil},
	{"locations", urlset("/1", "mailto:a@b", "/&eacute;&amp;", "", "http://"), []string{
		`line 4: location "mailto:a@b": scheme is not http, https or ftp`,
		`line 5: location "/&eacute;&": unknown entity`,
		`line 6: location "": missing`, `line 7: location "http://": no host`}},
	{"the line of a location", "<urlset><url><loc>a:\n</loc>\n<lastmod/>\n</url></urlset>",
		[]string{`line 2: location "a:": scheme is not http, https or ftp`}},
	{"other fields", "<urlset><url><loc>/1</loc>\n<lastmod>1 " +
		"May</lastmod>\n<priority>high</priority><changefreq>often</changefreq></url></urlset>", []string{
		`line 2: lastmod "1 May": not a date`, `line 3: priority "high": not a number from 0 to 1`,
		`line 3: changefreq "often": not one of always, hourly, daily, weekly, monthly, yearly, never`}},
	{"over-long URL", urlset("/" + strings.Repeat("x", 2048)),
		[]string{`line 3: location "/` + strings.Repeat("x", 255) + `": limit exceeded`}},
	{"over-long by its escapes", urlset("/" + strings.Repeat("é", 400)),
		[]string{`line 3: location "/` + strings.Repeat("é", 127) + `\xc3": limit exceeded`}},
	{"over-long text", urlset(strings.Repeat("x", maxTextLen)),
		[]string{`line 3: location "` + strings.Repeat("x", 256) + `": limit exceeded`}},
	{"text", "http://example.com/1\n\nx\n" + strings.Repeat("x", maxTextLen) + "\nx", []string{
		`line 3: location "x": relative, without a page to resolve it against`,
		`line 4: location "` + strings.Repeat("x", 256) + `": limit exceeded`,
		`line 5: location "x": relative, without a page to resolve it against`}},
	{"Atom", `<feed><entry><link href="/&x;"/></entry></feed>`, []string{`line 1: location "/&x;": unknown entity`}},
	{"text in pieces", urlset(strings.Repeat("x", 5000) + "<!-- -->" + strings.Repeat("y", 5000)),
		[]string{`line 3: location "` + strings.Repeat("x", 256) + `": limit exceeded`}},
	{"the line of a link", "<rss><item><link>a:</link>\n<guid>b:</guid></item></rss>",
		[]string{`line 1: location "a:": scheme is not http, https or ftp`}},
	{"RSS", `<rss><item><link>/1</link><pubDate>soon</pubDate></item></rss>`,
		[]string{`line 1: pubDate "soon": not a date`}},
}

// A truncated entry is reported by the error of Read, not to OnEntryError.
func TestCutIsNoEntryError(t *testing.T) {
	_, err := readEntries(t, "<urlset><url><loc>/1</loc></url><url><lastmod/><loc>/2", sitemapURL,
		Options{OnEntryError: func(f EntryError) { t.Error(f) }})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

// A text that may have been cut is not used, whatever MaxURLBytes is.
func TestCutTextIsNotUsed(t *testing.T) {
	for _, n := range []int{maxTextLen, 2 * maxTextLen, 2 * bufferSize} {
		long := "http://example.com/" + strings.Repeat("x", n)
		for _, file := range []string{
			urlset(long), urlset("<![CDATA[" + long + "]]>"), urlset(long + "&amp;"),
			urlset(long[:n/2+20] + "<!-- -->" + long[n/2:]), long,
			"<urlset><url>" + long + "</url></urlset>", "<urlset><url><![CDATA[" + long + "]]></url></urlset>",
		} {
			if got, err := readEntries(t, file, sitemapURL, Options{MaxURLBytes: 1 << 20}); err == nil && len(got) > 0 {
				t.Errorf("%.80s…: got an entry of %d bytes, want none", file, len(got[0].URL.String()))
			}
		}
	}
	if got, err := readEntries(t, urlset("/"+strings.Repeat("x", maxTextLen-2)), sitemapURL,
		Options{MaxURLBytes: 1 << 20}); err != nil || len(got) != 1 {
		t.Errorf("the longest text that is used: got %d entries, %v", len(got), err)
	}
}

// A list of URLs that the file may not list is still a sitemap.
func TestStrictText(t *testing.T) {
	if got, err := readEntries(t, "http://example.org/\n", sitemapURL, Options{StrictLocation: true}); err != nil ||
		len(got) > 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestEntryErrors(t *testing.T) {
	for _, tt := range flawedFiles {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			_, err := readEntries(t, tt.file, sitemapURL, Options{OnEntryError: func(f EntryError) {
				got = append(got, f.Error())
			}})
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got  %q, %v\nwant %q", got, err, tt.want)
			}
		})
	}
}

var dates = []struct{ date, want string }{
	{"2024", "2024-01-01T00:00:00Z"}, {"2024-05", "2024-05-01T00:00:00Z"}, {"2024-05-06", "2024-05-06T00:00:00Z"},
	{"2024-05-06T07:08Z", "2024-05-06T07:08:00Z"}, {"2024-05-06T07:08:09+01:30", "2024-05-06T05:38:09Z"},
	{"2024-05-06T07:08:09.123456Z", "2024-05-06T07:08:09.123456Z"}, {"2024-05-06T07:08:09", "2024-05-06T07:08:09Z"},
	{"2024-05-06 07:08:09", "2024-05-06T07:08:09Z"}, {"2024-05-06T07:08:09+0100", "2024-05-06T06:08:09Z"},
	{"Mon, 06 May 2024 07:08:09 GMT", "2024-05-06T07:08:09Z"}, {"6 May 24 07:08 +0100", "2024-05-06T06:08:00Z"},
	{"2024-05-06T07:08:09.5-0330", "2024-05-06T10:38:09.5Z"},
	{"2024-05-06T07:08:09.1234567891Z", "2024-05-06T07:08:09.123456789Z"}, {"2024-05-06 07:08", "2024-05-06T07:08:00Z"},
	{"2024-05-06T07:08:09,12Z", "2024-05-06T07:08:09.12Z"},
	{"2024-05-06 07:08:09 +02:00", "2024-05-06T05:08:09Z"}, {"2024-02-29", "2024-02-29T00:00:00Z"},
	{"2024-05-06T23:30-01", ""},
	{"6 May 2024 07:08 EST", "2024-05-06T12:08:00Z"}, {"Mon, 06 May 2024 07:08:09 UT", "2024-05-06T07:08:09Z"},
	{"Mon, 06 May 2024 07:08:09 PDT", "2024-05-06T14:08:09Z"},
	{"9999-12-31T23:59-12:00", ""}, {"6 May 0000 07:08 +0000", ""}, {"2024-05-00", ""}, {"0000", ""}, {"202", ""},
	{"20245", ""}, {"2023-02-29", ""}, {"2024-5-6", ""}, {"2024-05-06T24:00Z", ""}, {"2024-05-06T07:60Z", ""},
	{"2024-05-06T07:08:60Z", ""},
	{"2024-05-06T07", ""}, {"2024-05-06T07:08:09.Z", ""}, {"2024-05-06T07:08X", ""}, {"2024-05-06T07:08+24:00", ""},
	{"2024-05-06T07:08Zz", ""}, {"2024-0a-06", ""},
	{"2024-13-01", ""}, {"2024-02-30", ""}, {"06.05.2024", ""}, {"now", ""}, {"", ""},
}

func TestParseDate(t *testing.T) {
	for _, test := range dates {
		got, err := parseDate([]byte(test.date))
		if (err == nil) != (test.want != "") || test.want == "" && !got.IsZero() || test.want != "" &&
			got.Format(time.RFC3339Nano) != test.want {
			t.Errorf("%q: got %v, want %q", test.date, got, test.want)
		}
	}
}

// brokenFiles holds malformed files, the number of their URLs before the error, and the error.
var brokenFiles = []struct {
	name, file string
	options    Options
	want       int // URLs
	is         error
	says       string
}{
	{"nothing", "", Options{}, 0, ErrNotSitemap, "line 1, byte 0"},
	{"blanks", " \n ", Options{}, 0, ErrNotSitemap, "line 2, byte 3"},
	{"HTML", "<!DOCTYPE html>\n<html>", Options{}, 0, ErrNotSitemap, `element "html"`},
	{"any text", "this is\nno sitemap", Options{}, 0, ErrNotSitemap, "line 2"},
	{"binary", "\x89PNG\r\n\x1a\n\x00\x00\x00", Options{}, 0, ErrNotSitemap, ""},
	{"half a character of UTF-16", "\xFF\xFE<\x00u", Options{}, 0, ErrSyntax, ""},
	{"badly nested", "<urlset>\n<url><loc>/1</loc></url>\n</url></urlset>", Options{}, 1, ErrSyntax,
		`line 3, byte 40: end tag "url"`},
	{"badly nested inside an entry", "<urlset><url><loc>/1</loc></urlset>", Options{}, 1, ErrSyntax, ""},
	{"no name", "<urlset><url><loc>/1</loc></url><a=b></a></urlset>", Options{}, 1, ErrSyntax, ""},
	{"end before the beginning", "</urlset>", Options{}, 0, ErrSyntax, ""},
	{"no tag", "<urlset><url><loc>/1</loc></url>< ></urlset>", Options{}, 1, ErrSyntax, ""},
	{"cut in an entry", "<urlset><url><loc>/1</loc></url>\n<url><loc>/2</loc><lastm", Options{}, 2,
		io.ErrUnexpectedEOF, "line 2"},
	{"cut after a location", "<urlset><url><loc>/1</", Options{}, 1, io.ErrUnexpectedEOF, ""},
	{"cut after a second location", "<urlset><url><loc>/1</loc><loc>/2</", Options{}, 2, io.ErrUnexpectedEOF, ""},
	{"badly nested inside a location", "<urlset><url><loc>/1</url></urlset>", Options{}, 1, ErrSyntax, ""},
	{"cut in a location that looks like an end", "<urlset><url><loc>/1<!-- ", Options{}, 0, io.ErrUnexpectedEOF, ""},
	{"cut in a location", "<urlset><url><loc>/1</loc></url><url><loc>/2", Options{}, 1, io.ErrUnexpectedEOF, ""},
	{"cut in a comment", "<urlset><url><loc>/1</loc></url><!-- ->", Options{}, 1, io.ErrUnexpectedEOF, ""},
	{"cut before the root", "<?xml version='1.0'?>\n", Options{}, 0, io.ErrUnexpectedEOF, ""},
	{"cut gzip", gzipString(urlset("/1"))[:60], Options{}, 0, io.ErrUnexpectedEOF, ""},
	{"damaged gzip", "\x1f\x8b and no more of gzip", Options{}, 0, gzip.ErrHeader, ""},
	{"over-long tag", "<urlset><url><loc>/1</loc></url><url a='" + strings.Repeat("x", maxTagLen),
		Options{}, 1, ErrLimit, ""},
	{"too deep", "<urlset><url><loc>/1</loc></url>" + strings.Repeat("<a>", 100), Options{}, 1, ErrLimit, "depth"},
	{"too many entries", urlset("/1", "/2", "/3"), Options{MaxEntries: 2}, 2, ErrLimit, "line 5"},
	{"too many lines", "http://example.com/1\nhttp://example.com/2\n", Options{MaxEntries: 1}, 1, ErrLimit, "line 3"},
	{"too many bytes", urlset("/1", "/2", strings.Repeat("x", 100)), Options{MaxBytes: 200}, 2,
		ErrLimit, "line 5, byte 200"},
	{"too many bytes after decompression", gzipString(urlset("/1", strings.Repeat("x", 1000))),
		Options{MaxBytes: 1000}, 1, ErrLimit, ""},
}

func TestReadFaults(t *testing.T) {
	for _, test := range brokenFiles {
		t.Run(test.name, func(t *testing.T) {
			got, err := readURLs(t, strings.NewReader(test.file), test.options)
			if len(got) != test.want {
				t.Errorf("got %q, want %d", got, test.want)
			}
			if !errors.Is(err, test.is) || !errors.Is(err, decorum.Invalid) ||
				!strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want %v that says %q", err, test.is, test.says)
			}
		})
	}
}

func TestOptionsAreInclusive(t *testing.T) {
	file := urlset("/1", "/2")
	for _, file := range []string{file, gzipString(file)} {
		got, err := readURLs(t, strings.NewReader(file),
			Options{MaxEntries: 2, MaxBytes: int64(len(urlset("/1", "/2"))), MaxElementDepth: 3})
		if err != nil || len(got) != 2 {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

// TestFeeds: with FeedsOnly, every other file is refused before its first entry.
func TestFeeds(t *testing.T) {
	for _, f := range []struct {
		file string
		want []string // nil: refused
	}{
		{`<rss><channel><item><link>/1</link></item></channel></rss>`, []string{"http://example.com/1"}},
		{`<feed><entry><link href="/2"/></entry></feed>`, []string{"http://example.com/2"}},
		{`<rdf:RDF><item><link>/3</link></item></rdf:RDF>`, []string{"http://example.com/3"}},
		{gzipString(`<rss><item><link>/4</link></item></rss>`), []string{"http://example.com/4"}},
		{urlset("/5"), nil},
		{`<sitemapindex><sitemap><loc>/6</loc></sitemap></sitemapindex>`, nil},
		{"http://example.com/7\n", nil},
		{"<!doctype html><html><link rel=next href=/8><a href=/9>", nil},
	} {
		got, err := readURLs(t, strings.NewReader(f.file), Options{FeedsOnly: true})
		if !slices.Equal(got, f.want) || errors.Is(err, ErrNotSitemap) != (f.want == nil) {
			t.Errorf("%.60q: got %q, %v; want %q", f.file, got, err, f.want)
		}
	}
}

func TestReadReturnsErrorOfYield(t *testing.T) {
	enough := io.EOF // returned by yield; not the end of the file
	for name, file := range map[string]string{
		"XML": urlset("/1", "/2"), "text": "http://example.com/1\nhttp://example.com/2\n",
		"broken":               "<urlset><url><loc>/1</loc>",
		"two locations":        "<urlset><url><loc>/1</loc><loc>/2</loc></url></urlset>",
		"broken in a location": "<urlset><url><loc>/1</loc><loc>/2</",
	} {
		calls := 0
		err := Read(strings.NewReader(file), mustParseURL(t, sitemapURL), Options{},
			func(Entry) error { calls++; return enough })
		if err != enough || calls != 1 {
			t.Errorf("%s: got %v after %d calls", name, err, calls)
		}
	}
}

func TestReadReturnsErrorOfReader(t *testing.T) {
	lost := errors.New("connection lost")
	file := io.MultiReader(strings.NewReader("<urlset><url><loc>/1</loc></url>"), iotest.ErrReader(lost))
	got, err := readURLs(t, file, Options{})
	if !errors.Is(err, lost) || len(got) != 1 {
		t.Errorf("got %q, %v", got, err)
	}
}
