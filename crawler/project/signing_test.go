package project

import (
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/internal/testfile"
)

func TestSigningRefused(t *testing.T) {
	for _, tt := range []struct{ text, says string }{
		{"{keys: [bot.pem]}", "p.yaml:3:3: agent.signature.directory: sites cannot find the keys"},
		{"{directory: https://bot.example.com}", "agent.signature.keys: no key to sign with"},
		{"{keys: [''], directory: https://bot.example.com}",
			"p.yaml:3:22: agent.signature.keys[0]: expected the name of a file"},
		{"{keys: [bot.pem], directory: 'http://bot.example.com'}",
			`p.yaml:3:43: agent.signature.directory: "http://bot.example.com": expected an origin on https`},
		{"{keys: [bot.pem], directory: 'https://bot.example.com', valid: 2s}",
			"agent.signature.valid: 2s is out of range: expected 10s to 24h"},
		{"{valid: 2d}", "agent.signature.valid: 48h is out of range: expected 10s to 24h"},
		{"{key: bot.pem}", `unknown field agent.signature.key; did you mean agent.signature.keys?`},
		{"{agent_form: token}", `agent.signature.agent_form: "token" is not one of dictionary, string`},
	} {
		text := "agent:\n  contact: mailto:bot@example.com\n  signature: " + tt.text +
			"\nseeds: [https://example.com/]\n"
		if _, err := Read(testfile.Write(t, "p.yaml", text)); err == nil ||
			!strings.Contains(DetailedErrorText(err), tt.says) {
			t.Errorf("%s: %v, want %q", tt.text, DetailedErrorText(err), tt.says)
		}
	}
}
