package reporttext

import (
	"fmt"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/robots"
)

// DisallowedForMainRobotText words why a page that may be fetched is not to be indexed, by the
// verdict on the main robot.
func DisallowedForMainRobotText(v robots.Verdict) string {
	return "not for indexing: the main robot of the operator may not fetch it, by " + inspect.RuleText(v)
}

// LostRuleReasonText says why a rule does not decide.
func LostRuleReasonText(m, winner robots.MatchingRule) string {
	switch m.LosingReason {
	case robots.LostShorter:
		return fmt.Sprintf(": shorter than %d octets", winner.RuleLength)
	case robots.LostTie:
		return ": as long, and allow wins a tie"
	case robots.LostRepeated:
		return fmt.Sprintf(": line %d does the same", winner.Line)
	}
	return ""
}
