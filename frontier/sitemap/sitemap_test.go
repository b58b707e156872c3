package sitemap

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/decorum-crawler/decorum"
)

const home = "http://example.com/maps/sitemap.xml"

func mustParse(t testing.TB, s string) decorum.URL {
	t.Helper()
	u, err := decorum.ParseURL(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// list reads a file and returns its URLs.
func list(t testing.TB, r io.Reader, limits Limits) (urls []string, err error) {
	t.Helper()
	err = Read(r, mustParse(t, home), limits, func(e Entry) error {
		urls = append(urls, e.URL.String())
		return nil
	})
	return urls, err
}

// urlset wraps entries, given as locations, into a sitemap.
func urlset(locations ...string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n")
	for _, loc := range locations {
		b.WriteString("<url><loc>" + loc + "</loc></url>\n")
	}
	return b.String() + "</urlset>"
}

func compressed(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(s))
	w.Close()
	return b.String()
}

// files are files that are read to the end, and the URLs in them.
var files = []struct {
	name, file string
	want       []string
}{
	{"urlset", urlset("http://example.com/1", "http://example.com/2"), []string{"http://example.com/1", "http://example.com/2"}},
	{"empty", `<urlset/>`, nil},
	{"index", `<sitemapindex><sitemap><loc>http://example.com/a.xml</loc></sitemap></sitemapindex>`, []string{"http://example.com/a.xml"}},
	{"entities", urlset("http://example.com/?a=1&amp;b=2&#38;c=&#x33;&apos;"), []string{"http://example.com/?a=1&b=2&c=3%27"}},
	{"references that are none", urlset("/&#0;", "/&#xD800;", "/&#x110000;", "/&#;", "/&#x;", "/&eacute;", "/&;&a b;&"), []string{"http://example.com/&;&a%20b;&"}},
	{"CDATA", urlset("http://example.com/<![CDATA[?a=1&b=<]]>&amp;c"), []string{"http://example.com/?a=1&b=%3C&c"}},
	{"bare ampersand", urlset("http://example.com/?a=1&b=2&copy=3"), []string{"http://example.com/?a=1&b=2&copy=3"}},
	{"comments and instructions", "<?x y?><!-- <urlset> -->" + urlset("http://example.com/<!-- > -- -->1<?x >?>") + "<!-- end", []string{"http://example.com/1"}},
	{"byte order mark and blanks first", "\xEF\xBB\xBF \r\n" + urlset("http://example.com/"), []string{"http://example.com/"}},
	{"blanks around", urlset("\n\t http://example.com/1\u00a0 \n"), []string{"http://example.com/1"}},
	{"no namespace", "<urlset><url><loc>http://example.com/</loc></url></urlset>", []string{"http://example.com/"}},
	{"wrong namespace", "<urlset xmlns='x'><url><loc>http://example.com/</loc></url></urlset>", []string{"http://example.com/"}},
	{"prefixed", "<s:urlset xmlns:s='x'><s:url><s:loc>http://example.com/</s:loc></s:url></s:urlset>", []string{"http://example.com/"}},
	{"locations of other vocabularies", `<urlset><url><loc>/1</loc><image:image><image:loc>/2</image:loc></image:image>` +
		`<image:loc>/3</image:loc><video><loc>/4</loc></video><xhtml:link href="/5"/></url></urlset>`, []string{"http://example.com/1"}},
	{"relative", urlset("/1", "2", "//example.org/3"), []string{"http://example.com/1", "http://example.com/maps/2", "http://example.org/3"}},
	{"unusable locations", urlset("", "  ", "mailto:a@b", "http://", "http://example.com/"), []string{"http://example.com/"}},
	{"over-long location", urlset("/"+strings.Repeat("x", maxValue), "/1"), []string{"http://example.com/1"}},
	{"over-long CDATA", urlset("<![CDATA[/"+strings.Repeat("x", maxValue)+"]]>", "/1"), []string{"http://example.com/1"}},
	{"end of CDATA at the border of the window", urlset("<![CDATA[" + strings.Repeat("]", window) + "]]>"), nil},
	{"several locations in one entry", `<sitemapindex><sitemap><loc>/1</loc><loc>/2</loc></sitemap></sitemapindex>`, []string{"http://example.com/1", "http://example.com/2"}},
	{"element inside location", urlset("<url>http://example.com/</url>"), []string{"http://example.com/"}},
	{"location without its element", `<sitemapindex><sitemap> http://example.com/?a&amp;b </sitemap></sitemapindex>`, []string{"http://example.com/?a&b"}},
	{"quoted end of tag", `<urlset a="x>y"><url b='">'><loc>http://example.com/</loc></url></urlset>`, []string{"http://example.com/"}},
	{"after the end", urlset("http://example.com/") + "<junk", []string{"http://example.com/"}},
	{"entity is not expanded", `<!DOCTYPE urlset [<!ENTITY x "<url><loc>http://example.com/no</loc></url>"><!ENTITY y SYSTEM "file:///etc/passwd">]>` +
		urlset("&x;", "http://example.com/&y;", "http://example.com/yes"), []string{"http://example.com/yes"}},
	{"another encoding", "<?xml version='1.0' encoding='windows-1251'?><urlset><url><loc>http://example.com/\xCF</loc></url></urlset>", []string{"http://example.com/%D0%9F"}},
	{"text", "http://example.com/1\r\n\r\n \thttp://example.com/2 \nno URL\n/3\nhttp://example.com/4", []string{"http://example.com/1", "http://example.com/2", "http://example.com/4"}},
	{"text with a byte order mark", "\xEF\xBB\xBFhttp://example.com/1\n", []string{"http://example.com/1"}},
	{"text with an over-long line", "http://example.com/" + strings.Repeat("x", 2*window) + "\nhttp://example.com/1\n", []string{"http://example.com/1"}},
	{"gzip", compressed(urlset("http://example.com/")), []string{"http://example.com/"}},
	{"gzip of text", compressed("http://example.com/\n"), []string{"http://example.com/"}},
	{"RSS", ` <!-- c --><rss><channel><link>http://example.com/no</link><item><title>t</title><link>http://example.com/1</link><guid>http://example.com/no</guid></item>` +
		`<item><guid>http://example.com/2</guid></item><item><guid>tag:3</guid></item></channel></rss>`, []string{"http://example.com/1", "http://example.com/2"}},
	{"RSS 1.0", `<rdf:RDF><channel><link>http://example.com/no</link></channel><item><link>http://example.com/1</link></item></rdf:RDF>`, []string{"http://example.com/1"}},
	{"Atom", `<feed><link href="/no"/><entry><link rel="edit" href="/no"/><link href = '/1?a&amp;b'/><link href="/no"/>` +
		`<content><div><link href="/no"/></div></content></entry></feed>`, []string{"http://example.com/1?a&b"}},
}

func TestRead(t *testing.T) {
	for _, test := range files {
		t.Run(test.name, func(t *testing.T) {
			got, err := list(t, strings.NewReader(test.file), Limits{})
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got  %q, %v\nwant %q", got, err, test.want)
			}
		})
		t.Run(test.name+", byte by byte", func(t *testing.T) {
			got, err := list(t, iotest.OneByteReader(strings.NewReader(test.file)), Limits{})
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got  %q, %v\nwant %q", got, err, test.want)
			}
		})
	}
}

