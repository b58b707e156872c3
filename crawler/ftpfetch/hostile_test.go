package ftpfetch_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/ftpfetch"
)

// A scriptedServer is a server with scripted replies.
type scriptedServer struct {
	replies      map[string]string       // by the first word of a command, "" for the greeting; else defaultReplies
	writeData    func(net.Conn)          // writes to the data connection, which is closed afterwards
	floodControl func(w io.Writer) error // writes to the control connection instead of a reply to FEAT
	silent       bool                    // the server sends nothing

	addr  string
	conns atomic.Int32 // open control connections
	wg    sync.WaitGroup
}

// defaultReplies are the replies of a server with one file. %d is the port of the data connection.
var defaultReplies = map[string]string{
	"": "220 here", "USER": "331 who", "PASS": "230 in", "FEAT": "211 none", "TYPE": "200 ok",
	"EPSV": "229 (|||%d|)", "CWD": "250 ok",
	"RETR": "150 comes", "LIST": "150 comes", "sent": "226 sent",
}

// start serves until the test ends.
func (s *scriptedServer) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	s.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			s.wg.Go(func() {
				defer s.conns.Add(-1)
				defer conn.Close()
				s.serve(conn)
			})
		}
	})
	t.Cleanup(func() { l.Close(); s.wg.Wait() })
}

func (s *scriptedServer) serve(conn net.Conn) {
	in := bufio.NewScanner(conn)
	if s.silent {
		for in.Scan() {
		}
		return
	}
	data, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return
	}
	defer data.Close()
	say := func(to string) bool {
		reply, ok := s.replies[to]
		if !ok {
			reply = defaultReplies[to]
		}
		if reply == "" {
			reply = "502 no"
		}
		if strings.Contains(reply, "%d") {
			reply = fmt.Sprintf(reply, data.Addr().(*net.TCPAddr).Port)
		}
		_, err := io.WriteString(conn, reply+"\r\n")
		return err == nil && strings.HasPrefix(reply, "150")
	}
	say("")
	for in.Scan() {
		command, _, _ := strings.Cut(in.Text(), " ")
		if command == "FEAT" && s.floodControl != nil {
			_ = s.floodControl(conn)
			return
		}
		if say(command) {
			s.serveData(data)
			say("sent")
		}
	}
}

// serveData calls writeData with the data connection.
func (s *scriptedServer) serveData(l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	if s.writeData != nil {
		s.writeData(conn)
	}
}

// writeEndlessly writes line until the client closes the connection.
func writeEndlessly(w io.Writer, line string) error {
	block := []byte(strings.Repeat(line, 1000))
	for {
		if _, err := w.Write(block); err != nil {
			return err
		}
	}
}

// startCountingServer starts a service that no other server must make the crawler visit.
func startCountingServer(t *testing.T, addr string) (l net.Listener, visits *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	visits = new(atomic.Int32)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			visits.Add(1)
			conn.Close()
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l, visits
}

// TestHostile: whatever a server does, the visit ends with a specific error.
func TestHostile(t *testing.T) {
	pasv := func(reply string) map[string]string { return map[string]string{"EPSV": "500 no", "PASV": reply} }
	on := func(command, reply string) map[string]string { return map[string]string{command: reply} }
	half := func(c net.Conn) { fmt.Fprint(c, "User-agent: *\nDis") }
	for _, tt := range []struct {
		name   string
		script *scriptedServer
		want   string
	}{
		{"silence", &scriptedServer{silent: true}, "no whole answer within 300ms"},
		{"data that does not come", &scriptedServer{writeData: func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }},
			"no whole answer within 300ms"},
		{"another port", &scriptedServer{replies: on("EPSV", "229 (|||22|)")},
			"the server did not name a port above 1023"},
		{"no port", &scriptedServer{replies: on("EPSV", "229 (|||99999|)")},
			"the server did not name a port above 1023"},
		{"a port below zero", &scriptedServer{replies: on("EPSV", "229 (|||-1|)")},
			"the server did not name a port above 1023"},
		{"a port of PASV beyond all", &scriptedServer{replies: pasv("227 (127,0,0,1,999,999)")},
			"the server did not name a port above 1023"},
		{"parentheses the wrong way round", &scriptedServer{replies: pasv("227 )(")},
			"a reply of the server cannot be read"},
		{"no data port", &scriptedServer{replies: pasv("502 no")}, `the server says 502 "no"`},
		{"cut by its own word", &scriptedServer{writeData: half, replies: on("sent", "426 broken")},
			`the server says 426 "broken"`},
		{"cut, in the words of a missing file", &scriptedServer{writeData: half, replies: on("sent", "550 read error")},
			`the server says 550 "read error"`},
		{"cut without a word", &scriptedServer{writeData: half, replies: on("sent", "")}, `the server says 502 "no"`},
		{"a login that fails in the words of a missing file", &scriptedServer{replies: on("PASS", "550 no such user")},
			`the server says 550 "no such user"`},
		{"a login that wants an account", &scriptedServer{replies: on("PASS", "332 account")},
			`the server says 332 "account"`},
		{"the login is refused", &scriptedServer{replies: on("USER", "530 not here")}, "not here"},
		{"no ftp", &scriptedServer{replies: on("", "HTTP/1.1 400 Bad Request")}, "short response"},
		{"busy for now", &scriptedServer{replies: on("RETR", "450 in use")}, `the server says 450 "in use"`},
		{"words that would change a terminal",
			&scriptedServer{replies: on("RETR", "450 \x1b[2J"+strings.Repeat("x", 500))},
			`the server says 450 "\x1b[2Jxxx`},
		{"replies without end", &scriptedServer{floodControl: func(w io.Writer) error {
			return writeEndlessly(w, "211-more\r\n")
		}}, "the replies of the server are longer"},
		{"a line without end", &scriptedServer{floodControl: func(w io.Writer) error {
			return writeEndlessly(w, "x")
		}}, "short response"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.script.start(t)
			timeout := time.Minute
			if strings.Contains(tt.want, "within") {
				timeout = 300 * time.Millisecond
			}
			f := newFetcher(t, tt.script.addr, ftpfetch.Config{Timeout: timeout}, true)
			res, err := f.Fetch(t.Context(), ticketFor(t, "ftp://a.test/robots.txt"))
			if res != nil || !errors.Is(err, decorum.Unreachable) ||
				!strings.Contains(err.Error(), tt.want) || len(err.Error()) > 300 {
				t.Errorf("%+v, %v; want no answer, because %q", res, err, tt.want)
			}
		})
	}
}

