package httpfetch

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A serverTimeout is what visits to a host have shown of how long its server keeps an idle
// connection open. The zero value knows nothing.
type serverTimeout struct {
	announced   time.Duration // timeout of the server's last Keep-Alive header; 0: none
	closedAfter time.Duration // idle time of the last connection that the server was found to have closed
	closeCount  int           // connections that the server has closed since one outlived closedAfter
	skipCount   int           // times that a connection was not kept because of closedAfter
}

const (
	// trustedCloses is how many idle connections a server must close before its timeout counts as
	// known: it may close a single one because it restarts.
	trustedCloses = 2
	// probeInterval is how many times the connection to a host is closed early, because its server
	// is thought to close it before the next visit, until one is kept to see whether that is still
	// true.
	probeInterval = 16
	// maxKnownTimeouts is how many hosts' timeouts a Fetcher remembers. It remembers at most twice
	// as many.
	maxKnownTimeouts = 1 << 14
)

// afterResponse returns t after a response with the header h.
func (t serverTimeout) afterResponse(h http.Header) serverTimeout {
	if d := keepAliveTimeout(h); d > 0 {
		t.announced = d
	}
	return t
}

// afterReuse returns t after a visit over a connection that had been idle for d.
func (t serverTimeout) afterReuse(d time.Duration) serverTimeout {
	if d >= t.closedAfter {
		t.closedAfter, t.closeCount, t.skipCount = 0, 0, 0
	}
	return t
}

// afterClose returns t after the server has closed a connection that had been idle for d.
func (t serverTimeout) afterClose(d time.Duration) serverTimeout {
	t.closedAfter, t.closeCount = d, t.closeCount+1
	return t
}

// likely returns how long the server is likely to keep an idle connection, but at most limit. It
// returns an eighth less than the server's timeout: a request that crosses the server's close on
// the way is lost.
func (t serverTimeout) likely(limit time.Duration) time.Duration {
	if t.closeCount >= trustedCloses {
		limit = min(limit, t.closedAfter/8*7)
	}
	return t.limitByHeader(limit)
}

// limitByHeader is likely without what closed connections have shown.
func (t serverTimeout) limitByHeader(limit time.Duration) time.Duration {
	if t.announced > 0 {
		limit = min(limit, t.announced/8*7)
	}
	return limit
}

// maxAnnouncedTimeout bounds the timeout that a Keep-Alive header may announce.
const maxAnnouncedTimeout = 24 * time.Hour

// keepAliveTimeout returns the parameter timeout of a Keep-Alive header (RFC 2068, section 19.7.1.1),
// which servers send in seconds; 0 if there is none.
func keepAliveTimeout(h http.Header) time.Duration {
	for _, value := range h["Keep-Alive"] {
		for param := range strings.SplitSeq(value, ",") {
			name, seconds, _ := strings.Cut(param, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "timeout") {
				continue
			}
			if n, err := strconv.ParseUint(strings.TrimSpace(seconds), 10, 31); err == nil {
				return min(time.Duration(n)*time.Second, maxAnnouncedTimeout)
			}
		}
	}
	return 0
}
