package ftpfetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
)

// A Dialer makes the connections of visits, and refuses those that must not be
// made: see httpfetch.Fetcher, which is one.
type Dialer interface {
	// DialNonHTTP connects to a host and a port, or to where the user sends it.
	DialNonHTTP(ctx context.Context, t crawler.Ticket, addr string) (net.Conn, error)
	// DialNonHTTPAddrPort connects to exactly that address.
	DialNonHTTPAddrPort(ctx context.Context, t crawler.Ticket, addr netip.AddrPort) (net.Conn, error)
}

// Config is how a Fetcher fetches.
type Config struct {
	Dialer Dialer // compulsory
	// Password is sent with the login "anonymous": by custom it says who comes
	// (RFC 1635). Compulsory.
	Password string
	// Timeout bounds a visit, from dialling to the last reply. Default 30 s.
	Timeout time.Duration
	// MaxBody is how many bytes of a file are kept, and of a listing both as it
	// comes and as a page. Default 10 MiB. Of a robots.txt at least 512,000
	// bytes are kept, of a sitemap as many as the crawl's Settings say.
	MaxBody int64
	// BodyMemory is the memory that the bodies of all visits under way take together, as in
	// httpfetch.Config. Nil: one of the Fetcher's own, of bodymem.DefaultSize.
	BodyMemory *bodymem.Budget
	// ContentTypes are the media types whose bodies are read. The type of a file
	// is that of the ending of its name or, if that has none, of its first bytes;
	// a listing is text/html. Empty: all. robots.txt, sitemaps and feeds are
	// always read.
	ContentTypes []string
}

// A Fetcher is a crawler.Fetcher of ftp URLs. Its methods may be called at the
// same time.
type Fetcher struct{ cfg Config }

var _ crawler.Fetcher = (*Fetcher)(nil)

// New returns a Fetcher.
func New(cfg Config) (*Fetcher, error) {
	switch {
	case cfg.Dialer == nil:
		return nil, errors.New("ftpfetch: a dialler is compulsory")
	case cfg.Password == "" || !isSafeInCommand(cfg.Password):
		return nil, errors.New("ftpfetch: a password is compulsory, in one line: it says who comes")
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	if cfg.BodyMemory == nil {
		cfg.BodyMemory = bodymem.NewDefault()
	}
	cfg.MaxBody = min(cmp.Or(cfg.MaxBody, 10<<20), math.MaxInt64-1) // one more is read, to see whether there is more
	return &Fetcher{cfg}, nil
}

// Fetch makes one visit, which the ticket pays for. A URL that names no file (see
// the rules of RFC 1738 §3.2.2 for escapes in its path) gets an error of Kind
// Invalid, before anything is sent.
func (f *Fetcher) Fetch(ctx context.Context, t crawler.Ticket) (*decorum.Response, error) {
	u := t.URL()
	if u.IsZero() {
		return nil, t.Redeem("") // refused: it is for no URL
	}
	name, err := filePath(u)
	if err != nil {
		return nil, &decorum.Error{Op: "fetch", URL: u.String(), Kind: decorum.Invalid, Err: err}
	}
	s := &session{cfg: f.cfg, ticket: t, maxBodyBytes: f.bodyLimit(t)}
	f.cfg.BodyMemory.OpenShare(&s.memoryShare, u.String())
	defer func() { // of a visit without an answer
		if !s.memoryShareHeldByTicket {
			s.memoryShare.Close()
		}
	}()
	if err := s.memoryShare.ReserveAheadIfNeeded(ctx, s.maxMemoryNeeded(), false); err != nil {
		return nil, crawler.NewFetchError(t, err)
	}
	if err := t.Redeem(u.String()); err != nil {
		return nil, err
	}
	parent := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, f.cfg.Timeout, fmt.Errorf("no whole answer within %v", f.cfg.Timeout))
	defer cancel()
	s.ctx = ctx
	res := &decorum.Response{URL: u, Header: http.Header{}, Start: time.Now()}
	err = s.connectAndFetch(name, res)
	s.close()
	res.Addr, res.End = s.serverAddr, time.Now()
	memoryErr := s.memoryShare.Err()
	switch status := httpStatus(err); {
	case memoryErr != nil && parent.Err() == nil:
		return nil, crawler.NewFetchError(t, memoryErr)
	case err == nil:
		s.retainBodyMemory(res)
		return res, nil
	case status != 0: // whatever came of a body is none of this answer
		return &decorum.Response{URL: u, Status: status, Header: http.Header{}, Addr: res.Addr, Start: res.Start, End: res.End}, nil
	case context.Cause(ctx) != nil:
		err = context.Cause(ctx)
	}
	return nil, crawler.NewFetchError(t, printableError{err})
}

// Why a URL names no file.
var (
	errUnsupportedScheme = errors.New("only ftp is fetched")
	errInvalidEscape     = errors.New("its path has a percent sign that begins no escape")
	errEscapedSlash      = errors.New("its path has an escaped slash or backslash, which would name another file than robots.txt is asked for")
	errControlCharacter  = errors.New("its path has an escaped control character, which could be taken for a command")
	errDotSegment        = errors.New("its path has an escaped dot segment")
)

// filePath returns the name of the file that u is for, from the root of what the
// server shows to anonymous users. Its segments are decoded one by one: what is
// decoded must not be what divides segments or commands (RFC 1738 §5), for
// robots.txt has been asked about the path as it is written. ftp has no queries:
// a question mark is part of the name.
func filePath(u decorum.URL) (string, error) {
	if u.Origin().Scheme() != "ftp" {
		return "", errUnsupportedScheme
	}
	segments := strings.Split(u.PathAndQuery(), "/")
	for i, s := range segments {
		name, err := url.PathUnescape(s)
		switch {
		case err != nil:
			return "", errInvalidEscape
		case strings.ContainsAny(name, `/\`):
			return "", errEscapedSlash
		case !isSafeInCommand(name):
			return "", errControlCharacter
		case name == "." || name == "..":
			return "", errDotSegment
		}
		segments[i] = name
	}
	return strings.Join(segments, "/"), nil
}

// isSafeInCommand reports whether s can be sent in a command as it is: it has no end of
// line or other control character, and no 0xFF, which begins a command of Telnet
// (RFC 959 §3.1.1, RFC 854).
func isSafeInCommand(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == 0x7f || c == 0xff {
			return false
		}
	}
	return true
}
