package httpfetch_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/internal/testlisten"
)

// TestDial: DialNonHTTP follows ConnectToRules and DialNonHTTPAddrPort does not; both refuse
// addresses as HTTP requests do.
func TestDial(t *testing.T) {
	sent, direct := startGreeter(t, "sent"), startGreeter(t, "direct")
	fetcher := func(private bool) *httpfetch.Fetcher {
		f, err := httpfetch.New(httpfetch.Config{UserAgent: userAgent,
			ConnectToRules: []string{"::" + sent.String()}, AllowPrivate: private})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	ticket := robotsTicket(t, "ftp://a.test/robots.txt")
	for _, tt := range []struct {
		name    string
		private bool
		ticket  crawler.Ticket
		refused error
	}{
		{"allowed", true, ticket, nil},
		{"private", false, ticket, decorum.Forbidden},
		{"no ticket", true, crawler.Ticket{}, decorum.Unticketed},
	} {
		f := fetcher(tt.private)
		byName, err := f.DialNonHTTP(t.Context(), tt.ticket, "a.test:21")
		checkGreeting(t, tt.name, byName, err, "sent", tt.refused)
		byAddr, err := f.DialNonHTTPAddrPort(t.Context(), tt.ticket, direct)
		checkGreeting(t, tt.name, byAddr, err, "direct", tt.refused)
	}
	if _, err := fetcher(true).DialNonHTTP(t.Context(), ticket, "a.test"); err == nil {
		t.Error("no port is needed")
	}
}

// startGreeter returns the address of a server that sends greeting and closes the connection.
func startGreeter(t *testing.T, greeting string) netip.AddrPort {
	t.Helper()
	l := testlisten.Listen(t, "127.0.0.1:0")
	go testlisten.Serve(l, func(c net.Conn) {
		_, _ = c.Write([]byte(greeting))
		c.Close()
	})
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// checkGreeting fails the test unless conn leads to the server that sends want or, if refused is
// set, err matches refused.
func checkGreeting(t *testing.T, name string, conn net.Conn, err error, want string, refused error) {
	t.Helper()
	if refused != nil {
		if !errors.Is(err, refused) {
			t.Errorf("%s: %v, want %v", name, err, refused)
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	defer conn.Close()
	got := make([]byte, len(want))
	if _, err := conn.Read(got); err != nil || string(got) != want {
		t.Errorf("%s: the server sent %q, %v; want %q", name, got, err, want)
	}
}
