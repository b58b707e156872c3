package robots

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum"
)

const ignored = "crawlers ignore the line"

// lintLines looks at each line on its own (LINT-05).
func (l *linter) lintLines() {
	for i := range l.lines {
		s := &l.lines[i]
		switch {
		case s.empty(), s.comment:
		case !s.colon:
			l.lintNoColon(s)
		case s.agent():
			l.lintAgent(s)
		case s.isRule():
			l.lintPath(s)
		case s.name == "sitemap":
			l.lintSitemap(s)
		case s.name == "crawl-delay":
			l.lintDelay(s)
		case s.name == "host":
			if fault := hostFault(s.value); fault != "" {
				l.say(s.number, LintError, "HOST-10", fmt.Sprintf("incorrect Host %q: %s", s.value, fault), ignored,
					"one host name, with https:// before it if it has no other scheme and :port after it if need be")
			}
		case s.name == "clean-param":
			if fault := cleanFault(s.value); fault != "" {
				l.say(s.number, LintError, "CLEAN-10", fmt.Sprintf("incorrect Clean-param: %s", fault), ignored,
					"parameters joined by &, and a path after a space if need be, as in \"sid&sort /forum/*.php\"")
			}
		case s.name == "content-usage", s.name == "content-signal":
			l.lintSignal(s)
		case s.name == "request-rate":
			if _, ok := parseRate(s.value); !ok {
				l.say(s.number, LintError, "SYN-15", fmt.Sprintf("request-rate %q is not a rate", clip(s.value)), ignored,
					"documents/time, and hours in UTC if need be, as in 1/10, 1/5m or \"1/5m 0800-1300\"")
			}
		case s.name == "visit-time":
			if _, ok := parseDaytime(s.value); !ok {
				l.say(s.number, LintError, "SYN-15", fmt.Sprintf("visit-time %q is no range of hours", clip(s.value)), ignored,
					"hours in UTC, as in 0600-0845")
			}
		default:
			l.lintUnknown(s)
		}
	}
}

// lintNoColon looks at a line without one.
func (l *linter) lintNoColon(s *source) {
	if l.html {
		return // one finding says it all
	}
	word, rest, _ := strings.Cut(strings.ReplaceAll(s.text, "\t", " "), " ")
	if near := nearestField(strings.TrimRight(strings.ToLower(word), ";=,.")); near != "" {
		l.say(s.number, LintError, "SYN-01", fmt.Sprintf("no colon in %q", clip(s.text)), ignored,
			fmt.Sprintf("probably \"%s: %s\"", near, clip(strings.TrimLeft(rest, " ;="))))
		return
	}
	l.say(s.number, LintWarning, "SYN-01", fmt.Sprintf("no colon in %q", clip(s.text)), ignored, "begin a comment with #")
}

// lintUnknown looks at a field that crawlers do not know.
func (l *linter) lintUnknown(s *source) {
	if l.html {
		return
	}
	if near := nearestField(s.name); near != "" {
		l.say(s.number, LintError, "SYN-08", fmt.Sprintf("unknown field %q", clip(s.name)), ignored+", some guess what is meant",
			fmt.Sprintf("probably %q", near))
		return
	}
	advice := ""
	if s.name == "noindex" {
		advice = "to keep pages out of search use <meta name=robots> or X-Robots-Tag, and do not disallow them"
	}
	l.say(s.number, LintHint, "SYN-15", fmt.Sprintf("unknown field %q", clip(s.name)), ignored, advice)
}

// lintAgent looks at the value of a user-agent line.
func (l *linter) lintAgent(s *source) {
	token := leadingToken(s.value)
	switch {
	case s.value == "*", token != "" && token == s.value:
	case s.value == "":
		l.say(s.number, LintError, "SYN-19", "user-agent without a name", "it names no crawler", "\"*\" means all crawlers")
	case token == "":
		l.say(s.number, LintError, "AGENT-02", fmt.Sprintf("user-agent %q begins with no name", clip(s.value)), "it names no crawler",
			"\"*\" alone means all crawlers; a name has letters, digits, _ and - only")
	default:
		l.say(s.number, LintHint, "AGENT-02", fmt.Sprintf("user-agent %q is more than a name", clip(s.value)),
			fmt.Sprintf("Google reads it as %q", token), "a line for each name")
	}
}

