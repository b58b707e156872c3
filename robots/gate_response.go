package robots

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A classifiedResponse is what one response means to a lookup: exactly one field is set.
type classifiedResponse struct {
	answer *answer     // the lookup is over
	to     decorum.URL // it goes on there
	failed *failure    // it is to be made again
}

// A failure is a server error, a failed download among them.
type failure struct {
	why     string
	backoff Backoff
	wish    time.Duration // what Retry-After asked for
}

// wait returns how long to wait after the failure, one of so many in a row.
func (f *failure) wait(failures int) time.Duration {
	return max(f.backoff.after(failures), min(f.wish, maxRetryAfter))
}

// maxRetryAfter bounds what a Retry-After can ask for.
const maxRetryAfter = day

// read says what a response means, in the order of the FETCH requirements.
// What is not known to mean anything else is a failure.
func (g *Gate) read(now time.Time, c Clearance, res *decorum.Response, err error) classifiedResponse {
	if g.cfg.Dialect == Yandex {
		return g.readYandex(now, res, err)
	}
	if err != nil || res == nil {
		return classifiedResponse{failed: &failure{why: failedDownload(err), backoff: g.cfg.Retry}} // FETCH-18, FETCH-19
	}
	switch s := res.Status; {
	case s >= 200 && s <= 299:
		return classifiedResponse{answer: g.file(now, res)} // FETCH-01
	case s >= 300 && s <= 399 && s != http.StatusNotModified:
		if to, ok := res.Location(); ok && c.hop < g.cfg.MaxHops {
			return classifiedResponse{to: to} // FETCH-02
		}
		return classifiedResponse{answer: g.noFile(now, res)} // FETCH-03, FETCH-26
	case s >= 400 && s <= 499 && s != http.StatusTooManyRequests:
		return classifiedResponse{answer: g.noFile(now, res)} // FETCH-07
	case s == http.StatusServiceUnavailable:
		return classifiedResponse{failed: serverError(now, res, g.cfg.Retry503)} // FETCH-12
	case s >= 500 && s <= 599 && g.saysNotFound(res.Body):
		return classifiedResponse{answer: g.noFile(now, res)} // FETCH-17
	}
	return classifiedResponse{failed: serverError(now, res, g.cfg.Retry)} // FETCH-09, FETCH-10, FETCH-27
}

// file keeps a 2xx.
func (g *Gate) file(now time.Time, res *decorum.Response) *answer {
	a := g.noFile(now, res)
	a.IsFile = true
	a.body = whole(res.Body, res.Truncated)
	sum := sha256.Sum256(a.body)
	a.SHA256 = hex.EncodeToString(sum[:])
	return a
}

// noFile keeps an answer that means that there is no valid file.
func (g *Gate) noFile(now time.Time, res *decorum.Response) *answer {
	return &answer{
		Status: res.Status, Fetched: now, Expires: now.Add(g.cfg.life(res.Header)),
		ETag: short(res.Header.Get("ETag")), LastModified: short(res.Header.Get("Last-Modified")),
	}
}

// whole returns what of a body is read. One byte beyond the limit shows the
// parser that there was more. In a body that the fetcher cut before that, the
// last line may be half a path, which could block or open too much (FMT-11).
func whole(body []byte, truncated bool) []byte {
	if len(body) > Limit {
		return body[:Limit+1]
	}
	if truncated {
		return body[:bytes.LastIndexAny(body, "\r\n")+1]
	}
	return body
}

// saysNotFound reports whether an error page says that the page was not found.
func (g *Gate) saysNotFound(page []byte) bool {
	const head = 64 << 10 // enough of a page to tell what it is about
	page = bytes.ToLower(page[:min(len(page), head)])
	for _, phrase := range g.cfg.NotFound {
		if phrase != "" && bytes.Contains(page, []byte(phrase)) {
			return true
		}
	}
	return false
}

func serverError(now time.Time, res *decorum.Response, b Backoff) *failure {
	return &failure{
		why:     fmt.Sprintf("robots.txt: status %d", res.Status),
		backoff: b,
		wish:    retryAfter(res.Header.Get("Retry-After"), now),
	}
}

func failedDownload(err error) string {
	if err == nil {
		return "robots.txt: no response"
	}
	return "robots.txt: " + short(err.Error())
}

// short bounds what a server can make us keep.
func short(s string) string {
	const maxBytes = 512
	return strings.ToValidUTF8(s[:min(len(s), maxBytes)], "")
}

// life returns how long an answer with that header holds.
func (c GateConfig) life(h http.Header) time.Duration {
	d, ok := maxAge(h.Values("Cache-Control"))
	if !ok {
		d = day // CACHE-01
	}
	return min(max(d, c.MinTTL), c.MaxTTL) // CACHE-07
}

// maxAge returns the shortest life that Cache-Control headers state, and false
// if they state none (CACHE-04, CACHE-05).
func maxAge(headers []string) (age time.Duration, stated bool) {
	for _, directive := range strings.Split(strings.Join(headers, ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		d, ok := time.Duration(0), false
		switch strings.ToLower(name) {
		case "no-cache", "no-store":
			ok = true
		case "max-age":
			d, ok = wholeSeconds(strings.Trim(value, `"`))
		}
		if ok && (!stated || d < age) {
			age, stated = d, true
		}
	}
	return age, stated
}

// retryAfter reads a Retry-After header: seconds, or a date. What it cannot
// read asks for nothing.
func retryAfter(value string, now time.Time) time.Duration {
	if d, ok := wholeSeconds(value); ok {
		return d
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// wholeSeconds reads a whole number of seconds. One that is too large for a
// Duration is a year.
func wholeSeconds(s string) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	if s == "" || strings.Trim(s, digits) != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > int64(maxDelay/time.Second) {
		return maxDelay, true
	}
	return time.Duration(n) * time.Second, true
}
