package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// Check reads a robots.txt for its author and returns what is wrong with it or
// not what it seems, in the order of the file (LINT-02 to LINT-08). The whole
// body is looked at, also what lies beyond the limits of crawlers. It never
// fails; rules are compared with each other for the first hundred agents and
// five thousand rules only, so that its time is bounded.
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

// A linter looks at one file.
type linter struct {
	opts               robots.ParseOptions
	text               string // without a BOM
	bomBytes           int    // the length of the BOM, in bytes
	lines              []lintLine
	isHTML             bool // a page in place of a robots.txt
	findings           []Finding
	countByRequirement map[string]int // findings, by requirement
}

// A lintLine is a line of the file, whether or not it means something. The
// fields of all dialects count: name says which it is, in lower case.
type lintLine struct {
	number    int
	text      string // as written, without outer space
	fieldName string // before the colon
	value     string // after it, without comment and outer space
	hasColon  bool
	isComment bool // the line has a comment and nothing else
}

func (s *lintLine) isEmpty() bool     { return s.text == "" }
func (s *lintLine) isUserAgent() bool { return s.fieldName == "user-agent" }
func (s *lintLine) isRule() bool      { return s.fieldName == "allow" || s.fieldName == "disallow" }

// parseLines cuts the text into lines.
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

// usesYandexDialect reports whether the file is looked at as Yandex reads it.
func (l *linter) usesYandexDialect() bool { return l.opts.Dialect == robots.Yandex }

// maxFindingsPerRequirement is how many findings of one requirement are told one by one.
const maxFindingsPerRequirement = 100

// addFinding adds a finding. Of many that are alike the last stands for the rest.
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

// A Finding is something in a robots.txt that its author should know.
type Finding struct {
	Line     int      `json:"line,omitempty"` // counted from 1; 0 if it is about the whole file
	Severity Severity `json:"severity"`
	Code     string   `json:"requirement"`      // what kind of finding it is, by a name that stays, as in "LINT-05"
	Message  string   `json:"message"`          // what is there
	Effect   string   `json:"effect"`           // what a crawler does with it
	Advice   string   `json:"advice,omitempty"` // what to do about it
}

// A Severity says how much a finding matters. More is worse.
type Severity uint8

// The severities.
const (
	Hint    Severity = iota // works here, but not everywhere, or says nothing
	Warning                 // works, though hardly as the author thinks
	Error                   // does not work, or does the opposite
)

// String returns "hint", "warning" or "error".
func (s Severity) String() string {
	names := [...]string{"hint", "warning", "error"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("Severity(%d)", uint8(s))
}

// MarshalText writes the severity as String does.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
