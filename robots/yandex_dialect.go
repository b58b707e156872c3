package robots

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// MaxYandexFileBytes is the maximum size of a robots.txt in the Yandex dialect, in bytes. A larger
// file restricts nothing (FMT-10).
const MaxYandexFileBytes = 32 << 10

// invertEmptyRule returns l as Yandex reads it: a disallow line without a path allows everything, an
// allow line without a path disallows everything (SYN-12, SYN-13).
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

// yandexFamilyToken is the token of the record for all robots of Yandex.
const yandexFamilyToken = "yandex"

// yandexMatchRank returns the rank of a user-agent value for a in the Yandex dialect: a value names
// the agent if it contains one of its tokens, and all agents if it contains "*" (AGENT-09 to
// AGENT-12). A value with the token of Yandex's family ranks between the two for a robot of Yandex.
func (a Agent) yandexMatchRank(value string) agentRank {
	for i, t := range a.tokens {
		if containsAgentToken(value, t) {
			return agentRank(i)
		}
	}
	next := agentRank(len(a.tokens))
	if a.isYandexRobot && containsAgentToken(value, yandexFamilyToken) {
		return next
	}
	if strings.Contains(value, "*") && !a.ignoresStarRules {
		return next + 1
	}
	return rankNoMatch
}

// isYandexRobotName reports whether a product token begins with that of Yandex's family, in any case.
func isYandexRobotName(token string) bool {
	return len(token) >= len(yandexFamilyToken) && strings.EqualFold(token[:len(yandexFamilyToken)], yandexFamilyToken)
}

// containsAgentToken reports whether value contains token, in any case. A letter or digit after the
// token makes it the beginning of another robot's name, which does not count (AGENT-13).
func containsAgentToken(value, token string) bool {
	for ; len(value) >= len(token); value = value[1:] {
		// Because the lengths are equal, case folding stays within ASCII: every other letter that
		// folds to an ASCII letter takes more than one byte.
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
