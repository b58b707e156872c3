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
	cfg    Config
	ctx    context.Context // of the visit: its end closes the connections
	ticket crawler.Ticket
	limit  int64          // bytes of the body
	share  bodymem.Share  // of the memory for bodies
	spool  *bodymem.Spool // the body of a sitemap; nil: it is in the response
	// answered is set when the crawl holds the share.
	answered bool
	listing  bool // of a directory; else of a file

	server *ftp.ServerConn
	addr   netip.AddrPort // of the server
	data   *limitedConn   // nil: none was made
}

// controlLimit is how many bytes of replies are read.
const controlLimit = 64 << 10

// Why a session ends that the server does not end.
var (
	errControl  = errors.New("the replies of the server are longer than 64 KiB")
	errData     = errors.New("the server asks for a second data connection")
	errDataAddr = errors.New("the server names no port above 1023 of its own address for the data")
	errNoTCP    = errors.New("not a TCP connection")
)

// open connects and logs in.
func (s *session) open() (err error) {
	addr := s.ticket.URL().Origin().HostPort()
	if _, _, err := net.SplitHostPort(addr); err != nil { // it has no port of its own
		addr = net.JoinHostPort(strings.Trim(addr, "[]"), "21")
	}
	s.server, err = ftp.Dial(addr, ftp.DialWithDialFunc(s.dial))
	if err != nil {
		return err
	}
	return s.server.Login("anonymous", s.cfg.Password)
}

// close ends the session. It says so to the server, but waits for no reply.
func (s *session) close() {
	if s.data != nil {
		s.data.Close()
	}
	if s.server != nil {
		_ = s.server.Quit() // all that was wanted is there, or never will be
	}
}

// dial makes the control connection when it is called first, then the data
// connection.
func (s *session) dial(_, addr string) (net.Conn, error) {
	if s.addr.IsValid() {
		return s.dialData(addr)
	}
	conn, err := s.cfg.Dialer.Dial(s.ctx, s.ticket, addr)
	if err != nil {
		return nil, err
	}
	remote, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return nil, errors.Join(errNoTCP, conn.Close())
	}
	s.addr = remote.AddrPort()
	if err := s.ticket.MarkSent(s.ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s.newLimitedConn(conn, controlLimit, errControl), nil
}

// dialData makes the data connection. It leads to where the control connection
// does, and not to a port of another service there: else a server could have
// others visited by us (RFC 2577).
func (s *session) dialData(addr string) (net.Conn, error) {
	if s.data != nil {
		return nil, errData
	}
	to, err := netip.ParseAddrPort(addr)
	if err != nil || to.Addr() != s.addr.Addr().Unmap().WithZone("") || to.Port() < 1024 {
		return nil, errDataAddr
	}
	conn, err := s.cfg.Dialer.DialAddr(s.ctx, s.ticket, netip.AddrPortFrom(s.addr.Addr(), to.Port()))
	if err != nil {
		return nil, err
	}
	s.data = s.newLimitedConn(conn, s.limit+1, io.EOF) // one more shows that there is more
	if s.listing {
		s.data.reserve = func(n int) error { return s.share.Reserve(s.ctx, entryFactor*int64(n)) }
	}
	return s.data, nil
}

// holdBody has the body of res held until the visit is over.
func (s *session) holdBody(res *decorum.Response) {
	n := int64(cap(res.Body))
	if s.spool != nil {
		n = s.spool.ReservedBytes()
		s.ticket.SetBodySpool(s.spool)
	}
	s.answered = true
	s.share.ShrinkTo(n)
	s.ticket.RetainBodyMemory(&s.share)
}

// limit returns how many bytes of a body are kept. A sitemap is not in memory as a whole.
func (f *Fetcher) limit(t crawler.Ticket) int64 {
	if t.StreamsBody() {
		return t.BodyLimit(f.cfg.MaxBody)
	}
	return min(t.BodyLimit(f.cfg.MaxBody), f.cfg.Bodies.MaxBodyLen(1))
}

// maxMemory returns how many bytes of memory the visit may need.
func (s *session) maxMemory() int64 {
	if s.ticket.StreamsBody() {
		return bodymem.MaxSpoolBytes(min(s.limit, s.cfg.Bodies.MaxBodyLen(1)))
	}
	return 2 * s.limit // while it grows there are two
}

// A limitedConn is a connection of a session. It gives up after so many bytes.
type limitedConn struct {
	net.Conn
	left int64
	end  error // what a reader gets who wants more
	// reserve is called with the bytes that were read; nil: it is not.
	reserve func(n int) error
}

// newLimitedConn returns a line on conn, which the end of the visit closes.
func (s *session) newLimitedConn(conn net.Conn, limit int64, end error) *limitedConn {
	context.AfterFunc(s.ctx, func() { conn.Close() })
	return &limitedConn{Conn: conn, left: limit, end: end}
}

// Read implements io.Reader.
func (l *limitedConn) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, l.end
	}
	n, err := l.Conn.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	if l.reserve != nil {
		if full := l.reserve(n); full != nil {
			return 0, full
		}
	}
	return n, err
}

// errMissing is in the error of a file that is not there.
var errMissing = errors.New("not there")

// named returns err with errMissing, if it is a reply to a command that names a
// file and says that there is none. 551 is meant for something else, but said.
// Later, and at the login, the same codes mean something else.
func named(err error) error {
	switch codeOf(err) {
	case ftp.StatusFileUnavailable, ftp.StatusPageTypeUnknown, ftp.StatusBadFileName:
		return errors.Join(errMissing, err)
	}
	return err
}

// statusOf returns the status for an error that is an answer, else 0.
func statusOf(err error) int {
	switch {
	case errors.Is(err, errMissing):
		return http.StatusNotFound
	case codeOf(err) == ftp.StatusNotAvailable:
		return http.StatusServiceUnavailable
	}
	return 0
}

// codeOf returns the code of the reply that err is, 0 if it is none.
func codeOf(err error) int {
	if reply := new(textproto.Error); errors.As(err, &reply) {
		return reply.Code
	}
	return 0
}

// maxErrorBytes is how many bytes are told of what a server says.
const maxErrorBytes = 200

// A printableError error is why a visit failed, in words that are fit to be printed: they
// may be the server's.
type printableError struct{ err error }

// Error returns the words.
func (t printableError) Error() string {
	words, by := t.err.Error(), ""
	if reply := new(textproto.Error); errors.As(t.err, &reply) {
		words, by = reply.Error(), "the server says "
	}
	words = strings.ToValidUTF8(words[:min(len(words), maxErrorBytes)], "")
	return by + strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, words)
}

// Unwrap lets errors.Is and errors.As see the cause.
func (t printableError) Unwrap() error { return t.err }
