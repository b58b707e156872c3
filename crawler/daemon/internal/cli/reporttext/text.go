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

// WriteRefusalCounts writes title and a table of refused URLs, each row with its count, reason, host
// and an example. It writes nothing if list is empty.
func (p *Builder) WriteRefusalCounts(title string, list []frontier.RefusalCount) {
	if len(list) == 0 {
		return
	}
	p.WriteLine("")
	p.WriteLine("%s", title)
	p.WriteTable(func(row func(...any)) {
		for _, r := range list {
			row(fmt.Sprintf("%8d", r.Count), r.Reason, cmp.Or(r.Host, "various hosts"),
				plaintext.ReplaceControlChars(r.Why), "such as "+r.Example)
		}
	})
}

// WriteClosedPatterns writes a table of patterns of URLs that are visited no longer, because their pages
// repeat others. It writes nothing if list is empty.
func (p *Builder) WriteClosedPatterns(list []frontier.ClosedPattern) {
	if len(list) == 0 {
		return
	}
	p.WriteLine("")
	p.WriteLine("%s", "Closed, because their pages have the body of another page of the host:")
	p.WriteTable(func(row func(...any)) {
		for _, c := range list {
			row("", c.Host, plaintext.ReplaceControlChars(c.Pattern),
				fmt.Sprintf("%d of %d pages", c.Duplicates, c.Pages))
		}
	})
}

// DelayShortfallText says by how much the crawl cut a host's delay short at most; 0: never.
func DelayShortfallText(shortfall api.Milliseconds) string {
	if shortfall == 0 {
		return "no delay was cut short"
	}
	return fmt.Sprintf("a delay was cut short by %v", inspect.DelayText(shortfall))
}

// WriteParkedReasons writes title and a table of at most limit rules (0: all) that park URLs, each
// with its number of URLs and its line in robots.txt. It writes nothing if rs is empty.
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
			row(fmt.Sprintf("%8d %s", r.URLCount, URLNoun(r.URLCount)), inspect.RefusalText(r),
				inspect.RuleLocationText(r))
		}
	})
}

// URLNoun returns "URL" if urls is 1, else "URLs".
func URLNoun(urls int) string {
	if urls == 1 {
		return "URL"
	}
	return "URLs"
}

// A Builder collects text for people. The zero value is empty and ready to use.
type Builder struct{ bytes.Buffer }

// WriteLine writes a line, formatted as by fmt.Printf.
func (s *Builder) WriteLine(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// WriteLineIf calls WriteLine if cond is true.
func (s *Builder) WriteLineIf(cond bool, format string, args ...any) {
	if cond {
		s.WriteLine(format, args...)
	}
}

// PrintTo writes the text to w and empties the Builder.
func (s *Builder) PrintTo(w io.Writer) error {
	_, err := s.WriteTo(w)
	return err
}

// WriteTable writes a table. rows calls row once for each row; columns are aligned with two spaces
// between them. Lines do not end with spaces.
func (s *Builder) WriteTable(rows func(row func(cells ...any))) {
	var table bytes.Buffer
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	rows(func(cells ...any) {
		texts := make([]string, len(cells))
		for i, c := range cells {
			texts[i] = fmt.Sprint(c)
		}
		fmt.Fprintln(t, strings.Join(texts, "\t"))
	})
	t.Flush()                                      // writes to memory, and cannot fail
	for line := range bytes.Lines(table.Bytes()) { // an empty last cell leaves the padding of the one before it
		s.Write(append(bytes.TrimRight(line, " \n"), '\n'))
	}
}

// DisallowedForMainRobotText says why a page that may be fetched must not be indexed. v is the
// verdict for the operator's main robot.
func DisallowedForMainRobotText(v robots.Verdict) string {
	return "not for indexing: the main robot of the operator may not fetch it, by " + inspect.RuleText(v)
}

// LostRuleReasonText returns ": " and the reason why the rule m lost to winner; "" if m did not lose.
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

// TrafficText says how many bytes the connections carried, and how many were opened.
func TrafficText(t *api.HostTraffic) string {
	return fmt.Sprintf("%s received and %s sent on the wire, connections: %d (TLS handshakes: %d full, %d resumed)",
		plaintext.FormatBytes(t.WireBytesReceived), plaintext.FormatBytes(t.WireBytesSent), t.Connections,
		t.FullHandshakes, t.ResumedHandshakes)
}

// SavedBytesText says what compression and conditional requests spared the hosts.
func SavedBytesText(t *api.HostTraffic) string {
	return fmt.Sprintf("%s by compression, %s by answers 304 (%d)", plaintext.FormatBytes(t.SavedByCompression),
		plaintext.FormatBytes(t.SavedByRevalidation), t.NotModified)
}
