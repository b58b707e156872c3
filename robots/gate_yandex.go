package robots

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
)

// readYandex says what a response means to Yandex: a text file of at most
// YandexLimit bytes, answered with 200, has rules; all else restricts nobody
// (FETCH-21 to FETCH-25, FMT-10). A request that never left tells nothing.
func (g *Gate) readYandex(now time.Time, res *decorum.Response, err error) classifiedResponse {
	switch {
	case unsent(err):
		return classifiedResponse{failed: &failure{why: failedDownload(err), backoff: g.cfg.Retry}}
	case err != nil || res == nil:
		failed := failure{backoff: g.cfg.Retry}
		return classifiedResponse{answer: g.unrestricted(now, 0, &failed)}
	case res.Status == http.StatusTooManyRequests, res.Status >= 500:
		return classifiedResponse{answer: g.unrestricted(now, res.Status, serverError(now, res, g.cfg.Retry))}
	case res.Status != http.StatusOK, len(res.Body) > YandexLimit, !isText(res):
		return classifiedResponse{answer: g.noFile(now, res)}
	}
	return classifiedResponse{answer: g.file(now, res)}
}

// unrestricted keeps a failure that restricts nobody. It holds no longer than
// a server error does (CACHE-10), so that the file counts soon after it is
// there again.
func (g *Gate) unrestricted(now time.Time, status int, f *failure) *answer {
	hold := min(f.wait(math.MaxInt), g.cfg.MaxTTL)
	return &answer{Status: status, Fetched: now, Expires: now.Add(hold)}
}

// unsent reports whether err says that we refused or broke off the request.
func unsent(err error) bool {
	return errors.Is(err, decorum.Forbidden) || errors.Is(err, decorum.Invalid) ||
		errors.Is(err, decorum.Unticketed) || errors.Is(err, context.Canceled)
}

// isText reports whether the answer is a text file, by its media type and by
// its body (FMT-13). A Content-Type that names no media type does not count.
func isText(res *decorum.Response) bool {
	media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	family, _, named := strings.Cut(strings.TrimSpace(media), "/")
	if named && !strings.EqualFold(family, "text") {
		return false
	}
	return bytes.IndexByte(res.Body, 0) < 0
}