func TestEntry(t *testing.T) {
	file := `<urlset>
	<url><loc>/1</loc><lastmod>2024-05-06</lastmod><changefreq> Daily </changefreq><priority>0.8</priority></url>
	<url><loc>/2</loc><changefreq>often</changefreq><priority>5</priority><lastmod>yesterday</lastmod></url>
	<url><lastmod>2024-05-06T07:08:09+02:00</lastmod><priority>0.0</priority><loc>/3</loc></url>
	<url><loc>/4</loc><priority>NaN</priority></url></urlset>`
	base := mustParse(t, home)
	at := func(ref string) decorum.URL { return mustParse(t, "http://example.com"+ref) }
	want := []Entry{
		{URL: at("/1"), LastMod: time.Date(2024, 5, 6, 0, 0, 0, 0, time.UTC), Priority: 0.8, ChangeFreq: "daily"},
		{URL: at("/2"), Priority: DefaultPriority},
		{URL: at("/3"), LastMod: time.Date(2024, 5, 6, 5, 8, 9, 0, time.UTC)},
		{URL: at("/4"), Priority: DefaultPriority},
	}
	var got []Entry
	err := Read(strings.NewReader(file), base, Limits{}, func(e Entry) error { got = append(got, e); return nil })
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got  %v, %v\nwant %v", got, err, want)
	}
}

