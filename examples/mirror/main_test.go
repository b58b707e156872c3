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

// siteBodies are what the site sends: a page that links to another and to one that
// robots.txt closes, and an image.
var siteBodies = map[string]string{
	"/robots.txt": "User-agent: *\nDisallow: /private\n",
	"/":           "<title>Home</title><img src=/bee.png><a href=/about>about</a><a href=/private>p</a><a href=http://elsewhere.example/>e</a>",
	"/about":      "<title>About</title>Bees.",
	"/bee.png":    "\x89PNG\r\n\x1a\n\x00bee",
}

func newSite() *crawltest.Web {
	pages := map[string]crawltest.PageFunc{"/bee.png": crawltest.StaticPage(crawltest.ResponseOfType("image/png", siteBodies["/bee.png"]))}
	for _, path := range []string{"/", "/about"} {
		pages[path] = crawltest.StaticPage(crawltest.HTML(siteBodies[path]))
	}
	return crawltest.New(crawltest.Site{Host: "bees.example", Pages: pages, Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
		Response: crawltest.Text(siteBodies["/robots.txt"]), IsDisallowed: func(p string) bool { return p == "/private" }})})
}

// TestMirror mirrors a site, replays the archive, and finds what the server sent;
// and there is nothing more to do when it is run again.
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
		if err := mirror(t.Context(), "http://bees.example/", dir, fetch, politeness.Policy{Delay: 10 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{}
	for path, body := range siteBodies {
		want["http://bees.example"+path] = body
	}
	if diff := cmp.Diff(want, readArchive(t, dir)); diff != "" {
		t.Errorf("bodies that were sent (-), and that are in the archive (+)\n%s", diff)
	}
	if r := web.Judge(crawltest.JudgeOptions{RequiredProductToken: "mirrorbot", MinDelay: 10 * time.Millisecond}); !r.OK() {
		t.Error(r)
	}
}

// readArchive returns the bodies of the answers in an archive, by their URLs. None may
// be there twice.
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

// readResponseBody reads an answer as net/http reads it from a server.
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
