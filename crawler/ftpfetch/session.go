package ftpfetch

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"strings"
	"unicode"

	"github.com/jlaffaye/ftp"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
)

// A session is one visit: a control connection, and at most one data connection.
type session struct {
	cfg          Config
	ctx          context.Context // the visit's; its end closes the connections
	ticket       crawler.Ticket
	maxBodyBytes int64                    // limit of the body
	memoryShare  bodymem.VisitShare       // the visit's share of the memory for bodies
	bodySpool    *bodymem.CompressedSpool // body of a sitemap; nil: the body is in the response
	// memoryShareHeldByTicket is set when the ticket keeps memoryShare until the visit is over.
	memoryShareHeldByTicket bool
	isListing               bool // the data connection carries a listing, not a file

	client     *ftp.ServerConn // control connection; nil before it is open
	serverAddr netip.AddrPort  // peer of the control connection; zero before it is open
	dataConn   *limitedConn    // nil before it is open
}

// maxControlBytes bounds the bytes of replies in a session.
const maxControlBytes = 64 << 10

// Reasons for the client to end a session.
var (
	errControlTooLong  = errors.New("the replies of the server are longer than 64 KiB")
	errSecondDataConn  = errors.New("the server asks for a second data connection")
	errInvalidDataAddr = errors.New("the server did not name a port above 1023 of its own address for the data")
	errNotTCP          = errors.New("not a TCP connection")
)

// connectAndLogin opens the control connection and logs in as anonymous.
func (s *session) connectAndLogin() (err error) {
	addr := s.ticket.URL().Origin().HostPort()
	if _, _, err := net.SplitHostPort(addr); err != nil { // the URL names no port
		addr = net.JoinHostPort(strings.Trim(addr, "[]"), "21")
	}
	s.client, err = ftp.Dial(addr, ftp.DialWithDialFunc(s.dialControlOrData))
	if err != nil {
		return err
	}
	return s.client.Login("anonymous", s.cfg.Password)
}

// close ends the session. It sends QUIT, and does not wait for a reply.
func (s *session) close() {
	if s.dataConn != nil {
		s.dataConn.Close()
	}
	if s.client != nil {
		_ = s.client.Quit() // nothing depends on the reply
	}
}

// dialControlOrData opens the control connection on the first call, and the data connection on the
// second.
func (s *session) dialControlOrData(_, addr string) (net.Conn, error) {
	if s.serverAddr.IsValid() {
		return s.dialData(addr)
	}
	conn, err := s.cfg.Dialer.DialNonHTTP(s.ctx, s.ticket, addr)
	if err != nil {
		return nil, err
	}
	remote, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return nil, errors.Join(errNotTCP, conn.Close())
	}
	s.serverAddr = remote.AddrPort()
	// The first command follows the greeting, so the send is recorded now.
	if err := s.ticket.RecordSend(s.ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s.newLimitedConn(conn, maxControlBytes, errControlTooLong), nil
}

// dialData opens the data connection. Its address must be that of the control connection, and its
// port must not be that of another service. Otherwise a server could make the crawler visit others
// (RFC 2577).
func (s *session) dialData(addr string) (net.Conn, error) {
	if s.dataConn != nil {
		return nil, errSecondDataConn
	}
	to, err := netip.ParseAddrPort(addr)
	if err != nil || to.Addr() != s.serverAddr.Addr().Unmap().WithZone("") || to.Port() < 1024 {
		return nil, errInvalidDataAddr
	}
	conn, err := s.cfg.Dialer.DialNonHTTPAddrPort(s.ctx, s.ticket, netip.AddrPortFrom(s.serverAddr.Addr(), to.Port()))
	if err != nil {
		return nil, err
	}
	s.dataConn = s.newLimitedConn(conn, s.maxBodyBytes+1, io.EOF) // one more byte shows that the body is longer
	if s.isListing {
		s.dataConn.reserveMemory = func(n int) error { return s.memoryShare.Reserve(s.ctx, entryMemoryFactor*int64(n)) }
	}
	return s.dataConn, nil
}

