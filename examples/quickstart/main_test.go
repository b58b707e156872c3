package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// commandEnv in the environment makes the test binary run the program.
const commandEnv = "QUICKSTART_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestQuickstart runs the program with its own project file on a web of three articles. Its
// robots.txt disallows the last one.
func TestQuickstart(t *testing.T) {
	pages := map[string]crawltest.PageFunc{}
	for i := range 3 {
		pages[fmt.Sprintf("/news/%d", i+1)] = crawltest.StaticPage(crawltest.HTML(fmt.Sprintf(
			`<main><h1>Story %d</h1><a href=%d>next</a></main><a href=/about>about</a>`, i+1, i+2)))
	}
	web := crawltest.New(crawltest.Site{Host: "example.com", Pages: pages,
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
			Response:     crawltest.Text("User-agent: quickstartbot\nDisallow: /news/3\n"),
			IsDisallowed: func(p string) bool { return p == "/news/3" }})})
	server, err := web.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "crawl", "-c", "project.yaml", "--delay=10ms",
		"--data", filepath.Join(t.TempDir(), "data"), "--allow-private",
		"--connect-to=::"+server.Addr, "--progress=none")
	c.Env = append(os.Environ(), commandEnv+"=1")
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if got, want := string(out), "http://example.com/news/1 Story 1\nhttp://example.com/news/2 Story 2\n"; got != want {
		t.Errorf("printed %q, want %q\n%s", got, want, &stderr)
	}
	if r := web.Judge(crawltest.JudgeOptions{RequiredProductToken: "quickstartbot"}); !r.OK() {
		t.Error(r)
	}
}