// lintPath looks at the path of a rule.
func (l *linter) lintPath(s *source) {
	switch {
	case s.value == "":
		l.lintVoid(s)
		return
	case !validPath(s.value):
		advice := fmt.Sprintf("probably \"%s: /%s\"", s.name, clip(strings.TrimLeft(s.value, "./")))
		what := "the path does not begin with /"
		if u, err := decorum.ParseURL(s.value); err == nil {
			what, advice = "the path is an absolute URL", fmt.Sprintf("probably \"%s: %s\"", s.name, clip(u.Path()))
		}
		l.say(s.number, LintError, "SYN-10", fmt.Sprintf("%s: %q", what, clip(s.value)), "the rule has no effect", advice)
		return
	case strings.ContainsAny(s.value, blank):
		l.say(s.number, LintWarning, "SYN-01", fmt.Sprintf("white space inside the path %q", clip(s.value)),
			"it is part of the path, as %20", "one path a line; a comment begins with #")
	}
	if before, _, ok := strings.Cut(s.text, "#"); ok && strings.TrimRight(before, blank) == before {
		l.say(s.number, LintWarning, "SYN-04", "# right after the path", "it begins a comment: what follows is not part of the path",
			"write %23 for the character, and a space before a comment")
	}
}

// lintVoid looks at a rule without a path, which the dialects read in opposite
// ways (LINT-04; C-05, C-06).
func (l *linter) lintVoid(s *source) {
	if s.name == "disallow" {
		l.say(s.number, LintHint, "LINT-04", "disallow without a path", "Google ignores it, Yandex reads \"Allow: /\"", "\"Allow: /\" says it to all")
		return
	}
	l.say(s.number, LintWarning, "LINT-04", "allow without a path", "Google ignores it, Yandex reads \"Disallow: /\" and stays away",
		"probably \"Allow: /\"")
}

// lintSitemap looks for a complete URL (SMAP-02).
func (l *linter) lintSitemap(s *source) {
	if _, ok := completeURL(s.value); !ok {
		l.say(s.number, LintError, "SMAP-02", fmt.Sprintf("sitemap %q is not a complete URL", clip(s.value)), ignored,
			"with protocol and host, as in https://example.com/sitemap.xml")
	}
}

// lintDelay looks for a number of seconds (DELAY-11).
func (l *linter) lintDelay(s *source) {
	if _, ok := parseDelay(s.value); ok {
		return
	}
	advice := "a number of seconds, as in 2 or 0.5"
	if point := strings.Replace(s.value, ",", ".", 1); point != s.value {
		if _, ok := parseDelay(point); ok {
			advice = "probably " + point
		}
	}
	l.say(s.number, LintError, "DELAY-11", fmt.Sprintf("crawl-delay %q is not a number", clip(s.value)), ignored, advice)
}

// lintSignal looks for preferences that say nothing.
func (l *linter) lintSignal(s *source) {
	_, list := cutPath(s.value)
	stated := slices.ContainsFunc(wishes(list, Signal{}), func(w Signal) bool { return w.Preference != UseUnset })
	if !stated {
		l.say(s.number, LintWarning, "LINT-05", fmt.Sprintf("%s states no preference", s.name), "whoever uses the content reads nothing into it",
			"a category and y or n, or yes or no, as in \"train-ai=n\"; a path, if any, comes first")
	}
}

// clip shortens s to what fits in a message, without what a terminal would act on.
func clip(s string) string {
	const maxBytes = 60
	end := ""
	if len(s) > maxBytes {
		s, end = s[:maxBytes], "…"
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return -1
		}
		return r
	}, s) + end
}
