package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// A commandResult is the outcome of one run of the command.
type commandResult struct {
	code           int
	stdout, stderr string
}

// runCommand runs the command as a shell does.
func runCommand(t *testing.T, args ...string) commandResult {
	t.Helper()
	return runCommandWithSignals(t, nil, args...)
}

// runCommandWithSignals runs the command, which receives the given signals.
func runCommandWithSignals(t *testing.T, signals <-chan os.Signal, args ...string) commandResult {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &program{Env: command.Env{Stdout: terminal.NewStickyErrorWriter(&stdout),
		Stderr: terminal.NewStatusLineWriter(&stderr), Signals: signals}}
	code := a.main(args)
	return commandResult{code, stdout.String(), stderr.String()}
}

// want checks the exit code, and that the output contains the given texts.
func (r commandResult) want(t *testing.T, code int, says ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	for _, s := range says {
		if !strings.Contains(r.stdout+r.stderr, s) {
			t.Errorf("the output lacks %q", s)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", r.stdout, r.stderr)
	}
}

// TestReaderLeaves checks that a command whose reader closes the pipe, as head does, prints no error.
func TestReaderLeaves(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	runCommand(t, v.CrawlArgs("--max-pages=1", "http://shop.example/")...).want(t, command.ExitDone)
	for _, args := range [][]string{
		{"report", "--data", v.DataDir(), "--format=jsonl"},
		{"report", "--data", v.DataDir()},
		{"frontier", "list", "--data", v.DataDir()},
		{"ledger", "show", "--data", v.DataDir()},
		{"robots", "batch", testfile.Write(t, "questions", `{"robots": ""}`)},
		{"robots", "lint", testfile.Write(t, "robots.txt", "Disalow: /\n")},
		{"frontier", "compact", "--data", v.DataDir()},
		{"help"},
	} {
		code, output := runCommandInto(t, openBrokenPipe(t), args...)
		if code != command.ExitFailed || output != "" {
			t.Errorf("%s: exit code %d; it says %q", args, code, output)
		}
	}
}

// A crawl whose reader closes the pipe stops as at a limit. The visit whose line was not written is
// repeated.
func TestReaderOfCrawlLeaves(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	site := daemontest.ShopSite()
	home := site.Pages["/"]
	site.Pages["/"] = func(q crawltest.PageRequest) crawltest.Response {
		r.Close() // again at the second visit, which does no harm
		return home(q)
	}
	v := daemontest.NewWebFixture(t, site)
	code, output := runCommandInto(t, w, v.CrawlArgs("--output=-", "http://shop.example/")...)
	commandResult{code: code, stderr: output}.want(t, command.ExitStopped, "pages: ",
		"the reader of the output has closed it", "Lines that the reader did not read are not written again",
		"--output FILE", "decorum crawl --resume --data "+v.DataDir())
	if strings.Contains(output, "Nothing is lost") {
		t.Errorf("the crawl denies the loss of lines in the pipe: %s", output)
	}
	resumed := runCommand(t, "crawl", "--resume", "--data", v.DataDir(), "--progress=none")
	resumed.want(t, command.ExitDone)
	for _, url := range daemontest.ShopURLs {
		if n := strings.Count(resumed.stdout, `"url":"`+url+`"`); n != 1 {
			t.Errorf("%d lines of %s after the crawl has continued", n, url)
		}
	}
}

// openBrokenPipe opens a pipe whose reader is closed.
func openBrokenPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	r.Close()
	return w
}

// runCommandInto runs the command with the given standard output, and returns its exit code and
// standard error.
func runCommandInto(t *testing.T, stdout *os.File, args ...string) (code int, output string) {
	t.Helper()
	var stderr bytes.Buffer
	a := &program{Env: command.Env{Stdout: terminal.NewStickyErrorWriter(stdout),
		Stderr: terminal.NewStatusLineWriter(&stderr)}}
	code = a.main(args)
	return code, stderr.String()
}

