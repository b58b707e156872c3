package sitemap

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

const feedFormat = `{"version": "https://jsonfeed.org/version/1.1", "title": "T", "home_page_url": "/no", "items": [%s]%s}`

// TestJSONFeed checks the entries of JSON Feeds, and the errors that end them.
func TestJSONFeed(t *testing.T) {
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	for _, tt := range []struct {
		name, file string
		want       []string
		err        error
	}{
		{"items", fmt.Sprintf(feedFormat,
			`{"id": "1", "url": "/a"}, {"id": "2", "url": "http://b.example/b", "external_url": "/no"}`, ""),
			[]string{"http://a.example/a", "http://b.example/b"}, nil},
		{"the next part, wherever it stands",
			`{"next_url": "/feed2", "items": [{"url": "/a"}], "version": "https://jsonfeed.org/version/1"}`,
			[]string{"http://a.example/feed2", "http://a.example/a"}, nil},
		{"items of other kinds", fmt.Sprintf(feedFormat,
			`1, null, "x", [{"url": "/no"}], {}, {"url": 7}, {"url": {"url": "/no"}}, {"author": {"url": "/no"}, "url": "/a"}`, ""),
			[]string{"http://a.example/a"}, nil},
		{"a bad URL among others", fmt.Sprintf(feedFormat, `{"url": "http://[/"}, {"url": "/a"}`, ""),
			[]string{"http://a.example/a"}, nil},
		{"escapes", fmt.Sprintf(feedFormat, `{"\u0075rl": "\/a\u003fx"}`, ""), []string{"http://a.example/a?x"}, nil},
		{"lone surrogates and bytes that are no UTF-8",
			fmt.Sprintf(feedFormat, `{"title": "\ud800`+"\xff"+`", "url": "/a"}`, ""),
			[]string{"http://a.example/a"}, nil},
		{"a byte order mark", "\xEF\xBB\xBF " + fmt.Sprintf(feedFormat, `{"url": "/a"}`, ""),
			[]string{"http://a.example/a"}, nil},
		{"a URL twice", fmt.Sprintf(feedFormat, `{"url": "/a", "url": "/b"}`, ""), []string{"http://a.example/b"}, nil},
		{"cut short", fmt.Sprintf(feedFormat, `{"url": "/a"}, {"url": "/b", "title": `, "")[:130],
			[]string{"http://a.example/a", "http://a.example/b"}, ErrJSON},
		{"cut after a location", `{"items": [{"url": "/a"`, []string{"http://a.example/a"}, ErrJSON},
		{"no comma", fmt.Sprintf(feedFormat, `{"url": "/a"} {"url": "/b"}`, ""),
			[]string{"http://a.example/a"}, ErrJSON},
		{"too deep", fmt.Sprintf(feedFormat, `{"url": "/a"}, `+deep, ""), []string{"http://a.example/a"}, ErrLimit},
		{"endless depth", fmt.Sprintf(feedFormat, strings.Repeat("[", 1<<20), ""), nil, ErrLimit},
		{"too many", fmt.Sprintf(feedFormat, strings.Repeat(`{"url": "/a"},`, 9)+"0", ""),
			slices.Repeat([]string{"http://a.example/a"}, 5), ErrLimit},
		{"too long", fmt.Sprintf(feedFormat, `{"url": "/a", "content_html": "`+strings.Repeat("x", 2<<20)+`"}`, ""),
			[]string{"http://a.example/a"}, ErrLimit},
		{"a long URL", fmt.Sprintf(feedFormat, `{"url": "/`+strings.Repeat("x", 3000)+`"}, {"url": "/a"}`, ""),
			[]string{"http://a.example/a"}, nil},
		{"another version", `{"version": "https://example.com/1", "items": [{"url": "/no"}]}`, nil, ErrNotSitemap},
		{"no items", `{"version": "https://jsonfeed.org/version/1.1"}`, nil, ErrNotSitemap},
		{"items that are none", `{"items": {"url": "/no"}}`, nil, nil},
		{"no object", `{`, nil, ErrJSON},
		{"a list", `[{"url": "/no"}]`, nil, ErrNotSitemap},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readFeedURLs(t, tt.file)
			if !slices.Equal(got, tt.want) || !errors.Is(err, tt.err) {
				t.Errorf("got %q, %v, want %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

// readFeedURLs returns the URLs of a feed at a.example, and checks that reading it byte by byte
// returns the same.
func readFeedURLs(t *testing.T, file string) (urls []string, err error) {
	t.Helper()
	options := Options{FeedsOnly: true, MaxEntries: 5, MaxBytes: 1 << 20}
	base := mustParseURL(t, "http://a.example/feed.json")
	add := func(e Entry) error { urls = append(urls, e.URL.String()); return nil }
	bytewise := Read(iotest.OneByteReader(strings.NewReader(file)), base, options, add)
	slow := urls
	urls = nil
	err = Read(strings.NewReader(file), base, options, add)
	if !slices.Equal(slow, urls) || fmt.Sprint(bytewise) != fmt.Sprint(err) {
		t.Errorf("byte by byte: %q, %v, want %q, %v", slow, bytewise, urls, err)
	}
	return urls, err
}

// TestJSONLinesAreBounded: a file of empty lines, which the decoder reads to their end before it
// returns a token, takes less than eight bytes for each line.
func TestJSONLinesAreBounded(t *testing.T) {
	const n = 1 << 20
	l := &lineTracker{in: newInput(strings.NewReader(strings.Repeat("\n", n)))}
	if _, err := io.Copy(io.Discard, l); err != nil {
		t.Fatal(err)
	}
	if cap(l.lineEnds) > 4*maxLineEnds {
		t.Errorf("%d ends of lines are remembered, want about %d at most", cap(l.lineEnds), maxLineEnds)
	}
	if l.advanceTo(n); l.in.line != n+1 {
		t.Errorf("line %d at the end, want %d", l.in.line, n+1)
	}
}

func FuzzJSONFeed(f *testing.F) {
	f.Add(fmt.Sprintf(feedFormat, `{"url": "/a", "date_modified": "2026-11-22T00:00:00Z"}, {}`, `, "next_url": "/b"`))
	f.Add(`{"items": [1, [{}], {"url": ""}], "next_url": {}}`)
	f.Fuzz(func(t *testing.T, file string) {
		if urls, _ := readFeedURLs(t, file); len(urls) > 5 {
			t.Errorf("%d entries", len(urls))
		}
	})
}
