package decorum

import (
	"bytes"
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

// A RawExchange is one request and its answer, byte for byte as they went over
// the connection (inside of TLS, if there was any). It is HTTP/1.1.
type RawExchange struct {
	RawRequest  []byte           // header and body
	RawResponse []byte           // as far as it was read; interim answers (1xx) and more may surround it
	Addr        netip.AddrPort   // of the server
	Truncation  TruncationReason // why RawResponse may end early
}

// HeaderOnly returns the exchange as far as the header of the answer, nil of nil. Where
// there is no whole header, nothing is left of the answer.
func (x *RawExchange) HeaderOnly() *RawExchange {
	if x == nil {
		return nil
	}
	head := *x
	head.RawResponse, head.Truncation = nil, TruncatedUnspecified
	for at := 0; ; {
		size := headerLen(x.RawResponse[at:])
		if size == 0 {
			return &head
		}
		interim := bytes.HasPrefix(x.RawResponse[at:], []byte("HTTP/1.1 1"))
		if at += size; !interim {
			head.RawResponse = x.RawResponse[:at:at]
			return &head
		}
	}
}

// headerLen returns how long the header is with which b begins, the empty line
// after it included, 0 if it does not end in b. Lines may end in LF alone
// (RFC 9112, section 2.2).
func headerLen(b []byte) int {
	for i, c := range b {
		if c != '\n' {
			continue
		}
		rest := bytes.TrimPrefix(b[i+1:], []byte("\r"))
		if len(rest) > 0 && rest[0] == '\n' {
			return len(b) - len(rest) + 1
		}
	}
	return 0
}

// A TruncationReason is why the reading of an answer ended before the answer did.
type TruncationReason uint8

// Cuts.
const (
	NotTruncated          TruncationReason = iota // it was read to its end
	TruncatedByLength                             // it went on past a limit of size
	TruncatedByTime                               // it took longer than a limit of time
	TruncatedByDisconnect                         // the server hung up, or the connection broke
	TruncatedUnspecified                          // it was not wanted, or made no sense
)

// String returns the word of ISO 28500:2017, 5.13, empty for NotTruncated.
func (c TruncationReason) String() string {
	names := [...]string{"", "length", "time", "disconnect", "unspecified"}
	if int(c) < len(names) {
		return names[c]
	}
	return "unspecified"
}