func TestIndexEntry(t *testing.T) {
	file := `<sitemapindex><sitemap><loc>/1</loc><lastmod>2024</lastmod><loc>/2</loc></sitemap></sitemapindex>`
	var got []Entry
	err := Read(strings.NewReader(file), mustParse(t, home), Limits{}, func(e Entry) error { got = append(got, e); return nil })
	if err != nil || len(got) != 2 || !got[0].Index || !got[1].Index {
		t.Fatalf("got %v, %v", got, err)
	}
	if got[0].LastMod.IsZero() || !got[1].LastMod.IsZero() {
		t.Errorf("a date belongs to the location before it: got %v", got)
	}
}

var dates = []struct{ date, want string }{
	{"2024", "2024-01-01T00:00:00Z"}, {"2024-05", "2024-05-01T00:00:00Z"}, {"2024-05-06", "2024-05-06T00:00:00Z"},
	{"2024-05-06T07:08Z", "2024-05-06T07:08:00Z"}, {"2024-05-06T07:08:09+01:30", "2024-05-06T05:38:09Z"},
	{"2024-05-06T07:08:09.123456Z", "2024-05-06T07:08:09Z"}, {"2024-05-06T07:08:09", "2024-05-06T07:08:09Z"},
	{"2024-05-06 07:08:09", "2024-05-06T07:08:09Z"}, {"2024-05-06T07:08:09+0100", "2024-05-06T06:08:09Z"},
	{"Mon, 06 May 2024 07:08:09 GMT", "2024-05-06T07:08:09Z"}, {"6 May 24 07:08 +0100", "2024-05-06T06:08:00Z"},
	{"2024-13-01", ""}, {"2024-02-30", ""}, {"06.05.2024", ""}, {"now", ""}, {"", ""},
}

func TestParseDate(t *testing.T) {
	for _, test := range dates {
		got := parseDate(test.date)
		if test.want == "" && !got.IsZero() || test.want != "" && got.Format(time.RFC3339) != test.want {
			t.Errorf("%q: got %v, want %q", test.date, got, test.want)
		}
	}
}

