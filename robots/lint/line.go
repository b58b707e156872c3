package lint

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

const effectIgnored = "crawlers ignore the line"

// lintLines looks at each line on its own (LINT-05).
func (l *linter) lintLines() {
	for i := range l.lines {
		s := &l.lines[i]
		switch {
		case s.isEmpty(), s.isComment:
		case !s.hasColon:
			l.lintMissingColon(s)
		case s.isUserAgent():
			l.lintUserAgent(s)
		case s.isRule():
			l.lintRulePath(s)
		case s.fieldName == "sitemap":
			l.lintSitemap(s)
		case s.fieldName == "crawl-delay":
			l.lintCrawlDelay(s)
		case s.fieldName == "host":
			if problem := hostDirectiveProblem(s.value); problem != "" {
				l.addFinding(s.number, Error, "HOST-10", fmt.Sprintf("incorrect Host %q: %s", s.value, problem), effectIgnored,
					"one host name, with https:// before it if it has no other scheme and :port after it if need be")
			}
		case s.fieldName == "clean-param":
			if problem := cleanParamProblem(s.value); problem != "" {
				l.addFinding(s.number, Error, "CLEAN-10", fmt.Sprintf("incorrect Clean-param: %s", problem), effectIgnored,
					"parameters joined by &, and a path after a space if need be, as in \"sid&sort /forum/*.php\"")
			}
		case s.fieldName == "content-usage", s.fieldName == "content-signal":
			l.lintUsagePreferences(s)
		case s.fieldName == "request-rate":
			if _, ok := syntax.ParseRequestRate(s.value); !ok {
				l.addFinding(s.number, Error, "SYN-15", fmt.Sprintf("request-rate %q is not a rate", truncateForMessage(s.value)), effectIgnored,
					"documents/time, and hours in UTC if need be, as in 1/10, 1/5m or \"1/5m 0800-1300\"")
			}
		case s.fieldName == "visit-time":
			if _, ok := syntax.ParseTimeOfDayRange(s.value); !ok {
				l.addFinding(s.number, Error, "SYN-15", fmt.Sprintf("visit-time %q is no range of hours", truncateForMessage(s.value)), effectIgnored,
					"hours in UTC, as in 0600-0845")
			}
		default:
			l.lintUnknownField(s)
		}
	}
}

// lintMissingColon looks at a line without one.
func (l *linter) lintMissingColon(s *lintLine) {
	if l.isHTML {
		return // one finding says it all
	}
	word, rest, _ := strings.Cut(strings.ReplaceAll(s.text, "\t", " "), " ")
	if near := nearestField(strings.TrimRight(strings.ToLower(word), ";=,.")); near != "" {
		l.addFinding(s.number, Error, "SYN-01", fmt.Sprintf("no colon in %q", truncateForMessage(s.text)), effectIgnored,
			fmt.Sprintf("probably \"%s: %s\"", near, truncateForMessage(strings.TrimLeft(rest, " ;="))))
		return
	}
	l.addFinding(s.number, Warning, "SYN-01", fmt.Sprintf("no colon in %q", truncateForMessage(s.text)), effectIgnored, "begin a comment with #")
}

// lintUnknownField looks at a field that crawlers do not know.
func (l *linter) lintUnknownField(s *lintLine) {
	if l.isHTML {
		return
	}
	if near := nearestField(s.fieldName); near != "" {
		l.addFinding(s.number, Error, "SYN-08", fmt.Sprintf("unknown field %q", truncateForMessage(s.fieldName)), effectIgnored+", some guess what is meant",
			fmt.Sprintf("probably %q", near))
		return
	}
	advice := ""
	if s.fieldName == "noindex" {
		advice = "to keep pages out of search use <meta name=robots> or X-Robots-Tag, and do not disallow them"
	}
	l.addFinding(s.number, Hint, "SYN-15", fmt.Sprintf("unknown field %q", truncateForMessage(s.fieldName)), effectIgnored, advice)
}

// lintUserAgent looks at the value of a user-agent line.
func (l *linter) lintUserAgent(s *lintLine) {
	token := syntax.LeadingToken(s.value)
	switch {
	case s.value == "*", token != "" && token == s.value:
	case s.value == "":
		l.addFinding(s.number, Error, "SYN-19", "user-agent without a name", "it names no crawler", "\"*\" means all crawlers")
	case token == "":
		l.addFinding(s.number, Error, "AGENT-02", fmt.Sprintf("user-agent %q begins with no name", truncateForMessage(s.value)), "it names no crawler",
			"\"*\" alone means all crawlers; a name has letters, digits, _ and - only")
	default:
		l.addFinding(s.number, Hint, "AGENT-02", fmt.Sprintf("user-agent %q is more than a name", truncateForMessage(s.value)),
			fmt.Sprintf("Google reads it as %q", token), "a line for each name")
	}
}

