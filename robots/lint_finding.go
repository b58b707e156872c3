package robots

import "fmt"

// A LintFinding is something in a robots.txt that its author should know.
type LintFinding struct {
	Line          int          `json:"line,omitempty"` // counted from 1; 0 if it is about the whole file
	Severity      LintSeverity `json:"severity"`
	RequirementID string       `json:"requirement"`      // what kind of finding it is, by a name that stays, as in "LINT-05"
	Message       string       `json:"message"`          // what is there
	Effect        string       `json:"effect"`           // what a crawler does with it
	Advice        string       `json:"advice,omitempty"` // what to do about it
}

// A LintSeverity says how much a finding matters. More is worse.
type LintSeverity uint8

// The severities.
const (
	LintHint    LintSeverity = iota // works here, but not everywhere, or says nothing
	LintWarning                     // works, though hardly as the author thinks
	LintError                       // does not work, or does the opposite
)

// String returns "hint", "warning" or "error".
func (s LintSeverity) String() string {
	switch s {
	case LintHint:
		return "hint"
	case LintWarning:
		return "warning"
	case LintError:
		return "error"
	}
	return fmt.Sprintf("Severity(%d)", uint8(s))
}

// MarshalText writes the severity as String does.
func (s LintSeverity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
