package robots

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Request-rate and Visit-time come from "An Extended Standard for Robot
// Exclusion" (S. Conner, 1996). Neither Google nor Yandex knows them; they are
// read as extensions, in every dialect, and shape no groups (GRP-08).

// A pace is what the Request-rate and Visit-time lines of a record ask for.
type pace struct {
	rates  []requestRate
	visits []daytime
}

// A requestRate asks for a pause during some time of the day.
type requestRate struct {
	pause  time.Duration
	during daytime
}

// A daytime is a part of each day in UTC, in minutes from midnight: from is in
// it, to is not. It runs over midnight if to comes before from; the zero
// daytime is the whole day.
type daytime struct{ from, to int }

const minutesOfDay = 24 * 60

// has reports whether t is in the daytime.
func (d daytime) has(t time.Time) bool {
	t = t.UTC()
	now := t.Hour()*60 + t.Minute()
	if d.from <= d.to {
		return d == daytime{} || d.from <= now && now < d.to
	}
	return d.from <= now || now < d.to
}

// Pause returns how long the agent is asked to pause between two requests at
// the moment t: the longest of Crawl-delay and of the Request-rate lines that
// are in force then. It is never negative and at most a year.
func (r *Rules) Pause(t time.Time) time.Duration {
	longest := r.delay
	for _, rate := range r.pace.rates {
		if rate.during.has(t) {
			longest = max(longest, rate.pause)
		}
	}
	return longest
}

// Opens returns the first moment from t on at which Visit-time lets the agent
// come: t itself if it does, or if the file says nothing of it. Of several
// lines each names hours in which it may come.
func (r *Rules) Opens(t time.Time) time.Time {
	if len(r.pace.visits) == 0 {
		return t
	}
	minWait := minutesOfDay
	utc := t.UTC()
	now := utc.Hour()*60 + utc.Minute()
	for _, d := range r.pace.visits {
		if d.has(t) {
			return t
		}
		minWait = min(minWait, (d.from-now+minutesOfDay)%minutesOfDay)
	}
	return t.Truncate(time.Minute).Add(time.Duration(minWait) * time.Minute)
}

// PaceLines returns the Request-rate and Visit-time lines that bind the agent,
// as Pause and Opens read them: "request-rate: 1/300s 0800-1300", "visit-time:
// 0600-0845". What is said twice is there once.
func (r *Rules) PaceLines() []string {
	var lines []string
	for _, rate := range r.pace.rates {
		s := requestRateLine.String() + ": 1/" + strconv.FormatFloat(rate.pause.Seconds(), 'f', -1, 64) + "s"
		if rate.during != (daytime{}) {
			s += " " + rate.during.String()
		}
		lines = append(lines, s)
	}
	for _, d := range r.pace.visits {
		lines = append(lines, visitTime.String()+": "+d.String())
	}
	return lines
}

// String returns the daytime as the lines write it.
func (d daytime) String() string { return clock(d.from) + "-" + clock(d.to) }

func clock(minutes int) string {
	digits := strconv.Itoa(10_000 + minutes/60*100 + minutes%60)
	return digits[1:]
}

// paceFor returns what the pace lines of the records that name a with the given
// rank ask for. A record is a run of user-agent lines and what follows it; any
// line of these three kinds and any rule ends the run here, as Crawl-delay does
// for itself (DELAY-09). Of what is said twice one is kept, so that a file
// cannot make a question of the rules long.
func (f *File) paceFor(a Agent, best rank) pace {
	var p pace
	var record run
	for _, l := range f.lines {
		switch l.field {
		case userAgent:
			record.add(f.rank(a, l.value) == best)
			continue
		case allow, disallow, crawlDelay:
		case requestRateLine:
			if r, ok := parseRate(l.value); ok && record.named {
				p.addRate(r)
			}
		case visitTime:
			if d, ok := parseDaytime(l.value); ok && record.named {
				p.addVisit(d)
			}
		default:
			continue
		}
		record.open = false
	}
	return p
}

// maxTimeRanges is how many different hours of one kind are kept. Of further rates
// the pause is kept for the whole day; of further visits nothing is.
const maxTimeRanges = 32

func (p *pace) addRate(r requestRate) {
	if len(p.rates) >= maxTimeRanges {
		r.during = daytime{}
	}
	for i := range p.rates {
		if p.rates[i].during == r.during {
			p.rates[i].pause = max(p.rates[i].pause, r.pause)
			return
		}
	}
	p.rates = append(p.rates, r)
}

func (p *pace) addVisit(d daytime) {
	for _, known := range p.visits {
		if known == d {
			return
		}
	}
	if len(p.visits) < maxTimeRanges {
		p.visits = append(p.visits, d)
	}
}

// parseRate reads "documents/time [hours]": 1/10, 1/10s, 1/5m 0800-1300, with
// seconds, minutes, hours or days. A rate of no documents says nothing.
func parseRate(s string) (requestRate, bool) {
	rate, during, timed := strings.Cut(strings.ReplaceAll(s, "\t", " "), " ")
	documents, span, ok := strings.Cut(rate, "/")
	n, okN := wholeNumber(documents)
	if !ok || !okN || n == 0 {
		return requestRate{}, false
	}
	unit := time.Second
	if end := len(span) - 1; end > 0 {
		if u, known := rateUnits[span[end]|0x20]; known {
			unit, span = u, span[:end]
		}
	}
	m, ok := wholeNumber(span)
	r := requestRate{pause: maxDelay}
	if pause := m / n * float64(unit); pause < float64(maxDelay) {
		r.pause = time.Duration(math.Ceil(pause))
	}
	if timed && ok {
		r.during, ok = parseDaytime(strings.TrimLeft(during, " "))
	}
	return r, ok
}

// rateUnits are the units of a Request-rate, in lower case.
var rateUnits = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': day}

func wholeNumber(s string) (float64, bool) {
	if s == "" || strings.Trim(s, digits) != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil || math.IsInf(n, 1)
}

// parseDaytime reads "0600-0845"; colons and spaces around the hyphen are
// forgiven. Hours without length, which nobody can keep to, say nothing.
func parseDaytime(s string) (daytime, bool) {
	begin, end, _ := strings.Cut(s, "-")
	from, ok := parseHHMM(trim(begin))
	to, ok2 := parseHHMM(trim(end))
	return daytime{from % minutesOfDay, to}, ok && ok2 && from%minutesOfDay != to
}

// parseHHMM reads "0845" or "08:45" as minutes from midnight.
func parseHHMM(s string) (int, bool) {
	if len(s) == len("08:45") && s[2] == ':' {
		s = s[:2] + s[3:]
	}
	if len(s) != len("0845") || strings.Trim(s, digits) != "" {
		return 0, false
	}
	n, _ := strconv.Atoi(s) // four digits
	minutes := n/100*60 + n%100
	return minutes, n%100 < 60 && minutes <= minutesOfDay
}
