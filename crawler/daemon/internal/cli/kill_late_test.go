package cli

import (
	"bytes"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// TestKillBeforeServerReads kills a crawl after the kernel has received its request and before the
// server reads it, as happens on a busy machine. The judge counts the request as one of the killed
// process, so that the next process may repeat it.
func TestKillBeforeServerReads(t *testing.T) {
	if testing.Short() {
		t.Skip("the killed crawl is a separate process")
	}
	t.Parallel()
	web := crawltest.New(crawltest.Site{Host: "a.example", Pages: map[string]crawltest.PageFunc{
		"/":     crawltest.StaticPage(crawltest.HTML(`<a href="/late">late</a>`)),
		"/late": crawltest.StaticPage(crawltest.HTML("late")),
	}})
	web.CrawlSettings.Seeds = []string{"http://a.example/"}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := newLateListener(tcp, "GET /late ")
	server := web.StartOn(listener)
	defer server.Close()
	defer listener.release()

	v := newKilledCrawl(t, web, server)
	if ended, err := v.run(listener.arrived); ended || err != nil {
		t.Fatalf("the first process finished: %v, error %v", ended, err)
	}
	if ended, err := v.run(nil); !ended || err != nil {
		t.Fatalf("the second process finished: %v, error %v", ended, err)
	}
	report := web.Judge(crawltest.JudgeOptions{MinDelay: killDelay, RequiredProductToken: "decorum",
		RestartTimes: v.starts[1:], CrashLossWindow: maxUnflushedAge})
	if !report.OK() {
		t.Errorf("the judge says:\n%s%s", report, v.describeViolations(report))
	}
	inHand := repeatedRequest{url: "http://a.example/late", ageAtKill: 0}
	if repeated := repeatedRequests(web.Log(), v.starts, v.kills); !slices.Contains(repeated, inHand) {
		t.Errorf("repeated: %v, want also %v", repeated, inHand)
	}
}

// A lateListener is the listener of a server that reads one request late: only when the
// next connection has been accepted.
type lateListener struct {
	net.Listener
	requestLine []byte         // the beginning of that request
	arrived     chan time.Time // receives the time at which it arrived
	held        atomic.Bool    // whether it has arrived
	released    chan struct{}  // closed when the server may read it
	release     func()         // closes released
}

func newLateListener(l net.Listener, requestLine string) *lateListener {
	released := make(chan struct{})
	return &lateListener{Listener: l, requestLine: []byte(requestLine), arrived: make(chan time.Time, 1),
		released: released, release: sync.OnceFunc(func() { close(released) })}
}

// Accept accepts a connection, and releases the request if it is held.
func (l *lateListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if l.held.Load() {
		l.release()
	}
	return &lateConn{Conn: conn, listener: l}, nil
}

// A lateConn is a connection of a lateListener.
type lateConn struct {
	net.Conn
	listener *lateListener
	answered chan struct{} // closed with the answer to the held request; nil: this connection has none
	answer   sync.Once     // guards closing answered
}

// Read reads from the connection. After the held request it returns nothing more until the server has
// answered; otherwise the server might notice that the client is gone, and not answer.
func (c *lateConn) Read(b []byte) (int, error) {
	if c.answered != nil {
		<-c.answered
	}
	n, err := c.Conn.Read(b)
	if bytes.HasPrefix(b[:n], c.listener.requestLine) && c.listener.held.CompareAndSwap(false, true) {
		c.answered = make(chan struct{})
		c.listener.arrived <- time.Now()
		<-c.listener.released
	}
	return n, err
}

func (c *lateConn) Write(b []byte) (int, error) {
	if c.answered != nil {
		c.answer.Do(func() { close(c.answered) })
	}
	return c.Conn.Write(b)
}
