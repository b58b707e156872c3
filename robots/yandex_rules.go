package robots

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// YandexLimit is the size in bytes beyond which a robots.txt restricts nobody
// in the Yandex dialect (FMT-10).
const YandexLimit = 32 << 10

// turned returns the line as Yandex reads it: a rule without a path says the
// opposite about everything (SYN-12, SYN-13).
func (l line) turned() line {
	switch {
	case l.value != "":
	case l.field == disallow:
		l.field, l.value = allow, "/"
	case l.field == allow:
		l.field, l.value = disallow, "/"
	}
	return l
}

// rankWithin is rank for Yandex: a value names the agent if it holds one of
// the tokens anywhere, and everybody if it holds "*" (AGENT-09 to AGENT-12).
func (a Agent) rankWithin(value string) rank {
	for i, t := range a.tokens {
		if holdsName(value, t) {
			return rank(i)
		}
	}
	if strings.Contains(value, "*") && !a.namedOnly {
		return rank(len(a.tokens))
	}
	return unnamed
}

// holdsName reports whether value holds the token in any case of letters, and
// not as the beginning of another robot's name: no letter or digit follows it
// (AGENT-13).
func holdsName(value, token string) bool {
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
