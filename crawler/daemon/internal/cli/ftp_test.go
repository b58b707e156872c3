package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/ftpfetch/ftptest"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// ftpDir creates a directory that a test serves over FTP.
func ftpDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// newFTPWebFixture is NewWebFixture with an FTP server.
func newFTPWebFixture(t *testing.T, files map[string]string) (*daemontest.WebFixture, *ftptest.Server) {
	t.Helper()
	server := ftptest.Start(t, ftpDir(t, files), nil)
	return &daemontest.WebFixture{Addr: server.Addr, Dir: t.TempDir()}, server
}

// ftpRequests returns the requests to the server.
func ftpRequests(s *ftptest.Server) []string { return s.CommandsNamed("RETR", "CWD") }

// TestFTP crawls a tree of files from its root. The crawl fetches robots.txt first, visits no
// disallowed file, makes one visit at a time, and keeps the Crawl-delay.
func TestFTP(t *testing.T) {
	t.Parallel()
	const delay = 300 * time.Millisecond
	v, server := newFTPWebFixture(t, map[string]string{
		"robots.txt": "User-agent: *\nDisallow: /secret\nCrawl-delay: 0.3\n",
		"a.html": "<title>A</title><a href=/pub/deep>x</a><a href=/secret/y.txt>y</a><a " +
			"href='ftp://b.example/'>elsewhere</a>",
		"pub/b.txt": "b", "pub/deep/c.txt": "c", "secret/x.txt": "x", "pub/film.png": "moo",
	})
	runCommand(t, v.CrawlArgs("ftp://a.example/")...).want(t, command.ExitDone, "pages: 8 (")
	var got []string
	for _, r := range daemontest.ReadRecords(t, filepath.Join(v.DataDir(), "pages.jsonl")) {
		got = append(got, fmt.Sprint(strings.TrimPrefix(r.URL, "ftp://a.example"), " ", r.Status, " ",
			r.Title, " ", r.Bytes > 0))
		if r.RobotsVerdict.FileSHA256 == "" || r.IP != "127.0.0.1" {
			t.Errorf("record %+v", r)
		}
	}
	slices.Sort(got)
	want := []string{"/ 200 / true", "/a.html 200 A true", "/pub/ 200 /pub/ true",
		"/pub/b.txt 200  true", "/pub/deep 301  false",
		"/pub/deep/ 200 /pub/deep/ true", "/pub/deep/c.txt 200  true", "/pub/film.png 200  false"}
	if !slices.Equal(got, want) {
		t.Errorf("pages %q, want %q", got, want)
	}
	if wrote, sessions := verifyCleanLedger(t,
		v.DataDir()).Requests, len(server.CommandsNamed("USER")); wrote != int64(sessions) {
		t.Errorf("%d requests in the ledger, %d sessions", wrote, sessions)
	}
	var lastCommand ftptest.Command // the last command of a visit
	visits := 0
	for _, c := range server.ReceivedCommands() {
		word, _, _ := strings.Cut(c.Text, " ")
		switch {
		case word == "USER":
			if gap := c.At.Sub(lastCommand.At); visits > 0 && gap < delay {
				t.Errorf("a visit began %v after %q, want %v", gap, lastCommand.Text, delay)
			}
			visits++
		case word == "RETR" || word == "CWD":
			lastCommand = c
			if visits == 1 && c.Text != "RETR /robots.txt" || strings.Contains(c.Text, "secret") {
				t.Errorf("visit %d asks for %q", visits, c.Text)
			}
		}
	}
	if visits != 1+len(want) {
		t.Errorf("%d visits, want %d", visits, 1+len(want))
	}
}

// TestFTPIsWantedOrNot checks that the crawl follows links from web pages to FTP only if the project
// allows the scheme.
func TestFTPIsWantedOrNot(t *testing.T) {
	for setting, want := range map[string][]string{"": nil,
		"fetch: {ftp: true}\n": {"RETR /robots.txt", "RETR /x.txt"}} {
		v := daemontest.NewWebFixture(t, crawltest.Site{Host: "a.example", Fallback: crawltest.StaticPage(
			crawltest.HTML("<a href=ftp://a.example/x.txt>x</a><a href=ftp://b.example/y.txt>y</a>"))})
		server := ftptest.Start(t, ftpDir(t, map[string]string{"x.txt": "x"}), nil)
		project := testfile.Write(t, "p.yaml",
			"agent: {contact: 'mailto:a@b.example'}\nscope: {max_depth: 1}\n"+setting)
		runCommand(t, append([]string{"crawl", "-c", project, "--connect-to=:21:" + server.Addr},
			v.CrawlArgs("http://a.example/")[1:]...)...).
			want(t, command.ExitDone, fmt.Sprintf("pages: %d (", 1+len(want)/2))
		if got := ftpRequests(server); !slices.Equal(got, want) {
			t.Errorf("with %q the FTP server got requests for %q, want %q", setting, got, want)
		}
	}
}

