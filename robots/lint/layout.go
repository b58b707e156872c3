package lint

import "fmt"

// lintLayout checks blank lines, which end records for robots of the 1994 standard, and the positions
// of Host and Crawl-delay (LINT-02, LINT-03). It reports each problem once, at its first line.
func (l *linter) lintLayout() {
	var inside, missing, misplaced repeatedFinding
	var before *lintLine // the last line with a colon
	blanks := 0          // the number of blank lines after before
	sawAgentLine := false
	hasRule := false // the group has a rule
	for i := range l.lines {
		s := &l.lines[i]
		switch {
		case s.isEmpty():
			blanks++
			continue
		case !s.hasColon:
			continue
		case s.isUserAgent():
			if before != nil && !before.isUserAgent() && blanks == 0 {
				missing.addOccurrence(s)
			}
			if before == nil || !before.isUserAgent() {
				hasRule = false
			}
			sawAgentLine = true
		case s.isRule():
			if blanks > 0 && sawAgentLine {
				inside.addOccurrence(s)
			}
			hasRule = true
		case s.fieldName == "host", s.fieldName == "crawl-delay":
			if !hasRule || blanks > 0 {
				misplaced.addOccurrence(s)
			}
		}
		before, blanks = s, 0
	}
	// Yandex follows the 1994 format, so the problems matter more there.
	severity := Hint
	if l.usesYandexDialect() {
		severity = Warning
	}
	inside.addFindingIfAny(l, severity, "LINT-02", "a blank line inside a group",
		"most crawlers ignore it; for robots of the 1994 standard it ends the group",
		"put blank lines only between groups")
	missing.addFindingIfAny(l, severity, "LINT-02", "no blank line before a new group",
		"robots of the 1994 standard ignore this user-agent line",
		"put a blank line before it")
	misplaced.addFindingIfAny(l, severity, "LINT-03", "host or crawl-delay not right after the rules of a group",
		"Yandex and this crawler find it; stricter robots may not",
		"put it after the last rule of a group")
}

// A repeatedFinding counts the lines with one problem; only the first is reported.
type repeatedFinding struct {
	firstLine *lintLine
	count     int
}

// addOccurrence counts a line with the problem.
func (t *repeatedFinding) addOccurrence(s *lintLine) {
	if t.firstLine == nil {
		t.firstLine = s
	}
	t.count++
}

// addFindingIfAny adds a finding to l if there is a line with the problem. The message says how many
// more lines have it.
func (t *repeatedFinding) addFindingIfAny(l *linter, s Severity, requirement, message, effect, advice string) {
	switch t.count {
	case 0:
		return
	case 1:
	case 2:
		message += ", and once more below"
	default:
		message += fmt.Sprintf(", and %d times more below", t.count-1)
	}
	l.addFinding(t.firstLine.number, s, requirement, message, effect, advice)
}
