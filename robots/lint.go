package robots

import (
	"cmp"
	"slices"
	"strings"
)

// Lint reads a robots.txt for its author and returns what is wrong with it or
// not what it seems, in the order of the file (LINT-02 to LINT-08). The whole
// body is looked at, also what lies beyond the limits of crawlers. It never
// fails; rules are compared with each other for the first hundred agents and
// five thousand rules only, so that its time is bounded.
func Lint(body []byte, o Options) []Finding {
	text := strings.TrimPrefix(string(body), "\ufeff")
	l := linter{o: o, text: text, skew: len(body) - len(text), said: map[string]int{}}
	if l.lintEncoding() {
		l.read()
		l.lintSize()
		l.lintLines()
		l.lintGroups()
		l.lintLayout()
		l.lintRules(body)
	}
	slices.SortStableFunc(l.found, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return l.found
}

// A linter looks at one file.
type linter struct {
	o     Options
	text  string // without a BOM
	skew  int    // the length of the BOM, in bytes
	lines []source
	html  bool // a page in place of a robots.txt
	found []Finding
	said  map[string]int // findings, by requirement
}

// A source is a line of the file, whether or not it means something. The
// fields of all dialects count: name says which it is, in lower case.
type source struct {
	number  int
	text    string // as written, without outer space
	name    string // before the colon
	value   string // after it, without comment and outer space
	colon   bool
	comment bool // the line has a comment and nothing else
}

func (s *source) empty() bool  { return s.text == "" }
func (s *source) agent() bool  { return s.name == "user-agent" }
func (s *source) isRule() bool { return s.name == "allow" || s.name == "disallow" }

// read cuts the text into lines.
func (l *linter) read() {
	for rest := l.text; rest != ""; {
		var raw string
		raw, rest = cutLine(rest)
		s := source{number: len(l.lines) + 1, text: strings.Trim(raw, blank)}
		content, _, _ := strings.Cut(s.text, "#")
		s.comment = s.text != "" && content == ""
		var name string
		name, s.value, s.colon = strings.Cut(content, ":")
		if s.colon {
			s.name = strings.ToLower(strings.Trim(name, blank))
		}
		s.value = strings.Trim(s.value, blank)
		l.lines = append(l.lines, s)
	}
}

// yandex reports whether the file is looked at as Yandex reads it.
func (l *linter) yandex() bool { return l.o.Dialect == Yandex }

// maxFindingsPerRequirement is how many findings of one requirement are told one by one.
const maxFindingsPerRequirement = 100

// say adds a finding. Of many that are alike the last stands for the rest.
func (l *linter) say(line int, s Severity, requirement, message, effect, advice string) {
	switch n := l.said[requirement]; {
	case n > maxFindingsPerRequirement:
		return
	case n == maxFindingsPerRequirement:
		message, effect, advice = "more of this kind from here on", "as above", "see those above"
	}
	l.said[requirement]++
	l.found = append(l.found, Finding{line, s, requirement, message, effect, advice})
}
