package robotstools

import (
	"fmt"
	"io"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
)

// printCheckResult writes what is said of u as the flags ask.
func (q checkOptions) printCheckResult(w io.Writer, u decorum.URL, e gate.Explanation) error {
	if q.asJSON {
		return jsonline.NewEscapingEncoder(w).Encode(struct {
			URL string `json:"url"`
			gate.Explanation
		}{u.String(), e})
	}
	if err := printRobotsVerdict(w, u, e.Verdict); err != nil || !q.explain {
		return err
	}
	_, err := w.Write(robotsExplanationText(e))
	return err
}

// robotsExplanationText words what led to a verdict.
func robotsExplanationText(e gate.Explanation) []byte {
	var b reporttext.Builder
	b.WriteLineIf(e.SHA256 != "", "  file\tSHA-256 %s", e.SHA256)
	b.WriteLineIf(e.Group == "", "  group\tnone speaks to the agent")
	b.WriteLineIf(e.Group != "", "  group\t%s (%s)",
		plaintext.ReplaceControlChars(e.Group), lineNumbersText(e.GroupAgentLineNumbers))
	b.WriteLineIf(e.Exempt, "  exempt\trobots.txt itself may always be fetched")
	if e.IndexingVerdict != nil {
		b.WriteLine("  index\t%s", reporttext.DisallowedForMainRobotText(*e.IndexingVerdict))
	}
	for i, m := range e.Matches {
		role := "loses"
		if i == 0 {
			role = "decides"
		}
		b.WriteLine("  %s\t%s (line %d, %d octets)%s", role, plaintext.ReplaceControlChars(m.Rule), m.Line, m.RuleLength,
			reporttext.LostRuleReasonText(m, e.Matches[0]))
		b.WriteLine("  \t  %s\n  \t  %s", e.PathAndQuery, ruleMatchUnderline(m))
	}
	for _, s := range e.UsageSignals {
		b.WriteLine("  asks\t%s", sinks.UsageSignalText(s))
	}
	for _, line := range e.PaceLines {
		b.WriteLine("  asks\t%s", line)
	}
	return b.Bytes()
}

// ruleMatchUnderline marks the part of a path that a rule matches, wildcards by "*".
func ruleMatchUnderline(m robots.MatchingRule) string {
	marks := []byte(strings.Repeat("^", m.Span.End))
	for _, w := range m.WildcardSpans {
		for i := w.Start; i < w.End; i++ {
			marks[i] = '*'
		}
	}
	return string(marks)
}

// lineNumbersText words line numbers.
func lineNumbersText(numbers []int) string {
	word := "line "
	if len(numbers) > 1 {
		word = "lines "
	}
	return word + strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]")
}
