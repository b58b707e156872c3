package ftpfetch_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/extract"
	"github.com/decorum-crawler/decorum/crawler/ftpfetch"
	"github.com/decorum-crawler/decorum/crawler/ftpfetch/ftptest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/crawler/internal/tickettest"
)

// newFetcher returns a Fetcher whose connections go to addr through an httpfetch.Fetcher, as in a
// crawl.
func newFetcher(t *testing.T, addr string, cfg ftpfetch.Config, private bool) *ftpfetch.Fetcher {
	t.Helper()
	web, err := httpfetch.New(httpfetch.Config{
		UserAgent:      "testbot/1.0 (+mailto:bot@example.com)",
		ConnectToRules: []string{"::" + addr}, AllowPrivate: private,
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Dialer, cfg.Password = web, "bot@example.com"
	f, err := ftpfetch.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustURL(t *testing.T, s string) decorum.URL {
	t.Helper()
	u, err := decorum.ParseURL(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// ticketFor returns a ticket for url. If url does not end in /robots.txt, it is a page of an origin
// without rules.
func ticketFor(t *testing.T, url string) crawler.Ticket {
	t.Helper()
	u := mustURL(t, url)
	return tickettest.New(t, tickettest.Config{URL: url, ForRobots: u == u.Origin().RobotsURL()})
}

// writeFiles writes files into a new directory. A name that ends in a slash is a directory.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFetch: each kind of file, directory and failure becomes the status with the same meaning.
func TestFetch(t *testing.T) {
	const limit = 1000
	dir := writeFiles(t, map[string]string{
		"robots.txt": "User-agent: *\nDisallow: /secret\n", "a.html": "<p>a", "README": "read me\n", "pub/b.html": "b",
		"just.txt": strings.Repeat("x", limit), "big.txt": strings.Repeat("x", 1<<20), "film.png": "moo",
		"raw": "\x00\x01\x02", "empty": "", "100%": "whole", "dir.png/a": "",
	})
	for _, tt := range []struct {
		path, contentType, body string
		status                  int
		truncated               bool
		location                string
	}{
		{path: "/robots.txt", status: 200, contentType: "text/plain; charset=utf-8",
			body: "User-agent: *\nDisallow: /secret\n"},
		{path: "/a.html", status: 200, contentType: "text/html; charset=utf-8", body: "<p>a"},
		{path: "/README", status: 200, contentType: "text/plain; charset=utf-8", body: "read me\n"},
		{path: "/empty", status: 200, contentType: "text/plain; charset=utf-8"},
		{path: "/just.txt", status: 200, contentType: "text/plain; charset=utf-8", body: strings.Repeat("x", limit)},
		{path: "/big.txt", status: 200, contentType: "text/plain; charset=utf-8",
			body: strings.Repeat("x", limit), truncated: true},
		{path: "/film.png", status: 200, contentType: "image/png", truncated: true},
		{path: "/none.png", status: 404},
		{path: "/dir.png", status: 301, location: "/dir.png/"},
		// robots.txt may close the file under its other spelling only.
		{path: "/100%", status: 301, location: "/100%25"},
		{path: "/pub/%zz?%41", status: 301, location: "/pub/%25zz%3FA"},
		{path: "/100%25", status: 200, contentType: "text/plain; charset=utf-8", body: "whole"},
		{path: "/raw", status: 200, contentType: "application/octet-stream", truncated: true},
		{path: "/pub/", status: 200, contentType: "text/html; charset=utf-8",
			body: "<!DOCTYPE html>\n<title>/pub/</title>\n<a href=\"./b.html\">b.html</a><br>\n"},
		{path: "/pub", status: 301, location: "/pub/"},
		{path: "/none", status: 404},
		{path: "/none/", status: 404},
		{path: "/a.html?x=1", status: 404}, // ftp has no queries
	} {
		t.Run(tt.path, func(t *testing.T) {
			server := ftptest.Start(t, dir, nil)
			f := newFetcher(t, server.Addr,
				ftpfetch.Config{MaxBody: limit, ContentTypes: []string{"text/html", "text/plain"}}, true)
			ticket := ticketFor(t, "ftp://a.test"+tt.path)
			res, err := f.Fetch(t.Context(), ticket)
			if err != nil {
				t.Fatal(err)
			}
			if got := res.Header.Get("Content-Type"); res.Status != tt.status || got != tt.contentType ||
				string(res.Body) != tt.body || res.BodyLimitExceeded != tt.truncated {
				t.Errorf("%d %q %q, truncated: %v; want %d %q %q, %v",
					res.Status, got, res.Body, res.BodyLimitExceeded, tt.status, tt.contentType, tt.body, tt.truncated)
			}
			if to, _ := res.Location(); tt.location != "" && to != mustURL(t, "ftp://a.test"+tt.location) {
				t.Errorf("it leads to %v, want %s", to, tt.location)
			}
			if res.Addr.String() != server.Addr || res.URL != ticket.URL() || res.End.Before(res.Start) {
				t.Errorf("answer %+v", res)
			}
			if got, want := server.CommandsNamed("USER", "PASS"), []string{"USER anonymous",
				"PASS bot@example.com"}; !slices.Equal(got, want) {
				t.Errorf("it logged in by %q, want %q", got, want)
			}
			if _, err := f.Fetch(t.Context(), ticket); !errors.Is(err, decorum.Unticketed) ||
				len(server.CommandsNamed("USER")) != 1 {
				t.Errorf("a second visit on the same ticket: %v, want Unticketed and nothing sent", err)
			}
		})
	}
}

// TestListing: the links of a listing lead to its files, whatever characters their names have.
func TestListing(t *testing.T) {
	files := map[string]string{
		"a b.txt": "1", "100%.txt": "2", "%41.txt": "3", "what?.txt": "4", "#1.txt": "5",
		"a:b.txt": "6", "žluť.txt": "7",
		"<b>&amp;.txt": "8", `"q".txt`: "9", "dir/x.txt": "10", "-la": "11", "*": "12",
	}
	server := ftptest.Start(t, writeFiles(t, files), nil)
	f := newFetcher(t, server.Addr, ftpfetch.Config{}, true)
	res, err := f.Fetch(t.Context(), ticketFor(t, "ftp://a.test/"))
	if err != nil {
		t.Fatal(err)
	}
	links := new(extract.Scanner).ScanPage(res.Body, res.Header.Get("Content-Type"), res.URL).Links
	if len(links) != len(files) {
		t.Fatalf("%d links, want %d:\n%s", len(links), len(files), res.Body)
	}
	read := map[string]bool{}
	for _, l := range links {
		res, err := f.Fetch(t.Context(), ticketFor(t, l.URL.String()))
		if err != nil {
			t.Fatal(err)
		}
		if read[string(res.Body)] = true; res.Status != http.StatusOK {
			t.Errorf("%s: status %d", l.URL, res.Status)
		}
	}
	for name, text := range files {
		if !read[text] && name != "dir/x.txt" {
			t.Errorf("no link leads to %s", name)
		}
	}
	// A listing is cut at the limit of a body.
	short, err := newFetcher(t, server.Addr, ftpfetch.Config{MaxBody: 500}, true).Fetch(t.Context(),
		ticketFor(t, "ftp://a.test/"))
	if err != nil || !short.BodyLimitExceeded || len(short.Body) > 500 ||
		len(new(extract.Scanner).ScanPage(short.Body, "text/html", res.URL).Links) < 2 {
		t.Errorf("a listing of at most 500 bytes: %+v, %v", short, err)
	}
}

// TestUnwantedFiles: a file whose name says that its type is not wanted is not transferred. RETR is sent
// only to find out whether the file exists, if SIZE does not say so.
func TestUnwantedFiles(t *testing.T) {
	dir := writeFiles(t, map[string]string{"big.DEB": strings.Repeat("x", 1<<20), "a.zip": "PK"})
	server := ftptest.Start(t, dir, nil)
	f := newFetcher(t, server.Addr, ftpfetch.Config{ContentTypes: []string{"text/html"}}, true)
	for path, status := range map[string]int{"/big.DEB": 200, "/a.zip": 200, "/none.zip": 404} {
		res, err := f.Fetch(t.Context(), ticketFor(t, "ftp://a.test"+path))
		if err != nil || res.Status != status || len(res.Body) > 0 || res.BodyLimitExceeded != (status == 200) {
			t.Errorf("%s: %+v, %v; want %d without a body", path, res, err, status)
		}
	}
	if got, want := server.CommandsNamed("RETR"), []string{"RETR /none.zip"}; !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
}

// TestNothingIsSent: a URL that does not name a file is refused before anything is sent. The path
// that robots.txt was checked for is the path in the command, which has nothing but a path.
func TestNothingIsSent(t *testing.T) {
	server := ftptest.Start(t, writeFiles(t, map[string]string{"secret/x": "x"}), nil)
	f := newFetcher(t, server.Addr, ftpfetch.Config{}, true)
	for _, url := range []string{
		"ftp://a.test/x%0d%0aDELE%20/secret/x", "ftp://a.test/x%0A", "ftp://a.test/%00",
		"ftp://a.test/a%09b", "ftp://a.test/%7f",
		"ftp://a.test/%FF%F4%FF%F2ABOR", "ftp://a.test/pub%2F..%2Fsecret/x", "ftp://a.test/..%2fsecret/x",
		"ftp://a.test/..%5Csecret%5Cx",
		"ftp://a.test/a?b%0d%0aQUIT", "ftp://a.test/100%%0a", "http://a.test/",
	} {
		if _, err := f.Fetch(t.Context(), ticketFor(t, url)); !errors.Is(err, decorum.Invalid) {
			t.Errorf("%s: %v, want Invalid", url, err)
		}
	}
	if _, err := f.Fetch(t.Context(), crawler.Ticket{}); !errors.Is(err, decorum.Unticketed) {
		t.Errorf("no ticket: %v, want Unticketed", err)
	}
	public := newFetcher(t, server.Addr, ftpfetch.Config{}, false)
	for _, url := range []string{"ftp://a.test/robots.txt", "ftp://a.test/secret/"} {
		if _, err := public.Fetch(t.Context(), ticketFor(t, url)); !errors.Is(err, decorum.Forbidden) {
			t.Errorf("%s at a loopback address: %v, want Forbidden", url, err)
		}
	}
	if log := server.ReceivedCommands(); len(log) != 0 {
		t.Errorf("the server received %v", log)
	}
}

func TestLoginRefused(t *testing.T) {
	server := ftptest.Start(t, t.TempDir(), func(string) bool { return false })
	for _, url := range []string{"ftp://a.test/robots.txt", "ftp://a.test/x"} {
		res, err := newFetcher(t, server.Addr, ftpfetch.Config{}, true).Fetch(t.Context(), ticketFor(t, url))
		if !errors.Is(err, decorum.Unreachable) ||
			!strings.Contains(err.Error(), `the server says 530 "Incorrect password`) {
			t.Errorf("%s: %v, %v; want no answer, in the words of the server", url, res, err)
		}
	}
}

func TestConnectionRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := newFetcher(t, l.Addr().String(), ftpfetch.Config{}, true).Fetch(t.Context(),
		ticketFor(t, "ftp://a.test/")); !errors.Is(err, decorum.Unreachable) {
		t.Errorf("%v, want Unreachable", err)
	}
}

func TestNew(t *testing.T) {
	for _, cfg := range []ftpfetch.Config{{}, {Password: "x"}, {Dialer: &httpfetch.Fetcher{}},
		{Dialer: &httpfetch.Fetcher{}, Password: "x\r\nDELE /"}} {
		if _, err := ftpfetch.New(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}