// TestFTPRobots checks that a missing robots.txt allows everything, and one that cannot be fetched
// allows nothing.
func TestFTPRobots(t *testing.T) {
	t.Parallel()
	v, server := newFTPWebFixture(t, map[string]string{"x.txt": "x"})
	runCommand(t, v.CrawlArgs("ftp://a.example/x.txt")...).want(t, command.ExitDone, "pages: 1 (")
	if got, want := ftpRequests(server), []string{"RETR /robots.txt", "RETR /x.txt"}; !slices.Equal(got, want) {
		t.Errorf("requests for %q, want %q", got, want)
	}
	closed := ftptest.Start(t, ftpDir(t, map[string]string{"x.txt": "x"}), func(string) bool { return false })
	v = &daemontest.WebFixture{Addr: closed.Addr, Dir: t.TempDir()}
	runCommand(t, v.CrawlArgs("--max-time=2s", "ftp://a.example/x.txt")...).want(t, command.ExitStopped, "pages: 0 (",
		"its robots.txt cannot be fetched", "530", "Incorrect password")
	if got := ftpRequests(closed); got != nil {
		t.Errorf("requests for %q", got)
	}
}

// TestFTPRevisit checks that an unmodified file is not transferred again.
func TestFTPRevisit(t *testing.T) {
	t.Parallel()
	v, server := newFTPWebFixture(t, map[string]string{"x.txt": "x"})
	project := testfile.Write(t, "p.yaml",
		"agent: {contact: 'mailto:a@b.example'}\nrevisit: {mode: interval, every: 3s}\n")
	runCommand(t, v.CrawlArgs("-c", project, "ftp://a.example/x.txt")...).want(t, command.ExitDone, "pages: 1 (")
	time.Sleep(3 * time.Second) // until its revisit is due
	runCommand(t, "crawl", "--resume", "--data", v.DataDir(), "--progress=none").want(t, command.ExitDone, "pages: 1 (",
		"revisits: 1, unchanged (including sitemaps): 1")
	rs := daemontest.ReadRecords(t, filepath.Join(v.DataDir(), "pages.jsonl"))
	if len(rs) != 2 || rs[1].Status != http.StatusNotModified || len(server.CommandsNamed("MDTM")) != 3 {
		t.Errorf("records %+v, and the server got %q", rs, server.CommandsNamed("MDTM", "RETR"))
	}
	if got, want := ftpRequests(server), []string{"RETR /robots.txt", "RETR /x.txt"}; !slices.Equal(got, want) {
		t.Errorf("requests for %q, want %q", got, want)
	}
}

// The other commands accept ftp URLs too.
func TestFTPCommands(t *testing.T) {
	t.Parallel()
	v, _ := newFTPWebFixture(t, map[string]string{
		"robots.txt":  "User-agent: *\nDisallow: /secret\n",
		"sitemap.xml": `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>ftp://a.example/x</loc></url></urlset>`,
	})
	there := []string{"--allow-private", "--connect-to=::" + v.Addr}
	on := func(args ...string) commandResult { return runCommand(t, append(args, there...)...) }
	on("robots", "check", "--agent=x", "ftp://a.example/secret/x").want(t, command.ExitCheckFailed, "/secret")
	on("robots", "check", "--agent=x", "ftp://a.example/x").want(t, command.ExitDone)
	on("sitemap", "ftp://a.example/sitemap.xml").want(t, command.ExitDone, "ftp://a.example/x")
	runCommand(t, v.CrawlArgs("ftp://a.example/x")...).want(t, command.ExitFailed, "answers with status 404")
	runCommand(t, "explain", "--data", v.DataDir(), "ftp://a.example/secret/x").want(t, command.ExitDone, "/secret")
}

// A project with a proxy rejects ftp URLs, which would bypass the proxy.
func TestFTPAndProxy(t *testing.T) {
	list := testfile.Write(t, "seeds.txt", "ftp://a.example/\n")
	for _, tt := range []struct{ text, says string }{
		{"seeds: ['https://a.example/']\nfetch: {ftp: true, proxy: 'http://proxy.example:3128'}\n",
			"fetch.ftp: ftp cannot go through fetch.proxy; leave one of the two out"},
		{"seeds: ['ftp://a.example/']\nfetch: {proxy: 'http://proxy.example:3128'}\n",
			`"ftp://a.example/" cannot be visited: ftp cannot go through fetch.proxy`},
	} {
		_, err := project.Read(testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\n"+tt.text))
		if err == nil || !strings.Contains(project.DetailedErrorText(err), tt.says) {
			t.Errorf("%s: %v, want %q", tt.text, project.DetailedErrorText(err), tt.says)
		}
	}
	p := project.Project{SeedFiles: []string{list}, Fetch: project.FetchSettings{Proxy: "http://proxy.example:3128"}}
	if _, err := p.FirstSeedPerOrigin(os.Open); err == nil || !strings.Contains(err.Error(), "seeds.txt:1: ") ||
		!strings.Contains(err.Error(), "fetch.proxy") {
		t.Errorf("a seed of a file: %v", err)
	}
	p = project.Default()
	p.Agent.Contact, p.Fetch.Proxy = "mailto:a@b.example", "http://proxy.example:3128"
	web, proxied, err := engine.NewFetchers(&p, nil, nil, nil, engine.SharedResources{})
	if err != nil || len(proxied) != 2 || proxied["http"] != web || proxied["https"] != web {
		t.Errorf("with a proxy the fetchers are %v, %v; want no FTP fetcher", proxied, err)
	}
}
