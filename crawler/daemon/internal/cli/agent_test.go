package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// agentGroupsSite returns a site whose robots.txt has a group for each robot of a family.
func agentGroupsSite(file string) crawltest.Site {
	return crawltest.Site{Host: "a.example",
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Text(file)}),
		Pages: map[string]crawltest.PageFunc{
			"/":        crawltest.StaticPage(crawltest.HTML("<a href=/landing>x</a><a href=/closed>x</a>")),
			"/landing": crawltest.StaticPage(crawltest.HTML("x")),
			"/closed":  crawltest.StaticPage(crawltest.HTML("x")),
		}}
}

// TestAgentOfProject checks that a crawl obeys the group that its product tokens name, the most
// specific first. With the name of a well-known crawler it obeys the groups that the crawler's
// operator documents, as decorum robots check does (AGENT-14, EXC-10).
func TestAgentOfProject(t *testing.T) {
	const family = "User-agent: *\nDisallow: /landing\nUser-agent: googlebot\nDisallow: /closed\n"
	for _, test := range []struct{ name, agent, file, visited string }{
		{"one token", "product: examplebot", family, "/ /closed"},
		{"a wider token", "product: examplebot, wider: [other, GoogleBot]", family, "/ /landing"},
		{"a well-known crawler", "product: Googlebot-News", family, "/ /landing"},
		{"of that name only", "product: Googlebot-News, wider: [other]", family, "/ /closed"},
		{"one that the rules for * do not bind", "product: YandexDirect", family, "/ /closed /landing"},
		{"unless it says otherwise", "product: YandexDirect, wider: [yandex]", family, "/ /closed"},
		{"or its dialect has * bind everybody", "product: YandexDirect}\nrobots: {dialect: google-oss", family,
			"/ /closed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			v := daemontest.NewWebFixture(t, agentGroupsSite(test.file))
			config := testfile.Write(t, "p.yaml", "agent: {"+test.agent+"}\n")
			res := runCommand(t, v.CrawlArgs("-c", config, "http://a.example/")...)
			res.want(t, command.ExitDone)
			var visited []string
			for _, u := range daemontest.SortedURLs(daemontest.ReadRecords(t,
				filepath.Join(v.DataDir(), datadir.OutputFile))) {
				visited = append(visited, strings.TrimPrefix(u, "http://a.example"))
			}
			if got := strings.Join(visited, " "); got != test.visited {
				t.Errorf("visited %q, want %q", got, test.visited)
			}
			if warned, exempt := strings.Contains(res.stderr,
				"do not bind"), test.visited == "/ /closed /landing"; warned != exempt {
				t.Errorf("warned %t of an exempt agent %t:\n%s", warned, exempt, res.stderr)
			}
			if report := verifyCleanLedger(t, v.DataDir()); len(report.Findings) > 0 {
				t.Errorf("ledger: %v", report.Findings)
			}
		})
	}
}

// TestNotForIndexing checks that every output of the crawl marks a page that the crawl may fetch and
// the operator's main robot may not, and marks no other page (EXC-06).
func TestNotForIndexing(t *testing.T) {
	const file = "User-agent: *\nDisallow: /landing\n\nUser-agent: YandexDirect\nDisallow: /closed\n"
	const why = "not for indexing: the main robot of the operator may not fetch it, by disallow: /landing (line 2, " +
		"group *)"
	v := daemontest.NewWebFixture(t, agentGroupsSite(file))
	archive := filepath.Join(v.Dir, "warc")
	config := testfile.Write(t, "p.yaml", "agent: {product: YandexDirect}\nrobots: {dialect: yandex}\n")
	runCommand(t, v.CrawlArgs("-c", config, "--warc", archive, "http://a.example/")...).want(t, command.ExitDone,
		"blocked by robots.txt: 1")

	var marked []string
	for _, line := range testfile.RotatedLines(t, filepath.Join(v.DataDir(), datadir.OutputFile), 0) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if mark, has := r["not_for_indexing"]; has {
			marked = append(marked, fmt.Sprint(r["url"], " ", mark))
		}
	}
	if !slices.Equal(marked, []string{"http://a.example/landing true"}) {
		t.Errorf("marked lines: %q", marked)
	}
	marked = nil
	for _, r := range readArchive(t, archive) {
		if r.Get("WARC-Type") == "metadata" && strings.Contains(r.block, "not_for_indexing: true\r\n") {
			marked = append(marked, r.Get("WARC-Target-URI"))
		}
	}
	if !slices.Equal(marked, []string{"http://a.example/landing"}) {
		t.Errorf("marked in the archive: %q", marked)
	}
	if report := verifyCleanLedger(t, v.DataDir()); len(report.Findings) > 0 || report.CheckedVerdicts == 0 {
		t.Errorf("ledger: %+v", report)
	}
	runCommand(t, "ledger", "show", "--data", v.DataDir(), "--url", "http://a.example/landing").want(t,
		command.ExitDone, "matches, not for indexing;")
	runCommand(t, "explain", "--data", v.DataDir(), "http://a.example/landing").want(t, command.ExitDone, why)

	rules := testfile.Write(t, "robots.txt", file)
	ask := func(agent, path string, more ...string) commandResult {
		return runCommand(t, append([]string{"robots", "check", "--file", rules, "--dialect", "yandex", "--agent",
			agent, "http://a.example" + path}, more...)...)
	}
	ask("YandexDirect", "/landing", "--explain").want(t, command.ExitDone,
		"allowed\thttp://a.example/landing\tno rule; not for indexing\n", "  index\t"+why)
	ask("YandexDirect", "/landing", "--json").want(t, command.ExitDone, `"not_for_indexing":true`,
		`"indexer":{"allowed":false,"rule":"disallow: /landing"`)
	for agent, path := range map[string]string{"YandexDirect": "/", "YandexBot": "/closed"} {
		if stdout := ask(agent, path, "--explain").stdout; strings.Contains(stdout, "indexing") {
			t.Errorf("%s, %s: %s", agent, path, stdout)
		}
	}
}

// TestExplainWithoutIndexing checks that explain does not add "not for indexing" to a page that the
// crawl may not fetch because of its purpose.
func TestExplainWithoutIndexing(t *testing.T) {
	v := daemontest.NewWebFixture(t, agentGroupsSite("User-agent: *\nDisallow: /landing\nContent-Signal: "+
		"ai-train=no\n"))
	config := testfile.Write(t, "p.yaml", "agent: {product: YandexDirect}\nrobots: {purpose: [ai-train]}\n")
	runCommand(t, v.CrawlArgs("-c", config, "http://a.example/landing")...).want(t, command.ExitFailed,
		"blocked by robots.txt: 1")
	res := runCommand(t, "explain", "--data", v.DataDir(), "http://a.example/landing")
	if res.want(t, command.ExitDone, "disallowed: content-signal: ai-train=n"); strings.Contains(res.stdout,
		"indexing") {
		t.Errorf("it says %s", res.stdout)
	}
}
