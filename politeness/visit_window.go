package politeness

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Window holds the hours of the day in which a host may be visited. The zero Window is always
// open.
//
// The hours are local time in the zone. When the clocks go forward, the skipped hour does not
// exist: a range that lies within it does not open that day, and a range that extends beyond it
// opens at the change. When the clocks go back, the repeated hour is open both times.
type Window struct {
	ranges []timeOfDayRange
	zone   *time.Location
	text   string // argument of ParseWindow
}

// A timeOfDayRange is a range of a day in seconds from midnight, from fromSecond inclusive to
// toSecond exclusive. It spans midnight if toSecond is less than fromSecond.
type timeOfDayRange struct{ fromSecond, toSecond int }

const secondsPerDay = 24 * 60 * 60

// ParseWindow parses ranges such as "22:00-06:00", separated by commas. zone is an IANA name such
// as "Europe/Prague"; empty means UTC. "Local" is an error. "24:00" is the end of a day. An empty
// range, and a range that begins at 24:00, are errors.
func ParseWindow(text, zone string) (Window, error) {
	if zone == "Local" {
		return Window{}, errors.New(`"Local" is another zone on each machine; write its name, as in Europe/Prague`)
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return Window{}, fmt.Errorf("%q is not a time zone; write it as in Europe/Prague or UTC", zone)
	}
	w := Window{zone: location, text: text}
	for part := range strings.SplitSeq(text, ",") {
		r, ok := parseTimeOfDayRange(strings.TrimSpace(part))
		if !ok {
			return Window{}, fmt.Errorf("%q is not a range of hours; write it as 22:00-06:00", strings.TrimSpace(part))
		}
		w.ranges = append(w.ranges, r)
	}
	return w, nil
}

// parseTimeOfDayRange parses one range such as "22:00-06:00".
func parseTimeOfDayRange(s string) (timeOfDayRange, bool) {
	begin, end, _ := strings.Cut(s, "-")
	from, ok := parseClock(strings.TrimSpace(begin))
	to, ok2 := parseClock(strings.TrimSpace(end))
	return timeOfDayRange{from, to}, ok && ok2 && from != to && from < secondsPerDay
}

// parseClock returns the seconds from midnight to a time such as "06:30", at most "24:00".
func parseClock(s string) (int, bool) {
	if len(s) != len("00:00") || s[2] != ':' {
		return 0, false
	}
	h, errH := strconv.ParseUint(s[:2], 10, 8)
	m, errM := strconv.ParseUint(s[3:], 10, 8)
	seconds := int(h*60+m) * 60
	return seconds, errH == nil && errM == nil && m < 60 && seconds <= secondsPerDay
}

// IsZero reports whether w has no ranges, so that it is always open.
func (w Window) IsZero() bool { return len(w.ranges) == 0 }

// String returns the argument of ParseWindow followed by the zone, or "always".
func (w Window) String() string {
	if w.IsZero() {
		return "always"
	}
	return w.text + " " + w.zone.String()
}

// IsOpen reports whether a visit may begin at t.
func (w Window) IsOpen(t time.Time) bool {
	return w.IsZero() || w.isOpenAtLocalTime(t.In(w.zone))
}

// isOpenAtLocalTime reports whether a range contains t, which is in w's zone.
func (w Window) isOpenAtLocalTime(t time.Time) bool {
	now := secondOfDay(t)
	return slices.ContainsFunc(w.ranges, func(r timeOfDayRange) bool {
		if r.fromSecond < r.toSecond {
			return r.fromSecond <= now && now < r.toSecond
		}
		return r.fromSecond > r.toSecond && (r.fromSecond <= now || now < r.toSecond)
	})
}

// secondOfDay returns the seconds that t's clock shows since midnight.
func secondOfDay(t time.Time) int {
	h, m, s := t.Clock()
	return (h*60+m)*60 + s
}

// NextOpen returns the first time at or after t at which the window is open.
func (w Window) NextOpen(t time.Time) time.Time {
	if w.IsOpen(t) {
		return t
	}
	for at := t.In(w.zone); ; {
		// Until the next change of the clocks, local time runs evenly.
		next := at.Truncate(time.Second).Add(w.untilNextRange(secondOfDay(at)))
		_, change := at.ZoneBounds()
		if change.IsZero() || next.Before(change) {
			return next.In(t.Location())
		}
		if at = change; w.isOpenAtLocalTime(at) {
			return at.In(t.Location())
		}
	}
}

// untilNextRange returns how long after second now of a day the next range begins, at least 1 s.
func (w Window) untilNextRange(now int) time.Duration {
	minSeconds := secondsPerDay
	for _, r := range w.ranges {
		minSeconds = min(minSeconds, (r.fromSecond-now+secondsPerDay-1)%secondsPerDay+1)
	}
	return time.Duration(minSeconds) * time.Second
}