// TestBounce: if a server names another address for the data, only the server's own address is
// connected to.
func TestBounce(t *testing.T) {
	other, visits := startCountingServer(t, "127.0.0.2:0")
	port := other.Addr().(*net.TCPAddr).Port
	s := &scriptedServer{replies: map[string]string{"EPSV": "500 no",
		"PASV": fmt.Sprintf("227 (127,0,0,2,%d,%d)", port/256, port%256)}}
	s.start(t)
	f := newFetcher(t, s.addr, ftpfetch.Config{}, true)
	res, err := f.Fetch(t.Context(), ticketFor(t, "ftp://a.test/robots.txt"))
	if !errors.Is(err, decorum.Unreachable) || visits.Load() != 0 {
		t.Errorf("%v, %v, and %d visits to the other address; want no answer and none", res, err, visits.Load())
	}
}

// TestServiceUnavailable: reply 421 becomes a 503, which slows down the crawl.
func TestServiceUnavailable(t *testing.T) {
	for _, command := range []string{"", "PASS", "RETR", "sent"} {
		s := &scriptedServer{replies: map[string]string{command: "421 too many"}, writeData: func(c net.Conn) {
			fmt.Fprint(c, "User-agent: *\n")
		}}
		s.start(t)
		res, err := newFetcher(t, s.addr, ftpfetch.Config{}, true).Fetch(t.Context(),
			ticketFor(t, "ftp://a.test/robots.txt"))
		if err != nil || res.Status != 503 || len(res.Body) > 0 {
			t.Errorf("421 to %q: %+v, %v; want 503", command, res, err)
		}
	}
}

// TestCompleteBy250: replies 226 and 250 both say that the file is complete (RFC 959 §4.2.2).
func TestCompleteBy250(t *testing.T) {
	s := &scriptedServer{writeData: func(c net.Conn) {
		fmt.Fprint(c, "whole")
	}, replies: map[string]string{"sent": "250 sent"}}
	s.start(t)
	res, err := newFetcher(t, s.addr, ftpfetch.Config{}, true).Fetch(t.Context(),
		ticketFor(t, "ftp://a.test/robots.txt"))
	if err != nil || string(res.Body) != "whole" {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestEndlessData: endless files and listings are cut, within little memory, and the connection is
// closed at once.
func TestEndlessData(t *testing.T) {
	const limit = 1 << 20
	line := "-rw-r--r-- 1 ftp ftp 1 Jan 01 00:00 a name that is always the same\r\n"
	s := &scriptedServer{writeData: func(c net.Conn) { _ = writeEndlessly(c, line) }}
	s.start(t)
	f := newFetcher(t, s.addr, ftpfetch.Config{MaxBody: limit}, true)
	for _, url := range []string{"ftp://a.test/long.txt", "ftp://a.test/"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		res, err := f.Fetch(t.Context(), ticketFor(t, url))
		runtime.ReadMemStats(&after)
		if err != nil || !res.BodyLimitExceeded || len(res.Body) == 0 || len(res.Body) > limit {
			t.Errorf("%s: %v, want an answer that is cut", url, err)
		}
		if spent := after.TotalAlloc - before.TotalAlloc; spent > 32*limit {
			t.Errorf("%s: %d bytes were allocated for %d", url, spent, limit)
		}
	}
}

// TestFetchCancelled: a visit ends when the crawl ends, and leaves no connection open.
func TestFetchCancelled(t *testing.T) {
	s := &scriptedServer{silent: true}
	s.start(t)
	ctx, halt := context.WithCancelCause(t.Context())
	why := errors.New("halted")
	defer halt(nil)
	go func() {
		for s.conns.Load() == 0 {
			runtime.Gosched()
		}
		halt(why)
	}()
	if _, err := newFetcher(t, s.addr, ftpfetch.Config{Timeout: time.Hour}, true).Fetch(ctx,
		ticketFor(t, "ftp://a.test/x")); !errors.Is(err, why) {
		t.Errorf("%v, want that it was halted", err)
	}
	for s.conns.Load() != 0 {
		runtime.Gosched() // if this never ends, the timeout of go test does
	}
}
