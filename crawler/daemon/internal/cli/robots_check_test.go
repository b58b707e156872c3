package cli

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

func TestRobotsCheckFile(t *testing.T) {
	file := testfile.Write(t, "robots.txt",
		"User-agent: *\nDisallow: /private/\nAllow: /private/open\n\nUser-agent: examplebot\nDisallow: /\n")
	for _, tt := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"allowed", []string{"--agent=otherbot", "https://example.com/"}, command.ExitDone,
			"allowed\thttps://example.com/\tno rule\n"},
		{"allowed by a rule", []string{"--agent=otherbot", "https://example.com/private/open"}, command.ExitDone,
			"allowed\thttps://example.com/private/open\tallow: /private/open (line 3, group *)\n"},
		{"one is not", []string{"--agent=otherbot", "https://example.com/", "https://example.com/private/x"},
			command.ExitCheckFailed,
			"allowed\thttps://example.com/\tno rule\ndisallowed\thttps://example.com/private/x\tdisallow: /private/ " +
				"(line 2, group *)\n"},
		{"the agent's own group", []string{"--agent=ExampleBot", "https://example.com/"}, command.ExitCheckFailed,
			"disallowed\thttps://example.com/\tdisallow: / (line 6, group examplebot)\n"},
		{"dialect", []string{"--agent=YandexBot", "--dialect=yandex", "https://example.com/private/x"},
			command.ExitCheckFailed,
			"disallowed\thttps://example.com/private/x\tdisallow: /private/ (line 2, group *)\n"},
		{"no such dialect", []string{"--agent=x", "--dialect=bing", "https://example.com/"}, command.ExitUsage,
			`--dialect: "bing" is not one of google, yandex, google-oss`},
		{"no agent", []string{"https://example.com/"}, command.ExitUsage, `--agent: "" is not a crawler`},
		{"no URL", []string{"--agent=x", "example.com"}, command.ExitUsage, `"example.com" is not a URL`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runCommand(t, append([]string{"robots", "check", "--file", file}, tt.args...)...).want(t, tt.code, tt.says)
		})
	}
	runCommand(t, "robots", "check", "--agent=x", "--file=missing.txt", "https://example.com/").want(t,
		command.ExitFailed, "missing.txt: no such file")
	runCommand(t, "robots", "check", "--agent=x", "--file=https://example.com/a/robots.txt",
		"https://example.com/").want(t, command.ExitUsage,
		"--file: \"https://example.com/a/robots.txt\" is not the URL of a robots.txt")
	runCommand(t, "robots", "check", "--agent=x", "--contact=me", "https://example.com/").want(t, command.ExitUsage,
		`--contact: "me" is not a contact`)
}

func TestRobotsCheckFetches(t *testing.T) {
	moved := crawltest.Site{Host: "moved.example", Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
		Response: crawltest.Redirect(302, "http://shop.example/robots.txt")})}
	v := daemontest.NewWebFixture(t, daemontest.ShopSite(), moved, crawltest.Site{Host: "free.example"},
		crawltest.Site{Host: "down.example",
			Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Status(503)})})
	check := func(args ...string) commandResult {
		return runCommand(t, append([]string{"robots", "check", "--agent=examplebot", "--allow-private",
			"--connect-to=::" + v.Addr}, args...)...)
	}
	check("http://shop.example/", "http://shop.example/till/1").want(t, command.ExitCheckFailed,
		"allowed\thttp://shop.example/\tno rule\n",
		"disallowed\thttp://shop.example/till/1\tdisallow: /till (line 3, group *)\n")
	check("http://free.example/till", "http://moved.example/till").want(t, command.ExitCheckFailed,
		"allowed\thttp://free.example/till\tno rule\n",
		"disallowed\thttp://moved.example/till\tdisallow: /till (line 3, group *)\n")
	check("--file=http://shop.example/robots.txt", "https://elsewhere.example/till").want(t, command.ExitCheckFailed,
		"disallowed\thttps://elsewhere.example/till")
	check("http://down.example/", "http://free.example/").want(t, command.ExitFailed,
		"cannot fetch http://down.example/robots.txt", "status 503", "allowed\thttp://free.example/\tno rule\n")
	check("--dialect=yandex", "http://down.example/").want(t, command.ExitDone,
		"allowed\thttp://down.example/\tno rule\n")
	if r := v.Web.Judge(crawltest.JudgeOptions{RequiredProductToken: "decorum"}); r.PageRequests > 0 ||
		r.CountViolationsOfRule(crawltest.Anonymous) > 0 {
		t.Errorf("want requests for robots.txt only:\n%s", r)
	}
}

// The command refuses loopback and private addresses without --allow-private.
func TestRobotsCheckRefusesPrivateAddresses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, dialect := range []string{"google", "yandex"} { // no request was sent, so no rule is known
		runCommand(t, "robots", "check", "--agent=x", "--dialect", dialect, "http://"+l.Addr().String()+
			"/").want(t, command.ExitFailed,
			"cannot fetch http://"+l.Addr().String()+"/robots.txt", "--allow-private")
	}
}

// TestJSONSpellings checks that --format json and --json are the same, and that help shows the first only.
func TestJSONSpellings(t *testing.T) {
	file := testfile.Write(t, "robots.txt", "User-agent: *\nDisallow: /x\nDisalow: /y\n")
	for _, line := range []string{
		"robots check --agent examplebot --file " + file + " http://a.example/x",
		"robots lint " + file, "robots diff " + file + " " + testfile.Write(t, "new.txt", "User-agent: *\n"),
	} {
		args := strings.Fields(line)
		text := runCommand(t, args...)
		want := runCommand(t, append(args, "--format", "json")...)
		got := runCommand(t, append(args, "--json")...)
		if got != want || want.stdout == text.stdout || !json.Valid([]byte(strings.Split(want.stdout, "\n")[0])) {
			t.Errorf("%s: --json gives %+v, --format json %+v", line, got, want)
		}
		help := runCommand(t, append(args[:2], "--help")...).stdout
		if strings.Contains(help, "--json") || !strings.Contains(help, "--format FORMAT") {
			t.Errorf("the help of %s shows --json, or lacks --format:\n%s", args[:2], help)
		}
	}
}

// TestRobotsExplain checks that robots explain prints what robots check --explain prints.
func TestRobotsExplain(t *testing.T) {
	file := testfile.Write(t, "robots.txt", "User-agent: *\nDisallow: /x\n")
	args := []string{"--agent", "examplebot", "--file", file, "http://a.example/x"}
	want := runCommand(t, append([]string{"robots", "check", "--explain"}, args...)...)
	got := runCommand(t, append([]string{"robots", "explain"}, args...)...)
	got.want(t, command.ExitCheckFailed, "  decides\tdisallow: /x")
	if got != want {
		t.Errorf("robots explain prints %+v, robots check --explain %+v", got, want)
	}
}
