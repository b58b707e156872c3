package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
)

func TestRobotsBatch(t *testing.T) {
	const yes, no = `{"allowed":true,"rule":null,`, `{"allowed":false,"rule":"disallow: /",`
	file := testfile.Write(t, "questions.jsonl", `{"robots":"disalow: /","url":"http://h/"}
{"robots":"user-agent: x\ndisalow: /","agent":"x","url":"http://h/"}
bad
{"robots":"user-agent: x\ndisallow: /","agent":"x","url":"http://h/"}`)
	for _, tt := range []struct {
		name string
		args []string
		code int
		want []string // the beginning of each line
	}{
		{"order", nil, command.ExitDone, []string{yes, yes, `{"allowed":null,`, no}},
		{"dialect", []string{"--dialect=google-oss"}, command.ExitDone, []string{yes, no, `{"allowed":null,`, no}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := runCommand(t, append([]string{"robots", "batch", file}, tt.args...)...)
			r.want(t, tt.code)
			lines := strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
			if len(lines) != len(tt.want) {
				t.Fatalf("%d answers, want %d:\n%s", len(lines), len(tt.want), r.stdout)
			}
			for i, want := range tt.want {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("answer %d: %s, want %s", i+1, lines[i], want)
				}
			}
		})
	}
	runCommand(t, "robots", "batch", "missing.jsonl").want(t, command.ExitFailed,
		"cannot read the questions: open missing.jsonl: no such file")
	runCommand(t, "robots", "batch", "--dialect=bing", file).want(t, command.ExitUsage,
		`--dialect: "bing" is not one of google, yandex, google-oss`)
	runCommand(t, "robots", "batch", file, file).want(t, command.ExitUsage, "unexpected argument ")
	runCommand(t, "robots", "batch", "--help").want(t, command.ExitDone, "robots_base64", "Exit codes:")
}

