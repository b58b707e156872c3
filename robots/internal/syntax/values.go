package syntax

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
)

// BeginsWithSlashOrStar reports whether a rule with this path has an effect: the path
// begins with the root or a wildcard (SYN-09 to SYN-11).
func BeginsWithSlashOrStar(path string) bool {
	return path != "" && (path[0] == '/' || path[0] == '*')
}

// maxDelay bounds what a file can ask for, so that nobody's sums overflow.
const maxDelay = 365 * 24 * time.Hour

// ParseCrawlDelay reads a number of seconds, with a point or without (DELAY-02,
// DELAY-11).
func ParseCrawlDelay(s string) (time.Duration, bool) {
	if strings.Trim(s, Digits+".") != "" {
		return 0, false // strconv reads signs, exponents and words as well
	}
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(seconds, 1) {
		return 0, false
	}
	if seconds >= maxDelay.Seconds() {
		return maxDelay, true
	}
	return time.Duration(math.Round(seconds * float64(time.Second))), true
}

// ParseAbsoluteURL returns the URL that s is, and false if it lacks a scheme or a host
// (SMAP-02): where browsers make a host of what should be the path, as in
// "http:///sitemap.xml", the author meant another.
func ParseAbsoluteURL(s string) (decorum.URL, bool) {
	scheme, rest, _ := strings.Cut(s, "://")
	if strings.ContainsAny(scheme, `/\`) || rest == "" || strings.IndexByte(`/\?#`, rest[0]) >= 0 {
		return decorum.URL{}, false
	}
	u, err := decorum.ParseURL(s)
	return u, err == nil
}

// MaxCleanParamWildcards is how many wildcards the path of a Clean-param line may have, one
// at its end not counted. A line with more is ignored.
const MaxCleanParamWildcards = 16
