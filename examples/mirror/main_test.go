package main

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage/warc"
)

// siteBodies are the bodies of the site: a page that links to another page and to one that
// robots.txt disallows, and an image.
var siteBodies = map[string]string{
	"/robots.txt": "User-agent: *\nDisallow: /private\n",
	"/": "<title>Home</title><img src=/bee.png><a href=/about>about</a><a href=/private>p</a><a " +
		"href=http://elsewhere.example/>e</a>",
	"/about":   "<title>About</title>Bees.",
	"/bee.png": "\x89PNG\r\n\x1a\n\x00bee",
}

func newSite() *crawltest.Web {
	pages := map[string]crawltest.PageFunc{"/bee.png": crawltest.StaticPage(crawltest.ResponseOfType("image/png",
		siteBodies["/bee.png"]))}
	for _, path := range []string{"/", "/about"} {
		pages[path] = crawltest.StaticPage(crawltest.HTML(siteBodies[path]))
	}
	return crawltest.New(crawltest.Site{Host: "bees.example", Pages: pages,
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
			Response: crawltest.Text(siteBodies["/robots.txt"]), IsDisallowed: func(p string) bool {
				return p == "/private"
			}})})
}

// TestMirror: the archive has every body that the server sent, once, and a second run fetches no
// page again.
func TestMirror(t *testing.T) {
	web := newSite()
	server, err := web.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	dir := t.TempDir()
	fetch := httpfetch.Config{ConnectToRules: []string{"::" + server.Addr}, AllowPrivate: true}
	for range 2 {
		if err := mirror(t.Context(), "http://bees.example/", dir, fetch,
			politeness.Policy{Delay: 10 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{}
	for path, body := range siteBodies {
		want["http://bees.example"+path] = body
	}
	if diff := cmp.Diff(want, readArchive(t, dir)); diff != "" {
		t.Errorf("bodies that the server sent (-), and bodies in the archive (+)\n%s", diff)
	}
	if r := web.Judge(crawltest.JudgeOptions{RequiredProductToken: "mirrorbot",
		MinDelay: 10 * time.Millisecond}); !r.OK() {
		t.Error(r)
	}
}

// readArchive returns the bodies of the responses in an archive, by URL. It fails if a URL is
// archived twice.
func readArchive(t *testing.T, dir string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "bees.example-*.warc.gz"))
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]string{}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for r := warc.NewReader(f); ; {
			record, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if record.Type() != warc.TypeResponse {
				continue
			}
			url := record.Header.Get("WARC-Target-URI")
			if _, twice := sent[url]; twice {
				t.Errorf("%s is archived twice", url)
			}
			sent[url] = readResponseBody(t, record.Block)
		}
	}
	return sent
}

// readResponseBody reads a response as net/http reads it from a server.
func readResponseBody(t *testing.T, block io.Reader) string {
	t.Helper()
	answer, err := http.ReadResponse(bufio.NewReader(block), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
