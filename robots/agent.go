package robots

import (
	"fmt"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// An Agent is a crawler as robots.txt files address it: by its product token,
// failing that by wider tokens in order, failing those by "*". The zero Agent
// is addressed by "*" alone.
type Agent struct {
	tokens           []string
	givenName        string // as AgentFromName was given it; only GoogleOSS asks for it
	ignoresStarRules bool   // allow and disallow for "*" do not bind it (EXC-03, EXC-10)
	indexingPreset   string // the preset that decides whether what it fetches is indexed (EXC-06); empty: itself
}

// NewAgent returns the agent with the given product token and wider tokens.
// A token has letters, "_" and "-" only (AGENT-14).
func NewAgent(token string, fallbacks ...string) (Agent, error) {
	tokens := append([]string{token}, fallbacks...)
	for _, t := range tokens {
		if t == "" || syntax.LeadingToken(t) != t || strings.ContainsAny(t, syntax.Digits) {
			return Agent{}, fmt.Errorf("product token %q: want letters, \"_\" and \"-\" only", t)
		}
	}
	return Agent{tokens: tokens}, nil
}

// PresetOrNewAgent returns the agent of a crawl of one's own: as NewAgent does, or the
// preset if there is one by the token and no wider tokens are given. A preset is the
// agent of a well-known crawler, named in any case, with the wider tokens that its operator
// documents (the SYS requirements). The allow and disallow lines for "*" do not bind the
// presets YandexDirect and YandexCalendar, which fetch for other purposes than indexing; a
// Verdict says of what they may fetch whether it is DisallowedForMainRobot. The GoogleOSS
// dialect knows no presets.
func PresetOrNewAgent(d Dialect, token string, fallbacks ...string) (Agent, error) {
	if a, ok := presetAgents[strings.ToLower(token)]; ok && len(fallbacks) == 0 && d != GoogleOSS {
		return a, nil
	}
	return NewAgent(token, fallbacks...)
}

// AgentFromName returns the agent that goes by name: the preset if there is one, else
// an agent whose only token is what of the name a user-agent line would be
// read as. It is for questions about crawlers of others, whose tokens may have
// digits (AGENT-02); a crawler of one's own is made by NewAgent. The GoogleOSS
// dialect compares the name as it is given, and knows no presets.
func AgentFromName(name string) Agent {
	a, ok := presetAgents[strings.ToLower(name)]
	if t := syntax.LeadingToken(name); !ok && t != "" {
		a.tokens = []string{t}
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
	"yandexdirect":    {tokens: []string{"yandexdirect", "yandex"}, ignoresStarRules: true, indexingPreset: "yandexbot"},
	"yandexcalendar":  {tokens: []string{"yandexcalendar", "yandex"}, ignoresStarRules: true, indexingPreset: "yandexbot"},
}

// Token returns the product token.
func (a Agent) Token() string {
	if len(a.tokens) == 0 {
		return ""
	}
	return a.tokens[0]
}

// FallbackTokens returns the wider tokens, in order.
func (a Agent) FallbackTokens() []string { return slices.Clone(a.tokens[min(1, len(a.tokens)):]) }

// IgnoresStarRules reports whether the allow and disallow lines for "*" do not bind the
// agent (EXC-03). What they say of pace and of the use of content does.
func (a Agent) IgnoresStarRules() bool { return a.ignoresStarRules }

// An agentRank says how specifically a user-agent line names an agent: the index of
// the token that it names, so that less is more.
type agentRank int

// rankNoMatch ranks a line that does not name the agent.
const rankNoMatch agentRank = 1 << 30

// matchRank returns how specifically value, of a user-agent line, names a.
func (a Agent) matchRank(value string) agentRank {
	if value == "*" {
		if a.ignoresStarRules {
			return rankNoMatch
		}
		return agentRank(len(a.tokens))
	}
	name := syntax.LeadingToken(value)
	for i, t := range a.tokens {
		// Both are ASCII, so folding cannot match letters of other alphabets.
		if strings.EqualFold(t, name) {
			return agentRank(i)
		}
	}
	return rankNoMatch
}