func TestExitCodes(t *testing.T) {
	data := "--data=" + filepath.Join(t.TempDir(), "data")
	project := testfile.Write(t, "p.yaml", daemontest.MinimalProject+"limits: {workers: none}\n")
	for _, tt := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"help", []string{"--help"}, command.ExitDone, "Exit codes:"},
		{"nothing", nil, command.ExitDone, "Usage:"},
		{"help of a command", []string{"crawl", "--help"}, command.ExitDone, "--max-pages N"},
		{"help on a command", []string{"help", "crawl"}, command.ExitDone, "--max-pages N"},
		{"help on an unknown command", []string{"help", "craw"}, command.ExitUsage,
			`unknown command "craw" for decorum; did you mean crawl?`},
		{"help on an unknown command of robots", []string{"help", "robots", "chek"}, command.ExitUsage,
			`unknown command "chek" for decorum robots`},
		{"version", []string{"version"}, command.ExitDone, "decorum " + decorum.Version()},
		{"--version", []string{"--version"}, command.ExitDone, "decorum version " + decorum.Version() + "\n"},
		{"-V", []string{"-V"}, command.ExitDone, "decorum version " + decorum.Version() + "\n"},
		{"completion", []string{"completion", "bash"}, command.ExitDone, "bash completion"},
		{"completion of an unknown shell", []string{"completion", "tcsh"}, command.ExitUsage,
			`unknown command "tcsh" for decorum completion`},
		{"completion with an argument", []string{"completion", "bash", "x"}, command.ExitUsage,
			`unknown command "x" for decorum completion bash`},
		{"unknown command", []string{"craw"}, command.ExitUsage,
			`unknown command "craw" for decorum; did you mean crawl?`},
		{"unknown command of robots", []string{"robots", "chek"}, command.ExitUsage,
			`unknown command "chek" for decorum robots`},
		{"--help of an unknown command", []string{"config", "--help"}, command.ExitUsage,
			`unknown command "config" for decorum; see decorum --help`},
		{"-h before an unknown command of robots", []string{"robots", "-h", "chek"}, command.ExitUsage,
			`unknown command "chek" for decorum robots`},
		{"--help=true of an unknown command", []string{"config", "--help=true"}, command.ExitUsage,
			`unknown command "config" for decorum`},
		{"--help before a command", []string{"--help", "crawl"}, command.ExitDone, "Exit codes:"},
		{"-h before a command", []string{"-h", "crawl"}, command.ExitDone, "Exit codes:"},
		{"-h before a command of robots", []string{"robots", "-h", "check"}, command.ExitDone, "Usage:"},
		{"--help after the value of a flag", []string{"--log-level", "debug", "robots", "--help"}, command.ExitDone,
			"decorum robots"},
		{"completion after --help", []string{"__complete", "robots", "--help", "c"}, command.ExitDone,
			"Completion ended"},
		{"--help of a command with arguments", []string{"crawl", "https://example.com/", "--help"}, command.ExitDone,
			"--max-pages N"},
		{"unknown flag", []string{"crawl", "--polite"}, command.ExitUsage,
			"unknown flag: --polite; see decorum crawl --help"},
		{"misspelt flag", []string{"crawl", "--max-page=3"}, command.ExitUsage,
			"unknown flag: --max-page; did you mean --max-pages?; see decorum crawl --help"},
		{"no argument", []string{"robots", "check"}, command.ExitUsage,
			"decorum: URL is missing, as in decorum robots check --agent examplebot https://example.com/"},
		{"an argument too many", []string{"version", "x"}, command.ExitUsage,
			`unexpected argument "x"; see decorum version --help`},
		{"serve without projects", []string{"serve", data, "--projects=missing"}, command.ExitUsage,
			"or name another folder with --projects"},
		{"log level", []string{"version", "--log-level=loud"}, command.ExitUsage,
			`--log-level: "loud" is not one of debug, info, warn, error`},
		{"log format", []string{"version", "--log-format=xml"}, command.ExitUsage,
			`--log-format: "xml" is not one of text, json`},
		{"project file of no name", []string{"crawl", data, "-c", "", "https://example.com/"}, command.ExitUsage,
			"--config: its value is empty"},
		{"key of no name", []string{"ledger", "verify", "--key="}, command.ExitUsage,
			"--key: its value is empty; give it one, or leave the flag out"},
		{"directory of no name", []string{"report", "--data", ""}, command.ExitUsage, "--data: its value is empty"},
		{"robots.txt of no name", []string{"robots", "check", "--agent=x", "--file=", "https://example.com/"},
			command.ExitUsage, "--file: its value is empty"},
		{"proxy of no name", []string{"crawl", data, "--contact=mailto:a@b.example", "--proxy=",
			"https://example.com/"}, command.ExitUsage, "--proxy: its value is empty"},
		{"archive of no name", []string{"crawl", data, "--contact=mailto:a@b.example", "--warc", "",
			"https://example.com/"}, command.ExitUsage, "--warc: its value is empty"},
		{"agent of no name", []string{"robots", "diff", project, project, "--urls", project, "--agent=x", "--agent="},
			command.ExitUsage, "--agent: its value is empty"},
		{"daemon of no name", []string{"serve", data, "--projects=missing", "--host="}, command.ExitUsage,
			"--host: its value is empty"},
		{"progress", []string{"crawl", data, "--progress=much"}, command.ExitUsage,
			`--progress: "much" is not one of auto, plain, none`},
		{"no contact", []string{"crawl", data, "https://example.com/"}, command.ExitUsage,
			"decorum: contact is required: a URL or mailto: address at which a site owner can reach you; " +
				"set agent.contact or --contact"},
		{"no seeds", []string{"crawl", data, "--contact=mailto:a@b.example"}, command.ExitUsage,
			"nothing to crawl: set seeds or seed_files"},
		{"a project file for a URL", []string{"crawl", data, "--contact=mailto:a@b.example", "books.yaml"},
			command.ExitUsage, "did you mean -c books.yaml?"},
		{"bad seed", []string{"crawl", data, "--contact=mailto:a@b.example", "example.com"}, command.ExitUsage,
			`URL: "example.com" is not a URL the crawl can visit`},
		{"more seeds than --resume could read", append([]string{"crawl", data, "--contact=mailto:a@b.example"},
			numberedURLs("https://example.com/", 0, 40_000)...), command.ExitUsage,
			"the project is longer than 1 MiB as --resume reads it; put long lists of seeds into seed_files"},
		{"bad duration", []string{"crawl", data, "--delay=5"}, command.ExitUsage,
			`invalid argument "5" for "--delay" flag: "5" is not a duration`},
		{"bad number", []string{"crawl", data, "--workers=x"}, command.ExitUsage, `"x" is not a whole number`},
		{"AGENT-14", []string{"crawl", data, "--contact=mailto:a@b.example", "--agent=decorum bot",
			"https://example.com/"}, command.ExitUsage,
			`--agent: "decorum bot" is not a product token`},
		{"long contact", []string{"crawl", data, "--contact=https://b.example/" + strings.Repeat("x", 300),
			"https://example.com/"}, command.ExitUsage,
			"--contact: 318 bytes are too many for a value in every request: expected at most 256"},
		{"long product", []string{"crawl", data, "--contact=mailto:a@b.example", "--agent=" + strings.Repeat("x", 65),
			"https://example.com/"}, command.ExitUsage,
			"--agent: 65 bytes are too many"},
		{"long version", []string{"crawl", data, "--contact=mailto:a@b.example", "--agent=x/" + strings.Repeat("1", 65),
			"https://example.com/"}, command.ExitUsage,
			"--agent: 65 bytes are too many"},
		{"bad scope", []string{"crawl", data, "--contact=mailto:a@b.example", "--scope=site", "https://example.com/"},
			command.ExitUsage,
			`--scope: "site" is not one of path, origin, host, domain, any`},
		{"proxy", []string{"crawl", data, "--contact=mailto:a@b.example", "--proxy=ftp://u:geheim@x",
			"https://example.com/"}, command.ExitUsage,
			"--proxy: the scheme of a proxy is http, https, socks5 or socks5h"},
		{"dialect", []string{"crawl", data, "--contact=mailto:a@b.example", "--dialect=bing", "https://example.com/"},
			command.ExitUsage, `--dialect: "bing" is not one of google, yandex`},
		{"resume and fresh", []string{"crawl", data, "--resume", "--fresh"}, command.ExitUsage, "choose one"},
		{"resume of nothing", []string{"crawl", data, "--resume"}, command.ExitUsage, "holds no crawl to resume"},
		{"no such project file", []string{"crawl", data, "-c", "missing.yaml"}, command.ExitUsage,
			"missing.yaml: no such file"},
		{"bad project file", []string{"crawl", data, "-c", project}, command.ExitUsage,
			`p.yaml:3:19: limits.workers: "none" is not a whole number`},
		{"handler of the plain command",
			[]string{"crawl", data, "-c", testfile.Write(t, "h.yaml", daemontest.MinimalProject+"handler: books\n")},
			command.ExitUsage,
			`h.yaml:3:10: handler: "books" names Go callbacks, and this program has none`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runCommand(t, tt.args...).want(t, tt.code, tt.says)
		})
	}
	if _, err := os.Stat(strings.TrimPrefix(data, "--data=")); err == nil {
		t.Error("the rejected crawl created its data directory")
	}
}

