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

// effectIgnored is the effect of most invalid lines.
const effectIgnored = "crawlers ignore the line"

// lintLines checks each line separately (LINT-05).
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
				l.addFinding(s.number, Error, "HOST-10",
					fmt.Sprintf("incorrect Host %q: %s", s.value, problem), effectIgnored,
					"one host name, with https:// before it if the site has only https, and :port after it if needed")
			}
		case s.fieldName == "clean-param":
			if problem := cleanParamProblem(s.value); problem != "" {
				l.addFinding(s.number, Error, "CLEAN-10",
					fmt.Sprintf("incorrect Clean-param: %s", problem), effectIgnored,
					"parameters joined by &, and a path after a space if needed, as in \"sid&sort /forum/*.php\"")
			}
		case s.fieldName == "content-usage", s.fieldName == "content-signal":
			l.lintUsagePreferences(s)
		case s.fieldName == "request-rate":
			if _, ok := syntax.ParseRequestRate(s.value); !ok {
				l.addFinding(s.number, Error, "SYN-15",
					fmt.Sprintf("request-rate %q is not a rate", truncateForMessage(s.value)), effectIgnored,
					"documents/time, and hours in UTC if needed, as in 1/10, 1/5m or \"1/5m 0800-1300\"")
			}
		case s.fieldName == "visit-time":
			if _, ok := syntax.ParseTimeOfDayRange(s.value); !ok {
				l.addFinding(s.number, Error, "SYN-15",
					fmt.Sprintf("visit-time %q is not a range of hours", truncateForMessage(s.value)), effectIgnored,
					"hours in UTC, as in 0600-0845")
			}
		default:
			l.lintUnknownField(s)
		}
	}
}

// lintMissingColon reports a line without a colon, and guesses the field that was meant.
func (l *linter) lintMissingColon(s *lintLine) {
	if l.isHTML {
		return // lintEncodingAndHTML has reported the whole file
	}
	word, rest, _ := strings.Cut(strings.ReplaceAll(s.text, "\t", " "), " ")
	if near := nearestField(strings.TrimRight(strings.ToLower(word), ";=,.")); near != "" {
		l.addFinding(s.number, Error, "SYN-01", fmt.Sprintf("no colon in %q", truncateForMessage(s.text)),
			effectIgnored,
			fmt.Sprintf("probably \"%s: %s\"", near, truncateForMessage(strings.TrimLeft(rest, " ;="))))
		return
	}
	l.addFinding(s.number, Warning, "SYN-01", fmt.Sprintf("no colon in %q", truncateForMessage(s.text)),
		effectIgnored, "begin a comment with #")
}

// lintUnknownField reports a field that crawlers do not know, and guesses the field that was meant.
func (l *linter) lintUnknownField(s *lintLine) {
	if l.isHTML {
		return
	}
	if near := nearestField(s.fieldName); near != "" {
		l.addFinding(s.number, Error, "SYN-08", fmt.Sprintf("unknown field %q", truncateForMessage(s.fieldName)),
			effectIgnored+", some guess what is meant",
			fmt.Sprintf("probably %q", near))
		return
	}
	advice := ""
	if s.fieldName == "noindex" {
		advice = "to keep pages out of search use <meta name=robots> or X-Robots-Tag, and do not disallow them"
	}
	l.addFinding(s.number, Hint, "SYN-15", fmt.Sprintf("unknown field %q", truncateForMessage(s.fieldName)),
		effectIgnored, advice)
}

// lintUserAgent checks the value of a user-agent line.
func (l *linter) lintUserAgent(s *lintLine) {
	token := syntax.LeadingToken(s.value)
	switch {
	case s.value == "*", token != "" && token == s.value:
	case s.value == "":
		l.addFinding(s.number, Error, "SYN-19", "user-agent without a name", "it names no crawler",
			"\"*\" means all crawlers")
	case l.usesYandexDialect() && token == "" && strings.ContainsAny(s.value, "*"+letters):
		l.addFinding(s.number, Hint, "AGENT-02", fmt.Sprintf("user-agent %q does not begin with a name",
			truncateForMessage(s.value)), "Yandex looks for names and \"*\" anywhere in it; Google finds no name",
			"write only the name that the crawler documents")
	case strings.HasPrefix(s.value, "* "), strings.HasPrefix(s.value, "*\t"):
		l.addFinding(s.number, Error, "AGENT-02", fmt.Sprintf("user-agent %q is more than \"*\"",
			truncateForMessage(s.value)), "Google's parser reads it as \"*\"; to other crawlers it names no crawler",
			"\"*\" alone means all crawlers; a comment begins with #")
	case token == "":
		l.addFinding(s.number, Error, "AGENT-02", fmt.Sprintf("user-agent %q does not begin with a name",
			truncateForMessage(s.value)), "it names no crawler",
			"\"*\" alone means all crawlers; a name has letters, digits, _ and - only")
	default:
		l.addFinding(s.number, Hint, "AGENT-02",
			fmt.Sprintf("user-agent %q is more than a name", truncateForMessage(s.value)),
			effectOfToken(truncateForMessage(token)), "write only the name that the crawler documents")
	}
}

