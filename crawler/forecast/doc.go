// Package forecast works out how long a crawl takes, and how many requests it
// makes, from how many pages each of its hosts has. It plays the crawl through
// visit by visit, in a time of its own, and asks the crawl's own policy for each
// rest: the forecast is the enforcement, with a clock that need not be waited for.
//
// It fetches nothing, reads no clock, and does not know what it is not told: of
// pages that are found by links, redirect or fail it says nothing.
package forecast
