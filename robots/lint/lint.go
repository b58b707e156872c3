package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// Check returns what is wrong or misleading in a robots.txt, in the order of the file (LINT-02 to
// LINT-08). It reads the whole body, including the part beyond the limits of crawlers. It never
// fails. To bound its time, it compares rules with each other only for the first 100 agents and 5000
// rules.
func Check(body []byte, o robots.ParseOptions) []Finding {
	text := strings.TrimPrefix(string(body), "\ufeff")
	l := linter{opts: o, text: text, bomBytes: len(body) - len(text), countByRequirement: map[string]int{}}
	if l.lintEncodingAndHTML() {
		l.parseLines()
		l.lintSize()
		l.lintLines()
		l.lintGroups()
		l.lintLayout()
		l.lintRules(body)
	}
	slices.SortStableFunc(l.findings, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return l.findings
}

// A linter checks one file.
type linter struct {
	opts               robots.ParseOptions
	text               string // the body without its byte order mark
	bomBytes           int    // the length of the byte order mark, in bytes
	lines              []lintLine
	isHTML             bool // the file is an HTML page
	findings           []Finding
	countByRequirement map[string]int // the number of findings, by Finding.Code
}

// A lintLine is a line of the file, whether or not crawlers know its field.
type lintLine struct {
	number    int    // from 1
	text      string // as written, without surrounding blanks
	fieldName string // the text before the colon, in lower case
	value     string // the text after the colon, without comment and surrounding blanks
	hasColon  bool
	isComment bool // the line consists of a comment
}

func (s *lintLine) isEmpty() bool     { return s.text == "" }
func (s *lintLine) isUserAgent() bool { return s.fieldName == "user-agent" }
func (s *lintLine) isRule() bool      { return s.fieldName == "allow" || s.fieldName == "disallow" }

// parseLines splits the text into lines.
func (l *linter) parseLines() {
	for rest := l.text; rest != ""; {
		var raw string
		raw, rest = syntax.CutLine(rest)
		s := lintLine{number: len(l.lines) + 1, text: strings.Trim(raw, syntax.BlankChars)}
		content, _, _ := strings.Cut(s.text, "#")
		s.isComment = s.text != "" && content == ""
		var name string
		name, s.value, s.hasColon = strings.Cut(content, ":")
		if s.hasColon {
			s.fieldName = strings.ToLower(strings.Trim(name, syntax.BlankChars))
		}
		s.value = strings.Trim(s.value, syntax.BlankChars)
		l.lines = append(l.lines, s)
	}
}

// usesYandexDialect reports whether the file is checked for the Yandex dialect.
func (l *linter) usesYandexDialect() bool { return l.opts.Dialect == robots.Yandex }

// maxFindingsPerRequirement is how many findings about one requirement are reported separately.
const maxFindingsPerRequirement = 100

// addFinding adds a finding. After maxFindingsPerRequirement findings about one requirement, it adds
// one that represents all others, and ignores the rest.
func (l *linter) addFinding(line int, s Severity, requirement, message, effect, advice string) {
	switch n := l.countByRequirement[requirement]; {
	case n > maxFindingsPerRequirement:
		return
	case n == maxFindingsPerRequirement:
		message, effect, advice = "more of this kind from here on", "as above", "see those above"
	}
	l.countByRequirement[requirement]++
	l.findings = append(l.findings, Finding{line, s, requirement, message, effect, advice})
}

// A Finding is a problem in a robots.txt, or something that its author may not expect.
type Finding struct {
	Line     int      `json:"line,omitempty"` // the line number, from 1; 0 if the finding is about the whole file
	Severity Severity `json:"severity"`
	Code     string   `json:"requirement"`      // identifies the kind of finding by its requirement, as in "LINT-05"
	Message  string   `json:"message"`          // what the file contains
	Effect   string   `json:"effect"`           // what crawlers do with it
	Advice   string   `json:"advice,omitempty"` // how to mend it
}

// PageURL is the address of docs/robots-lint.md, which has a section for each code.
const PageURL = "https://" + decorum.ModulePath + "/blob/main/docs/robots-lint.md"

// URL returns the address of the section about findings of this kind.
func (f *Finding) URL() string { return PageURL + "#" + strings.ToLower(f.Code) }

// A Severity says how much a finding matters. Higher values are worse.
type Severity uint8

// The severities.
const (
	Hint    Severity = iota // it works here but not everywhere, or has no effect
	Warning                 // it works, but probably not as the author expects
	Error                   // it does not work, or does the opposite
)

var severityNames = [...]string{Hint: "hint", Warning: "warning", Error: "error"}

// ParseSeverity returns the severity called name: hint, warning or error. For other names it returns
// an error that lists these.
func ParseSeverity(name string) (Severity, error) {
	if i := slices.Index(severityNames[:], name); i >= 0 {
		return Severity(i), nil
	}
	return Hint, fmt.Errorf("%q is not one of hint, warning, error", name)
}

// String returns "hint", "warning" or "error".
func (s Severity) String() string {
	if int(s) < len(severityNames) {
		return severityNames[s]
	}
	return fmt.Sprintf("Severity(%d)", uint8(s))
}

// MarshalText returns what String returns. The error is always nil.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
