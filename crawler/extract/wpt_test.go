package extract

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"
)

var wptCheckout = flag.String("wpt", "", "checkout of web-platform-tests whose cases TestWPT reads; empty: skip it")

// TestWPT runs the cases of web-platform-tests about labels of encodings and the queries of links that
// can be read without running their scripts.
func TestWPT(t *testing.T) {
	if *wptCheckout == "" {
		t.Skip("no -wpt")
	}
	t.Run("encoding/resources/encodings.js", wptLabels)
	t.Run("html/infrastructure/urls", wptAttributes)
	files := 0
	err := filepath.WalkDir(filepath.Join(*wptCheckout, "encoding"), func(name string, d fs.DirEntry, err error) error {
		m := wptCharsFile.FindStringSubmatch(filepath.Base(name))
		if err != nil || m == nil || wptCharsets[m[1]] == "" {
			return err
		}
		files++
		t.Run(name, func(t *testing.T) { wptCharacters(t, name, wptCharsets[m[1]], m[2] != "") })
		return nil
	})
	if err != nil || files == 0 {
		t.Errorf("%d files of characters, %v", files, err)
	}
}

// wptCharsFile matches the names of files that list the characters of an encoding; wptCharsets has the
// encodings that the names mean.
var (
	wptCharsFile = regexp.MustCompile(`^([a-z0-9]+)_chars(_extra)?(?:[-_][\w-]+)?\.html$`)
	wptCharsets  = map[string]string{"sjis": "shift_jis", "eucjp": "euc-jp", "iso2022jp": "iso-2022-jp",
		"big5": "big5", "euckr": "euc-kr", "gbk": "gbk", "gb18030": "gb18030"}
	wptSpan = regexp.MustCompile(`data-cp="([0-9A-F]+)" data-bytes="([0-9A-F ]+)"`)
)

// wptCharacters checks the characters that the bytes of a page mean, and the bytes that stand for these
// characters in queries. The standard reads some bytes that it does not write: those of Big5 that are in
// files of their own (extra), and those of EUC-JP that begin with 8F. It writes U+00A5, U+203E and U+2212
// of Japanese encodings as the bytes of other characters. One query in a thousand may differ: see
// queryEncoder.
func wptCharacters(t *testing.T, name, charset string, extra bool) {
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	enc, _ := encodingByName(charset)
	spans, misread, wrong := wptSpan.FindAllStringSubmatch(string(file), -1), 0, 0
	for _, m := range spans {
		codePoint, _ := strconv.ParseUint(m[1], 16, 32)
		encoded, err := hex.DecodeString(strings.ReplaceAll(m[2], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		isWrittenOnly := codePoint == 0xA5 || codePoint == 0x203E || codePoint == 0x2212
		if got := string(decodeToUTF8(encoded, enc)); got != string(rune(codePoint)) && !isWrittenOnly {
			t.Logf("% X: got %q, want U+%s", encoded, got, m[1])
			misread++
		}
		isReadOnly := extra || charset == "euc-jp" && encoded[0] == 0x8F
		if isReadOnly || codePoint < 0xA0 { // a reference to a character below A0 means another one
			continue
		}
		want := wptPercentEncode(encoded)
		if got := wptQuery(t, "text/html; charset="+charset, "<a href='?&#x"+m[1]+";'>"); got != want {
			t.Logf("U+%s: got %q, want %s", m[1], got, want)
			wrong++
		}
	}
	t.Logf("%d characters, %d are misread, and %d differ in queries", len(spans), misread, wrong)
	if len(spans) == 0 || misread > 0 || wrong > len(spans)/1000 {
		t.Error("too many differ, or there are none")
	}
}

// wptPercentEncode returns bytes as they stand in a query (URL Standard, special-query percent-encode set).
func wptPercentEncode(encoded []byte) string {
	var query strings.Builder
	for _, c := range encoded {
		if c <= ' ' || c > '~' || strings.IndexByte(`"#<>'`, c) >= 0 {
			fmt.Fprintf(&query, "%%%02X", c)
		} else {
			query.WriteByte(c)
		}
	}
	return query.String()
}

// wptLabels checks that all labels of encodings are known.
func wptLabels(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(*wptCheckout, "encoding/resources/encodings.js"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(file), "encodings_table =")
	var groups []struct {
		Encodings []struct {
			Name   string
			Labels []string
		}
	}
	if err := json.NewDecoder(strings.NewReader(table)).Decode(&groups); err != nil || len(groups) == 0 {
		t.Fatal(len(groups), err)
	}
	for _, g := range groups {
		for _, e := range g.Encodings {
			for _, label := range e.Labels {
				enc, known := encodingByName(label)
				got := "utf-8"
				if enc != nil {
					got, _ = htmlindex.Name(enc)
				}
				if want := strings.TrimSuffix(strings.ToLower(e.Name), "-i"); !known || got != want {
					t.Errorf("%q: got %s, %v; want %s", label, got, known, want)
				}
			}
		}
	}
}

// wptAttributes checks links in the attributes that the tests name and this package reads.
func wptAttributes(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(*wptCheckout,
		"html/infrastructure/urls/resolving-urls/query-encoding/attributes.sub.html"))
	if err != nil {
		t.Fatal(err)
	}
	results := regexp.MustCompile(`"([\w-]+)": "(%[^"]+)"`).FindAllStringSubmatch(string(file), -1)
	if len(results) == 0 {
		t.Error("no expected results")
	}
	for _, m := range results {
		for _, page := range []string{"<iframe src='%s'>", "<a href='%s'>", "<area href='%s'>",
			"<link rel=next href='%s'>", "<img src='%s'>", "<meta http-equiv=refresh content='0; URL=%s'>",
			"<embed src='%s'>", "<object data='%s'>"} {
			page = fmt.Sprintf("<meta charset=%s>"+page, m[1], "?&yuml;")
			if got := wptQuery(t, "text/html", page); got != m[2] {
				t.Errorf("%s: got %q, want %s", page, got, m[2])
			}
		}
	}
}

// wptQuery returns the query of the only link on page.
func wptQuery(t *testing.T, contentType, page string) string {
	s := Scanner{IncludeImages: true}
	doc := s.ScanPage([]byte(page), contentType, mustParse(t, "http://example.com/"))
	if len(doc.Links) != 1 {
		t.Fatalf("%s: %d links", page, len(doc.Links))
	}
	_, query, _ := strings.Cut(doc.Links[0].URL.String(), "?")
	return query
}
