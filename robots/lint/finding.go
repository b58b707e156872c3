package lint

import "fmt"

// A Finding is something in a robots.txt that its author should know.
type Finding struct {
	Line          int      `json:"line,omitempty"` // counted from 1; 0 if it is about the whole file
	Severity      Severity `json:"severity"`
	RequirementID string   `json:"requirement"`      // what kind of finding it is, by a name that stays, as in "LINT-05"
	Message       string   `json:"message"`          // what is there
	Effect        string   `json:"effect"`           // what a crawler does with it
	Advice        string   `json:"advice,omitempty"` // what to do about it
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
