package robots

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// MaxYandexFileBytes is the size in bytes beyond which a robots.txt restricts nobody
// in the Yandex dialect (FMT-10).
const MaxYandexFileBytes = 32 << 10

// invertEmptyRule returns l as Yandex reads it: a rule without a path says the
// opposite about everything (SYN-12, SYN-13).
func invertEmptyRule(l syntax.Line) syntax.Line {
	switch {
	case l.Value != "":
	case l.Field == syntax.Disallow:
		l.Field, l.Value = syntax.Allow, "/"
	case l.Field == syntax.Allow:
		l.Field, l.Value = syntax.Disallow, "/"
	}
	return l
}

// yandexMatchRank is rank for Yandex: a value names the agent if it holds one of
// the tokens anywhere, and everybody if it holds "*" (AGENT-09 to AGENT-12).
func (a Agent) yandexMatchRank(value string) agentRank {
	for i, t := range a.tokens {
		if containsAgentToken(value, t) {
			return agentRank(i)
		}
	}
	if strings.Contains(value, "*") && !a.ignoresStarRules {
		return agentRank(len(a.tokens))
	}
	return rankNoMatch
}

// containsAgentToken reports whether value holds the token in any case of letters, and
// not as the beginning of another robot's name: no letter or digit follows it
// (AGENT-13).
func containsAgentToken(value, token string) bool {
	for ; len(value) >= len(token); value = value[1:] {
		// A letter beyond ASCII that folds to one of the token's takes more
		// bytes than that, so with equal lengths folding stays within ASCII.
		if !strings.EqualFold(value[:len(token)], token) {
			continue
		}
		next, _ := utf8.DecodeRuneInString(value[len(token):])
		if !unicode.IsLetter(next) && !unicode.IsDigit(next) {
			return true
		}
	}
	return false
}
