package crawltest

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
)

// A ChangingPage is a page that changes at each of its ChangeTimes. Its method Respond is a PageFunc.
type ChangingPage struct {
	ChangeTimes          []time.Time          // in ascending order
	ResponseAfterChanges func(n int) Response // the page after n changes
	// SendETag and SendLastModified say which validators the page has. Last-Modified is the time of
	// the last change; before the first change it is absent.
	SendETag, SendLastModified bool
}

// Respond returns the answer to a request at r.ReceivedAt.
func (c ChangingPage) Respond(r PageRequest) Response {
	n := c.versionAt(r.ReceivedAt)
	a := c.ResponseAfterChanges(n)
	if a.Header = maps.Clone(a.Header); a.Header == nil {
		a.Header = http.Header{}
	}
	if c.SendETag {
		a.Header.Set("ETag", fmt.Sprintf("%q", fmt.Sprint(n)))
	}
	if c.SendLastModified && n > 0 {
		a.Header.Set("Last-Modified", c.ChangeTimes[n-1].UTC().Format(http.TimeFormat))
	}
	return a
}

// versionAt returns the number of changes up to at.
func (c ChangingPage) versionAt(at time.Time) int {
	n := 0
	for n < len(c.ChangeTimes) && !c.ChangeTimes[n].After(at) {
		n++
	}
	return n
}

// isNotModified reports whether the headers of a conditional request match the answer, so that 304 is
// due (RFC 9110, sections 13.1.2 and 13.1.3).
func isNotModified(request http.Header, d wireResponse) bool {
	if d.status != http.StatusOK {
		return false
	}
	if tags := request.Get("If-None-Match"); tags != "" {
		return containsETag(tags, d.header.Get("ETag"))
	}
	since, err := http.ParseTime(request.Get("If-Modified-Since"))
	modified, err2 := http.ParseTime(d.header.Get("Last-Modified"))
	return err == nil && err2 == nil && !modified.After(since)
}

// containsETag reports whether a list of entity tags contains tag, by weak comparison.
func containsETag(tags, tag string) bool {
	if tags == "*" {
		return true
	}
	tag = strings.TrimPrefix(tag, "W/")
	for t := range strings.SplitSeq(tags, ",") {
		if tag != "" && strings.TrimPrefix(strings.TrimSpace(t), "W/") == tag {
			return true
		}
	}
	return false
}
