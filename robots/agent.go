package robots

import (
	"fmt"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// An Agent is a crawler as robots.txt files address it: by its product token; in files without that
// token by its wider tokens, in order; otherwise by "*". Only "*" addresses the zero Agent.
type Agent struct {
	tokens           []string // the product token, then the wider tokens
	givenName        string   // the argument of AgentFromName; only GoogleOSS uses it
	ignoresStarRules bool     // allow and disallow for "*" do not bind it (EXC-03, EXC-10)
	// indexingPreset names the preset whose rules decide whether pages that this agent fetches are
	// indexed (EXC-06). Empty: the agent's own rules decide.
	indexingPreset string
	// isYandexRobot gives the agent the wider token "yandex" in the Yandex dialect (SYS-07).
	isYandexRobot bool
}

// NewAgent returns the agent with the given product token and wider tokens. It returns an error if a
// token is empty or has characters other than letters, "_" and "-" (AGENT-14).
func NewAgent(token string, fallbacks ...string) (Agent, error) {
	tokens := append([]string{token}, fallbacks...)
	for _, t := range tokens {
		if t == "" || syntax.LeadingToken(t) != t || strings.ContainsAny(t, syntax.Digits) {
			return Agent{}, fmt.Errorf("product token %q: want letters, \"_\" and \"-\" only", t)
		}
	}
	return Agent{tokens: tokens}, nil
}

// PresetOrNewAgent returns the preset named token if there is one and no fallbacks are given,
// otherwise what NewAgent returns. A crawl calls it for its own agent.
//
// A preset is the agent of a well-known crawler with the wider tokens that its operator documents
// (the SYS requirements). The case of its name does not matter. The allow and disallow lines for "*"
// do not bind the presets YandexDirect and YandexCalendar, which fetch for other purposes than
// indexing; for them, Verdict.DisallowedForMainRobot reports that a page must not be indexed. In the
// Yandex dialect, another agent whose token begins with "yandex" has the wider token "yandex", if no
// fallbacks are given. The GoogleOSS dialect has no presets.
func PresetOrNewAgent(d Dialect, token string, fallbacks ...string) (Agent, error) {
	if a, ok := presetAgents[strings.ToLower(token)]; ok && len(fallbacks) == 0 && d != GoogleOSS {
		return a, nil
	}
	if d == Yandex && len(fallbacks) == 0 && isYandexRobotName(token) {
		fallbacks = []string{yandexFamilyToken}
	}
	return NewAgent(token, fallbacks...)
}

// AgentFromName returns the agent of another operator's crawler: the preset of that name if there is
// one, otherwise an agent whose only token is the part of name that counts in a user-agent line. Such
// tokens may have digits (AGENT-02). If the name begins with "yandex", the agent also has the wider
// token "yandex" in files of the Yandex dialect (SYS-07). A crawl makes its own agent with NewAgent or
// PresetOrNewAgent. The GoogleOSS dialect compares the whole name and has no presets.
func AgentFromName(name string) Agent {
	a, ok := presetAgents[strings.ToLower(name)]
	if t := syntax.LeadingToken(name); !ok && t != "" {
		a.tokens, a.isYandexRobot = []string{t}, isYandexRobotName(t)
	}
	a.givenName = name
	return a
}

// presetAgents are the presets, by name in lower case.
var presetAgents = map[string]Agent{
	"googlebot":       {tokens: []string{"googlebot"}},
	"googlebot-news":  {tokens: []string{"googlebot-news", "googlebot"}},
	"googlebot-image": {tokens: []string{"googlebot-image", "googlebot-images", "googlebot"}},
	"storebot-google": {tokens: []string{"storebot-google"}},
	"yandex":          {tokens: []string{"yandex"}},
	"yandexbot":       {tokens: []string{"yandexbot", "yandex"}},
	"yandexdirect": {tokens: []string{"yandexdirect", "yandex"}, ignoresStarRules: true,
		indexingPreset: "yandexbot"},
	"yandexcalendar": {tokens: []string{"yandexcalendar", "yandex"}, ignoresStarRules: true,
		indexingPreset: "yandexbot"},
}

// Token returns the product token, "" for the zero Agent.
func (a Agent) Token() string {
	if len(a.tokens) == 0 {
		return ""
	}
	return a.tokens[0]
}

// FallbackTokens returns the wider tokens, in order.
func (a Agent) FallbackTokens() []string { return slices.Clone(a.tokens[min(1, len(a.tokens)):]) }

// IgnoresStarRules reports whether the agent ignores the allow and disallow lines for "*" (EXC-03).
// The lines for "*" about pace and about the use of content still bind it.
func (a Agent) IgnoresStarRules() bool { return a.ignoresStarRules }

// An agentRank says how specifically a user-agent line names an agent: it is the index of the token
// that the line names, so a lower rank is more specific.
type agentRank int

// rankNoMatch is the rank of a line that does not name the agent.
const rankNoMatch agentRank = 1 << 30

// matchRank returns the rank of value, from a user-agent line, for a in the Google dialect.
func (a Agent) matchRank(value string) agentRank {
	if value == "*" {
		if a.ignoresStarRules {
			return rankNoMatch
		}
		return agentRank(len(a.tokens))
	}
	name := syntax.LeadingToken(value)
	for i, t := range a.tokens {
		// Both are ASCII, so case folding cannot match letters of other alphabets.
		if strings.EqualFold(t, name) {
			return agentRank(i)
		}
	}
	return rankNoMatch
}
