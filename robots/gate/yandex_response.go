package gate

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
)

// classifyYandexResponse says what a response means to Yandex: a text file of at most
// MaxYandexFileBytes bytes, answered with 200, has rules; all else restricts nobody
// (FETCH-21 to FETCH-25, FMT-10). A request that never left tells nothing.
func (g *Gate) classifyYandexResponse(now time.Time, res *decorum.Response, err error) classifiedResponse {
	switch {
	case isRefusedOrCanceled(err):
		return classifiedResponse{failure: &fetchFailure{reason: downloadFailureText(err), backoffBounds: g.cfg.Backoff}}
	case err != nil || res == nil:
		failure := fetchFailure{backoffBounds: g.cfg.Backoff}
		return classifiedResponse{finalResponse: g.newUnrestrictedResponse(now, 0, &failure)}
	case res.Status == http.StatusTooManyRequests, res.Status >= 500:
		return classifiedResponse{finalResponse: g.newUnrestrictedResponse(now, res.Status, newServerFailure(now, res, g.cfg.Backoff))}
	case res.Status != http.StatusOK, len(res.Body) > robots.MaxYandexFileBytes, !isTextResponse(res):
		return classifiedResponse{finalResponse: g.newNoFileResponse(now, res)}
	}
	return classifiedResponse{finalResponse: g.newFileResponse(now, res)}
}

// newUnrestrictedResponse keeps a failure that restricts nobody. It holds no longer than
// a server error does (CACHE-10), so that the file counts soon after it is
// there again.
func (g *Gate) newUnrestrictedResponse(now time.Time, status int, f *fetchFailure) *storedResponse {
	ttl := min(f.retryDelay(math.MaxInt), g.cfg.MaxTTL)
	return &storedResponse{Status: status, FetchedAt: now, ExpiresAt: now.Add(ttl)}
}

// isRefusedOrCanceled reports whether err says that we refused or broke off the request.
func isRefusedOrCanceled(err error) bool {
	return errors.Is(err, decorum.Forbidden) || errors.Is(err, decorum.Invalid) ||
		errors.Is(err, decorum.Unticketed) || errors.Is(err, context.Canceled)
}

// isTextResponse reports whether the answer is a text file, by its media type and by
// its body (FMT-13). A Content-Type that names no media type does not count.
func isTextResponse(res *decorum.Response) bool {
	media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	family, _, named := strings.Cut(strings.TrimSpace(media), "/")
	if named && !strings.EqualFold(family, "text") {
		return false
	}
	return bytes.IndexByte(res.Body, 0) < 0
}