// Flags override the project file, a flag replaces a whole list, and URLs are added to the seeds.
func TestFlagsWin(t *testing.T) {
	fs := pflag.NewFlagSet("crawl", pflag.ContinueOnError)
	s := crawlOptions{projectFlags: project.AddFieldFlags(fs),
		configFile: testfile.Write(t, "p.yaml", daemontest.MinimalProject+`
politeness: {delay: 1m, concurrency: 2}
scope: {max_depth: 9}
fetch: {connect_to: ['x.example:1:y.example:2'], timeout: 5s}
`)}
	if err := fs.Parse([]string{
		"--agent=examplebot/2.1", "--delay", "5s", "--max-depth=0", "--allow-private",
		"--connect-to=a.example:80:127.0.0.1:8080", "--connect-to", ":443::8443", "--output=-",
	}); err != nil {
		t.Fatal(err)
	}
	d, err := s.loadProject([]string{"https://example.org/"})
	if err != nil {
		t.Fatal(err)
	}
	want := project.Default()
	want.Agent.Product, want.Agent.Version, want.Agent.Contact = "examplebot", "2.1", "mailto:bot@example.com"
	want.Seeds = []string{"https://example.org/", "https://example.com/"}
	want.Politeness.Delay, want.Politeness.Concurrency = project.Duration(5*time.Second), 2
	want.Scope.MaxDepth = 0
	want.Fetch.ConnectToRules = []string{"a.example:80:127.0.0.1:8080", ":443::8443"}
	want.Fetch.Timeout, want.Fetch.AllowPrivate = project.Duration(5*time.Second), true
	want.Output.JSONL = "-"
	if diff := cmp.Diff(want, d.Project); diff != "" {
		t.Error(diff)
	}
}

// TestMissingArguments: each command that needs arguments says which, and shows an example.
func TestMissingArguments(t *testing.T) {
	checked := 0
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			check(sub)
		}
		if c.Args == nil || c.Hidden {
			return
		}
		err := c.Args(c, nil)
		if err == nil {
			return
		}
		checked++
		for _, want := range []string{", as in decorum ", "; see " + c.CommandPath() + " --help"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not contain %q", c.CommandPath(), err, want)
			}
		}
		if strings.Contains(err.Error(), "arg(s)") {
			t.Errorf("%s: %q does not name the argument", c.CommandPath(), err)
		}
	}
	check((&program{}).newRootCommand())
	if checked < 10 {
		t.Errorf("%d commands need arguments, want at least 10", checked)
	}
}
