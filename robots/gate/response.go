package gate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/httpcache"
	"github.com/decorum-crawler/decorum/robots"
)

// A classifiedResponse is the meaning of one response for a fetch. Exactly one field is set.
type classifiedResponse struct {
	finalResponse *storedResponse // the fetch is complete
	redirectURL   decorum.URL     // the fetch continues at this URL
	failure       *fetchFailure   // the fetch must be repeated
}

// A fetchFailure is a server error or a failed request.
type fetchFailure struct {
	reason        string
	answered      bool // there was a response
	backoffBounds Backoff
	retryAfter    time.Duration // from the Retry-After header; 0 without one
}

// retryDelay returns how long to wait after the failure, which is the failures-th in a row.
func (f *fetchFailure) retryDelay(failures int) time.Duration {
	return max(f.backoffBounds.delayAfter(failures), min(f.retryAfter, maxRetryAfter))
}

// maxRetryAfter limits the wait that a Retry-After header can demand.
const maxRetryAfter = day

// classifyResponse returns the meaning of a response, by the FETCH requirements in their order. A
// response without a known meaning is a failure.
func (g *Gate) classifyResponse(now time.Time, c Clearance, res *decorum.Response, err error) classifiedResponse {
	if g.cfg.Dialect == robots.Yandex {
		return g.classifyYandexResponse(now, res, err)
	}
	if err != nil || res == nil {
		// FETCH-18, FETCH-19
		return classifiedResponse{failure: &fetchFailure{reason: downloadFailureText(err),
			backoffBounds: g.cfg.Backoff}}
	}
	switch s := res.Status; {
	case s >= 200 && s <= 299:
		return classifiedResponse{finalResponse: g.newFileResponse(now, res)} // FETCH-01
	case s >= 300 && s <= 399 && s != http.StatusNotModified:
		if to, ok := res.Location(); ok && c.redirectCount < g.cfg.MaxRedirects {
			return classifiedResponse{redirectURL: to} // FETCH-02
		}
		return classifiedResponse{finalResponse: g.newNoFileResponse(now, res)} // FETCH-03, FETCH-26
	case s >= 400 && s <= 499 && s != http.StatusTooManyRequests:
		return classifiedResponse{finalResponse: g.newNoFileResponse(now, res)} // FETCH-07
	case s == http.StatusServiceUnavailable:
		return classifiedResponse{failure: newServerFailure(now, res, g.cfg.Backoff503)} // FETCH-12
	case s >= 500 && s <= 599 && containsAnyPhrase(res.Body, g.cfg.NotFoundPhrases):
		return classifiedResponse{finalResponse: g.newNoFileResponse(now, res)} // FETCH-17
	}
	return classifiedResponse{failure: newServerFailure(now, res, g.cfg.Backoff)} // FETCH-09, FETCH-10, FETCH-27
}

// newFileResponse returns the storedResponse for a response with a file.
func (g *Gate) newFileResponse(now time.Time, res *decorum.Response) *storedResponse {
	a := g.newNoFileResponse(now, res)
	a.IsRobotsFile = true
	a.body = parsableBody(res.Body, res.BodyLimitExceeded)
	sum := sha256.Sum256(a.body)
	a.SHA256 = hex.EncodeToString(sum[:])
	return a
}

// newNoFileResponse returns the storedResponse for a response which means that the origin has no valid file.
func (g *Gate) newNoFileResponse(now time.Time, res *decorum.Response) *storedResponse {
	return &storedResponse{
		Status: res.Status, FetchedAt: now, ExpiresAt: now.Add(g.cfg.responseTTL(now, res)),
		ETag:         truncateForStorage(res.Header.Get("ETag")),
		LastModified: truncateForStorage(res.Header.Get("Last-Modified")),
	}
}

// parsableBody returns the part of a body that is stored and parsed. It is one byte longer than
// robots.MaxFileBytes, from which the parser sees that the body was longer. If the fetcher cut the
// body earlier, parsableBody drops its last line, because half a path could disallow or allow too
// much (FMT-11).
func parsableBody(body []byte, truncated bool) []byte {
	if len(body) > robots.MaxFileBytes {
		return body[:robots.MaxFileBytes+1]
	}
	if truncated {
		return body[:bytes.LastIndexAny(body, "\r\n")+1]
	}
	return body
}

// containsAnyPhrase reports whether the first 64 KiB of a page contain one of the phrases, in any case.
func containsAnyPhrase(page []byte, phrases []string) bool {
	const head = 64 << 10
	page = bytes.ToLower(page[:min(len(page), head)])
	return slices.ContainsFunc(phrases, func(phrase string) bool {
		return phrase != "" && bytes.Contains(page, []byte(strings.ToLower(phrase)))
	})
}

