package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/robots"
)

func TestRobotsCheckExplains(t *testing.T) {
	file := write(t, "robots.txt", "User-agent: *\nDisallow: /a\nAllow: /*b$\nDisallow: /a/\nDisallow: /%61\nContent-Usage: train-ai=n\nUser-agent: *\n")
	call(t, "robots", "check", "--explain", "--agent=bot", "--file", file, "https://example.com/a/b").want(t, ExitDone,
		"allowed\thttps://example.com/a/b\tallow: /*b$ (line 3, group *)\n  file\tSHA-256 ", "  group\t* (lines 1, 7)\n",
		"  decides\tallow: /*b$ (line 3, 4 octets)\n  \t  /a/b\n  \t  ^**^\n",
		"  loses\tdisallow: /a/ (line 4, 3 octets): shorter than 4 octets\n  \t  /a/b\n  \t  ^^^\n",
		"  asks\tcontent-usage: train-ai: disallow (line 6)\n")
	call(t, "robots", "check", "--explain", "--agent=bot", "--file", file, "https://example.com/robots.txt").want(t, ExitDone, "  exempt\t")
	call(t, "robots", "check", "--explain", "--agent=bot", "--file", write(t, "other.txt", "User-agent: x\nDisallow: /\n"), "https://example.com/").
		want(t, ExitDone, "  group\tnone speaks to the agent\n")

	r := call(t, "robots", "check", "--json", "--agent=bot", "--file", file, "https://example.com/a", "https://example.com/a/b")
	r.want(t, ExitNo)
	for i, line := range strings.Split(strings.TrimSpace(r.stdout), "\n") {
		var got struct {
			URL string
			robots.Explanation
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if got.URL != []string{"https://example.com/a", "https://example.com/a/b"}[i] || got.Allowed != (i == 1) || len(got.SHA256) != 64 || len(got.Matches) == 0 {
			t.Errorf("line %d: %+v", i+1, got)
		}
	}
}

// Whoever writes a robots.txt must not write on other people's terminals.
func TestRobotsCheckIsPlain(t *testing.T) {
	file := write(t, "robots.txt", "User-agent: \x1b[2Jx\nUser-agent: *\nDisallow: /\x1b[2J\nDisallow: /\n")
	for _, args := range [][]string{
		{"robots", "check", "--explain", "--agent=x", "--file", file, "https://example.com/%1b[2J"},
		{"robots", "lint", file}, {"robots", "diff", file, write(t, "new.txt", "")},
		{"robots", "diff", file, write(t, "new.txt", ""), "--agent=x", "--urls", write(t, "urls.txt", "/\x1b[2J\n")},
	} {
		if r := call(t, args...); strings.Contains(r.stdout, "\x1b") || r.stdout == "" {
			t.Errorf("%q prints %q", args, r.stdout)
		}
	}
}

// Of a file that is read in part only, lint does not name the size of that part, nor
// wonder at half a line.
func TestRobotsLintOfAHugeFile(t *testing.T) {
	line := "# " + strings.Repeat("x", 1000) + "\n \n"
	file := write(t, "robots.txt", strings.Repeat(line, largest/len(line)+2))
	r := call(t, "robots", "lint", file)
	r.want(t, ExitNo, "the file has more than 500 KiB: Google ignores this line and all that follow")
	if n := strings.Count(r.stdout, "\n"); n != 2 || strings.Contains(r.stdout, fmt.Sprint(largest)) {
		t.Errorf("it says %s", r.stdout)
	}
}

func TestRobotsLint(t *testing.T) {
	good := write(t, "good.txt", "User-agent: *\nDisallow: /a\nDisallow:\n")
	bad := write(t, "bad.txt", "User-agent: *\nDissalow: /a\nDisallow: b\n")
	call(t, "robots", "lint", good).want(t, ExitDone, good+":3: hint: disallow without a path: ")
	call(t, "robots", "lint", bad).want(t, ExitNo,
		bad+":2: error: unknown field \"dissalow\": crawlers ignore the line, some guess what is meant; probably \"disallow\" [SYN-08]\n",
		bad+":3: error: the path does not begin with /")
	call(t, "robots", "lint", "--json", bad).want(t, ExitNo, `"line":2,"severity":"error","requirement":"SYN-08",`)
	call(t, "robots", "lint", "missing.txt").want(t, ExitFailed, "missing.txt: no such file")
	call(t, "robots", "lint").want(t, ExitUsage, "accepts 1 arg(s)")
	call(t, "robots", "lint", "--dialect=bing", good).want(t, ExitUsage, `--dialect: "bing" is not one of google, yandex, google-oss`)
	call(t, "robots", "lint", "https://example.com/a/robots.txt").want(t, ExitUsage, "is not the place of a robots.txt")
}

func TestRobotsLintFetches(t *testing.T) {
	v := visitTo(t, crawltest.Site{Host: "free.example"}, crawltest.Site{Host: "typo.example",
		Robots: crawltest.StaticRobots(crawltest.Robots{Response: crawltest.Text("User-agent: *\nDissalow: /a\n")})})
	lint := func(url string) result {
		return call(t, "robots", "lint", "--allow-private", "--connect-to=::"+v.addr, url)
	}
	lint("http://typo.example/robots.txt").want(t, ExitNo, "http://typo.example/robots.txt:2: error: unknown field")
	lint("http://free.example/robots.txt").want(t, ExitFailed, "there is no http://free.example/robots.txt")
}

func TestRobotsDiff(t *testing.T) {
	before := write(t, "old.txt", "User-agent: *\nDisallow: /a\nSitemap: https://h.example/s.xml\n")
	after := write(t, "new.txt", "User-agent: *\nDisallow: /b\nCrawl-delay: 2\n\nUser-agent: bot\nDisallow: /a\n\nSitemap: https://h.example/t.xml\n")
	urls := write(t, "urls.txt", "/a\nhttps://h.example/b/c\n\n/c\n")
	call(t, "robots", "diff", before, before).want(t, ExitDone)
	call(t, "robots", "diff", before, after).want(t, ExitNo,
		"agent *\n  + disallow: /b (line 2)\n  - disallow: /a (line 2)\n  crawl-delay none -> 2s\nsitemap\n  + https://h.example/t.xml\nsitemap\n  - https://h.example/s.xml\n")
	r := call(t, "robots", "diff", before, after, "--urls", urls)
	r.want(t, ExitNo, "opens\t*\t/a\tdisallow: /a (line 2)\ncloses\t*\thttps://h.example/b/c\tdisallow: /b (line 2)\n")
	if strings.Contains(r.stdout, "bot") {
		t.Errorf("nothing changes for bot:\n%s", r.stdout)
	}
	call(t, "robots", "diff", before, after, "--json", "--agent=Bot", "--agent=x", "--urls", urls).want(t, ExitNo,
		`{"agents":[{"agent":"*","added":[{"rule":"disallow: /b","line":2}]`,
		`{"url":"/a","agent":"x","old":{"allowed":false,"rule":"disallow: /a","line":2,"group":"*"},"new":{"allowed":true,"group":"*"}}`)
	call(t, "robots", "diff", before, after, "--agent=(x)").want(t, ExitUsage, `--agent: "(x)" names no crawler`)
	call(t, "robots", "diff", before, after, "--urls", write(t, "bad.txt", "/a\nb\n")).want(t, ExitUsage, `--urls: line 2: "b" is neither a URL nor a path`)
	call(t, "robots", "diff", before, after, "--urls", write(t, "long.txt", "/a\n/"+strings.Repeat("b", 1<<17))).want(t, ExitFailed, "cannot read the URLs: line 2: the line is longer than 65536 bytes")
	call(t, "robots", "diff", before, after, "--urls", write(t, "mark.txt", "\ufeff/b\n")).want(t, ExitNo, "closes\t*\t/b\t")
	call(t, "robots", "diff", before).want(t, ExitUsage, "accepts 2 arg(s)")
	call(t, "robots", "diff", before, "missing.txt").want(t, ExitFailed, "missing.txt: no such file")
}

func TestRobotsDiffReadsURLsFromStdin(t *testing.T) {
	var stdout, stderr bytes.Buffer
	a := &app{stdout: newPrinter(&stdout), screen: newScreen(&stderr)}
	root := a.root()
	root.SetIn(strings.NewReader("/a\n"))
	root.SetArgs([]string{"robots", "diff", write(t, "old.txt", ""), write(t, "new.txt", "User-agent: *\nDisallow: /\n"), "--urls=-"})
	if code := report(a.screen, root.Execute()); code != ExitNo || !strings.Contains(stdout.String(), "closes\t*\t/a\tdisallow: / (line 2)\n") {
		t.Errorf("exit code %d\n%s%s", code, stdout.String(), stderr.String())
	}
}
