package sitemap

import (
	"errors"
	"net/mail"
	"strconv"
	"strings"
	"time"
)

// Reasons why the text of a field is not used unchanged.
var (
	errDate      = errors.New("not a date")
	errPriority  = errors.New("not a number from 0 to 1")
	errFrequency = errors.New("not one of " + strings.Join(changeFreqs, ", "))
)

// changeFreqs holds the values of changefreq.
var changeFreqs = []string{"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"}

// parseChangeFreq returns the frequency in lower case, or an error if s is not one of changeFreqs.
func parseChangeFreq(s []byte) (string, error) {
	for _, f := range changeFreqs {
		if strings.EqualFold(f, string(s)) {
			return f, nil
		}
	}
	return "", errFrequency
}

// parsePriority returns the priority. A number outside the range from 0 to 1 becomes the nearest
// end of the range, other text DefaultPriority, both with an error.
func parsePriority(s []byte) (float64, error) {
	p, err := strconv.ParseFloat(string(s), 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange) || p != p:
		return DefaultPriority, errPriority
	case p < 0 || p > 1:
		return min(max(p, 0), 1), errPriority
	}
	return p, nil
}

// parseDate parses the date formats of the W3C, and that of mail (RFC 822), which feeds use. It
// returns the time in UTC.
func parseDate(s []byte) (time.Time, error) {
	t, ok := parseW3CDate(s)
	if !ok {
		t, ok = parseMailDate(s)
	}
	if !ok || t.Year() < 1 || t.Year() > 9999 { // as written, or after conversion to UTC
		return time.Time{}, errDate
	}
	return t, nil
}

// parseMailDate parses a date of RFC 822.
func parseMailDate(s []byte) (time.Time, bool) {
	t, err := mail.ParseDate(string(s))
	// Package time gives the offset 0 to zone names other than those of the machine's zone.
	if name, offset := t.Zone(); offset == 0 {
		t = t.Add(-zoneOffsets[name])
	}
	return t.UTC(), err == nil
}

// zoneOffsets holds the offsets from UTC of the named zones of RFC 822.
var zoneOffsets = map[string]time.Duration{
	"EST": -5 * time.Hour, "EDT": -4 * time.Hour, "CST": -6 * time.Hour, "CDT": -5 * time.Hour,
	"MST": -7 * time.Hour, "MDT": -6 * time.Hour, "PST": -8 * time.Hour, "PDT": -7 * time.Hour,
}

// parseW3CDate parses the formats of the W3C's note on date and time, from a year alone to
// fractions of a second: "2006-01-02T15:04:05.999+07:00". It also accepts a time without the zone
// that the note requires, a zone without its colon, and a blank in place of the T.
func parseW3CDate(s []byte) (time.Time, bool) {
	c := dateScanner{rest: s, ok: true}
	year, month, day := c.readNumber(4), 1, 1
	var hour, minute, second, nano int
	var zone time.Duration
	if c.skipOneOf("-") {
		month = c.readNumber(2)
		if c.skipOneOf("-") {
			day = c.readNumber(2)
			if c.skipOneOf("Tt ") {
				hour, minute, second, nano = c.readTimeOfDay()
				zone = c.readZoneOffset()
			}
		}
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, nano, time.UTC)
	isValid := int(t.Month()) == month && hour < 24 && minute < 60 && second < 60
	return t.Add(-zone), c.ok && len(c.rest) == 0 && isValid
}

// A dateScanner reads a date from left to right. It sets ok to false at the first unexpected
// character.
type dateScanner struct {
	rest []byte
	ok   bool
}

// skipOneOf skips the next character if it is one of chars, and reports whether it did.
func (c *dateScanner) skipOneOf(chars string) bool {
	if len(c.rest) == 0 || strings.IndexByte(chars, c.rest[0]) < 0 {
		return false
	}
	c.rest = c.rest[1:]
	return true
}

// readNumber reads a number of exactly n digits.
func (c *dateScanner) readNumber(n int) (value int) {
	if len(c.rest) < n {
		c.ok = false
		return 0
	}
	for _, b := range c.rest[:n] {
		c.ok = c.ok && '0' <= b && b <= '9'
		value = value*10 + int(b-'0')
	}
	c.rest = c.rest[n:]
	return value
}

// readTimeOfDay reads a time of day, with or without seconds.
func (c *dateScanner) readTimeOfDay() (hour, minute, second, nano int) {
	hour = c.readNumber(2)
	c.ok = c.ok && c.skipOneOf(":")
	minute = c.readNumber(2)
	if !c.skipOneOf(":") {
		return hour, minute, 0, 0
	}
	second = c.readNumber(2)
	if c.skipOneOf(".,") {
		nano = c.readFraction()
	}
	return hour, minute, second, nano
}

// readFraction reads the digits after a decimal sign, and returns them in nanoseconds.
func (c *dateScanner) readFraction() (nano int) {
	nano = c.readNumber(1) * 1e8
	for place := int(1e7); len(c.rest) > 0 && '0' <= c.rest[0] && c.rest[0] <= '9'; place /= 10 {
		nano += c.readNumber(1) * place
	}
	return nano
}

// readZoneOffset reads a zone, and returns its offset from UTC; 0 if there is none.
func (c *dateScanner) readZoneOffset() time.Duration {
	c.skipOneOf(" ")
	sign := time.Duration(1)
	switch {
	case len(c.rest) == 0, c.skipOneOf("Zz"):
		return 0
	case c.skipOneOf("-"):
		sign = -1
	case !c.skipOneOf("+"):
		c.ok = false
	}
	hours := c.readNumber(2)
	c.skipOneOf(":")
	minutes := c.readNumber(2)
	c.ok = c.ok && hours < 24 && minutes < 60
	return sign * (time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute)
}
