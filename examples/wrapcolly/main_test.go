package main

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
)

const serverAddrEnv = "WRAP_TEST_SERVER"

// TestMain runs the program itself, on the server that its parent has started.
func TestMain(m *testing.M) {
	if addr := os.Getenv(serverAddrEnv); addr != "" {
		options.Policy.Delay = 10 * time.Millisecond
		options.FetchConfig = httpfetch.Config{ConnectToRules: []string{"::" + addr}, AllowPrivate: true}
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestWrap runs the program on a site of two pages, a link that is broken, one
// that robots.txt closes, and one that leads away.
func TestWrap(t *testing.T) {
	page := func(body string) crawltest.PageFunc { return crawltest.StaticPage(crawltest.HTML(body)) }
	web := crawltest.New(crawltest.Site{Host: "example.com", Pages: map[string]crawltest.PageFunc{
		"/":  page("<title>Home</title><a href=/a>a</a><a href=/private>p</a><a href=http://elsewhere.test/>e</a>"),
		"/a": page("<title>A</title><a href=/broken>b</a><a href=/>home</a>"),
	}, Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: /private\n"),
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
	c := exec.Command(self, "http://example.com/")
	c.Env = append(os.Environ(), serverAddrEnv+"="+server.Addr)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "visiting http://example.com/\n  title: Home\nvisiting http://example.com/a\n  title: A\nvisiting http://example.com/broken\n  error: Not Found\n"
	if string(out) != want {
		t.Errorf("printed\n%swant\n%s", out, want)
	}
	if r := web.Judge(crawltest.JudgeOptions{RequiredProductToken: "titlebot"}); !r.OK() {
		t.Error(r)
	}
}
