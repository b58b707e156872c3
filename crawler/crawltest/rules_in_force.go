package crawltest

import (
	"net/http"
	"slices"
	"time"
)

// A robotsLookupState is what a crawler may know of an origin's robots.txt.
type robotsLookupState uint8

const (
	rulesUnread      robotsLookupState = iota // not asked for, or its redirects not followed to their end
	rulesUnreachable                          // unreachable: nothing may be visited
	rulesKnown                                // its rules hold; none, if it answered 4xx
)

// A rulesInForce is what binds a visitor of an origin at a moment.
type rulesInForce struct {
	state  robotsLookupState
	rules  RobotsSpec
	readAt time.Time // when its last answer had ended
}

// What RFC 9309 says in numbers.
const (
	maxRobotsRedirects   = 5                   // redirects that are followed (2.3.1.2)
	minParsedRobotsBytes = 500 << 10           // of the file that must be read (2.5)
	outageLimit          = 30 * 24 * time.Hour // after which the last good file holds (2.3.1.4)
)

// exchangesByURL are the exchanges of a log by URL, in the order in which they ended.
type exchangesByURL map[string][]Exchange

func groupByURL(log []Exchange) exchangesByURL {
	a := exchangesByURL{}
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

// countEnded returns how many exchanges of url had ended at a moment.
func (a exchangesByURL) countEnded(url string, at time.Time) int {
	n, _ := slices.BinarySearchFunc(a[url], at, func(x Exchange, at time.Time) int {
		if x.End.After(at) {
			return 1
		}
		return -1
	})
	return n
}

// rulesAt returns what bound a visitor of an origin at a moment, from what was
// asked after a restart.
func (a exchangesByURL) rulesAt(site *Site, origin string, at, restart time.Time) rulesInForce {
	requests := a[origin+robotsPath][:a.countEnded(origin+robotsPath, at)]
	if len(requests) == 0 || requests[len(requests)-1].Start.Before(restart) {
		return rulesInForce{}
	}
	first := requests[len(requests)-1]
	last, ok := a.followRedirects(first, at)
	switch {
	case !ok:
		return rulesInForce{}
	case isRobotsUnreachable(last):
		return a.robotsRulesInOutage(site, requests, at)
	}
	return rulesInForce{state: rulesKnown, rules: rulesFromResponse(site, first.Start, last), readAt: last.End}
}

// rulesFromResponse returns the rules of a robots.txt that was asked for at a moment and
// answered, after its redirects, by last.
func rulesFromResponse(site *Site, requestedAt time.Time, last Exchange) RobotsSpec {
	if last.Status/100 != 2 {
		return RobotsSpec{}
	}
	return site.robotsAt(requestedAt)
}

// followRedirects returns what a robots.txt's redirects had led to at a moment, false
// if they had not been followed to their end.
func (a exchangesByURL) followRedirects(x Exchange, at time.Time) (Exchange, bool) {
	for redirect := 0; isRedirect(x); redirect++ {
		to := redirectTarget(x)
		if redirect == maxRobotsRedirects || to == "" {
			return Exchange{Status: http.StatusNotFound, End: x.End}, true
		}
		n := a.countEnded(to, at)
		if n == 0 {
			return x, false
		}
		x = a[to][n-1]
	}
	return x, true
}

// robotsRulesInOutage returns the law when the last answer for a robots.txt was none: all
// is closed, unless it has lasted so long that the last good file holds.
func (a exchangesByURL) robotsRulesInOutage(site *Site, requests []Exchange, at time.Time) rulesInForce {
	i := len(requests) - 1
	for i > 0 && isRobotsUnreachable(requests[i-1]) {
		i--
	}
	if at.Sub(requests[i].Start) <= outageLimit {
		return rulesInForce{state: rulesUnreachable}
	}
	l := rulesInForce{state: rulesKnown, readAt: requests[len(requests)-1].End}
	for _, x := range slices.Backward(requests[:i]) {
		if x.Status/100 == 2 {
			l.rules = rulesFromResponse(site, x.Start, x)
			break
		}
	}
	return l
}

// isRobotsUnreachable reports whether an answer to a request for robots.txt counts as
// none.
func isRobotsUnreachable(x Exchange) bool {
	switch {
	case x.Status < 200, x.Status == http.StatusNotModified, x.Status == http.StatusTooManyRequests, x.Status >= 500:
		return true
	}
	return x.Incomplete && x.BodyBytes < minParsedRobotsBytes
}

func isRedirect(x Exchange) bool {
	return x.Status/100 == 3 && x.Status != http.StatusNotModified && x.Status != http.StatusMultipleChoices
}

// redirectTarget returns where a redirect leads, "" if nowhere.
func redirectTarget(x Exchange) string {
	if x.Location == "" {
		return ""
	}
	return resolveURL(x.URL, x.Location)
}
