package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
)

// serverAddrEnv in the environment makes the test binary run the program against that server.
const serverAddrEnv = "CSV_TEST_SERVER"

// TestMain runs the program itself if its parent has started a server, and the tests otherwise.
func TestMain(m *testing.M) {
	if addr := os.Getenv(serverAddrEnv); addr != "" {
		config.Policy.Delay = 10 * time.Millisecond
		config.FetchConfig = httpfetch.Config{ConnectToRules: []string{"::" + addr}, AllowPrivate: true}
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestCSV runs the program twice on a site of two HTML pages and a file, with a broken link, a link that
// robots.txt disallows, and a link to another host. The second run visits nothing again.
func TestCSV(t *testing.T) {
	page := func(body string) crawltest.PageFunc { return crawltest.StaticPage(crawltest.HTML(body)) }
	web := crawltest.New(crawltest.Site{Host: "example.com", Pages: map[string]crawltest.PageFunc{
		"/": page("<title>Home, sweet</title><a href=/a>a</a><a href=/private>p</a>" +
			"<a href=http://elsewhere.test/>e</a>"),
		"/a":         page("<title>A</title><a href=/broken>b</a><a href=/notes.txt>n</a><a href=/>home</a>"),
		"/notes.txt": crawltest.StaticPage(crawltest.Text("notes")),
	}, Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
		Response:     crawltest.Text("User-agent: titlebot\nDisallow: /private\n"),
		IsDisallowed: func(p string) bool { return p == "/private" }})})
	server, err := web.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, want := range []string{"http://example.com/,200,\"Home, sweet\"\nhttp://example.com/a,200,A\n" +
		"http://example.com/notes.txt,200,\n", ""} {
		c := exec.Command(self, "http://example.com/")
		c.Dir, c.Env, c.Stderr = dir, append(os.Environ(), serverAddrEnv+"="+server.Addr), os.Stderr
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		if string(out) != want {
			t.Errorf("printed\n%swant\n%s", out, want)
		}
	}
	if r := web.Judge(crawltest.JudgeOptions{RequiredProductToken: "titlebot"}); !r.OK() {
		t.Error(r)
	}
}

// TestInterrupt: Ctrl-C ends the program with whole rows and a message, and the next run continues.
func TestInterrupt(t *testing.T) {
	var pages strings.Builder
	for i := range 50 {
		fmt.Fprintf(&pages, "<a href=/%d>%d</a>", i, i)
	}
	web := crawltest.New(crawltest.Site{Host: "example.com",
		Fallback: crawltest.StaticPage(crawltest.HTML("<title>A, page</title>" + pages.String()))})
	server, err := web.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, rows := t.TempDir(), map[string]bool{}
	for _, isInterrupted := range []bool{true, false} {
		c := exec.Command(self, "http://example.com/")
		var stderr strings.Builder
		c.Dir, c.Env, c.Stderr = dir, append(os.Environ(), serverAddrEnv+"="+server.Addr), &stderr
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		r := csv.NewReader(out)
		for {
			row, err := r.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if rows[row[0]] {
				t.Errorf("%s is written twice", row[0])
			}
			rows[row[0]] = true
			if isInterrupted && len(rows) == 3 {
				if err := c.Process.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := c.Wait(); err != nil {
			t.Errorf("the program ended with %v: %s", err, &stderr)
		}
		const says = "; all rows so far are written"
		if strings.Contains(stderr.String(), says) != isInterrupted {
			t.Errorf("interrupted: %v; it printed %q", isInterrupted, &stderr)
		}
		if isInterrupted && len(rows) == 51 {
			t.Error("all pages were visited before the interrupt")
		}
	}
	if len(rows) != 51 {
		t.Errorf("%d rows, want 51", len(rows))
	}
}

// TestInterruptWithFullDisk: after Ctrl-C, too, a failed write ends the program with its error.
func TestInterruptWithFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err) // Linux has it
	}
	defer full.Close()
	visited := make(chan bool, 10)
	web := crawltest.New(crawltest.Site{Host: "example.com", Pages: map[string]crawltest.PageFunc{
		"/": func(r crawltest.PageRequest) crawltest.Response {
			visited <- true
			return crawltest.HTML("<title>A</title>")
		}}})
	server, err := web.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "http://example.com/")
	var stderr strings.Builder
	c.Dir, c.Env = t.TempDir(), append(os.Environ(), serverAddrEnv+"="+server.Addr)
	c.Stdout, c.Stderr = full, &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	<-visited
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil || !strings.Contains(stderr.String(), "no space left on device") ||
		strings.Contains(stderr.String(), "all rows so far are written") {
		t.Errorf("the program ended with %v: %s", err, &stderr)
	}
}
