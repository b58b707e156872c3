package main

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
)

// serverAddrEnv in the environment makes the test binary run the program against that server.
const serverAddrEnv = "WRAP_TEST_SERVER"

// TestMain runs the program itself if its parent has started a server, and the tests otherwise.
func TestMain(m *testing.M) {
	if addr := os.Getenv(serverAddrEnv); addr != "" {
		options.Policy.Delay = 10 * time.Millisecond
		options.FetchConfig = httpfetch.Config{ConnectToRules: []string{"::" + addr}, AllowPrivate: true}
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestWrap runs the program on a site of two pages with a broken link, a link that robots.txt
// disallows, and a link to another host.
func TestWrap(t *testing.T) {
	page := func(body string) crawltest.PageFunc { return crawltest.StaticPage(crawltest.HTML(body)) }
	web := crawltest.New(crawltest.Site{Host: "example.com", Pages: map[string]crawltest.PageFunc{
		"/":  page("<title>Home</title><a href=/a>a</a><a href=/private>p</a><a href=http://elsewhere.test/>e</a>"),
		"/a": page("<title>A</title><a href=/broken>b</a><a href=/>home</a>"),
	}, Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: " +
		"/private\n"),
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
	want := "visiting http://example.com/\n  title: Home\nvisiting http://example.com/a\n  title: A\nvisiting " +
		"http://example.com/broken\n  error: Not Found\n"
	if string(out) != want {
		t.Errorf("printed\n%swant\n%s", out, want)
	}
	if r := web.Judge(crawltest.JudgeOptions{RequiredProductToken: "titlebot"}); !r.OK() {
		t.Error(r)
	}
}