func TestRobotsCheckExplains(t *testing.T) {
	file := testfile.Write(t, "robots.txt", "User-agent: *\nDisallow: /a\nAllow: /*b$\nDisallow: /a/\nDisallow: "+
		"/%61\nContent-Usage: train-ai=n\nUser-agent: *\n")
	runCommand(t, "robots", "check", "--explain", "--agent=bot", "--file", file,
		"https://example.com/a/b").want(t, command.ExitDone,
		"allowed\thttps://example.com/a/b\tallow: /*b$ (line 3, group *)\n  file\tSHA-256 ",
		"  group\t* (lines 1, 7)\n",
		"  decides\tallow: /*b$ (line 3, 4 octets)\n  \t  /a/b\n  \t  ^**^\n",
		"  loses\tdisallow: /a/ (line 4, 3 octets): shorter than 4 octets\n  \t  /a/b\n  \t  ^^^\n",
		"  asks\tcontent-usage: train-ai: disallow (line 6)\n")
	runCommand(t, "robots", "check", "--explain", "--agent=bot", "--file", file,
		"https://example.com/robots.txt").want(t, command.ExitDone, "  exempt\t")
	runCommand(t, "robots", "check", "--explain", "--agent=bot", "--file",
		testfile.Write(t, "other.txt", "User-agent: x\nDisallow: /\n"), "https://example.com/").
		want(t, command.ExitDone, "  group\tno group applies to the agent\n")

	r := runCommand(t, "robots", "check", "--json", "--agent=bot", "--file", file,
		"https://example.com/a", "https://example.com/a/b")
	r.want(t, command.ExitCheckFailed)
	for i, line := range strings.Split(strings.TrimSpace(r.stdout), "\n") {
		var got struct {
			URL string
			gate.Explanation
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if got.URL != []string{"https://example.com/a", "https://example.com/a/b"}[i] || got.Allowed != (i == 1) ||
			len(got.SHA256) != 64 || len(got.Matches) == 0 {
			t.Errorf("line %d: %+v", i+1, got)
		}
	}
}

// A robots.txt cannot send control characters to the terminal of the user.
func TestRobotsCheckIsPlain(t *testing.T) {
	file := testfile.Write(t, "robots.txt", "User-agent: \x1b[2Jx\nUser-agent: *\nDisallow: /\x1b[2J\nDisallow: /\n")
	for _, args := range [][]string{
		{"robots", "check", "--explain", "--agent=x", "--file", file, "https://example.com/%1b[2J"},
		{"robots", "lint", file}, {"robots", "diff", file, testfile.Write(t, "new.txt", "")},
		{"robots", "diff", file, testfile.Write(t, "new.txt", ""), "--agent=x", "--urls",
			testfile.Write(t, "urls.txt", "/\x1b[2J\n")},
	} {
		if r := runCommand(t, args...); strings.Contains(r.stdout, "\x1b") || r.stdout == "" {
			t.Errorf("%q prints %q", args, r.stdout)
		}
	}
}

// For a file that is read only in part, lint neither reports the size of that part nor a finding about
// the last, incomplete line.
func TestRobotsLintOfAHugeFile(t *testing.T) {
	const maxBytes = 32 * robots.MaxFileBytes
	line := "# " + strings.Repeat("x", 1000) + "\n \n"
	file := testfile.Write(t, "robots.txt", strings.Repeat(line, maxBytes/len(line)+2))
	r := runCommand(t, "robots", "lint", file)
	r.want(t, command.ExitCheckFailed, "the file has more than 500 KiB: Google ignores this line and all that follow")
	if n := strings.Count(r.stdout, "\n"); n != 3 || strings.Contains(r.stdout, fmt.Sprint(maxBytes)) {
		t.Errorf("it says %s", r.stdout)
	}
}

func TestRobotsLint(t *testing.T) {
	good := testfile.Write(t, "good.txt", "User-agent: *\nDisallow: /a\nDisallow:\n")
	bad := testfile.Write(t, "bad.txt", "User-agent: *\nDissalow: /a\nDisallow: b\n")
	if r := runCommand(t, "robots", "lint", good); r.code != command.ExitDone ||
		r.stdout != good+": 0 errors, 0 warnings; not shown: 1 hint (--level hint)\n" {
		t.Errorf("exit code %d: %s%s", r.code, r.stdout, r.stderr)
	}
	runCommand(t, "robots", "lint", "--level=hint", good).want(t, command.ExitDone,
		good+":3: hint: disallow without a path: ", good+": 0 errors, 0 warnings, 1 hint\n",
		"explained at https://github.com/decorum-crawler/decorum/blob/main/docs/robots-lint.md\n")
	runCommand(t, "robots", "lint", bad).want(t, command.ExitCheckFailed,
		bad+":2: error: unknown field \"dissalow\": crawlers ignore the line, some guess what is meant; probably "+
			"\"disallow\" [SYN-08]\n",
		bad+":3: error: the path does not begin with /", bad+": 2 errors, 0 warnings\n")
	warned := testfile.Write(t, "warned.txt", "User-agent: *\nDisallow: /*b\nnonsense\n")
	runCommand(t, "robots", "lint", warned).want(t, command.ExitCheckFailed,
		warned+":3: warning: ", warned+": 0 errors, 1 warning; not shown: 1 hint (--level hint)\n")
	runCommand(t, "robots", "lint", "--level=error", warned).want(t, command.ExitDone,
		warned+": 0 errors; not shown: 1 warning, 1 hint (--level hint)\n")
	runCommand(t, "robots", "lint", "--level=note", warned).want(t, command.ExitUsage,
		`--level: "note" is not one of hint, warning, error`)
	runCommand(t, "robots", "lint", "--json", bad).want(t, command.ExitCheckFailed,
		`"line":2,"severity":"error","requirement":"SYN-08",`, `/docs/robots-lint.md#syn-08"}`+"\n")
	runCommand(t, "robots", "lint", "missing.txt").want(t, command.ExitFailed, "missing.txt: no such file")
	runCommand(t, "robots", "lint").want(t, command.ExitUsage,
		"FILE|URL is missing, as in decorum robots lint robots.txt;")
	runCommand(t, "robots", "lint", "--dialect=bing", good).want(t, command.ExitUsage,
		`--dialect: "bing" is not one of google, yandex, google-oss`)
	runCommand(t, "robots", "lint", "https://example.com/a/robots.txt").want(t, command.ExitUsage,
		"is not the URL of a robots.txt")
}

func TestRobotsLintReadsStdin(t *testing.T) {
	var stdout, stderr bytes.Buffer
	a := &program{Env: command.Env{Stdout: terminal.NewStickyErrorWriter(&stdout),
		Stderr: terminal.NewStatusLineWriter(&stderr)}}
	root := a.newRootCommand()
	root.SetIn(strings.NewReader("User-agent: *\nDissalow: /a\n"))
	root.SetArgs([]string{"robots", "lint", "-"})
	if code := command.PrintError(a.Stderr, root.Execute()); code != command.ExitCheckFailed ||
		!strings.HasPrefix(stdout.String(), "stdin:2: error: unknown field \"dissalow\"") {
		t.Errorf("exit code %d\n%s%s", code, stdout.String(), stderr.String())
	}
}

func TestRobotsLintFetches(t *testing.T) {
	v := daemontest.NewWebFixture(t, crawltest.Site{Host: "free.example"}, crawltest.Site{Host: "typo.example",
		Robots: crawltest.StaticRobots(
			crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDissalow: /a\n")})})
	lint := func(url string) commandResult {
		return runCommand(t, "robots", "lint", "--allow-private", "--connect-to=::"+v.Addr, url)
	}
	lint("http://typo.example/robots.txt").want(t, command.ExitCheckFailed,
		"http://typo.example/robots.txt:2: error: unknown field")
	lint("http://free.example/robots.txt").want(t, command.ExitFailed, "there is no http://free.example/robots.txt")
}

func TestRobotsDiff(t *testing.T) {
	before := testfile.Write(t, "old.txt", "User-agent: *\nDisallow: /a\nSitemap: https://h.example/s.xml\n")
	after := testfile.Write(t, "new.txt", "User-agent: *\nDisallow: /b\nCrawl-delay: 2\n\nUser-agent: "+
		"bot\nDisallow: /a\n\nSitemap: https://h.example/t.xml\n")
	urls := testfile.Write(t, "urls.txt", "/a\nhttps://h.example/b/c\n\n/c\n")
	runCommand(t, "robots", "diff", before, before).want(t, command.ExitDone)
	runCommand(t, "robots", "diff", before, after).want(t, command.ExitCheckFailed,
		"agent *\n  + disallow: /b (line 2)\n  - disallow: /a (line 2)\n  crawl-delay none -> 2s\nsitemap\n  + "+
			"https://h.example/t.xml\nsitemap\n  - https://h.example/s.xml\n")
	r := runCommand(t, "robots", "diff", before, after, "--urls", urls)
	r.want(t, command.ExitCheckFailed, "opens\t*\t/a\tdisallow: /a (line "+
		"2)\ncloses\t*\thttps://h.example/b/c\tdisallow: /b (line 2)\n")
	if strings.Contains(r.stdout, "bot") {
		t.Errorf("a change for bot, want none:\n%s", r.stdout)
	}
	runCommand(t, "robots", "diff", before, after, "--json", "--agent=Bot", "--agent=x", "--urls",
		urls).want(t, command.ExitCheckFailed,
		`{"agents":[{"agent":"*","added":[{"rule":"disallow: /b","line":2}]`,
		`{"url":"/a","agent":"x","old":{"allowed":false,"rule":"disallow: /a","line":2,"group":"*"},"new":{"allowed":true,"group":"*"}}`)
	runCommand(t, "robots", "diff", before, after, "--agent=(x)").want(t, command.ExitUsage,
		`--agent: "(x)" is not a crawler`)
	runCommand(t, "robots", "diff", before, after, "--urls", testfile.Write(t, "bad.txt", "/a\nb\n")).want(t,
		command.ExitUsage, `--urls: line 2: "b" is neither a URL nor a path`)
	runCommand(t, "robots", "diff", before, after, "--urls",
		testfile.Write(t, "long.txt", "/a\n/"+strings.Repeat("b", 1<<17))).want(t, command.ExitFailed,
		"cannot read the URLs: line 2: the line is longer than 65536 bytes")
	runCommand(t, "robots", "diff", before, after, "--urls", testfile.Write(t, "mark.txt", "\ufeff/b\n")).want(t,
		command.ExitCheckFailed, "closes\t*\t/b\t")
	runCommand(t, "robots", "diff", before).want(t, command.ExitUsage, "NEW is missing, as in decorum robots diff ")
	runCommand(t, "robots", "diff", before, "missing.txt").want(t, command.ExitFailed, "missing.txt: no such file")
}

func TestRobotsDiffReadsURLsFromStdin(t *testing.T) {
	var stdout, stderr bytes.Buffer
	a := &program{Env: command.Env{Stdout: terminal.NewStickyErrorWriter(&stdout),
		Stderr: terminal.NewStatusLineWriter(&stderr)}}
	root := a.newRootCommand()
	root.SetIn(strings.NewReader("/a\n"))
	root.SetArgs([]string{"robots", "diff", testfile.Write(t, "old.txt", ""),
		testfile.Write(t, "new.txt", "User-agent: *\nDisallow: /\n"), "--urls=-"})
	if code := command.PrintError(a.Stderr, root.Execute()); code != command.ExitCheckFailed ||
		!strings.Contains(stdout.String(), "closes\t*\t/a\tdisallow: / (line 2)\n") {
		t.Errorf("exit code %d\n%s%s", code, stdout.String(), stderr.String())
	}
}
