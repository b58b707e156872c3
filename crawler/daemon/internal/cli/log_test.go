package cli

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/internal/testlisten"
)

// startTCPServer returns the address of a server that calls serveConn for each connection, concurrently.
func startTCPServer(t *testing.T, serveConn func(net.Conn)) (addr string) {
	t.Helper()
	l := testlisten.Listen(t, "127.0.0.1:0")
	go testlisten.Serve(l, serveConn)
	return l.Addr().String()
}

// startTalkativeServer serves pages over persistent connections, and sends unsolicited bytes after
// each answer.
func startTalkativeServer(t *testing.T) (addr string) {
	t.Helper()
	return startTCPServer(t, func(c net.Conn) {
		defer c.Close()
		for r := bufio.NewReader(c); ; {
			if _, err := http.ReadRequest(r); err != nil {
				return
			}
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 "+
				"OK\r\n\r\n")
		}
	})
}

// What net/http logs through the standard logger about unsolicited bytes of an HTTP proxy is in the log at
// level debug, in the log's own format.
func TestStandardLogger(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"info", "debug"} {
		c, stderr := newCommandProcess(t, "crawl", "--data", filepath.Join(t.TempDir(), "data"),
			"--contact=mailto:bot@example.com", "--allow-private",
			"--proxy=http://"+startTalkativeServer(t), "--delay=50ms", "--progress=none", "--log-level",
			level, "http://a.example/")
		if err := c.Run(); err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
		if got := strings.Contains(stderr.String(), "Unsolicited response"); got != (level == "debug") {
			t.Errorf("level %s: the message is logged: %v\n%s", level, got, stderr)
		}
		if level == "debug" && !strings.Contains(stderr.String(), `level=DEBUG msg="Unsolicited response`) {
			t.Errorf("the message is not in the format of the log\n%s", stderr)
		}
	}
}
