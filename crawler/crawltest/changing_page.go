package crawltest

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
)

// A Changing page is another after each of its Changes.
type Changing struct {
	Changes []time.Time        // in order
	Answer  func(n int) Answer // what the page is after n changes
	// ETag and LastModified say which validators it is sent with. The date is
	// that of the last change; before the first there is none.
	ETag, LastModified bool
}

// Page answers a request.
func (c Changing) Page(r Request) Answer {
	n := c.version(r.At)
	a := c.Answer(n)
	if a.Header = maps.Clone(a.Header); a.Header == nil {
		a.Header = http.Header{}
	}
	if c.ETag {
		a.Header.Set("ETag", fmt.Sprintf("%q", fmt.Sprint(n)))
	}
	if c.LastModified && n > 0 {
		a.Header.Set("Last-Modified", c.Changes[n-1].UTC().Format(http.TimeFormat))
	}
	return a
}

// version returns how many changes there have been at a moment.
func (c Changing) version(at time.Time) int {
	n := 0
	for n < len(c.Changes) && !c.Changes[n].After(at) {
		n++
	}
	return n
}

// unchanged reports whether the client holds the page already (RFC 9110,
// sections 13.1.2 and 13.1.3).
func unchanged(asked http.Header, d delivery) bool {
	if d.status != http.StatusOK {
		return false
	}
	if tags := asked.Get("If-None-Match"); tags != "" {
		return holds(tags, d.header.Get("ETag"))
	}
	since, err := http.ParseTime(asked.Get("If-Modified-Since"))
	modified, err2 := http.ParseTime(d.header.Get("Last-Modified"))
	return err == nil && err2 == nil && !modified.After(since)
}

// holds reports whether a list of entity tags has one, by weak comparison.
func holds(tags, tag string) bool {
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
