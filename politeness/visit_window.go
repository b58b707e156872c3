package politeness

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Window is the hours of the day in which a host may be visited. The zero
// Window is always open.
//
// The hours are those of a clock on the wall of the zone. When the clocks go
// forward, the hour that does not exist is not there to be used: a window that
// lies within it stays shut that day, and one that reaches beyond it opens at
// the jump. When they go back, the hour that comes twice is open both times.
type Window struct {
	ranges []timeOfDayRange
	zone   *time.Location
	text   string
}

// timeOfDayRange are a range of a day in seconds from midnight: from is in it, to is
// not. It runs over midnight if to comes before from.
type timeOfDayRange struct{ fromSecond, toSecond int }

const secondsPerDay = 24 * 60 * 60 // seconds

// ParseWindow reads ranges such as "22:00-06:00", separated by commas. zone is
// an IANA name such as "Europe/Prague"; empty means UTC. "24:00" is the end of
// a day. A range without length, or that begins at 24:00, is refused.
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

func parseTimeOfDayRange(s string) (timeOfDayRange, bool) {
	begin, end, _ := strings.Cut(s, "-")
	from, ok := parseClock(strings.TrimSpace(begin))
	to, ok2 := parseClock(strings.TrimSpace(end))
	return timeOfDayRange{from, to}, ok && ok2 && from != to && from < secondsPerDay
}

// parseClock reads "06:30" as seconds from midnight.
func parseClock(s string) (int, bool) {
	if len(s) != len("00:00") || s[2] != ':' {
		return 0, false
	}
	h, errH := strconv.ParseUint(s[:2], 10, 8)
	m, errM := strconv.ParseUint(s[3:], 10, 8)
	seconds := int(h*60+m) * 60
	return seconds, errH == nil && errM == nil && m < 60 && seconds <= secondsPerDay
}

// IsZero reports whether w is always open because nothing was said.
func (w Window) IsZero() bool { return len(w.ranges) == 0 }

// String returns the hours as ParseWindow reads them, and the zone.
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

// isOpenAtLocalTime reports whether a range holds t, which is in w's zone.
func (w Window) isOpenAtLocalTime(t time.Time) bool {
	now := secondOfDay(t)
	return slices.ContainsFunc(w.ranges, func(r timeOfDayRange) bool {
		if r.fromSecond < r.toSecond {
			return r.fromSecond <= now && now < r.toSecond
		}
		return r.fromSecond > r.toSecond && (r.fromSecond <= now || now < r.toSecond)
	})
}

func secondOfDay(t time.Time) int {
	h, m, s := t.Clock()
	return (h*60+m)*60 + s
}

// NextOpen returns the first moment from t on at which the window is open: t
// itself if it is.
func (w Window) NextOpen(t time.Time) time.Time {
	if w.IsOpen(t) {
		return t
	}
	for at := t.In(w.zone); ; {
		// Up to the next change of the clocks the wall runs evenly.
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

// untilNextRange returns how long after the given second of a day a range begins.
func (w Window) untilNextRange(now int) time.Duration {
	minSeconds := secondsPerDay
	for _, r := range w.ranges {
		minSeconds = min(minSeconds, (r.fromSecond-now+secondsPerDay-1)%secondsPerDay+1)
	}
	return time.Duration(minSeconds) * time.Second
}
