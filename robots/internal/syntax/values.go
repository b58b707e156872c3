package syntax

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
)

// BeginsWithSlashOrStar reports whether a rule with this path has an effect: the path must begin with
// a slash or a wildcard (SYN-09 to SYN-11).
func BeginsWithSlashOrStar(path string) bool {
	return path != "" && (path[0] == '/' || path[0] == '*')
}

// maxDelay limits the delays in a file to one year, so that callers can add them without overflow.
const maxDelay = 365 * 24 * time.Hour

// ParseCrawlDelay parses a number of seconds, with or without a decimal point (DELAY-02, DELAY-11).
// The result is at most a year.
func ParseCrawlDelay(s string) (time.Duration, bool) {
	if strings.Trim(s, Digits+".") != "" {
		return 0, false // strconv would also accept signs, exponents and words
	}
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(seconds, 1) {
		return 0, false
	}
	if seconds >= maxDelay.Seconds() {
		return maxDelay, true
	}
	return time.Duration(math.Round(seconds * float64(time.Second))), true
}

// ParseAbsoluteURL parses a URL. It returns false if the URL lacks a scheme or a host (SMAP-02). It
// therefore rejects "http:///sitemap.xml", in which browsers take the path for the host.
func ParseAbsoluteURL(s string) (decorum.URL, bool) {
	scheme, rest, _ := strings.Cut(s, "://")
	if strings.ContainsAny(scheme, `/\`) || rest == "" || strings.IndexByte(`/\?#`, rest[0]) >= 0 {
		return decorum.URL{}, false
	}
	u, err := decorum.ParseURL(s)
	return u, err == nil
}

// MaxCleanParamWildcards is how many wildcards the path of a Clean-param line may have, not counting
// one at its end. A line with more wildcards is ignored.
const MaxCleanParamWildcards = 16

// A TimedDelay is a delay between requests that applies at some time of the day.
type TimedDelay struct {
	Delay  time.Duration  // at most a year
	During TimeOfDayRange // the zero value: the whole day
}

// A TimeOfDayRange is a part of each day in UTC, in minutes from midnight. It includes fromMinute and
// excludes toMinute. If toMinute is before fromMinute, the range continues over midnight. The zero
// TimeOfDayRange is the whole day.
type TimeOfDayRange struct{ fromMinute, toMinute int }

const minutesPerDay = 24 * 60

// Contains reports whether t is in the range.
func (d TimeOfDayRange) Contains(t time.Time) bool {
	t = t.UTC()
	now := t.Hour()*60 + t.Minute()
	if d.fromMinute <= d.toMinute {
		return d == TimeOfDayRange{} || d.fromMinute <= now && now < d.toMinute
	}
	return d.fromMinute <= now || now < d.toMinute
}

// Next returns the first time in the range that is not before t.
func (d TimeOfDayRange) Next(t time.Time) time.Time {
	if d.Contains(t) {
		return t
	}
	utc := t.UTC()
	now := utc.Hour()*60 + utc.Minute()
	wait := (d.fromMinute - now + minutesPerDay) % minutesPerDay
	return t.Truncate(time.Minute).Add(time.Duration(wait) * time.Minute)
}

// String returns the range in the form of a Visit-time line: "0600-0845".
func (d TimeOfDayRange) String() string {
	return fmt.Sprintf("%02d%02d-%02d%02d", d.fromMinute/60, d.fromMinute%60, d.toMinute/60, d.toMinute%60)
}

// ParseRequestRate parses "documents/time [hours]": 1/10, 1/10s, 1/5m 0800-1300. The units are s, m, h
// and d; without a unit the time is in seconds. It returns false for invalid values, and for a rate
// of zero documents, which has no meaning.
func ParseRequestRate(s string) (TimedDelay, bool) {
	// Split the value and parse the number of documents.
	rate, during, timed := strings.Cut(strings.ReplaceAll(s, "\t", " "), " ")
	documents, span, ok := strings.Cut(rate, "/")
	n, okN := parseWholeNumber(documents)
	if !ok || !okN || n == 0 {
		return TimedDelay{}, false
	}
	// Parse the time, whose unit is optional.
	unit := time.Second
	if end := len(span) - 1; end > 0 {
		if u, known := rateUnits[span[end]|0x20]; known {
			unit, span = u, span[:end]
		}
	}
	m, ok := parseWholeNumber(span)
	// The delay is the time for each document, rounded up to a nanosecond.
	r := TimedDelay{Delay: maxDelay}
	if delay := m / n * float64(unit); delay < float64(maxDelay) {
		r.Delay = time.Duration(math.Ceil(delay))
	}
	if timed && ok {
		r.During, ok = ParseTimeOfDayRange(strings.TrimLeft(during, " "))
	}
	return r, ok
}

// rateUnits are the units of a Request-rate, in lower case.
var rateUnits = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}

// parseWholeNumber parses a number of any length, which is infinite if it exceeds the range of float64.
func parseWholeNumber(s string) (float64, bool) {
	if s == "" || strings.Trim(s, Digits) != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil || math.IsInf(n, 1)
}

// ParseTimeOfDayRange parses "0600-0845". It accepts colons within the times and blanks around the
// hyphen. It returns false for a range without length, in which no visit could take place.
func ParseTimeOfDayRange(s string) (TimeOfDayRange, bool) {
	begin, end, _ := strings.Cut(s, "-")
	from, ok := parseHHMM(trimBlanks(begin))
	to, ok2 := parseHHMM(trimBlanks(end))
	return TimeOfDayRange{from % minutesPerDay, to}, ok && ok2 && from%minutesPerDay != to
}

// parseHHMM parses "0845" or "08:45" and returns the minutes since midnight, at most 24 hours.
func parseHHMM(s string) (int, bool) {
	if len(s) == len("08:45") && s[2] == ':' {
		s = s[:2] + s[3:]
	}
	if len(s) != len("0845") || strings.Trim(s, Digits) != "" {
		return 0, false
	}
	n, _ := strconv.Atoi(s) // four digits
	minutes := n/100*60 + n%100
	return minutes, n%100 < 60 && minutes <= minutesPerDay
}

// ParseMainMirror parses the value of a Host line, [https://]name[:port] (HOST-06), and returns it in
// canonical form. It returns false for every other form (HOST-10).
func ParseMainMirror(value string) (string, bool) {
	// Check the form: an optional scheme, a host name and an optional port.
	address, secure := strings.CutPrefix(value, "https://")
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	name, port, given := strings.Cut(address, ":")
	if !isHostname(name) || given && strings.Trim(port, Digits) != "" {
		return "", false
	}
	if given && strings.Trim(port, "0") == "" {
		return "", false // an empty port, or port 0
	}
	// ParseURL checks the values and gives the canonical form.
	u, err := decorum.ParseURL(scheme + address)
	if err != nil || u.Origin().Host() != strings.ToLower(name) {
		return "", false // a port out of range, invalid Punycode, an unusual spelling of an IP address
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return "", false
	}
	if secure {
		return u.Origin().String(), true
	}
	return u.Origin().HostPort(), true
}

// The limits of host names (RFC 1035, section 2.3.4), in octets.
const (
	maxHostnameBytes  = 253
	maxHostLabelBytes = 63
)

// isHostname reports whether name is a host name by RFC 952, except that labels may begin with a digit
// (HOST-09, HOST-14).
func isHostname(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxHostLabelBytes || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if !IsAlphanumeric(label[i]) && label[i] != '-' {
				return false
			}
		}
	}
	return len(name) <= maxHostnameBytes
}
