package project

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Duration is a length of time with a readable text form: 500ms, 1s, 24h, 30d. It is never
// negative.
type Duration time.Duration

const day = 24 * time.Hour

// UnmarshalText parses the syntax of time.ParseDuration, optionally after a number of days, as in
// 2d12h. A negative duration is an error.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := parseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration; write it as 500ms, 1s, 24h or 30d", text)
	}
	*d = Duration(parsed)
	return nil
}

var errDurationRange = errors.New("out of range")

// parseDuration parses an optional number of days, as in 2d12h, and a duration of the time package.
func parseDuration(s string) (time.Duration, error) {
	var days time.Duration
	if number, rest, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return 0, err
		}
		days, s = time.Duration(n)*day, rest
		if s == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, err
	}
	if d < 0 || d > math.MaxInt64-days {
		return 0, errDurationRange
	}
	return days + d, nil
}

// String returns the duration as UnmarshalText reads it, and without parts
// that are zero: 24h, not 24h0m0s.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText returns the text of String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// A Date is a day in the form 2027-01-31. The empty Date means no day.
type Date string

// UnmarshalText parses a day in the form 2027-01-31.
func (d *Date) UnmarshalText(text []byte) error {
	if _, err := time.Parse(time.DateOnly, string(text)); err != nil {
		return fmt.Errorf("%q is not a day; write it as 2027-01-31", text)
	}
	*d = Date(text)
	return nil
}

// endOfDay returns the end of the day, in UTC, or the zero time for the empty Date.
func (d Date) endOfDay() time.Time {
	day, err := time.Parse(time.DateOnly, string(d))
	if err != nil {
		return time.Time{}
	}
	return day.AddDate(0, 0, 1)
}

// A Size is a number of bytes with a readable text form: 512KiB, 10MiB, 1GB.
type Size int64

// sizeUnits lists the units of a Size. String uses only the first four.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3}, {"B", 1}, {"", 1},
}

// UnmarshalText parses a whole number and a unit. A number without a unit counts bytes.
func (s *Size) UnmarshalText(text []byte) error {
	number := strings.TrimRight(string(text), "KMGTkiB")
	name := string(text[len(number):])
	for _, u := range sizeUnits {
		if u.name != name {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err == nil && n >= 0 && n <= math.MaxInt64/u.bytes {
			*s = Size(n * u.bytes)
			return nil
		}
	}
	return fmt.Errorf("%q is not a size; write it as 512KiB, 10MiB or 1GiB", text)
}

// String returns the size as UnmarshalText reads it.
func (s Size) String() string {
	for _, u := range sizeUnits[:4] {
		if n := int64(s); n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalText returns the text of String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
