package httpcache

import (
	"strconv"
	"strings"
	"time"
)

// maxDelta is the longest time that a header can state: 2^31 seconds, to which RFC 9111, section
// 1.2.2, limits larger values.
const maxDelta = 1 << 31 * time.Second

// Directives are the directives of the Cache-Control headers of an answer (RFC 9111, section 5.2.2).
// Directives of no effect on freshness and storing, and unknown ones, are left out.
type Directives struct {
	MaxAge, SMaxAge  Delta
	NoStore, NoCache bool // no-cache with field names counts as without
	Private, Public  bool // private with field names counts as without
	MustRevalidate   bool
	ProxyRevalidate  bool
	MustUnderstand   bool
}

// A Delta is the value of max-age or s-maxage.
type Delta struct {
	IsStated bool // the directive is there
	// IsInvalid says that a value is missing or is not a whole number of seconds. Value is then 0.
	IsInvalid bool
	// Value is at most 2^31 s. If the directive has several values, it is the smallest: RFC 9111,
	// section 4.2.1, lets a cache use the first or none, and the smallest exceeds neither.
	Value time.Duration
}

// ParseCacheControl parses the values of the Cache-Control headers of an answer, one for each line.
// Malformed directives are skipped, except those of Delta.
func ParseCacheControl(lines []string) Directives {
	var d Directives
	for _, line := range lines {
		for line != "" {
			var name, value string
			name, value, line = cutDirective(line)
			d.add(name, value)
		}
	}
	return d
}

// add adds one directive. The directives without a value count whatever value they have.
func (d *Directives) add(name, value string) {
	switch strings.ToLower(name) {
	case "max-age":
		d.MaxAge.add(value)
	case "s-maxage":
		d.SMaxAge.add(value)
	case "no-store":
		d.NoStore = true
	case "no-cache":
		d.NoCache = true
	case "private":
		d.Private = true
	case "public":
		d.Public = true
	case "must-revalidate":
		d.MustRevalidate = true
	case "proxy-revalidate":
		d.ProxyRevalidate = true
	case "must-understand":
		d.MustUnderstand = true
	}
}

// add adds a value of the directive.
func (d *Delta) add(value string) {
	seconds, ok := parseSeconds(value)
	switch {
	case !ok, d.IsInvalid:
		*d = Delta{IsStated: true, IsInvalid: true}
	case !d.IsStated || seconds < d.Value:
		*d = Delta{IsStated: true, Value: seconds}
	}
}

// parseSeconds parses a whole number of seconds without a sign. The result is at most maxDelta.
func parseSeconds(s string) (time.Duration, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > int64(maxDelta/time.Second) { // with digits alone, the error is about the range
		return maxDelta, true
	}
	return time.Duration(n) * time.Second, true
}

// optionalSpace are the characters that may surround a directive.
const optionalSpace = " \t"

// cutDirective cuts the first directive off a Cache-Control header. value is without its quotes. name
// is empty for an empty element of the list.
func cutDirective(s string) (name, value, rest string) {
	end := strings.IndexAny(s, ",=")
	if end < 0 {
		return strings.Trim(s, optionalSpace), "", ""
	}
	name, rest = strings.Trim(s[:end], optionalSpace), s[end+1:]
	if s[end] == ',' {
		return name, "", rest
	}
	// The value is quoted and may contain commas, or ends at the next comma. After a quote that is
	// never closed the rest of the header would be lost, so such a quote does not count as one.
	quoted, isQuoted := strings.CutPrefix(strings.TrimLeft(rest, optionalSpace), `"`)
	if isQuoted {
		if text, after, closed := cutQuotedString(quoted); closed {
			_, rest, _ = strings.Cut(after, ",")
			return name, text, rest
		}
	}
	value, rest, _ = strings.Cut(rest, ",")
	return name, strings.Trim(value, optionalSpace), rest
}

// cutQuotedString cuts a quoted string (RFC 9110, section 5.6.4) off s, which begins after the first
// quote. It returns false if the string has no end.
func cutQuotedString(s string) (text, rest string, closed bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], true
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}
