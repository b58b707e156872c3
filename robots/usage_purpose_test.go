package robots

import (
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

func TestCheckForPurposes(t *testing.T) {
	const file = "User-agent: *\nContent-Signal: search=yes, ai-train=no\nContent-Usage: /open train-ai=y\n" +
		"Content-Usage: /closed train-ai=n\nAllow: /\n\nUser-agent: other\nContent-Signal: search=no\nDisallow: /x\n" +
		"\nUser-agent: general\nContent-Usage: bots=n, search=y\n"
	for _, tt := range []struct {
		agent    string
		purposes []string
		path     string
		rule     string // "": allowed
		line     int
	}{
		{"abot", nil, "/", "", 0},
		{"abot", []string{"search"}, "/", "", 0},
		{"abot", []string{"ai-input"}, "/", "", 0}, // nobody names it
		{"abot", []string{"ai-train"}, "/", "content-signal: ai-train=n", 2},
		{"abot", []string{"search", "ai-train"}, "/", "content-signal: ai-train=n", 2},
		{"abot", []string{"ai-train"}, "/closed/x", "content-signal: ai-train=n", 2},
		{"other", []string{"search"}, "/", "content-signal: search=n", 8},
		{"other", []string{"ai-train"}, "/", "", 0},
		{"abot", []string{"ai-train"}, "/robots.txt", "", 0},
		{"abot", []string{"archive"}, "/closed/x", "", 0}, // there is no category for it
		{"general", []string{"search"}, "/", "", 0},
		{"general", []string{"archive"}, "/", "content-usage: bots=n", 12},
		{"general", []string{"search", "ai-train"}, "/", "content-usage: bots=n", 12},
	} {
		f, agent := Parse([]byte(file), Google), AgentFromName(tt.agent)
		u := robotstest.URL(t, "https://example.com"+tt.path)
		v := CheckForPurposes(f.RulesFor(agent), UsageRulesFor(f, agent), u, tt.purposes)
		if v.Allowed != (tt.rule == "") || v.Rule != tt.rule && tt.rule != "" || v.Line != tt.line && tt.rule != "" {
			t.Errorf("%+v: %+v", tt, v)
		}
	}
}

func TestConflict(t *testing.T) {
	signal := func(in SignalSource, field, category string, p UsagePreferenceValue) UsageSignal {
		return UsageSignal{Source: in, Field: field, Category: category, Preference: p}
	}
	reserved, _ := ParseTDMReservation(InPage, "1", "")
	for _, tt := range []struct {
		name    string
		signals UsageSignals
		against string // of search, ai-input, ai-train, archive: those that are objected to
	}{
		{"nothing", nil, ""},
		{"allowed", UsageSignals{signal(InHeader, "content-usage", "train-ai", UseAllowed)}, ""},
		{"unset", UsageSignals{signal(InHeader, "content-usage", "train-ai", UseUnset)}, ""},
		{"unknown", UsageSignals{signal(InHeader, "content-usage", "frying", UseDisallowed)}, ""},
		{"training", UsageSignals{signal(InHeader, "content-usage", "train-ai", UseDisallowed)}, "ai-train"},
		{"in older words", UsageSignals{signal(InHeader, "content-usage", "train-genai", UseDisallowed)}, "ai-train"},
		{"input", UsageSignals{signal(InHeader, "content-usage", "ai-use", UseDisallowed)}, "ai-input"},
		{"mining", UsageSignals{reserved}, "ai-input ai-train"},
		{"noai", UsageSignals{NewDirectiveSignal(InPage, "NoAI")}, "ai-input ai-train"},
		{"noindex", UsageSignals{NewDirectiveSignal(InHeader, "noindex")}, "search"},
		{"noarchive", UsageSignals{NewDirectiveSignal(InHeader, "noarchive")}, "archive"},
		{"the strictest of several", UsageSignals{signal(InHeader, "content-usage", "train-ai", UseAllowed), signal(InRobots, "content-signal", "ai-train", UseDisallowed)}, "ai-train"},
		{"everything", UsageSignals{signal(InHeader, "content-usage", "bots", UseDisallowed)}, "search ai-input ai-train archive"},
		{"everything else", UsageSignals{signal(InHeader, "content-usage", "bots", UseDisallowed), signal(InHeader, "content-usage", "search", UseAllowed)}, "ai-input ai-train archive"},
		{"everything, says the other", UsageSignals{signal(InHeader, "content-usage", "bots", UseDisallowed), signal(InRobots, "content-usage", "search", UseAllowed)}, "search ai-input ai-train archive"},
		{"everything, and no value", UsageSignals{signal(InHeader, "content-usage", "bots", UseDisallowed), signal(InHeader, "content-usage", "search", UseUnset)}, "search ai-input ai-train archive"},
	} {
		var against []string
		for _, p := range strings.Split(KnownPurposes, ", ") {
			if o := tt.signals.ConflictWithPurposes([]string{p}); o != nil {
				against = append(against, o.Purpose)
			}
		}
		if got := strings.Join(against, " "); got != tt.against {
			t.Errorf("%s: against %q, want %q", tt.name, got, tt.against)
		}
		if tt.signals.ConflictWithPurposes(nil) != nil {
			t.Errorf("%s: objected to no purpose", tt.name)
		}
	}
	for want, s := range map[string]UsageSignal{
		"not to be used for ai-train: tdm-reservation: 1 (page)":              reserved,
		"not to be used for ai-train: x-robots-tag: noai (header)":            NewDirectiveSignal(InHeader, "noai"),
		"not to be used for ai-train: content-usage: train-ai=n (robots.txt)": signal(InRobots, "content-usage", "train-ai", UseDisallowed),
	} {
		if got := (UsageSignals{s}).ConflictWithPurposes([]string{"ai-train"}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestExemptAgentIsAskedToo: what a file asks everybody of the use of content binds those
// too whom its rules for everybody do not bind (EXC-09).
func TestExemptAgentIsAskedToo(t *testing.T) {
	f, agent := Parse([]byte("User-agent: *\nDisallow: /\nContent-Signal: ai-train=no\n"), Yandex), AgentFromName("YandexDirect")
	rules, usage, u := f.RulesFor(agent), UsageRulesFor(f, agent), robotstest.URL(t, "http://h/a")
	if v := CheckForPurposes(rules, usage, u, nil); !v.Allowed || !v.DisallowedForMainRobot {
		t.Errorf("without a purpose %+v", v)
	}
	if v := CheckForPurposes(rules, usage, u, []string{"ai-train"}); v.Allowed || v.DisallowedForMainRobot || !strings.HasPrefix(v.Rule, "content-signal") {
		t.Errorf("for training %+v", v)
	}
}