// retainBodyMemory keeps the body of res reserved until the visit is over.
func (s *session) retainBodyMemory(res *decorum.Response) {
	n := int64(cap(res.Body))
	if s.bodySpool != nil {
		n = s.bodySpool.ReservedBytes()
		s.ticket.SetSpooledBody(s.bodySpool)
	}
	s.memoryShareHeldByTicket = true
	s.memoryShare.ShrinkTo(n)
	s.ticket.RetainBodyMemoryForVisit(&s.memoryShare)
}

// bodyLimit returns how many bytes of a body are kept. A sitemap may exceed the memory, since it is
// kept compressed.
func (f *Fetcher) bodyLimit(t crawler.Ticket) int64 {
	if t.StreamsBody() {
		return t.BodyLimit(f.cfg.MaxBody)
	}
	return min(t.BodyLimit(f.cfg.MaxBody), f.cfg.BodyMemory.MaxBodyLen(1))
}

// maxMemoryNeeded returns how many bytes of memory the visit may need at most.
func (s *session) maxMemoryNeeded() int64 {
	if s.ticket.StreamsBody() {
		return bodymem.MaxSpoolBytesForBody(min(s.maxBodyBytes, s.cfg.BodyMemory.MaxBodyLen(1)))
	}
	return 2 * s.maxBodyBytes // a growing body has two buffers
}

// A limitedConn is a connection of a session that limits the bytes read.
type limitedConn struct {
	net.Conn
	session   *session // says whether the visit may still send
	remaining int64    // bytes that may still be read
	limitErr  error    // error of a read beyond the limit
	// reserveMemory is called with the number of bytes of each read. May be nil.
	reserveMemory func(n int) error
}

// newLimitedConn wraps conn, and closes it at the end of the visit.
func (s *session) newLimitedConn(conn net.Conn, limit int64, limitErr error) *limitedConn {
	context.AfterFunc(s.ctx, func() { conn.Close() })
	return &limitedConn{Conn: conn, session: s, remaining: limit, limitErr: limitErr}
}

// Write implements io.Writer. It sends nothing if the visit is canceled or its lease has expired.
func (l *limitedConn) Write(p []byte) (int, error) {
	if err := l.session.ticket.CheckMaySend(l.session.ctx); err != nil {
		return 0, err
	}
	return l.Conn.Write(p)
}

// Read implements io.Reader. It fails if the memory for the read bytes cannot be reserved.
func (l *limitedConn) Read(p []byte) (int, error) {
	if l.remaining <= 0 {
		return 0, l.limitErr
	}
	n, err := l.Conn.Read(p[:min(int64(len(p)), l.remaining)])
	l.remaining -= int64(n)
	if l.reserveMemory != nil {
		if memoryErr := l.reserveMemory(n); memoryErr != nil {
			return 0, memoryErr
		}
	}
	return n, err
}

// errNotFound is part of the error of a missing file.
var errNotFound = errors.New("not there")

// markNotFound adds errNotFound to err if err is a reply that says that a file is missing. It must
// be used only for commands that name a file: elsewhere the same codes have other meanings. 551 is
// not meant for this, but servers send it.
func markNotFound(err error) error {
	switch replyCode(err) {
	case ftp.StatusFileUnavailable, ftp.StatusPageTypeUnknown, ftp.StatusBadFileName:
		return errors.Join(errNotFound, err)
	}
	return err
}

// httpStatus returns the status that an error means as a response, or 0.
func httpStatus(err error) int {
	switch {
	case errors.Is(err, errNotFound):
		return http.StatusNotFound
	case replyCode(err) == ftp.StatusNotAvailable:
		return http.StatusServiceUnavailable
	}
	return 0
}

// replyCode returns the code of the server's reply in err, or 0.
func replyCode(err error) int {
	if reply := new(textproto.Error); errors.As(err, &reply) {
		return reply.Code
	}
	return 0
}

// maxErrorBytes bounds the bytes of an error that are shown.
const maxErrorBytes = 200

// A printableError is the error of a visit with a printable text. The text may be a reply of the
// server.
type printableError struct{ err error }

// Error returns at most maxErrorBytes of the error, with spaces for characters that are not printable.
func (t printableError) Error() string {
	text, prefix := t.err.Error(), ""
	if reply := new(textproto.Error); errors.As(t.err, &reply) {
		text, prefix = reply.Error(), "the server says "
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxErrorBytes)], "")
	return prefix + strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// Unwrap returns the cause.
func (t printableError) Unwrap() error { return t.err }
