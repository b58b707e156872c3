package robots

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

func TestContainsToken(t *testing.T) {
	for _, test := range []struct {
		req, value, token string
		want              bool
	}{
		{"AGENT-03", "YANDEX", "yandex", true},
		{"AGENT-09", "Mozilla/5.0 (compatible; YandexBot/3.0)", "yandexbot", true},
		{"AGENT-09", "NotYandex", "yandex", true},
		{"AGENT-09", "Yand", "yandex", false},
		{"AGENT-09", "", "yandex", false},
		{"AGENT-13", "YandexBot", "yandex", false},
		{"AGENT-13", "Yandex2", "yandex", false},
		{"AGENT-13", "Yandexя", "yandex", false},
		{"AGENT-13", "Yandex-Images", "yandex", true},
		{"AGENT-13", "YandexBot and Yandex", "yandex", true},
		{"AGENT-13", "yandexyandex", "yandex", true},
		{"AGENT-13", "Yandex\xff", "yandex", true},
		{"AGENT-03", "\u212aiwi", "kiwi", false}, // the Kelvin sign folds to k
	} {
		t.Run(test.req+"/"+test.value, func(t *testing.T) {
			if got := containsAgentToken(test.value, test.token); got != test.want {
				t.Errorf("%q holds the name %q = %v, want %v", test.value, test.token, got, test.want)
			}
		})
	}
}

// FuzzContainsToken compares containsAgentToken with the same rule as a regular expression.
func FuzzContainsToken(f *testing.F) {
	const token = "yandex"
	rule := regexp.MustCompile(`(?i:` + token + `)($|[^\p{L}\p{Nd}])`)
	for _, seed := range []string{"Yandex", "yandexbot, YANDEX/1", "Yandexя", "yandex\xff", "yandexyandex1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if got, want := containsAgentToken(value, token), rule.MatchString(value); got != want {
			t.Errorf("%q holds the name %q = %v, want %v", value, token, got, want)
		}
	})
}

// TestYandexRank lists which user-agent values name which agents.
func TestYandexRank(t *testing.T) {
	for _, test := range []struct {
		req, agent string
		order, not []string
	}{
		{"AGENT-10", "YandexBot", []string{"YandexBot/3.0", "yandex", "*"}, []string{"", "YandexDirect", "bot"}},
		{"AGENT-12", "anybot", []string{"anybot*", "SomeBot*"}, []string{"SomeBot"}},
		{"SYN-19", "", []string{"*"}, []string{"", "x"}},
		{"SYS-07", "Yandex", []string{"Yandex", "*"}, []string{"YandexBot"}},
		{"SYS-07", "YandexImages", []string{"YandexImages/3.0", "YANDEX", "*"}, []string{"YandexBot"}},
		{"SYS-07", "NotYandex", []string{"NotYandex", "*"}, []string{"Yandex"}},
		{"SYS-09", "YandexDirect", []string{"YandexDirect", "Yandex*"},
			[]string{"*", "YandexBot", "YandexDirectFetcher"}},
		{"SYS-10", "YandexCalendar", []string{"YandexCalendar", "Yandex"}, []string{"*", "SomeBot*"}},
	} {
		t.Run(test.req, func(t *testing.T) {
			f, a := Parse(nil, Yandex), AgentFromName(test.agent)
			var ranks []agentRank
			for _, value := range test.order {
				ranks = append(ranks, f.agentMatchRank(a, value))
			}
			if !slices.IsSorted(ranks) || len(slices.Compact(slices.Clone(ranks))) != len(ranks) ||
				slices.Contains(ranks, rankNoMatch) {
				t.Errorf("ranks of %q = %v, want rising ones", test.order, ranks)
			}
			for _, value := range test.not {
				if f.agentMatchRank(a, value) != rankNoMatch {
					t.Errorf("%q names %q", value, test.agent)
				}
			}
		})
	}
}

