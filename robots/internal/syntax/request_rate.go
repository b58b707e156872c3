package syntax

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// A Rate asks for a pause during some time of the day.
type Rate struct {
	Delay  time.Duration
	During TimeOfDayRange
}

// A TimeOfDayRange is a part of each day in UTC, in minutes from midnight: from is in
// it, to is not. It runs over midnight if to comes before from; the zero
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

// Next returns the first moment from t on that is in the range.
func (d TimeOfDayRange) Next(t time.Time) time.Time {
	if d.Contains(t) {
		return t
	}
	utc := t.UTC()
	now := utc.Hour()*60 + utc.Minute()
	wait := (d.fromMinute - now + minutesPerDay) % minutesPerDay
	return t.Truncate(time.Minute).Add(time.Duration(wait) * time.Minute)
}

// String returns the range as the lines write it.
func (d TimeOfDayRange) String() string {
	return formatHHMM(d.fromMinute) + "-" + formatHHMM(d.toMinute)
}

func formatHHMM(minutes int) string {
	digits := strconv.Itoa(10_000 + minutes/60*100 + minutes%60)
	return digits[1:]
}

// ParseRequestRate reads "documents/time [hours]": 1/10, 1/10s, 1/5m 0800-1300, with
// seconds, minutes, hours or days. A rate of no documents says nothing.
func ParseRequestRate(s string) (Rate, bool) {
	rate, during, timed := strings.Cut(strings.ReplaceAll(s, "\t", " "), " ")
	documents, span, ok := strings.Cut(rate, "/")
	n, okN := parseWholeNumber(documents)
	if !ok || !okN || n == 0 {
		return Rate{}, false
	}
	unit := time.Second
	if end := len(span) - 1; end > 0 {
		if u, known := rateUnits[span[end]|0x20]; known {
			unit, span = u, span[:end]
		}
	}
	m, ok := parseWholeNumber(span)
	r := Rate{Delay: maxDelay}
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

func parseWholeNumber(s string) (float64, bool) {
	if s == "" || strings.Trim(s, Digits) != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil || math.IsInf(n, 1)
}

// ParseTimeOfDayRange reads "0600-0845"; colons and spaces around the hyphen are
// forgiven. Hours without length, which nobody can keep to, say nothing.
func ParseTimeOfDayRange(s string) (TimeOfDayRange, bool) {
	begin, end, _ := strings.Cut(s, "-")
	from, ok := parseHHMM(trimBlanks(begin))
	to, ok2 := parseHHMM(trimBlanks(end))
	return TimeOfDayRange{from % minutesPerDay, to}, ok && ok2 && from%minutesPerDay != to
}

// parseHHMM reads "0845" or "08:45" as minutes from midnight.
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
