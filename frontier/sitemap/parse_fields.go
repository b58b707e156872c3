package sitemap

import (
	"errors"
	"net/mail"
	"strconv"
	"strings"
	"time"
)

// Why the text of a field is not used as it stands.
var (
	errDate      = errors.New("not a date")
	errPriority  = errors.New("not a number from 0 to 1")
	errFrequency = errors.New("not one of " + strings.Join(frequencies, ", "))
)

// frequencies are the values of changefreq.
var frequencies = []string{"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"}

// parseFrequency returns the frequency, or nothing if it is none of the
// protocol's.
func parseFrequency(s []byte) (string, error) {
	for _, f := range frequencies {
		if strings.EqualFold(f, string(s)) {
			return f, nil
		}
	}
	return "", errFrequency
}

// parsePriority returns the priority, brought into its range, or the default if
// s is no number.
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

// parseDate reads the W3C's date forms and that of mail, which feeds use
// (RFC 822).
func parseDate(s []byte) (time.Time, error) {
	t, ok := parseW3C(s)
	if !ok {
		t, ok = parseMail(s)
	}
	if !ok || t.Year() < 1 || t.Year() > 9999 { // by its zone, or from the start
		return time.Time{}, errDate
	}
	return t, nil
}

func parseMail(s []byte) (time.Time, bool) {
	t, err := mail.ParseDate(string(s))
	// Package time takes the names of zones that are not the machine's own for
	// Greenwich's.
	if name, offset := t.Zone(); offset == 0 {
		t = t.Add(-zones[name])
	}
	return t.UTC(), err == nil
}

// zones are the zones of RFC 822 that have a name, and how far ahead of
// Greenwich they are.
var zones = map[string]time.Duration{
	"EST": -5 * time.Hour, "EDT": -4 * time.Hour, "CST": -6 * time.Hour, "CDT": -5 * time.Hour,
	"MST": -7 * time.Hour, "MDT": -6 * time.Hour, "PST": -8 * time.Hour, "PDT": -7 * time.Hour,
}

// parseW3C reads the forms of the W3C's note on date and time, from the year
// alone to fractions of a second: "2006-01-02T15:04:05.999+07:00". The zone, which
// the note demands after a time, may be missing, and its colon too; a blank will do
// for the T.
func parseW3C(s []byte) (time.Time, bool) {
	c := cursor{rest: s, ok: true}
	year, month, day := c.number(4), 1, 1
	var hour, minute, second, nano int
	var zone time.Duration
	if c.skip("-") {
		month = c.number(2)
		if c.skip("-") {
			day = c.number(2)
			if c.skip("Tt ") {
				hour, minute, second, nano = c.clock()
				zone = c.zone()
			}
		}
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, nano, time.UTC)
	real := int(t.Month()) == month && hour < 24 && minute < 60 && second < 60
	return t.Add(-zone), c.ok && len(c.rest) == 0 && real
}

// A cursor reads a date from left to right. It is not ok once something else
// came than was asked for.
type cursor struct {
	rest []byte
	ok   bool
}

// skip passes over one of the characters, if it comes next.
func (c *cursor) skip(chars string) bool {
	if len(c.rest) == 0 || strings.IndexByte(chars, c.rest[0]) < 0 {
		return false
	}
	c.rest = c.rest[1:]
	return true
}

// number returns the number that the next n digits are.
func (c *cursor) number(n int) (value int) {
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

// clock returns a time of day. Its seconds may be missing.
func (c *cursor) clock() (hour, minute, second, nano int) {
	hour = c.number(2)
	c.ok = c.ok && c.skip(":")
	minute = c.number(2)
	if !c.skip(":") {
		return hour, minute, 0, 0
	}
	second = c.number(2)
	if c.skip(".,") {
		nano = c.fraction()
	}
	return hour, minute, second, nano
}

// fraction returns the nanoseconds that the digits after the decimal sign are.
func (c *cursor) fraction() (nano int) {
	nano = c.number(1) * 1e8
	for place := int(1e7); len(c.rest) > 0 && '0' <= c.rest[0] && c.rest[0] <= '9'; place /= 10 {
		nano += c.number(1) * place
	}
	return nano
}

// zone returns how far ahead of Greenwich a time is.
func (c *cursor) zone() time.Duration {
	c.skip(" ")
	sign := time.Duration(1)
	switch {
	case len(c.rest) == 0, c.skip("Zz"):
		return 0
	case c.skip("-"):
		sign = -1
	case !c.skip("+"):
		c.ok = false
	}
	hours := c.number(2)
	c.skip(":")
	minutes := c.number(2)
	c.ok = c.ok && hours < 24 && minutes < 60
	return sign * (time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute)
}