func TestYandexLines(t *testing.T) {
	for _, test := range []struct {
		name, body string
		want       []syntax.Line
	}{
		{"SYN-12", "Disallow:", []syntax.Line{testLine("/", 1, syntax.Allow)}},
		{"SYN-12/comment", "Disallow: # nothing", []syntax.Line{testLine("/", 1, syntax.Allow)}},
		{"SYN-13", "\nAllow:", []syntax.Line{testLine("/", 2, syntax.Disallow)}},
		{"SYN-14", "Noindex: /a\nRequest-rate: 1/5", nil},
		{"SYN-16", "Host: a.ru\nclean-param: s\nCrawl-Delay: 1",
			[]syntax.Line{testLine("a.ru", 1, syntax.Host), testLine("s", 2, syntax.CleanParam),
				testLine("1", 3, syntax.CrawlDelay)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			// The extensions of Google's format belong to Yandex's.
			got := ParseOptions{Dialect: Yandex, NoExtensions: true}.Parse([]byte(test.body)).lines
			if len(got) != len(test.want) || len(got) > 0 && !reflect.DeepEqual(got, test.want) {
				t.Errorf("lines = %v, want %v", got, test.want)
			}
		})
	}
}

func TestYandexLimit(t *testing.T) {
	const file = "User-agent: *\nDisallow: /\nSitemap: https://a.ru/s.xml\n"
	largest := []byte(file + strings.Repeat("#", MaxYandexFileBytes-len(file)))
	u := robotstest.URL(t, "https://example.com/a")
	t.Run("FMT-10/largest", func(t *testing.T) {
		if Parse(largest, Yandex).RulesFor(AgentFromName("x")).Check(u).Allowed {
			t.Error("its rules are not heeded")
		}
	})
	t.Run("FMT-10/larger", func(t *testing.T) {
		f := ParseOptions{Dialect: Yandex, MaxBytes: 1 << 20}.Parse(append(largest, '#'))
		if !f.RulesFor(AgentFromName("x")).Check(u).Allowed || len(f.Sitemaps()) > 0 {
			t.Error("something of it is heeded")
		}
	})
	t.Run("FMT-10/not in google", func(t *testing.T) {
		if Parse(append(largest, '#'), Google).RulesFor(AgentFromName("x")).Check(u).Allowed {
			t.Error("the limit of another dialect is applied")
		}
	})
}

// TestNamedOnly lists which lines bind an agent that ignores the rules for "*".
func TestNamedOnly(t *testing.T) {
	u := robotstest.URL(t, "https://example.com/a")
	const star = "User-agent: *\nDisallow: /\nCrawl-delay: 3\n"
	for _, test := range []struct {
		name, file string
		allowed    bool
		delay      time.Duration
	}{
		{"EXC-03/no file", "", true, 0},
		{"EXC-09/only for all", star, true, 3 * time.Second},
		{"EXC-04/its own record", star + "User-agent: YandexDirect\nDisallow: /\n", false, 0},
		{"EXC-05/its family's record", star + "User-agent: Yandex\nDisallow: /a\nCrawl-delay: 1\n", false, time.Second},
		{"AGENT-15/the delay is of the chosen record", star + "User-agent: Yandex\nDisallow: /b\n", true, 0},
	} {
		for _, d := range []Dialect{Google, Yandex} {
			t.Run(test.name+"/"+d.String(), func(t *testing.T) {
				rules := Parse([]byte(test.file), d).RulesFor(AgentFromName("YandexDirect"))
				delay, slow := rules.CrawlDelay()
				if v := rules.Check(u); v.Allowed != test.allowed || delay != test.delay || slow != (test.delay > 0) {
					t.Errorf("allowed = %v, delay %v; want %v, %v", v.Allowed, delay, test.allowed, test.delay)
				}
			})
		}
	}
	t.Run("EXC-10", func(t *testing.T) {
		a, err := NewAgent("newbot", "yandex")
		if err != nil || a.ignoresStarRules || AgentFromName("newbot").ignoresStarRules {
			t.Errorf("a new agent ignores the rules for all (%v)", err)
		}
	})
}
