package extract

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
)

// queryEncodingTests are links on a page in an encoding, and how they are requested. All results are
// also those of Chromium.
var queryEncodingTests = []struct{ charset, href, want string }{
	// Single bytes. What the encoding lacks becomes &#N; in its escaped form.
	{"windows-1251", "/ж?q=ж&r=%D0%B6", "/%D0%B6?q=%E6&r=%D0%B6"},
	{"windows-1251", "?é=ÿ", "/dir/page?%26%23233%3B=%26%23255%3B"},
	{"windows-1251", "?\U0001F600&1", "/dir/page?%26%23128512%3B&1"},
	{"windows-1250", "?ž", "/dir/page?%9E"},
	{"latin1", "?ÿ€'\"<>", "/dir/page?%FF%80%27%22%3C%3E"},
	{"windows-1252", "?\u0081", "/dir/page?%81"},
	{"koi8-u", "?ў", "/dir/page?%AE"},
	{"iso-8859-8-i", "?א\u0081", "/dir/page?%E0%81"},
	{"x-mac-cyrillic", "?Ж", "/dir/page?%86"},
	// Two bytes and more. A byte that is ASCII stays ASCII.
	{"gbk", "/中?中€", "/%E4%B8%AD?%D6%D0%80"},
	{"gb2312", "?丂", "/dir/page?%81@"},
	{"gb18030", "?€\U0001F600", "/dir/page?%A2%E3%949%FC6"},
	{"big5", "?十═晴", "/dir/page?%A4Q%F9%F9%B4%B8"},
	{"big5-hkscs", "?䏰", "/dir/page?%26%2317392%3B"},
	{"euc-kr", "?한가", "/dir/page?%C7%D1%B0%A1"},
	{"shift_jis", "?ソ#ソ", "/dir/page?%83\\"},
	{"shift_jis", "?ⅰ¥‾−ｱ", "/dir/page?%FA@\\~%81|%B1"},
	{"euc-jp", "?あ¥‾−ｱ", "/dir/page?%A4%A2\\~%A1%DD%8E%B1"},
	{"euc-jp", "?丂", "/dir/page?%26%2319970%3B"},
	// ISO-2022-JP has states. It ends in that of ASCII, and an unknown character selects ASCII first.
	{"iso-2022-jp", "?あa", "/dir/page?%1B$B$%22%1B(Ba"},
	{"iso-2022-jp", "?ｱｶﾞ", "/dir/page?%1B$B%%22%+!+%1B(B"},
	{"iso-2022-jp", "?¥a\\‾", "/dir/page?%1B(J\\a%1B(B\\%1B(J~%1B(B"},
	{"iso-2022-jp", "?あé丂a", "/dir/page?%1B$B$%22%1B(B%26%23233%3B%26%2319970%3Ba"},
	{"iso-2022-jp", "?\u000Ea", "/dir/page?%26%2365533%3Ba"},
	{"iso-2022-jp", "?、#", "/dir/page?%1B$B!%22%1B(B"},
	// Queries in UTF-8: these encodings are for reading only.
	{"utf-8", "?é", "/dir/page?%C3%A9"},
	{"utf-16be", "?é", "/dir/page?%C3%A9"},
	// What the parser of URLs drops, it drops between the bytes of a character, too.
	{"iso-2022-jp", "?あ\t\nい ", "/dir/page?%1B$B$%22$$%1B(B"},
	{"windows-1251", "https://example.org/?ж#ж?ж", "https://example.org/?%E6"},
	{"windows-1251", "//пример.example/?ж", "http://xn--e1afmkfd.example/?%E6"},
	{"windows-1251", "/?a?ж", "/?a?%E6"},
	{"windows-1251", "/?ж #x", "/?%E6%20"},
	{"windows-1251", "/ж#?ж", "/%D0%B6"},
	{"windows-1251", "mailto:x?ж", ""},
}

// TestQueryEncoding: the query of a link is in the encoding of its page, however the page spells the
// link, and host and path are in UTF-8.
func TestQueryEncoding(t *testing.T) {
	for _, test := range queryEncodingTests {
		t.Run(test.charset+" "+test.href, func(t *testing.T) {
			enc, err := htmlindex.Get(test.charset)
			if err != nil {
				t.Fatal(err)
			}
			spellings := map[string][]byte{"references": []byte(numericReferences(test.href))}
			body, err := enc.NewEncoder().Bytes([]byte(strings.ReplaceAll(test.href, `"`, "&quot;")))
			if back, _ := enc.NewDecoder().Bytes(body); err == nil && string(back) == test.href {
				spellings["bytes"] = body
			}
			for name, href := range spellings {
				if strings.HasPrefix(test.charset, "utf-16") && name == "references" {
					href, _ = enc.NewEncoder().Bytes(href)
				}
				page := bytes.Join([][]byte{encoded(t, enc, `<a href="`), href, encoded(t, enc, `">`)}, nil)
				doc := new(Scanner).ScanPage(page, "text/html; charset="+test.charset,
					mustParse(t, "http://example.com/dir/page"))
				got := ""
				if len(doc.Links) > 0 {
					got = strings.TrimPrefix(doc.Links[0].URL.String(), "http://example.com")
				}
				if got != test.want {
					t.Errorf("as %s: got %s, want %s", name, got, test.want)
				}
			}
		})
	}
}

// encoded returns s, which is ASCII, in enc.
func encoded(t *testing.T, enc interface{ NewEncoder() *encoding.Encoder }, s string) []byte {
	t.Helper()
	b, err := enc.NewEncoder().Bytes([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// numericReferences returns s with a character reference for each character that is not a letter or
// punctuation of ASCII.
func numericReferences(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < ' ' || r > '~' || r == '"' {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
