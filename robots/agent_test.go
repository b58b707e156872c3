package robots

import (
	"slices"
	"testing"
)

func TestNewAgent(t *testing.T) {
	for _, good := range []string{"decorumbot", "Example-Bot", "a_b", "-"} {
		a, err := NewAgent(good, "wider")
		if err != nil || a.Token() != good {
			t.Errorf("NewAgent(%q) = %q, %v", good, a.Token(), err)
		}
	}
	for _, bad := range []string{"", "decorum bot", "bot2", "bot/1.0", "*", "bót", "bot\n", "bot:"} {
		t.Run("AGENT-14/"+bad, func(t *testing.T) {
			if _, err := NewAgent(bad); err == nil {
				t.Error("accepted as a product token")
			}
			if _, err := NewAgent("bot", bad); err == nil {
				t.Error("accepted as a wider token")
			}
		})
	}
}

// TestNewAgentKeepsNothing proves that an agent does not change with the slice from which it was made.
func TestNewAgentKeepsNothing(t *testing.T) {
	fallbacks := []string{"family"}
	a, err := NewAgent("bot", fallbacks...)
	if err != nil {
		t.Fatal(err)
	}
	fallbacks[0] = "other"
	if a.matchRank("family") != 1 {
		t.Error("the wider token has changed")
	}
}

// TestAgentByName lists which user-agent values name an agent, the most specific first.
func TestAgentByName(t *testing.T) {
	for _, test := range []struct {
		req, name string
		order     []string
		not       []string
	}{
		{"SYS-01", "Googlebot", []string{"Googlebot/2.1", "*"}, []string{"googlebot-news", "google"}},
		{"SYS-02", "Googlebot-News", []string{"googlebot-news", "googlebot*", "*"}, nil},
		{"SYS-03", "googlebot-image", []string{"googlebot-image", "googlebot-images", "googlebot", "*"}, nil},
		{"SYS-04", "Storebot-Google", []string{"storebot-google", "*"}, []string{"googlebot"}},
		{"SYS-05", "Otherbot", []string{"OTHERBOT (news)", "*"},
			[]string{"otherbot-news", "other", "bot", "", "**", "* x"}},
		{"SYS-07", "Yandex", []string{"yandex", "*"}, []string{"yandexbot"}},
		{"SYS-08", "YandexBot", []string{"yandexbot", "yandex", "*"}, nil},
		{"SYS-09", "YandexDirect", []string{"yandexdirect", "yandex"}, []string{"*"}},
		{"SYS-10", "YandexCalendar", []string{"yandexcalendar", "yandex"}, []string{"*"}},
		{"AGENT-02", "crawl2bot/3", []string{"Crawl2Bot 9", "*"}, []string{"crawl"}},
		{"AGENT-07", "", []string{"*"}, []string{"", "x"}},
		{"AGENT-03", "kiwi", []string{"KIWI"}, []string{"\u212aiwi"}},
	} {
		t.Run(test.req, func(t *testing.T) {
			a := AgentFromName(test.name)
			var ranks []agentRank
			for _, value := range test.order {
				ranks = append(ranks, a.matchRank(value))
			}
			if !slices.IsSorted(ranks) || len(slices.Compact(slices.Clone(ranks))) != len(ranks) ||
				slices.Contains(ranks, rankNoMatch) {
				t.Errorf("ranks of %q = %v, want rising ones", test.order, ranks)
			}
			for _, value := range test.not {
				if a.matchRank(value) != rankNoMatch {
					t.Errorf("%q names %q", value, test.name)
				}
			}
		})
	}
}

func TestParseDialect(t *testing.T) {
	for name, want := range map[string]Dialect{"google": Google, "yandex": Yandex, "google-oss": GoogleOSS} {
		if d, err := ParseDialect(name); err != nil || d != want || d.String() != name {
			t.Errorf("ParseDialect(%q) = %v, %v", name, d, err)
		}
	}
	for _, name := range []string{"bing", "", "Google"} {
		if d, err := ParseDialect(name); err == nil {
			t.Errorf("ParseDialect(%q) = %v, want an error", name, d)
		}
	}
}
