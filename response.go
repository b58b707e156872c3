package decorum

import (
	"net/http"
	"net/netip"
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
