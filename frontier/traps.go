package frontier

import (
	"slices"
	"strconv"
	"strings"
)

// trapRefusal returns why a URL of that path, with its query, looks made up: a site
// that makes such URLs makes them without end. Nil if it does not.
func (c *ScopeConfig) trapRefusal(path string) *Refusal {
	hasYear := hasDigitRun(path, 4)
	path, query, _ := strings.Cut(path, "?")
	var buf [DefaultMaxPathDepth]string // mostly enough, and then nothing is allocated
	segments := appendSplitPath(buf[:0], path)
	switch {
	case len(segments) > c.MaxPathDepth:
		return newRefusal(DeepPath, "a path of more than %d segments", c.MaxPathDepth)
	case hasSegmentLoop(segments, c.MaxPathRepeats):
		return newRefusal(RepeatedPath, "the path repeats itself more than %d times in a row", c.MaxPathRepeats)
	case query != "" && strings.Count(query, "&") >= c.MaxParams:
		return newRefusal(TooManyParams, "more than %d parameters", c.MaxParams)
	}
	if !hasYear || c.CurrentYear == 0 {
		return nil
	}
	if year, kind := calendarYearInURL(query, segments); kind != noYear && c.isFarYear(year, kind) {
		return newRefusal(FarCalendar, "a calendar of the year %d", year)
	}
	return nil
}

func appendSplitPath(dst []string, path string) []string {
	if path = strings.Trim(path, "/"); path == "" {
		return dst
	}
	for segment := range strings.SplitSeq(path, "/") {
		dst = append(dst, segment)
	}
	return dst
}

// hasDigitRun reports whether s has so many digits in a row.
func hasDigitRun(s string, n int) bool {
	run := 0
	for i := range len(s) {
		if run++; !isDigit(s[i]) {
			run = 0
		}
		if run == n {
			return true
		}
	}
	return false
}

// The years of which a site may have a calendar: those since ours is in use,
// and so many ahead. A calendar without end leads on from year to year, and so to
// one of the next trapYearsAfter, or of the trapYearsBefore: numbers that only look like
// dates, such as 7440-05-3 of chemistry, the part 9100-12 or "until 9999-12-31",
// are few there, and so are dates of history.
const (
	firstCalendarYear = 1583
	yearsAhead        = 10
	trapYearsAfter    = 100
	trapYearsBefore   = 10
)

// isFarYear reports whether a calendar of that year ends the site's calendar.
func (c *ScopeConfig) isFarYear(year int, kind yearCertainty) bool {
	switch last := c.CurrentYear + yearsAhead; {
	case kind == namedYear:
		return year > last || year < firstCalendarYear
	default:
		return year > last && year <= last+trapYearsAfter || year < firstCalendarYear && year >= firstCalendarYear-trapYearsBefore
	}
}

// A yearCertainty is how sure it is that a number is the year of a calendar.
type yearCertainty uint8

const (
	noYear    yearCertainty = iota
	datedYear               // it stands where a date has it
	namedYear               // the URL says so in words
)

// maxRepeatLength is how many segments that follow each other are looked for again
// behind themselves.
const maxRepeatLength = 8

// hasSegmentLoop reports whether up to maxRepeatLength segments stand more than most times
// in a row, as relative links of a page that is at every path make them:
// /a/b/a/b/a/b is a/b three times. Empty segments are passed over. A segment that
// comes back elsewhere, as in /en/guide/en/, is no repetition.
func hasSegmentLoop(segments []string, maxRepeats int) bool {
	if slices.Contains(segments, "") {
		segments = slices.DeleteFunc(slices.Clone(segments), func(s string) bool { return s == "" })
	}
	for length := 1; length <= maxRepeatLength && length*maxRepeats < len(segments); length++ {
		same := 0 // segments in a row that are what stood a loop before
		for i := length; i < len(segments); i++ {
			if same++; segments[i] != segments[i-length] {
				same = 0
			}
			if same >= length*maxRepeats {
				return true
			}
		}
	}
	return false
}

// calendarYearInURL returns the year of which a page of a calendar is, and noYear if
// the URL names no day or month: /2030/1/31, /calendar/2030/01, 2030-01-31 or
// 2030-01 as a segment or a value, year=2030. Other numbers may be anything.
func calendarYearInURL(query string, segments []string) (year int, kind yearCertainty) {
	for i, s := range segments {
		if y, ok := parseYear(s); ok && len(segments) > i+1 && isNumberBetween(segments[i+1], 1, 12) {
			named := yearCertaintyAfterSegments(segments[:i])
			if named != noYear || len(segments) > i+2 && isNumberBetween(segments[i+2], 1, 31) {
				return y, max(named, datedYear)
			}
		}
		if y, ok := parseDashedYear(s); ok {
			return y, max(yearCertaintyAfterSegments(segments[:i]), datedYear)
		}
	}
	for parameter := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		if y, ok := parseDashedYear(value); ok {
			return y, max(yearCertaintyAfterSegments(segments), datedYear)
		}
		if y, ok := parseYear(value); ok && name == "year" {
			return y, namedYear
		}
	}
	return 0, noYear
}

// yearCertaintyAfterSegments returns how sure it is that a number which stands behind these
// segments is the year of a calendar; noYear if they say nothing of one.
func yearCertaintyAfterSegments(segments []string) (kind yearCertainty) {
	for _, s := range segments {
		switch {
		case strings.Contains(s, "calendar"), strings.Contains(s, "kalender"):
			return namedYear
		case strings.Contains(s, "agenda"), strings.Contains(s, "event"):
			kind = datedYear
		}
	}
	return kind
}

// parseYear reads four digits.
func parseYear(s string) (year int, ok bool) {
	if len(s) != 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err == nil
}

// parseDashedYear reads YYYY-MM or YYYY-MM-DD.
func parseDashedYear(s string) (year int, ok bool) {
	if len(s) < len("2030-01") || s[4] != '-' || !isNumberBetween(s[5:7], 1, 12) {
		return 0, false
	}
	if day := s[7:]; day != "" && (day[0] != '-' || !isNumberBetween(day[1:], 1, 31)) {
		return 0, false
	}
	return parseYear(s[:4])
}

// isNumberBetween reports whether s is a number of one or two digits within bounds.
func isNumberBetween(s string, low, high uint64) bool {
	n, err := strconv.ParseUint(s, 10, 8)
	return err == nil && len(s) <= 2 && n >= low && n <= high
}
