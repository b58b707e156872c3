package robots

import (
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

func TestGroup(t *testing.T) {
	for _, test := range []struct {
		name, body, agent string
		group             string
		blocks            string // which of /a /b /c /d is disallowed; empty: all are allowed
	}{
		{"GRP-06/combined", "user-agent: X\ndisallow: /a\nuser-agent: y\ndisallow: /b\nuser-agent: X", "x", "X", "/a"},
		{"GRP-06/spelt differently", "user-agent: X\nuser-agent: x/2\ndisallow: /a", "x", "X, x/2", "/a"},
		{"GRP-07/not with the star", "user-agent: *\ndisallow: /a\nuser-agent: x\ndisallow: /b", "x", "x", "/b"},
		{"GRP-09/blank lines", "user-agent: x\n\n# y\n\nuser-agent: y\n\ndisallow: /a", "x", "x", "/a"},
		{"GRP-12/no group yet", "disallow: /a\nuser-agent: x\ndisallow: /b", "x", "x", "/b"},
		{"GRP-13/nobody is named", "user-agent: y\ndisallow: /a", "x", "", ""},
		{"GRP-17/void rule ends the run", "user-agent: x\ndisallow: void\nuser-agent: y\ndisallow: /a", "x", "x", ""},
		{"GRP-08/sitemap does not", "user-agent: x\nsitemap: z\nuser-agent: y\ndisallow: /a", "x", "x", "/a"},
		{"GRP-16/delay does not", "user-agent: x\ncrawl-delay: 1\nuser-agent: y\ndisallow: /a", "x", "x", "/a"},
		{"AGENT-01/own token first", "user-agent: googlebot\ndisallow: /a\nuser-agent: googlebot-news\ndisallow: /b",
			"Googlebot-News", "googlebot-news", "/b"},
		{"AGENT-02/star with text is no star", "user-agent: *x\ndisallow: /a\nuser-agent: * x\ndisallow: /b", "x", "",
			""},
		{"SYN-19/empty value names nobody", "user-agent: *\ndisallow: /a\nuser-agent:\ndisallow: /b", "", "*", "/a"},
		{"SYS-09/star does not bind", "user-agent: *\ndisallow: /a", "YandexDirect", "", ""},
		{"SYS-09/family does", "user-agent: *\ndisallow: /a\nuser-agent: yandex\ndisallow: /b",
			"YandexDirect", "yandex", "/b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rules := Parse([]byte(test.body), Google).RulesFor(AgentFromName(test.agent))
			if got := rules.groupAgents; got != test.group {
				t.Errorf("group = %q, want %q", got, test.group)
			}
			for _, path := range []string{"/a", "/b", "/c", "/d"} {
				v := rules.Check(robotstest.URL(t, "http://h"+path))
				if v.Allowed != (path != test.blocks) || v.Group != test.group {
					t.Errorf("%s: %+v", path, v)
				}
			}
		})
	}
}

func TestCrawlDelay(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, test := range []struct {
		name, body string
		want       time.Duration // negative: no delay
	}{
		{"DELAY-02/fraction", "crawl-delay: 0.5", 500 * time.Millisecond},
		{"DELAY-02/without a leading digit", "crawl-delay: .25", 250 * time.Millisecond},
		{"DELAY-02/finer than the clock", "crawl-delay: 0.00000000001", 0},
		{"DELAY-02/rounded", "crawl-delay: 0.1234567899", 123456790},
		{"DELAY-06/zero", "crawl-delay: 0", 0},
		{"DELAY-09/after rules", "disallow: /\ncrawl-delay: 2", 2 * time.Second},
		{"DELAY-09/other agent's", "crawl-delay: 2\nuser-agent: y\ncrawl-delay: 9", 2 * time.Second},
		{"DELAY-09/shared", "user-agent: y\ncrawl-delay: 9", 9 * time.Second},
		{"DELAY-09/run ended by a rule", "disallow:\nuser-agent: y\ncrawl-delay: 9", -1},
		{"DELAY-10/largest", "crawl-delay: 1\ncrawl-delay: 3\ncrawl-delay: 2", 3 * time.Second},
		{"DELAY-11/invalid leaves the valid", "crawl-delay: 2\ncrawl-delay: 5s", 2 * time.Second},
		{"DELAY-11/absurd", "crawl-delay: 9223372037", year},
		{"DELAY-11/beyond float", "crawl-delay: 1" + strings.Repeat("0", 400), year},
		{"DELAY-11/two points", "crawl-delay: 1.2.3", -1},
		{"DELAY-11/only a point", "crawl-delay: .", -1},
		{"DELAY-11/sign", "crawl-delay: +1", -1},
		{"DELAY-11/words", "crawl-delay: Inf\ncrawl-delay: NaN\ncrawl-delay: 0x10\ncrawl-delay: 1_0", -1},
		{"DELAY-11/empty", "crawl-delay:", -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, ok := Parse([]byte("user-agent: x\n"+test.body), Google).RulesFor(AgentFromName("x")).CrawlDelay()
			if ok != (test.want >= 0) || ok && d != test.want {
				t.Errorf("Crawl-delay = %v, %v, want %v", d, ok, test.want)
			}
		})
	}
}

// TestNoExtensions proves DELAY-07: without extensions, a Crawl-delay line has no effect at all.
func TestNoExtensions(t *testing.T) {
	f := ParseOptions{NoExtensions: true}.Parse([]byte("user-agent: x\ncrawl-delay: 2\ndisallow: /a\nsitemap: " +
		"http://h/"))
	rules := f.RulesFor(AgentFromName("x"))
	if d, ok := rules.CrawlDelay(); ok {
		t.Errorf("Crawl-delay = %v, want none", d)
	}
	if rules.Check(robotstest.URL(t, "http://h/a")).Allowed || len(f.Sitemaps()) != 1 {
		t.Error("other lines are ignored, too")
	}
}

// TestCrawlDelaySplitsGroups tests the option of Q-05, for files such as this one, which by the wording
// of the standard disallow everything for all agents.
func TestCrawlDelaySplitsGroups(t *testing.T) {
	body := []byte("User-agent: *\nCrawl-delay: 10\nUser-agent: badbot\nDisallow: /")
	for _, ends := range []bool{false, true} {
		f := ParseOptions{CrawlDelaySplitsGroups: ends}.Parse(body)
		if got := f.RulesFor(AgentFromName("x")).Check(robotstest.URL(t, "http://h/")).Allowed; got != ends {
			t.Errorf("DelayEndsRun %v: allowed = %v", ends, got)
		}
		if f.RulesFor(AgentFromName("badbot")).Check(robotstest.URL(t, "http://h/")).Allowed {
			t.Errorf("DelayEndsRun %v: the rule is lost", ends)
		}
	}
}
