package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// commandEnv in the environment makes the test binary run the program.
const commandEnv = "DAEMON_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

// testSite is a host with a shop of two shelves, and with news. Its robots.txt disallows the last
// story.
func testSite() crawltest.Site {
	pages := map[string]crawltest.PageFunc{}
	for i := 1; i <= 2; i++ {
		pages[fmt.Sprintf("/shelves/%d", i)] = crawltest.StaticPage(crawltest.HTML(fmt.Sprintf(
			`<article class=book><h2>Volume %d</h2><b class=price> %d € </b></article><a class=shelf href=/shelves/2>more</a>`, i, i)))
		pages[fmt.Sprintf("/news/%d", i)] = crawltest.StaticPage(
			crawltest.HTML(fmt.Sprintf(`<h1>Story %d</h1><a class=next href=%d>next</a>`, i, i+1)))
	}
	return crawltest.Site{Host: "example.com", Pages: pages, Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
		Response:     crawltest.Text("User-agent: *\nDisallow: /news/3\n"),
		IsDisallowed: func(p string) bool { return p == "/news/3" }})}
}

// TestDaemon runs the program with its own project files and shorter delays, on a web on loopback.
// It starts both projects through the API, and stops the program when both have printed everything.
func TestDaemon(t *testing.T) {
	web := crawltest.New(testSite())
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
	data := filepath.Join(dir, "data")
	c := exec.Command(self, "serve", "--listen=127.0.0.1:0", "--log-format=json", "--data", data, "--projects",
		copyProjects(t, dir, server.Addr))
	c.Env = append(os.Environ(), commandEnv+"=1")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(time.Minute, func() { c.Process.Kill() })
	defer watchdog.Stop()
	addr := listenAddr(t, log)
	go io.Copy(io.Discard, log)
	for _, project := range []string{"books", "news"} {
		startProject(t, addr, data, project)
	}
	want := []string{"book: Volume 1: 1 €", "book: Volume 2: 2 €", "news: Story 1", "news: Story 2"}
	var got []string
	for lines := bufio.NewScanner(out); len(got) < len(want) && lines.Scan(); {
		got = append(got, lines.Text())
	}
	c.Process.Signal(syscall.SIGTERM)
	if err := c.Wait(); c.ProcessState.ExitCode() != 4 {
		t.Errorf("the program ended with %v, want exit code 4", err)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("printed %q, want %q", got, want)
	}
	if r := web.Judge(crawltest.JudgeOptions{MinDelay: 10 * time.Millisecond}); !r.OK() {
		t.Error(r)
	}
}

// listenAddr returns the listening address from the daemon's log.
func listenAddr(t *testing.T, log io.Reader) string {
	t.Helper()
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var line struct{ Listen string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		if line.Listen != "" {
			return line.Listen
		}
	}
	t.Fatal("the log of the daemon lacks its listening address")
	return ""
}

// startProject starts a project through the API, with the token in the data directory.
func startProject(t *testing.T, addr, data, project string) {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(data, "token"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+addr+"/api/v1/projects/"+project+"/start", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode/100 != 2 {
		t.Fatalf("starting %s: %s %s", project, res.Status, text)
	}
}

// copyProjects copies the project files, with shorter delays and connections to addr, and returns
// their folder.
func copyProjects(t *testing.T, dir, addr string) string {
	t.Helper()
	folder := filepath.Join(dir, "projects")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"books.yaml", "news.yaml"} {
		text, err := os.ReadFile(filepath.Join("projects", name))
		if err != nil {
			t.Fatal(err)
		}
		testText := strings.NewReplacer("delay: 1s", "delay: 10ms", "delay: 2s", "delay: 20ms").Replace(string(text))
		testText += fmt.Sprintf("fetch: {allow_private: true, connect_to: ['::%s']}\n", addr) +
			"discover: {sitemap_xml: false}\n" // both projects visit one host
		if err := os.WriteFile(filepath.Join(folder, name), []byte(testText), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
