package robotstools

import (
	"bytes"
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
	var b bytes.Buffer
	if e.SHA256 != "" {
		fmt.Fprintf(&b, "  file\tSHA-256 %s\n", e.SHA256)
	}
	if e.Group == "" {
		b.WriteString("  group\tnone speaks to the agent\n")
	} else {
		fmt.Fprintf(&b, "  group\t%s (%s)\n", plaintext.ReplaceControlChars(e.Group), lineNumbersText(e.GroupAgentLineNumbers))
	}
	if e.Exempt {
		b.WriteString("  exempt\trobots.txt itself may always be fetched\n")
	}
	if e.IndexingVerdict != nil {
		fmt.Fprintf(&b, "  index\t%s\n", reporttext.DisallowedForMainRobotText(*e.IndexingVerdict))
	}
	for i, m := range e.Matches {
		role := "loses"
		if i == 0 {
			role = "decides"
		}
		fmt.Fprintf(&b, "  %s\t%s (line %d, %d octets)%s\n", role, plaintext.ReplaceControlChars(m.Rule), m.Line, m.RuleLength, reporttext.LostRuleReasonText(m, e.Matches[0]))
		fmt.Fprintf(&b, "  \t  %s\n  \t  %s\n", e.PathAndQuery, ruleMatchUnderline(m))
	}
	for _, s := range e.UsageSignals {
		fmt.Fprintf(&b, "  asks\t%s\n", sinks.UsageSignalText(s))
	}
	for _, line := range e.PaceLines {
		fmt.Fprintf(&b, "  asks\t%s\n", line)
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
