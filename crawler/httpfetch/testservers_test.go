package httpfetch_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/decorum-crawler/decorum/internal/testlisten"
)

// A forbiddenServer is a service on loopback to which no request may connect.
type forbiddenServer struct {
	port        string
	connections atomic.Int32
}

// newForbiddenServer starts a forbiddenServer on 127.0.0.1, and on ::1 if the machine has it.
func newForbiddenServer(t *testing.T) *forbiddenServer {
	t.Helper()
	s := new(forbiddenServer)
	l := testlisten.Listen(t, "127.0.0.1:0")
	go testlisten.Serve(l, s.countAndClose)
	_, s.port, _ = net.SplitHostPort(l.Addr().String())
	if l, err := net.Listen("tcp", "[::1]:"+s.port); err == nil {
		t.Cleanup(func() { l.Close() })
		go testlisten.Serve(l, s.countAndClose)
	}
	return s
}

func (s *forbiddenServer) countAndClose(c net.Conn) {
	s.connections.Add(1)
	c.Close()
}

// A dnsZone maps a name to its addresses, given how many questions of the type came before.
type dnsZone map[string]func(n int) []string

func alwaysAddrs(addrs ...string) func(int) []string {
	return func(int) []string { return addrs }
}

// A nameServer is a DNS server on loopback.
type nameServer struct {
	conn           net.PacketConn
	zone           dnsZone
	mu             sync.Mutex     // guards questionCounts
	questionCounts map[string]int // by name and type
}

// newCachingResolver starts a name server for z and returns a resolver that uses it.
func newCachingResolver(t *testing.T, z dnsZone) (*nameServer, *net.Resolver) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &nameServer{conn: conn, zone: z, questionCounts: map[string]int{}}
	go s.serve()
	return s, &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (s *nameServer) serve() {
	buf := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		s.answerQuery(&m)
		if packed, err := m.Pack(); err == nil {
			_, _ = s.conn.WriteTo(packed, from)
		}
	}
}

func (s *nameServer) answerQuery(m *dnsmessage.Message) {
	q := m.Questions[0]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	addrs := s.zone[strings.TrimSuffix(q.Name.String(), ".")]
	if addrs == nil {
		m.RCode = dnsmessage.RCodeNameError
		return
	}
	for _, text := range addrs(s.countQuestion(q)) {
		header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 0}
		a := netip.MustParseAddr(text)
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers,
				dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
}

func (s *nameServer) countQuestion(q dnsmessage.Question) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := q.Name.String() + q.Type.String()
	s.questionCounts[key]++
	return s.questionCounts[key] - 1
}

// questionCount returns how many questions came for the IPv4 addresses of name.
func (s *nameServer) questionCount(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.questionCounts[name+"."+dnsmessage.TypeA.String()]
}

// A proxyServer is a proxy on loopback that resolves hosts by its zone. It records the targets that it
// was sent.
type proxyServer struct {
	URL            string
	zone           map[string]string
	mu             sync.Mutex // guards connectTargets and authHeaders
	connectTargets []string
	authHeaders    []string
}

func (p *proxyServer) recordTarget(target, auth string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connectTargets, p.authHeaders = append(p.connectTargets, target), append(p.authHeaders, auth)
	host, port, _ := net.SplitHostPort(target)
	if to := p.zone[host]; to != "" {
		host = to
	}
	return net.JoinHostPort(host, port)
}

func (p *proxyServer) targets() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connectTargets
}

// newHTTPProxy starts an HTTP proxy.
func newHTTPProxy(t *testing.T, zone map[string]string) (*proxyServer, *httptest.Server) {
	t.Helper()
	p := &proxyServer{zone: zone}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		target := r.Host
		if r.Method != http.MethodConnect && r.URL.Port() == "" {
			target += ":80"
		}
		to := p.recordTarget(target, r.Header.Get("Proxy-Authorization"))
		if r.Method == http.MethodConnect {
			tunnelTo(w, to)
			return
		}
		r.RequestURI, r.URL.Host = "", to
		r.Header.Del("Proxy-Authorization")
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer res.Body.Close()
		w.WriteHeader(res.StatusCode)
		io.Copy(w, res.Body)
	}))
	t.Cleanup(s.Close)
	return p, s
}

func tunnelTo(w http.ResponseWriter, to string) {
	out, err := net.Dial("tcp", to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	in, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
	pipeConns(in, out)
}

// pipeConns copies data between two connections, both ways.
func pipeConns(a, b net.Conn) {
	go func() { io.Copy(a, b); a.Close() }()
	io.Copy(b, a)
	b.Close()
}

// newSOCKSProxy starts a SOCKS5 proxy (RFC 1928).
func newSOCKSProxy(t *testing.T, scheme string, zone map[string]string) *proxyServer {
	t.Helper()
	l := testlisten.Listen(t, "127.0.0.1:0")
	p := &proxyServer{URL: scheme + "://" + l.Addr().String(), zone: zone}
	go testlisten.Serve(l, p.serveSOCKS)
	return p
}

func (p *proxyServer) serveSOCKS(c net.Conn) {
	b := make([]byte, 256)
	read := func(n int) []byte {
		io.ReadFull(c, b[:n])
		return b[:n]
	}
	read(int(read(2)[1])) // the methods offered
	c.Write([]byte{5, 0}) // no authentication required
	host := ""
	switch read(4)[3] {
	case 1:
		host = netip.AddrFrom4([4]byte(read(4))).String()
	case 3:
		host = string(read(int(read(1)[0])))
	case 4:
		host = netip.AddrFrom16([16]byte(read(16))).String()
	}
	port := binary.BigEndian.Uint16(read(2))
	out, err := net.Dial("tcp", p.recordTarget(net.JoinHostPort(host, strconv.Itoa(int(port))), ""))
	if err != nil {
		c.Write([]byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0})
		c.Close()
		return
	}
	c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	pipeConns(c, out)
}
