package frontier

import (
	"slices"
	"strconv"
	"strings"
)

// trapRefusal returns why a URL with this path and query looks generated, and nil if it does not. A
// site that generates such URLs generates them without end.
func (c *ScopeConfig) trapRefusal(path string) *Refusal {
	hasYear := hasDigitRun(path, 4)
	path, query, _ := strings.Cut(path, "?")
	var buf [DefaultMaxPathDepth]string // usually long enough, which saves an allocation
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

// appendSplitPath appends the segments of path to dst, without slashes at its ends.
func appendSplitPath(dst []string, path string) []string {
	if path = strings.Trim(path, "/"); path == "" {
		return dst
	}
	for segment := range strings.SplitSeq(path, "/") {
		dst = append(dst, segment)
	}
	return dst
}

// hasDigitRun reports whether s contains n digits in a row.
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

// A site may have a calendar of the years from firstCalendarYear, the first full year of the
// Gregorian calendar, up to yearsAhead years from now. An endless calendar leads from year to year,
// and so into one of the trapYearsAfter years after that range, or of the trapYearsBefore years
// before it. If a URL does not name a calendar in words, only those years are refused: they seldom
// occur in dates of history, or in numbers that only look like dates, such as the CAS number
// 7440-05-3, the part number 9100-12 or "until 9999-12-31".
const (
	firstCalendarYear = 1583
	yearsAhead        = 10
	trapYearsAfter    = 100
	trapYearsBefore   = 10
)

// isFarYear reports whether year lies in an endless part of a calendar.
func (c *ScopeConfig) isFarYear(year int, kind yearCertainty) bool {
	switch last := c.CurrentYear + yearsAhead; {
	case kind == namedYear:
		return year > last || year < firstCalendarYear
	default:
		return year > last && year <= last+trapYearsAfter || year < firstCalendarYear &&
			year >= firstCalendarYear-trapYearsBefore
	}
}

// A yearCertainty says how certain it is that a number is the year of a calendar.
type yearCertainty uint8

const (
	noYear    yearCertainty = iota
	datedYear               // it stands where a date has its year
	namedYear               // the URL names a calendar in words
)

// maxRepeatLength is how many segments a repeated sequence may have to be noticed.
const maxRepeatLength = 8

// hasSegmentLoop reports whether a sequence of up to maxRepeatLength segments occurs more than
// maxRepeats times in a row. Such paths arise from relative links of a page that exists under every
// path: /a/b/a/b/a/b contains a/b three times. Empty segments are ignored. A segment that recurs
// elsewhere, as in /en/guide/en/, does not count.
func hasSegmentLoop(segments []string, maxRepeats int) bool {
	if slices.Contains(segments, "") {
		segments = slices.DeleteFunc(slices.Clone(segments), func(s string) bool { return s == "" })
	}
	for length := 1; length <= maxRepeatLength && length*maxRepeats < len(segments); length++ {
		same := 0 // segments in a row that equal the one length before
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

// calendarYearInURL returns the year of a calendar page, and noYear if the URL contains no day or
// month: /2030/1/31, /calendar/2030/01, 2030-01-31 or 2030-01 as a segment or a value, or
// year=2030. Other numbers may mean anything.
func calendarYearInURL(query string, segments []string) (year int, kind yearCertainty) {
	for i, s := range segments {
		// A segment with a year needs a month after it, and a day or the name of a calendar.
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
	// The path contains no year, so look at the query.
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

// yearCertaintyAfterSegments returns how certain it is that a number after these segments is the
// year of a calendar. It returns noYear if no segment suggests a calendar.
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

// parseYear parses four digits.
func parseYear(s string) (year int, ok bool) {
	if len(s) != 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err == nil
}

// parseDashedYear parses YYYY-MM or YYYY-MM-DD.
func parseDashedYear(s string) (year int, ok bool) {
	if len(s) < len("2030-01") || s[4] != '-' || !isNumberBetween(s[5:7], 1, 12) {
		return 0, false
	}
	if day := s[7:]; day != "" && (day[0] != '-' || !isNumberBetween(day[1:], 1, 31)) {
		return 0, false
	}
	return parseYear(s[:4])
}

// isNumberBetween reports whether s is a number of one or two digits from low to high.
func isNumberBetween(s string, low, high uint64) bool {
	n, err := strconv.ParseUint(s, 10, 8)
	return err == nil && len(s) <= 2 && n >= low && n <= high
}
