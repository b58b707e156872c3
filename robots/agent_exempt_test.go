package robots

import (
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// TestNotForIndexing proves that a verdict is marked if an agent that ignores the rules for "*" may
// fetch the URL and its operator's main robot may not, whichever rules lead to the two verdicts
// (EXC-06).
func TestNotForIndexing(t *testing.T) {
	const all, bot, direct, family = "User-agent: *\nDisallow: /a\n", "User-agent: YandexBot\nDisallow: /a\n",
		"User-agent: YandexDirect\nDisallow: /d\n", "User-agent: Yandex\nDisallow: /a\n"
	for _, test := range []struct {
		name, file, agent, path string
		allowed, marked         bool
	}{
		{"closed to everybody", all, "YandexDirect", "/a", true, true},
		{"closed to everybody", all, "yandexcalendar", "/a", true, true},
		{"open to everybody", all, "YandexDirect", "/b", true, false},
		{"closed to the main robot alone", bot, "YandexDirect", "/a", true, true},
		{"opened by the agent's own group", family + direct, "YandexDirect", "/a", true, true},
		{"closed by the agent's own group", all + direct, "YandexDirect", "/d", false, false},
		{"closed to the family", family, "YandexDirect", "/a", false, false},
		{"open to the main robot", all + "User-agent: YandexBot\nDisallow: /b\n", "YandexDirect", "/a", true, false},
		{"no rules", "", "YandexDirect", "/a", true, false},
		{"robots.txt", "User-agent: *\nDisallow: /\n", "YandexDirect", "/robots.txt", true, false},
		{"an agent without a main robot", bot, "Yandex", "/a", true, false},
		{"an agent without a main robot", bot, "examplebot", "/a", true, false},
		{"the main robot", all, "YandexBot", "/a", false, false},
	} {
		for _, d := range []Dialect{Google, Yandex} {
			t.Run(test.name+"/"+test.agent+"/"+d.String(), func(t *testing.T) {
				u, rules := robotstest.URL(t, "http://h"+test.path),
					Parse([]byte(test.file), d).RulesFor(AgentFromName(test.agent))
				v, e := rules.Check(u), rules.Explain(u)
				if v.Allowed != test.allowed || v.DisallowedForMainRobot != test.marked {
					t.Errorf("verdict %+v, want allowed %t, marked %t", v, test.allowed, test.marked)
				}
				if e.Verdict != v || (e.IndexingVerdict != nil) != test.marked || e.IndexingVerdict != nil &&
					e.IndexingVerdict.Rule != "disallow: /a" {
					t.Errorf("explanation %+v of the verdict %+v", e, v)
				}
			})
		}
	}
	// Google's parser has no such agents.
	if v := Parse([]byte(bot), GoogleOSS).RulesFor(AgentFromName("YandexDirect")).Check(robotstest.URL(t,
		"http://h/a")); !v.Allowed || v.DisallowedForMainRobot {
		t.Errorf("in google-oss: %+v", v)
	}
}

// TestExemptionIsOfRulesAlone proves that an agent that ignores the rules for "*" is still bound by
// the lines for "*" about pace and about the use of content (EXC-09).
func TestExemptionIsOfRulesAlone(t *testing.T) {
	file := "User-agent: *\nDisallow: /\nCrawl-delay: 3\nContent-Signal: ai-train=no\n"
	f, agent := Parse([]byte(file), Yandex), AgentFromName("YandexDirect")
	rules, u := f.RulesFor(agent), robotstest.URL(t, "http://h/a")
	if delay, ok := rules.CrawlDelay(); !ok || delay.Seconds() != 3 {
		t.Errorf("pause %v, %t", delay, ok)
	}
	if v := rules.Check(u); !v.Allowed || !v.DisallowedForMainRobot {
		t.Errorf("verdict %+v", v)
	}
	if lines := f.LinesFor(agent, "content-signal"); len(lines) != 1 ||
		lines[0] != (Line{"content-signal", "ai-train=no", 4}) {
		t.Errorf("lines %v", lines)
	}
}

// TestConfigured proves that PresetOrNewAgent returns the preset of that name unless fallbacks are
// given, and that only presets ignore the rules for "*" (EXC-10).
func TestConfigured(t *testing.T) {
	for _, test := range []struct {
		dialect            Dialect
		token, wider, want string
		namedOnly          bool
	}{
		{Google, "examplebot", "", "", false},
		{Google, "examplebot", "family all", "family all", false},
		{Google, "Googlebot-Image", "", "googlebot-images googlebot", false},
		{Google, "googlebot-image", "other", "other", false},
		{Google, "YandexDirect", "", "yandex", true},
		{Google, "YandexDirect", "yandex", "yandex", false},
		{Google, "YandexBot", "", "yandex", false},
		{Yandex, "YandexDirect", "", "yandex", true},
		{Yandex, "YandexImages", "", "yandex", false},
		{Yandex, "yandeximages", "other", "other", false},
		{Yandex, "NotYandex", "", "", false},
		{Google, "YandexImages", "", "", false},
		{GoogleOSS, "YandexDirect", "", "", false},
	} {
		a, err := PresetOrNewAgent(test.dialect, test.token, strings.Fields(test.wider)...)
		if err != nil || !strings.EqualFold(a.Token(), test.token) ||
			!slices.Equal(a.FallbackTokens(), strings.Fields(test.want)) || a.IgnoresStarRules() != test.namedOnly {
			t.Errorf("%q, %q: %q with %q, named only %t, %v", test.token, test.wider, a.Token(),
				a.FallbackTokens(), a.IgnoresStarRules(), err)
		}
	}
	for _, bad := range []string{"", "bot2", "a b"} {
		if _, err := PresetOrNewAgent(Google, bad); err == nil {
			t.Errorf("%q is accepted as a token", bad)
		}
		if _, err := PresetOrNewAgent(Google, "bot", bad); err == nil {
			t.Errorf("%q is accepted as a wider token", bad)
		}
	}
	if got := (Agent{}).FallbackTokens(); len(got) != 0 {
		t.Errorf("the zero Agent has wider tokens %q", got)
	}
}
