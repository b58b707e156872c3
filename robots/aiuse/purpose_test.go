package aiuse

import (
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/robots"
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
		{"abot", []string{"ai-input"}, "/", "", 0}, // no line names the purpose
		{"abot", []string{"ai-train"}, "/", "content-signal: ai-train=n", 2},
		{"abot", []string{"search", "ai-train"}, "/", "content-signal: ai-train=n", 2},
		{"abot", []string{"ai-train"}, "/closed/x", "content-signal: ai-train=n", 2},
		{"other", []string{"search"}, "/", "content-signal: search=n", 8},
		{"other", []string{"ai-train"}, "/", "", 0},
		{"abot", []string{"ai-train"}, "/robots.txt", "", 0},
		{"abot", []string{"archive"}, "/closed/x", "", 0}, // Content-Usage lacks a category for it
		{"general", []string{"search"}, "/", "", 0},
		{"general", []string{"archive"}, "/", "content-usage: bots=n", 12},
		{"general", []string{"search", "ai-train"}, "/", "content-usage: bots=n", 12},
	} {
		f, agent := robots.Parse([]byte(file), robots.Google), robots.AgentFromName(tt.agent)
		u := robotstest.URL(t, "https://example.com"+tt.path)
		v := Check(f.RulesFor(agent), Compile(f, agent), u, tt.purposes)
		if v.Allowed != (tt.rule == "") || v.Rule != tt.rule && tt.rule != "" || v.Line != tt.line && tt.rule != "" {
			t.Errorf("%+v: %+v", tt, v)
		}
	}
}

func TestConflict(t *testing.T) {
	signal := func(in Source, field, category string, p Preference) Signal {
		return Signal{Source: in, Field: field, Category: category, Preference: p}
	}
	reserved, _ := ParseTDMReservation(InPage, "1", "")
	for _, tt := range []struct {
		name    string
		signals Signals
		against string // the purposes that conflict, of search, ai-input, ai-train, archive
	}{
		{"nothing", nil, ""},
		{"allowed", Signals{signal(InHeader, "content-usage", "train-ai", Allowed)}, ""},
		{"unset", Signals{signal(InHeader, "content-usage", "train-ai", Unset)}, ""},
		{"unknown", Signals{signal(InHeader, "content-usage", "frying", Disallowed)}, ""},
		{"training", Signals{signal(InHeader, "content-usage", "train-ai", Disallowed)}, "ai-train"},
		{"in older words", Signals{signal(InHeader, "content-usage", "train-genai", Disallowed)}, "ai-train"},
		{"input", Signals{signal(InHeader, "content-usage", "ai-use", Disallowed)}, "ai-input"},
		{"mining", Signals{reserved}, "ai-input ai-train"},
		{"noai", Signals{NewDirectiveSignal(InPage, "NoAI")}, "ai-input ai-train"},
		{"noindex", Signals{NewDirectiveSignal(InHeader, "noindex")}, "search"},
		{"noarchive", Signals{NewDirectiveSignal(InHeader, "noarchive")}, "archive"},
		{"the strictest of several", Signals{signal(InHeader, "content-usage", "train-ai", Allowed),
			signal(InRobots, "content-signal", "ai-train", Disallowed)}, "ai-train"},
		{"everything", Signals{signal(InHeader, "content-usage", "bots", Disallowed)},
			"search ai-input ai-train archive"},
		{"everything else", Signals{signal(InHeader, "content-usage", "bots", Disallowed),
			signal(InHeader, "content-usage", "search", Allowed)}, "ai-input ai-train archive"},
		{"everything, says the other", Signals{signal(InHeader, "content-usage", "bots", Disallowed),
			signal(InRobots, "content-usage", "search", Allowed)}, "search ai-input ai-train archive"},
		{"everything, and no value", Signals{signal(InHeader, "content-usage", "bots", Disallowed),
			signal(InHeader, "content-usage", "search", Unset)}, "search ai-input ai-train archive"},
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
			t.Errorf("%s: a conflict without a purpose", tt.name)
		}
	}
	for want, s := range map[string]Signal{
		"not to be used for ai-train: tdm-reservation: 1 (page)":   reserved,
		"not to be used for ai-train: x-robots-tag: noai (header)": NewDirectiveSignal(InHeader, "noai"),
		"not to be used for ai-train: content-usage: train-ai=n (robots.txt)": signal(InRobots,
			"content-usage", "train-ai", Disallowed),
	} {
		if got := (Signals{s}).ConflictWithPurposes([]string{"ai-train"}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestExemptAgentIsAskedToo proves that an agent that ignores the rules for "*" is still bound by the
// preferences for "*" about the use of content (EXC-09).
func TestExemptAgentIsAskedToo(t *testing.T) {
	f, agent := robots.Parse([]byte("User-agent: *\nDisallow: /\nContent-Signal: ai-train=no\n"), robots.Yandex),
		robots.AgentFromName("YandexDirect")
	rules, usage, u := f.RulesFor(agent), Compile(f, agent), robotstest.URL(t, "http://h/a")
	if v := Check(rules, usage, u, nil); !v.Allowed || !v.DisallowedForMainRobot {
		t.Errorf("without a purpose %+v", v)
	}
	if v := Check(rules, usage, u, []string{"ai-train"}); v.Allowed || v.DisallowedForMainRobot ||
		!strings.HasPrefix(v.Rule, "content-signal") {
		t.Errorf("for training %+v", v)
	}
}