// newServerFailure returns the failure for a response with an error status.
func newServerFailure(now time.Time, res *decorum.Response, b Backoff) *fetchFailure {
	return &fetchFailure{
		reason:        fmt.Sprintf("robots.txt: status %d", res.Status),
		answered:      true,
		backoffBounds: b,
		retryAfter:    res.RetryAfter(now),
	}
}

// downloadFailureText returns the reason of a failure without a response. err may be nil.
func downloadFailureText(err error) string {
	if err == nil {
		return "robots.txt: no response"
	}
	return "robots.txt: " + truncateForStorage(err.Error())
}

// truncateForStorage returns at most 512 bytes of s, which bounds the size of stored server texts.
func truncateForStorage(s string) string {
	const maxBytes = 512
	return strings.ToValidUTF8(s[:min(len(s), maxBytes)], "")
}

// responseTTL returns how long an answer that came at now is valid: as long as Cache-Control or Expires
// says (CACHE-04 to CACHE-06), else a day (CACHE-01), within MinTTL and MaxTTL (CACHE-07).
//
// An invalid max-age or Expires says nothing, because a mistake of the site must not make the crawl ask each minute.
// The age that the answer had when it came counts only beyond a day, for which RFC 9309, section 2.4,
// allows the use of any file.
func (c Config) responseTTL(now time.Time, res *decorum.Response) time.Duration {
	ttl := day
	directives := httpcache.ParseCacheControl(res.Header["Cache-Control"])
	f := httpcache.Private.Evaluate(httpcache.Response{Status: res.Status, Header: res.Header,
		RequestedAt: res.Start, ReceivedAt: now})
	switch {
	case directives.NoStore, directives.NoCache:
		ttl = 0
	case f.By != "" && !f.IsHeuristic():
		ttl = max(min(f.Lifetime, day), f.FreshFor())
	}
	return min(max(ttl, c.MinTTL), c.MaxTTL)
}

// classifyYandexResponse returns the meaning of a response in the Yandex dialect. A text file of at
// most MaxYandexFileBytes bytes with the status 200 contains rules; all other answers restrict nothing
// (FETCH-21 to FETCH-25, FMT-10). A request that was refused or canceled locally proves nothing, and
// is a failure.
func (g *Gate) classifyYandexResponse(now time.Time, res *decorum.Response, err error) classifiedResponse {
	switch {
	case isLocallyRefusedOrCanceled(err):
		return classifiedResponse{failure: &fetchFailure{reason: downloadFailureText(err),
			backoffBounds: g.cfg.Backoff}}
	case err != nil || res == nil:
		failure := fetchFailure{backoffBounds: g.cfg.Backoff}
		return classifiedResponse{finalResponse: g.newUnrestrictedResponse(now, 0, &failure)}
	case res.Status == http.StatusTooManyRequests, res.Status >= 500:
		return classifiedResponse{finalResponse: g.newUnrestrictedResponse(now, res.Status,
			newServerFailure(now, res, g.cfg.Backoff))}
	case res.Status != http.StatusOK, len(res.Body) > robots.MaxYandexFileBytes, !isTextResponse(res):
		return classifiedResponse{finalResponse: g.newNoFileResponse(now, res)}
	}
	return classifiedResponse{finalResponse: g.newFileResponse(now, res)}
}

// newUnrestrictedResponse returns the storedResponse for a failure that restricts nothing. It is not
// valid for longer than a server error (CACHE-10), so that the file takes effect soon after the
// server recovers.
func (g *Gate) newUnrestrictedResponse(now time.Time, status int, f *fetchFailure) *storedResponse {
	ttl := min(f.retryDelay(math.MaxInt), g.cfg.MaxTTL)
	return &storedResponse{Status: status, FetchedAt: now, ExpiresAt: now.Add(ttl)}
}

// isLocallyRefusedOrCanceled reports whether err says that the crawl itself refused or canceled the
// request.
func isLocallyRefusedOrCanceled(err error) bool {
	return errors.Is(err, decorum.Forbidden) || errors.Is(err, decorum.Invalid) ||
		errors.Is(err, decorum.Unticketed) || errors.Is(err, context.Canceled)
}

// isTextResponse reports whether the answer is a text file, by its media type and the absence of NUL
// in its body (FMT-13). A Content-Type without a media type does not count.
func isTextResponse(res *decorum.Response) bool {
	media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	family, _, named := strings.Cut(strings.TrimSpace(media), "/")
	if named && !strings.EqualFold(family, "text") {
		return false
	}
	return bytes.IndexByte(res.Body, 0) < 0
}
