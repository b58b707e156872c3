package decorum

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// A Response is what came back for one URL. Redirects are not followed, so a
// 3xx is a Response like any other.
type Response struct {
	URL               URL            // what was asked for
	Status            int            // of HTTP; ftp is answered as HTTP would be
	Header            http.Header    // as it came, Content-Encoding included
	Body              []byte         // without Content-Encoding, at most the fetcher's limit
	BodyLimitExceeded bool           // the body went on past the limit and was cut
	Addr              netip.AddrPort // the server's address; zero if the fetcher has none
	Start             time.Time      // when the request began
	End               time.Time      // when the body had been read to its end
}

// Location returns the target of a redirect, and false if the response is no
// redirect or its Location header names no URL the crawl can visit.
func (r *Response) Location() (URL, bool) {
	switch r.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return URL{}, false
	}
	to := r.Header.Get("Location")
	if to == "" {
		return URL{}, false
	}
	u, err := r.URL.Resolve(to)
	return u, err == nil
}

// RetryAfter returns how long the Retry-After header (RFC 9110 §10.2.3) asks to wait from now: seconds,
// or an HTTP date. It returns 0 for a header that is neither, and for a moment that has passed. Large
// values are returned as they are, and their bounds are for the caller to set.
func (r *Response) RetryAfter(now time.Time) time.Duration {
	value := strings.TrimSpace(r.Header.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		const maxSeconds = int64(1<<63-1) / int64(time.Second)
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n > maxSeconds {
			n = maxSeconds // too large a number still asks to be left alone
		}
		return time.Duration(n) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}