// effectOfToken says how crawlers read a user-agent value with more text after token. In Google's
// parser, as in RFC 9309, a name ends at the first digit; in the Google dialect it does not (AGENT-02).
func effectOfToken(token string) string {
	name := token
	if i := strings.IndexAny(token, syntax.Digits); i >= 0 {
		name = token[:i]
	}
	switch name {
	case token:
		return fmt.Sprintf("Google reads it as %q", token)
	case "":
		return fmt.Sprintf("crawlers that accept digits in a name read it as %q; Google's parser finds no name", token)
	}
	return fmt.Sprintf("Google's parser reads it as %q, crawlers that accept digits in a name as %q", name, token)
}

// lintRulePath checks the path of a rule.
func (l *linter) lintRulePath(s *lintLine) {
	// A rule without an effect gets one finding only.
	switch {
	case s.value == "":
		l.lintEmptyRule(s)
		return
	case !syntax.BeginsWithSlashOrStar(s.value):
		advice := fmt.Sprintf("probably \"%s: /%s\"", s.fieldName, truncateForMessage(strings.TrimLeft(s.value, "./")))
		what := "the path does not begin with /"
		if u, err := decorum.ParseURL(s.value); err == nil {
			what, advice = "the path is an absolute URL",
				fmt.Sprintf("probably \"%s: %s\"", s.fieldName, truncateForMessage(u.PathAndQuery()))
		}
		l.addFinding(s.number, Error, "SYN-10", fmt.Sprintf("%s: %q", what, truncateForMessage(s.value)),
			"the rule has no effect", advice)
		return
	case strings.ContainsAny(s.value, syntax.BlankChars):
		l.addFinding(s.number, Warning, "SYN-01",
			fmt.Sprintf("white space inside the path %q", truncateForMessage(s.value)),
			"it is part of the path, as %20", "one path a line; a comment begins with #")
	}
	if before, _, ok := strings.Cut(s.text, "#"); ok && strings.TrimRight(before, syntax.BlankChars) == before {
		l.addFinding(s.number, Warning, "SYN-04", "# right after the path",
			"it begins a comment: what follows is not part of the path",
			"write %23 for the character, and a space before a comment")
	}
}

// lintEmptyRule reports a rule without a path. The dialects give it opposite meanings (LINT-04; C-05,
// C-06).
func (l *linter) lintEmptyRule(s *lintLine) {
	if s.fieldName == "disallow" {
		l.addFinding(s.number, Hint, "LINT-04", "disallow without a path",
			"Google ignores it, Yandex reads \"Allow: /\"", "\"Allow: /\" means the same to all crawlers")
		return
	}
	l.addFinding(s.number, Warning, "LINT-04", "allow without a path",
		"Google ignores it, Yandex reads \"Disallow: /\" and stays away",
		"probably \"Allow: /\"")
}

// lintSitemap reports a value that is not an absolute URL (SMAP-02).
func (l *linter) lintSitemap(s *lintLine) {
	if _, ok := syntax.ParseAbsoluteURL(s.value); !ok {
		l.addFinding(s.number, Error, "SMAP-02",
			fmt.Sprintf("sitemap %q is not a complete URL", truncateForMessage(s.value)), effectIgnored,
			"with protocol and host, as in https://example.com/sitemap.xml")
	}
}

// lintCrawlDelay reports a value that is not a number of seconds (DELAY-11).
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
	l.addFinding(s.number, Error, "DELAY-11",
		fmt.Sprintf("crawl-delay %q is not a number", truncateForMessage(s.value)), effectIgnored, advice)
}

// lintUsagePreferences reports a Content-Usage or Content-Signal line without a valid preference.
func (l *linter) lintUsagePreferences(s *lintLine) {
	_, list := syntax.SplitPathAndPreferences(s.value)
	hasPreference := slices.ContainsFunc(syntax.ParsePreferences(list), func(p syntax.Preference) bool {
		return p.Value != syntax.PreferenceUnset
	})
	if !hasPreference {
		l.addFinding(s.number, Warning, "LINT-05", fmt.Sprintf("%s states no preference", s.fieldName),
			"crawlers cannot tell what it permits",
			"a category and y or n, or yes or no, as in \"train-ai=n\"; a path, if any, comes first")
	}
}

// truncateForMessage returns at most 60 bytes of s for a message, without control characters, on which
// a terminal could act.
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

// separatorRemover removes the characters of a name that nearestField ignores.
var separatorRemover = strings.NewReplacer("-", "", "_", "", " ", "", "\t", "", "\ufeff", "")

// nearestField returns the field that name probably misspells, or "" if name resembles no field. It
// ignores blanks, "_" and "-", and accepts one wrong letter for every four letters of the field.
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

// editDistance returns how many letters must be inserted, removed or changed to turn b into a
// (Levenshtein distance). It returns 100 if the lengths differ by more than two.
func editDistance(a, b string) int {
	if len(a) > len(b)+2 || len(b) > len(a)+2 {
		return 100
	}
	// row[j] is the distance between the letters of a so far and b[:j].
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
