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
	ctx          context.Context // of the visit: its end closes the connections
	ticket       crawler.Ticket
	maxBodyBytes int64                    // bytes of the body
	memoryShare  bodymem.VisitShare       // of the memory for bodies
	bodySpool    *bodymem.CompressedSpool // the body of a sitemap; nil: it is in the response
	// memoryShareHeldByTicket is set when the crawl holds the share.
	memoryShareHeldByTicket bool
	isListing               bool // of a directory; else of a file

	client     *ftp.ServerConn
	serverAddr netip.AddrPort // of the server
	dataConn   *limitedConn   // nil: none was made
}

// maxControlBytes is how many bytes of replies are read.
const maxControlBytes = 64 << 10

// Why a session ends that the server does not end.
var (
	errControlTooLong  = errors.New("the replies of the server are longer than 64 KiB")
	errSecondDataConn  = errors.New("the server asks for a second data connection")
	errInvalidDataAddr = errors.New("the server names no port above 1023 of its own address for the data")
	errNotTCP          = errors.New("not a TCP connection")
)

// connectAndLogin connects and logs in.
func (s *session) connectAndLogin() (err error) {
	addr := s.ticket.URL().Origin().HostPort()
	if _, _, err := net.SplitHostPort(addr); err != nil { // it has no port of its own
		addr = net.JoinHostPort(strings.Trim(addr, "[]"), "21")
	}
	s.client, err = ftp.Dial(addr, ftp.DialWithDialFunc(s.dialControlOrData))
	if err != nil {
		return err
	}
	return s.client.Login("anonymous", s.cfg.Password)
}

// close ends the session. It says so to the server, but waits for no reply.
func (s *session) close() {
	if s.dataConn != nil {
		s.dataConn.Close()
	}
	if s.client != nil {
		_ = s.client.Quit() // all that was wanted is there, or never will be
	}
}

// dialControlOrData makes the control connection when it is called first, then the data
// connection.
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
	if err := s.ticket.RecordSend(s.ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s.newLimitedConn(conn, maxControlBytes, errControlTooLong), nil
}

// dialData makes the data connection. It leads to where the control connection
// does, and not to a port of another service there: else a server could have
// others visited by us (RFC 2577).
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
	s.dataConn = s.newLimitedConn(conn, s.maxBodyBytes+1, io.EOF) // one more shows that there is more
	if s.isListing {
		s.dataConn.reserveMemory = func(n int) error { return s.memoryShare.Reserve(s.ctx, entryMemoryFactor*int64(n)) }
	}
	return s.dataConn, nil
}

// retainBodyMemory has the body of res held until the visit is over.
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

// bodyLimit returns how many bytes of a body are kept. A sitemap is not in memory as a whole.
func (f *Fetcher) bodyLimit(t crawler.Ticket) int64 {
	if t.StreamsBody() {
		return t.BodyLimit(f.cfg.MaxBody)
	}
	return min(t.BodyLimit(f.cfg.MaxBody), f.cfg.BodyMemory.MaxBodyLen(1))
}

// maxMemoryNeeded returns how many bytes of memory the visit may need.
func (s *session) maxMemoryNeeded() int64 {
	if s.ticket.StreamsBody() {
		return bodymem.MaxSpoolBytesForBody(min(s.maxBodyBytes, s.cfg.BodyMemory.MaxBodyLen(1)))
	}
	return 2 * s.maxBodyBytes // while it grows there are two
}

// A limitedConn is a connection of a session. It gives up after so many bytes.
type limitedConn struct {
	net.Conn
	session   *session // which says whether anything may be sent
	remaining int64
	limitErr  error // what a reader gets who wants more
	// reserveMemory is called with the bytes that were read; nil: it is not.
	reserveMemory func(n int) error
}

// newLimitedConn returns a line on conn, which the end of the visit closes.
func (s *session) newLimitedConn(conn net.Conn, limit int64, limitErr error) *limitedConn {
	context.AfterFunc(s.ctx, func() { conn.Close() })
	return &limitedConn{Conn: conn, session: s, remaining: limit, limitErr: limitErr}
}

// Write implements io.Writer. It sends nothing when the visit is canceled, or its lease has run out.
func (l *limitedConn) Write(p []byte) (int, error) {
	if err := l.session.ticket.CheckMaySend(l.session.ctx); err != nil {
		return 0, err
	}
	return l.Conn.Write(p)
}

// Read implements io.Reader.
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

// errNotFound is in the error of a file that is not there.
var errNotFound = errors.New("not there")

// markNotFound returns err with errNotFound, if it is a reply to a command that names a
// file and says that there is none. 551 is meant for something else, but said.
// Later, and at the login, the same codes mean something else.
func markNotFound(err error) error {
	switch replyCode(err) {
	case ftp.StatusFileUnavailable, ftp.StatusPageTypeUnknown, ftp.StatusBadFileName:
		return errors.Join(errNotFound, err)
	}
	return err
}

// httpStatus returns the status for an error that is an answer, else 0.
func httpStatus(err error) int {
	switch {
	case errors.Is(err, errNotFound):
		return http.StatusNotFound
	case replyCode(err) == ftp.StatusNotAvailable:
		return http.StatusServiceUnavailable
	}
	return 0
}

// replyCode returns the code of the reply that err is, 0 if it is none.
func replyCode(err error) int {
	if reply := new(textproto.Error); errors.As(err, &reply) {
		return reply.Code
	}
	return 0
}

// maxErrorBytes is how many bytes are told of what a server says.
const maxErrorBytes = 200

// A printableError is why a visit failed, in words that are fit to be printed: they
// may be the server's.
type printableError struct{ err error }

// Error returns the words.
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

// Unwrap lets errors.Is and errors.As see the cause.
func (t printableError) Unwrap() error { return t.err }
