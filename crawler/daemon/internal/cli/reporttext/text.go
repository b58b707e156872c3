package reporttext

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/robots"
)

func (p *Builder) WriteRefusalCounts(title string, list []frontier.RefusalCount) {
	if len(list) == 0 {
		return
	}
	p.WriteLine("")
	p.WriteLine("%s", title)
	p.WriteTable(func(row func(...any)) {
		for _, r := range list {
			row(fmt.Sprintf("%8d", r.Count), r.Reason, cmp.Or(r.Host, "various hosts"), plaintext.ReplaceControlChars(r.Why), "such as "+r.Example)
		}
	})
}

func DelayShortfallText(shortfall api.Milliseconds) string {
	if shortfall == 0 {
		return "no rest was cut short"
	}
	return fmt.Sprintf("a rest was cut short by %v", inspect.DelayText(shortfall))
}

// WriteParkedReasons writes why URLs are parked.
func (p *Builder) WriteParkedReasons(title string, rs []api.RefusalSummary, limit int) {
	if len(rs) == 0 {
		return
	}
	p.WriteLine("")
	p.WriteLine("%s", title)
	p.WriteTable(func(row func(...any)) {
		for i, r := range rs {
			if i == limit && limit > 0 {
				break
			}
			row(fmt.Sprintf("%8d %s", r.URLCount, URLNoun(r.URLCount)), inspect.RefusalText(r), inspect.RuleLocationText(r))
		}
	})
}

func URLNoun(urls int) string {
	if urls == 1 {
		return "URL"
	}
	return "URLs"
}

// A Builder is text for people, in the making.
type Builder struct{ bytes.Buffer }

func (s *Builder) WriteLine(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// WriteLineIf writes a line if cond is true.
func (s *Builder) WriteLineIf(cond bool, format string, args ...any) {
	if cond {
		s.WriteLine(format, args...)
	}
}

// PrintTo writes the text to w.
func (s *Builder) PrintTo(w io.Writer) error {
	_, err := s.WriteTo(w)
	return err
}

// WriteTable writes rows in columns.
func (s *Builder) WriteTable(rows func(row func(cells ...any))) {
	t := tabwriter.NewWriter(s, 0, 0, 2, ' ', 0)
	rows(func(cells ...any) {
		texts := make([]string, len(cells))
		for i, c := range cells {
			texts[i] = fmt.Sprint(c)
		}
		fmt.Fprintln(t, strings.Join(texts, "\t"))
	})
	t.Flush() // into memory: it cannot fail
}

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
