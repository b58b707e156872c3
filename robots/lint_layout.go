package robots

import "fmt"

// lintLayout looks at blank lines, which end records for robots of the 1994
// standard, and at where Host and Crawl-delay stand (LINT-02, LINT-03). Each
// is reported once, where it first occurs.
func (l *linter) lintLayout() {
	var inside, missing, misplaced tally
	var before *source // the last line that is no comment and not blank
	blanks := 0        // after before
	ruled := false     // the group has a rule
	for i := range l.lines {
		s := &l.lines[i]
		switch {
		case s.empty():
			blanks++
			continue
		case !s.colon:
			continue
		case s.agent():
			if before != nil && !before.agent() && blanks == 0 {
				missing.add(s)
			}
			if before == nil || !before.agent() {
				ruled = false
			}
		case s.isRule():
			if blanks > 0 && before != nil && (before.agent() || before.isRule()) {
				inside.add(s)
			}
			ruled = true
		case s.name == "host", s.name == "crawl-delay":
			if !ruled || blanks > 0 {
				misplaced.add(s)
			}
		}
		before, blanks = s, 0
	}
	severity := LintHint
	if l.yandex() {
		severity = LintWarning
	}
	inside.say(l, severity, "LINT-02", "a blank line inside a group", "the rules are kept; robots of the 1994 standard take it for the end of the group",
		"blank lines only between groups")
	missing.say(l, severity, "LINT-02", "no blank line before a new group", "robots of the 1994 standard ignore this user-agent line",
		"a blank line before it")
	misplaced.say(l, severity, "LINT-03", "host or crawl-delay not right after the rules of a group", "Yandex and this crawler find it; stricter robots may not",
		"put it after the last rule of a group")
}

// A tally counts lines of which only the first is reported.
type tally struct {
	first *source
	count int
}

func (t *tally) add(s *source) {
	if t.first == nil {
		t.first = s
	}
	t.count++
}

func (t *tally) say(l *linter, s Severity, requirement, message, effect, advice string) {
	switch t.count {
	case 0:
		return
	case 1:
	case 2:
		message += ", and once more below"
	default:
		message += fmt.Sprintf(", and %d times more below", t.count-1)
	}
	l.say(t.first.number, s, requirement, message, effect, advice)
}