// broken files, what they yield before they break, and what the error says.
var faults = []struct {
	name, file string
	limits     Limits
	want       int // URLs
	is         error
	says       string
}{
	{"nothing", "", Limits{}, 0, ErrNotSitemap, "line 1, byte 0"},
	{"blanks", " \n ", Limits{}, 0, ErrNotSitemap, "line 2, byte 3"},
	{"HTML", "<!DOCTYPE html>\n<html>", Limits{}, 0, ErrNotSitemap, `element "html"`},
	{"any text", "this is\nno sitemap", Limits{}, 0, ErrNotSitemap, "line 2"},
	{"binary", "\x89PNG\r\n\x1a\n\x00\x00\x00", Limits{}, 0, ErrNotSitemap, ""},
	{"UTF-16", "\xFF\xFE<\x00u\x00r\x00l\x00", Limits{}, 0, ErrNotSitemap, ""},
	{"badly nested", "<urlset>\n<url><loc>/1</loc></url>\n</url></urlset>", Limits{}, 1, ErrSyntax, `line 3, byte 40: end tag "url"`},
	{"badly nested inside an entry", "<urlset><url><loc>/1</loc></urlset>", Limits{}, 1, ErrSyntax, ""},
	{"no tag", "<urlset><url><loc>/1</loc></url>< ></urlset>", Limits{}, 1, ErrSyntax, ""},
	{"cut in an entry", "<urlset><url><loc>/1</loc></url>\n<url><loc>/2</loc><lastm", Limits{}, 2, io.ErrUnexpectedEOF, "line 2"},
	{"cut in a location", "<urlset><url><loc>/1</loc></url><url><loc>/2", Limits{}, 1, io.ErrUnexpectedEOF, ""},
	{"cut in a comment", "<urlset><url><loc>/1</loc></url><!-- ->", Limits{}, 1, io.ErrUnexpectedEOF, ""},
	{"cut before the root", "<?xml version='1.0'?>\n", Limits{}, 0, io.ErrUnexpectedEOF, ""},
	{"cut gzip", compressed(urlset("/1"))[:60], Limits{}, 0, io.ErrUnexpectedEOF, ""},
	{"damaged gzip", "\x1f\x8b and no more of gzip", Limits{}, 0, gzip.ErrHeader, ""},
	{"over-long tag", "<urlset><url><loc>/1</loc></url><url a='" + strings.Repeat("x", maxTag), Limits{}, 1, ErrLimit, ""},
	{"too deep", "<urlset><url><loc>/1</loc></url>" + strings.Repeat("<a>", 100), Limits{}, 1, ErrLimit, "depth"},
	{"too many entries", urlset("/1", "/2", "/3"), Limits{Entries: 2}, 2, ErrLimit, "line 5"},
	{"too many lines", "http://example.com/1\nhttp://example.com/2\n", Limits{Entries: 1}, 1, ErrLimit, "line 3"},
	{"too many bytes", urlset("/1", "/2", strings.Repeat("x", 100)), Limits{Bytes: 200}, 2, ErrLimit, "line 5, byte 200"},
	{"too many bytes after decompression", compressed(urlset("/1", strings.Repeat("x", 1000))), Limits{Bytes: 1000}, 1, ErrLimit, ""},
}

func TestReadFaults(t *testing.T) {
	for _, test := range faults {
		t.Run(test.name, func(t *testing.T) {
			got, err := list(t, strings.NewReader(test.file), test.limits)
			if len(got) != test.want {
				t.Errorf("got %q, want %d", got, test.want)
			}
			if !errors.Is(err, test.is) || !errors.Is(err, decorum.Invalid) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want %v that says %q", err, test.is, test.says)
			}
		})
	}
}

