package crawltest

import (
	"net/http"
	"slices"
	"time"
)

// A rulesState is what a crawler may know of an origin's robots.txt.
type rulesState uint8

const (
	unread           rulesState = iota // not asked for, or its redirects not followed to their end
	rulesUnreachable                   // unreachable: nothing may be visited
	open                               // its rules hold; none, if it answered 4xx
)

// A law is what binds a visitor of an origin at a moment.
type law struct {
	state rulesState
	rules Robots
	read  time.Time // when its last answer had ended
}

// What RFC 9309 says in numbers.
const (
	robotsHops  = 5                   // redirects that are followed (2.3.1.2)
	robotsBytes = 500 << 10           // of the file that must be read (2.5)
	longOutage  = 30 * 24 * time.Hour // after which the last good file holds (2.3.1.4)
)

// archives are the exchanges of a log by URL, in the order in which they ended.
type archives map[string][]Exchange

func newArchives(log []Exchange) archives {
	a := archives{}
	for _, x := range log {
		if !x.End.IsZero() {
			a[x.URL] = append(a[x.URL], x)
		}
	}
	for _, xs := range a {
		slices.SortStableFunc(xs, func(x, y Exchange) int { return x.End.Compare(y.End) })
	}
	return a
}

// before returns how many exchanges of url had ended at a moment.
func (a archives) before(url string, at time.Time) int {
	n, _ := slices.BinarySearchFunc(a[url], at, func(x Exchange, at time.Time) int {
		if x.End.After(at) {
			return 1
		}
		return -1
	})
	return n
}

// law returns what bound a visitor of an origin at a moment, from what was
// asked after a restart.
func (a archives) law(site *Site, origin string, at, restart time.Time) law {
	asked := a[origin+robotsPath][:a.before(origin+robotsPath, at)]
	if len(asked) == 0 || asked[len(asked)-1].Start.Before(restart) {
		return law{}
	}
	first := asked[len(asked)-1]
	last, ok := a.follow(first, at)
	switch {
	case !ok:
		return law{}
	case unreachable(last):
		return a.outage(site, asked, at)
	}
	return law{state: open, rules: rulesOf(site, first.Start, last), read: last.End}
}

// rulesOf returns the rules of a robots.txt that was asked for at a moment and
// answered, after its redirects, by last.
func rulesOf(site *Site, asked time.Time, last Exchange) Robots {
	if last.Status/100 != 2 {
		return Robots{}
	}
	return site.robots(asked)
}

// follow returns what a robots.txt's redirects had led to at a moment, false
// if they had not been followed to their end.
func (a archives) follow(x Exchange, at time.Time) (Exchange, bool) {
	for hop := 0; redirects(x); hop++ {
		to := target(x)
		if hop == robotsHops || to == "" {
			return Exchange{Status: http.StatusNotFound, End: x.End}, true
		}
		n := a.before(to, at)
		if n == 0 {
			return x, false
		}
		x = a[to][n-1]
	}
	return x, true
}

// outage returns the law when the last answer for a robots.txt was none: all
// is closed, unless it has lasted so long that the last good file holds.
func (a archives) outage(site *Site, asked []Exchange, at time.Time) law {
	i := len(asked) - 1
	for i > 0 && unreachable(asked[i-1]) {
		i--
	}
	if at.Sub(asked[i].Start) <= longOutage {
		return law{state: rulesUnreachable}
	}
	l := law{state: open, read: asked[len(asked)-1].End}
	for _, x := range slices.Backward(asked[:i]) {
		if x.Status/100 == 2 {
			l.rules = rulesOf(site, x.Start, x)
			break
		}
	}
	return l
}

// unreachable reports whether an answer to a request for robots.txt counts as
// none.
func unreachable(x Exchange) bool {
	switch {
	case x.Status < 200, x.Status == http.StatusNotModified, x.Status == http.StatusTooManyRequests, x.Status >= 500:
		return true
	}
	return x.Broken && x.Bytes < robotsBytes
}

func redirects(x Exchange) bool {
	return x.Status/100 == 3 && x.Status != http.StatusNotModified && x.Status != http.StatusMultipleChoices
}

// target returns where a redirect leads, "" if nowhere.
func target(x Exchange) string {
	if x.Location == "" {
		return ""
	}
	return join(x.URL, x.Location)
}
