package frontier

import (
	"slices"
	"strconv"
	"strings"
)

// trap returns why a URL of that path, with its query, looks made up: a site
// that makes such URLs makes them without end. Nil if it does not.
func (c *ScopeConfig) trap(path string) *Refusal {
	hasYear := digitsInRow(path, 4)
	path, query, _ := strings.Cut(path, "?")
	var buf [DefaultMaxPathDepth]string // mostly enough, and then nothing is allocated
	segments := appendSegments(buf[:0], path)
	switch {
	case len(segments) > c.MaxPathDepth:
		return refusalOf(DeepPath, "a path of more than %d segments", c.MaxPathDepth)
	case repeats(segments, c.MaxRepeat):
		return refusalOf(RepeatedPath, "the path repeats itself more than %d times in a row", c.MaxRepeat)
	case query != "" && strings.Count(query, "&") >= c.MaxParams:
		return refusalOf(ManyParams, "more than %d parameters", c.MaxParams)
	}
	if !hasYear || c.Year == 0 {
		return nil
	}
	if year, kind := calendarYear(query, segments); kind != noYear && c.farYear(year, kind) {
		return refusalOf(FarCalendar, "a calendar of the year %d", year)
	}
	return nil
}

func appendSegments(to []string, path string) []string {
	if path = strings.Trim(path, "/"); path == "" {
		return to
	}
	for segment := range strings.SplitSeq(path, "/") {
		to = append(to, segment)
	}
	return to
}

// digitsInRow reports whether s has so many digits in a row.
func digitsInRow(s string, n int) bool {
	row := 0
	for i := range len(s) {
		if row++; !isDigit(s[i]) {
			row = 0
		}
		if row == n {
			return true
		}
	}
	return false
}

// The years of which a site may have a calendar: those since ours is in use,
// and so many ahead. A calendar without end leads on from year to year, and so to
// one of the next yearsBeyond, or of the yearsBefore: numbers that only look like
// dates, such as 7440-05-3 of chemistry, the part 9100-12 or "until 9999-12-31",
// are few there, and so are dates of history.
const (
	firstYear   = 1583
	yearsAhead  = 10
	yearsBeyond = 100
	yearsBefore = 10
)

// farYear reports whether a calendar of that year ends the site's calendar.
func (c *ScopeConfig) farYear(year int, kind yearKind) bool {
	switch last := c.Year + yearsAhead; {
	case kind == namedYear:
		return year > last || year < firstYear
	default:
		return year > last && year <= last+yearsBeyond || year < firstYear && year >= firstYear-yearsBefore
	}
}

// A yearKind is how sure it is that a number is the year of a calendar.
type yearKind uint8

const (
	noYear    yearKind = iota
	datedYear          // it stands where a date has it
	namedYear          // the URL says so in words
)

// maxRepeatLength is how many segments that follow each other are looked for again
// behind themselves.
const maxRepeatLength = 8

// repeats reports whether up to maxRepeatLength segments stand more than most times
// in a row, as relative links of a page that is at every path make them:
// /a/b/a/b/a/b is a/b three times. Empty segments are passed over. A segment that
// comes back elsewhere, as in /en/guide/en/, is no repetition.
func repeats(segments []string, maxRepeats int) bool {
	if slices.Contains(segments, "") {
		segments = slices.DeleteFunc(slices.Clone(segments), func(s string) bool { return s == "" })
	}
	for loop := 1; loop <= maxRepeatLength && loop*maxRepeats < len(segments); loop++ {
		same := 0 // segments in a row that are what stood a loop before
		for i := loop; i < len(segments); i++ {
			if same++; segments[i] != segments[i-loop] {
				same = 0
			}
			if same >= loop*maxRepeats {
				return true
			}
		}
	}
	return false
}

// calendarYear returns the year of which a page of a calendar is, and noYear if
// the URL names no day or month: /2030/1/31, /calendar/2030/01, 2030-01-31 or
// 2030-01 as a segment or a value, year=2030. Other numbers may be anything.
func calendarYear(query string, segments []string) (year int, kind yearKind) {
	for i, s := range segments {
		if y, ok := yearOf(s); ok && len(segments) > i+1 && between(segments[i+1], 1, 12) {
			named := calendarKind(segments[:i])
			if named != noYear || len(segments) > i+2 && between(segments[i+2], 1, 31) {
				return y, max(named, datedYear)
			}
		}
		if y, ok := dashedYear(s); ok {
			return y, max(calendarKind(segments[:i]), datedYear)
		}
	}
	for parameter := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		if y, ok := dashedYear(value); ok {
			return y, max(calendarKind(segments), datedYear)
		}
		if y, ok := yearOf(value); ok && name == "year" {
			return y, namedYear
		}
	}
	return 0, noYear
}

// calendarKind returns how sure it is that a number which stands behind these
// segments is the year of a calendar; noYear if they say nothing of one.
func calendarKind(segments []string) (kind yearKind) {
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

// yearOf reads four digits.
func yearOf(s string) (year int, ok bool) {
	if len(s) != 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err == nil
}

// dashedYear reads YYYY-MM or YYYY-MM-DD.
func dashedYear(s string) (year int, ok bool) {
	if len(s) < len("2030-01") || s[4] != '-' || !between(s[5:7], 1, 12) {
		return 0, false
	}
	if day := s[7:]; day != "" && (day[0] != '-' || !between(day[1:], 1, 31)) {
		return 0, false
	}
	return yearOf(s[:4])
}

// between reports whether s is a number of one or two digits within bounds.
func between(s string, low, high uint64) bool {
	n, err := strconv.ParseUint(s, 10, 8)
	return err == nil && len(s) <= 2 && n >= low && n <= high
}