func TestLimitsAreInclusive(t *testing.T) {
	file := urlset("/1", "/2")
	for _, file := range []string{file, compressed(file)} {
		got, err := list(t, strings.NewReader(file), Limits{Entries: 2, Bytes: int64(len(urlset("/1", "/2"))), Depth: 3})
		if err != nil || len(got) != 2 {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestReadReturnsErrorOfYield(t *testing.T) {
	enough := errors.New("enough")
	for name, file := range map[string]string{
		"XML": urlset("/1", "/2"), "text": "http://example.com/1\nhttp://example.com/2\n",
		"broken": "<urlset><url><loc>/1</loc>",
	} {
		calls := 0
		err := Read(strings.NewReader(file), mustParse(t, home), Limits{}, func(Entry) error { calls++; return enough })
		if err != enough || calls != 1 {
			t.Errorf("%s: got %v after %d calls", name, err, calls)
		}
	}
}

func TestReadReturnsErrorOfReader(t *testing.T) {
	lost := errors.New("connection lost")
	file := io.MultiReader(strings.NewReader("<urlset><url><loc>/1</loc></url>"), iotest.ErrReader(lost))
	got, err := list(t, file, Limits{})
	if !errors.Is(err, lost) || len(got) != 1 {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestMemoryIsConstant pins that a file takes no memory for its length,
// whatever it is long of.
func TestMemoryIsConstant(t *testing.T) {
	for name, pieces := range map[string][3]string{
		"text":    {"<urlset><url><loc>", "xxxxxxxx", "</loc></url></urlset>"},
		"CDATA":   {"<urlset><url><loc><![CDATA[", "xxxxxxx>", "]]></loc></url></urlset>"},
		"comment": {"<urlset><!--", "------- ", "--></urlset>"},
		"blanks":  {"", "        ", "<urlset/>"},
		"line":    {"http://example.com/\n", "xxxxxxxx", ""},
	} {
		t.Run(name, func(t *testing.T) {
			const size = 4 << 20
			middle := &repeater{piece: pieces[1], left: size}
			r := io.MultiReader(strings.NewReader(pieces[0]), middle, strings.NewReader(pieces[2]))
			before := allocated()
			if _, err := list(t, r, Limits{}); err != nil {
				t.Fatal(err)
			}
			if got := allocated() - before; got > size/4 {
				t.Errorf("%d bytes allocated", got)
			}
		})
	}
}

// allocated returns how many bytes were ever allocated.
func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// A repeater reads as a piece repeated until left bytes are read.
type repeater struct {
	piece string
	left  int
}

func (r *repeater) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n+len(r.piece) <= len(p) && n < r.left {
		n += copy(p[n:], r.piece)
	}
	r.left -= n
	return n, nil
}

func TestBombIsDefused(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, "<urlset><url><loc>/1</loc></url>")
	io.Copy(w, &repeater{piece: "        ", left: 8 << 20})
	w.Close()
	got, err := list(t, &b, Limits{Bytes: 1 << 20})
	if len(got) != 1 || !errors.Is(err, ErrLimit) {
		t.Errorf("got %q, %v", got, err)
	}
}

func FuzzRead(f *testing.F) {
	for _, test := range files {
		f.Add(test.file)
	}
	for _, test := range faults {
		f.Add(test.file)
	}
	base := mustParse(f, home)
	f.Fuzz(func(t *testing.T, file string) {
		limits := Limits{Entries: 100, Bytes: 1 << 20}
		whole, err := list(t, strings.NewReader(file), limits)
		if len(whole) > limits.Entries {
			t.Errorf("%d entries", len(whole))
		}
		pieces, err2 := list(t, iotest.OneByteReader(strings.NewReader(file)), limits)
		if !slices.Equal(whole, pieces) || fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Errorf("byte by byte %q: got %q, %v, want %q, %v", file, pieces, err2, whole, err)
		}
		Read(strings.NewReader(file), base, limits, func(e Entry) error {
			if e.URL.IsZero() || !(e.Priority >= 0 && e.Priority <= 1) {
				t.Errorf("entry %v", e)
			}
			return nil
		})
	})
}

func BenchmarkRead(b *testing.B) {
	var file bytes.Buffer
	file.WriteString("<urlset>")
	for i := range 10_000 {
		fmt.Fprintf(&file, "<url><loc>http://example.com/section/%d/page.html?x=%d&amp;y=2</loc>", i%100, i)
		file.WriteString("<lastmod>2024-05-06T07:08:09+00:00</lastmod><changefreq>weekly</changefreq><priority>0.8</priority></url>\n")
	}
	file.WriteString("</urlset>")
	base := mustParse(b, home)
	b.SetBytes(int64(file.Len()))
	b.ReportAllocs()
	for b.Loop() {
		entries := 0
		err := Read(bytes.NewReader(file.Bytes()), base, Limits{}, func(Entry) error { entries++; return nil })
		if err != nil || entries != 10_000 {
			b.Fatal(entries, err)
		}
	}
}
