package crawltest

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
)

// A ChangingPage is another after each of its ChangeTimes.
type ChangingPage struct {
	ChangeTimes          []time.Time          // in order
	ResponseAfterChanges func(n int) Response // what the page is after n changes
	// SendETag and SendLastModified say which validators it is sent with. The date is
	// that of the last change; before the first there is none.
	SendETag, SendLastModified bool
}

// Respond answers a request.
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

// versionAt returns how many changes there have been at a moment.
func (c ChangingPage) versionAt(at time.Time) int {
	n := 0
	for n < len(c.ChangeTimes) && !c.ChangeTimes[n].After(at) {
		n++
	}
	return n
}

// isNotModified reports whether the client holds the page already (RFC 9110,
// sections 13.1.2 and 13.1.3).
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

// containsETag reports whether a list of entity tags has one, by weak comparison.
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
