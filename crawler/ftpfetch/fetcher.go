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
	"strconv"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
)

// A Dialer makes the connections of visits, and refuses those that must not be made.
// httpfetch.Fetcher is one.
type Dialer interface {
	// DialNonHTTP connects to addr, a host and a port, or to where connect-to rules redirect it.
	DialNonHTTP(ctx context.Context, t crawler.Ticket, addr string) (net.Conn, error)
	// DialNonHTTPAddrPort connects to exactly addr.
	DialNonHTTPAddrPort(ctx context.Context, t crawler.Ticket, addr netip.AddrPort) (net.Conn, error)
}

// Config configures a Fetcher.
type Config struct {
	Dialer Dialer // compulsory
	// Password is sent with the login "anonymous". By custom it is the visitor's mail address
	// (RFC 1635). Compulsory.
	Password string
	// Timeout bounds a visit, from dialling to the last reply. Default 30 s.
	Timeout time.Duration
	// MaxBody bounds the bytes that are kept of a file, and of a listing both as received and as a
	// page. Default 10 MiB. At least 512,000 bytes of a robots.txt are kept, and as many of a
	// sitemap as the crawl's Settings say.
	MaxBody int64
	// BodyMemory bounds the memory that the bodies of all visits under way take together, as in
	// httpfetch.Config. Nil: a separate Budget of bodymem.DefaultSize.
	BodyMemory *bodymem.Budget
	// ContentTypes are the media types whose bodies are read. The type of a file is that of its
	// name's extension or, without a known one, of its first 512 bytes; the type of a listing is
	// text/html. A file whose extension means another type is not transferred. Empty: all types.
	// robots.txt files, sitemaps and feeds are always read.
	ContentTypes []string
}

// A Fetcher is a crawler.Fetcher for ftp URLs. Its methods are safe for concurrent use.
type Fetcher struct{ cfg Config }

var _ crawler.Fetcher = (*Fetcher)(nil)

// New returns a Fetcher. It returns an error if cfg has no Dialer, or if its Password is empty or has
// control characters.
func New(cfg Config) (*Fetcher, error) {
	switch {
	case cfg.Dialer == nil:
		return nil, errors.New("ftpfetch: Dialer is compulsory")
	case cfg.Password == "" || !isSafeInCommand(cfg.Password):
		return nil, errors.New("ftpfetch: Password is compulsory, in one line: it tells servers who visits them")
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	if cfg.BodyMemory == nil {
		cfg.BodyMemory = bodymem.NewDefault()
	}
	// A session reads one more byte, to see whether the body ends.
	cfg.MaxBody = min(cmp.Or(cfg.MaxBody, 10<<20), math.MaxInt64-1)
	return &Fetcher{cfg}, nil
}

// Fetch makes one visit to the URL of t, and spends t. It returns an error of Kind Invalid, before
// anything is sent, if the URL's path does not name a file (see RFC 1738 §3.2.2 on escapes in
// paths). It answers a path with a percent sign that begins no escape with a redirect to the path that
// escapes it, because both name the same file.
func (f *Fetcher) Fetch(ctx context.Context, t crawler.Ticket) (*decorum.Response, error) {
	u := t.URL()
	if u.IsZero() {
		return nil, t.Redeem("") // the zero Ticket is always refused
	}
	name, err := filePath(u)
	if err != nil {
		return nil, &decorum.Error{Op: "fetch", URL: u.String(), Kind: decorum.Invalid, Err: err}
	}
	s := &session{cfg: f.cfg, ticket: t, maxBodyBytes: f.bodyLimit(t)}
	f.cfg.BodyMemory.OpenShare(&s.memoryShare, u.String())
	defer func() { // for visits without a response
		if !s.memoryShareHeldByTicket {
			s.memoryShare.Close()
		}
	}()
	// The wait for memory comes before the visit's time limit and before the ticket is spent.
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
	case status != 0: // a part of a body does not belong to this response
		return &decorum.Response{URL: u, Status: status, Header: http.Header{}, Addr: res.Addr,
			Start: res.Start, End: res.End}, nil
	case context.Cause(ctx) != nil:
		err = context.Cause(ctx)
	}
	return nil, crawler.NewFetchError(t, printableError{err})
}

// Reasons why a URL does not name a file.
var (
	errUnsupportedScheme = errors.New("only ftp is fetched")
	errEscapedSlash      = errors.New("its path has an escaped slash or backslash, which would name another file " +
		"than robots.txt was checked for")
	errControlCharacter = errors.New("its path has an escaped control character, which could be taken for a command")
	errDotSegment       = errors.New("its path has an escaped dot segment")
)

// filePath returns the name of u's file, from the root that anonymous users see. It decodes the
// segments of the path one by one. Decoded segments must not contain separators of segments or
// commands (RFC 1738 §5), because robots.txt was checked for the path as it is written. ftp has no
// queries: a question mark is part of the name.
func filePath(u decorum.URL) (string, error) {
	if u.Origin().Scheme() != "ftp" {
		return "", errUnsupportedScheme
	}
	segments := strings.Split(u.PathAndQuery(), "/")
	for i, s := range segments {
		name := unescapeSegment(s)
		switch {
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

// unescapeSegment decodes the escapes in s. A percent sign that begins none stands for itself, as in
// browsers.
func unescapeSegment(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "%")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		s = after
		if c, err := strconv.ParseUint(after[:min(len(after), 2)], 16, 8); err == nil && len(after) >= 2 {
			b.WriteByte(byte(c))
			s = after[2:]
		} else {
			b.WriteByte('%')
		}
	}
}

// isSafeInCommand reports whether s can be sent in a command unchanged: it has no line end or other
// control character, and no 0xFF, which begins a Telnet command (RFC 959 §3.1.1, RFC 854).
func isSafeInCommand(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == 0x7f || c == 0xff {
			return false
		}
	}
	return true
}