// lintRulePath looks at the path of a rule.
func (l *linter) lintRulePath(s *lintLine) {
	switch {
	case s.value == "":
		l.lintEmptyRule(s)
		return
	case !syntax.BeginsWithSlashOrStar(s.value):
		advice := fmt.Sprintf("probably \"%s: /%s\"", s.fieldName, truncateForMessage(strings.TrimLeft(s.value, "./")))
		what := "the path does not begin with /"
		if u, err := decorum.ParseURL(s.value); err == nil {
			what, advice = "the path is an absolute URL", fmt.Sprintf("probably \"%s: %s\"", s.fieldName, truncateForMessage(u.PathAndQuery()))
		}
		l.addFinding(s.number, Error, "SYN-10", fmt.Sprintf("%s: %q", what, truncateForMessage(s.value)), "the rule has no effect", advice)
		return
	case strings.ContainsAny(s.value, syntax.BlankChars):
		l.addFinding(s.number, Warning, "SYN-01", fmt.Sprintf("white space inside the path %q", truncateForMessage(s.value)),
			"it is part of the path, as %20", "one path a line; a comment begins with #")
	}
	if before, _, ok := strings.Cut(s.text, "#"); ok && strings.TrimRight(before, syntax.BlankChars) == before {
		l.addFinding(s.number, Warning, "SYN-04", "# right after the path", "it begins a comment: what follows is not part of the path",
			"write %23 for the character, and a space before a comment")
	}
}

// lintEmptyRule looks at a rule without a path, which the dialects read in opposite
// ways (LINT-04; C-05, C-06).
func (l *linter) lintEmptyRule(s *lintLine) {
	if s.fieldName == "disallow" {
		l.addFinding(s.number, Hint, "LINT-04", "disallow without a path", "Google ignores it, Yandex reads \"Allow: /\"", "\"Allow: /\" says it to all")
		return
	}
	l.addFinding(s.number, Warning, "LINT-04", "allow without a path", "Google ignores it, Yandex reads \"Disallow: /\" and stays away",
		"probably \"Allow: /\"")
}

// lintSitemap looks for a complete URL (SMAP-02).
func (l *linter) lintSitemap(s *lintLine) {
	if _, ok := syntax.ParseAbsoluteURL(s.value); !ok {
		l.addFinding(s.number, Error, "SMAP-02", fmt.Sprintf("sitemap %q is not a complete URL", truncateForMessage(s.value)), effectIgnored,
			"with protocol and host, as in https://example.com/sitemap.xml")
	}
}

// lintCrawlDelay looks for a number of seconds (DELAY-11).
func (l *linter) lintCrawlDelay(s *lintLine) {
	if _, ok := syntax.ParseCrawlDelay(s.value); ok {
		return
	}
	advice := "a number of seconds, as in 2 or 0.5"
	if point := strings.Replace(s.value, ",", ".", 1); point != s.value {
		if _, ok := syntax.ParseCrawlDelay(point); ok {
			advice = "probably " + point
		}
	}
	l.addFinding(s.number, Error, "DELAY-11", fmt.Sprintf("crawl-delay %q is not a number", truncateForMessage(s.value)), effectIgnored, advice)
}

// lintUsagePreferences looks for preferences that say nothing.
func (l *linter) lintUsagePreferences(s *lintLine) {
	_, list := syntax.SplitPathAndPreferences(s.value)
	hasPreference := slices.ContainsFunc(syntax.ParsePreferences(list), func(p syntax.Preference) bool { return p.Value != syntax.PreferenceUnset })
	if !hasPreference {
		l.addFinding(s.number, Warning, "LINT-05", fmt.Sprintf("%s states no preference", s.fieldName), "whoever uses the content reads nothing into it",
			"a category and y or n, or yes or no, as in \"train-ai=n\"; a path, if any, comes first")
	}
}

// truncateForMessage shortens s to what fits in a message, without what a terminal would act on.
func truncateForMessage(s string) string {
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

// separatorRemover takes out of a name what makes no difference to nearestField.
var separatorRemover = strings.NewReplacer("-", "", "_", "", " ", "", "\t", "", "\ufeff", "")

// nearestField returns the field that name probably is a misspelling of, empty
// if it is like none. Space, "_" and "-" make no difference, nor do two letters
// in a long name or one in a short.
func nearestField(name string) string {
	name = separatorRemover.Replace(name)
	for _, f := range syntax.FieldNames {
		plain := separatorRemover.Replace(f)
		if editDistance(name, plain) <= len(plain)/4 {
			return f
		}
	}
	return ""
}

// editDistance returns how many letters must be put in, taken out or changed to
// make a of b; 100 if the lengths tell that it is many.
func editDistance(a, b string) int {
	if len(a) > len(b)+2 || len(b) > len(a)+2 {
		return 100
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
