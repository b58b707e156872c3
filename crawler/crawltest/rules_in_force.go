package crawltest

import (
	"net/http"
	"slices"
	"time"
)

// A robotsLookupState is what a crawler can know about an origin's robots.txt.
type robotsLookupState uint8

const (
	rulesUnread      robotsLookupState = iota // not requested, or its redirects not followed to the end
	rulesUnreachable                          // unreachable: no page may be requested
	rulesKnown                                // its rules apply; after 4xx there are none
)

// A rulesInForce is the rules that bind a crawler at an origin at a given time.
type rulesInForce struct {
	state  robotsLookupState
	rules  RobotsSpec
	readAt time.Time // the end of the last answer for the robots.txt
}

// The limits of RFC 9309.
const (
	maxRobotsRedirects   = 5                   // redirects that a crawler follows (section 2.3.1.2)
	minParsedRobotsBytes = 500 << 10           // bytes of the file that a crawler reads (section 2.5)
	outageLimit          = 30 * 24 * time.Hour // of an outage, until the last good file applies (section 2.3.1.4)
)

// exchangesByURL holds the ended exchanges of a log by URL, in the order of their End.
type exchangesByURL map[string][]Exchange

// groupByURL returns the ended exchanges of log by URL.
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

// countEnded returns how many exchanges of url had ended by at.
func (a exchangesByURL) countEnded(url string, at time.Time) int {
	n, _ := slices.BinarySearchFunc(a[url], at, func(x Exchange, at time.Time) int {
		if x.End.After(at) {
			return 1
		}
		return -1
	})
	return n
}

// rulesAt returns the rules that bound a crawler at an origin at the time at. It ignores requests
// for robots.txt that were sent before restart.
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

// rulesFromResponse returns the rules of a robots.txt that was requested at requestedAt and answered,
// after its redirects, by last.
func rulesFromResponse(site *Site, requestedAt time.Time, last Exchange) RobotsSpec {
	if last.Status/100 != 2 {
		return RobotsSpec{}
	}
	return site.robotsAt(requestedAt)
}

// followRedirects returns the exchange at the end of the redirects that begin with x, and false if
// the crawler had not followed them to the end by at. More than maxRobotsRedirects count as 404.
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

// robotsRulesInOutage returns the rules at the time at if the last request for a robots.txt found it
// unreachable. Up to outageLimit no page may be requested; after it the last good file applies.
func (a exchangesByURL) robotsRulesInOutage(site *Site, requests []Exchange, at time.Time) rulesInForce {
	// Find the first request of the outage.
	i := len(requests) - 1
	for i > 0 && isRobotsUnreachable(requests[i-1]) {
		i--
	}
	if at.Sub(requests[i].Start) <= outageLimit {
		return rulesInForce{state: rulesUnreachable}
	}
	// Find the last good file before it.
	l := rulesInForce{state: rulesKnown, readAt: requests[len(requests)-1].End}
	for _, x := range slices.Backward(requests[:i]) {
		if x.Status/100 == 2 {
			l.rules = rulesFromResponse(site, x.Start, x)
			break
		}
	}
	return l
}

// isRobotsUnreachable reports whether an answer to a request for robots.txt means that the file is
// unreachable.
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

// redirectTarget returns the URL that a redirect leads to, or "" if it names none.
func redirectTarget(x Exchange) string {
	if x.Location == "" {
		return ""
	}
	return resolveURL(x.URL, x.Location)
}
