package robots

import (
	"errors"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
)

func TestPurposes(t *testing.T) {
	const file = "User-agent: *\nContent-Signal: search=yes, ai-train=no\nContent-Usage: /open train-ai=y\n" +
		"Content-Usage: /closed train-ai=n\nAllow: /\n\nUser-agent: other\nContent-Signal: search=no\nDisallow: /x\n"
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
	} {
		agent, err := NewAgent(tt.agent)
		if err != nil {
			t.Fatal(err)
		}
		cfg := GateConfig{Agent: agent, Purposes: tt.purposes}
		if err := cfg.Validate(); err != nil {
			t.Fatal(err)
		}
		u, err := decorum.ParseURL("https://example.com" + tt.path)
		if err != nil {
			t.Fatal(err)
		}
		g := NewGate(cfg, newNotebook())
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		c, err := g.Check(t.Context(), now, u)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Learn(t.Context(), now, c, &decorum.Response{URL: c.URL(), Status: 200, Body: []byte(file)}, nil); err != nil {
			t.Fatal(err)
		}
		_, err = g.Check(t.Context(), now, u)
		var no *Refusal
		switch {
		case tt.rule == "" && err != nil:
			t.Errorf("%+v: %v, want it allowed", tt, err)
		case tt.rule != "" && (!errors.As(err, &no) || !errors.Is(err, decorum.Disallowed)):
			t.Errorf("%+v: %v, want a refusal", tt, err)
		case tt.rule != "" && (no.Verdict.Rule != tt.rule || no.Verdict.Line != tt.line || no.Verdict.Allowed):
			t.Errorf("%+v: %+v", tt, no.Verdict)
		}
	}
	if (GateConfig{Purposes: []string{"world-domination"}}).Validate() == nil {
		t.Error("an unknown purpose is taken")
	}
	if (GateConfig{Purposes: []string{"search"}, NoExtensions: true}).Validate() == nil {
		t.Error("a purpose is taken that could not be enforced")
	}
}
