package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"hash/crc32"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/flate"
)

// A tlsServer serves a web of https pages and counts what each host gets. It generates a page when
// it is requested, and compresses only the parts that no other page has, so that its memory depends
// on the numbers of hosts and connections only.
type tlsServer struct {
	web          workload
	filler       filler
	deflated     [][]byte  // the filler's chunks, compressed
	writers      sync.Pool // of *flate.Writer
	buffers      sync.Pool // of *bytes.Buffer
	certificates *certificateIssuer

	mu     sync.Mutex // guards hosts, counts and requestsByPage
	hosts  []hostTraffic
	counts requestCounts
	// requestsByPage has the requests for each page, by host and then by page.
	requestsByPage []uint16
}

// A hostTraffic is what a host of a tlsServer got since the counts were last taken.
type hostTraffic struct {
	askedForRobots bool
	inProgress     int       // requests that have no response yet
	responseEnd    time.Time // when the last response was complete; zero: none was
	full, resumed  int       // TLS handshakes of connections with a request
}

// newTLSServer returns a server of the web w.
func newTLSServer(w workload) (*tlsServer, error) {
	issuer, err := newCertificateIssuer()
	if err != nil {
		return nil, err
	}
	s := &tlsServer{web: w, filler: newFiller(), certificates: issuer, hosts: make([]hostTraffic, w.Hosts),
		requestsByPage: make([]uint16, w.numPages())}
	s.writers.New = func() any {
		z, _ := flate.NewWriter(nil, flate.BestSpeed) // the level is valid
		return z
	}
	s.buffers.New = func() any { return new(bytes.Buffer) }
	for _, chunk := range s.filler.chunks {
		var b bytes.Buffer
		z, err := flate.NewWriter(&b, flate.DefaultCompression)
		if err != nil {
			return nil, err
		}
		io.WriteString(z, chunk)
		z.Flush() // ends on the boundary of a byte, so that other blocks may follow
		s.deflated = append(s.deflated, b.Bytes())
	}
	return s, nil
}

// A loopbackListener accepts connections from this machine to all of its loopback addresses.
type loopbackListener struct{ net.Listener }

// listenOnLoopback returns a listener at a free port of all loopback addresses.
func listenOnLoopback() (net.Listener, error) {
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	return loopbackListener{l}, err
}

// Accept closes connections to other addresses.
func (l loopbackListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || c.LocalAddr().(*net.TCPAddr).IP.IsLoopback() {
			return c, err
		}
		c.Close()
	}
}

// connectionRequests is the key of a context for the number of requests on its connection.
type connectionRequests struct{}

// serve serves https on listener until it is closed.
func (s *tlsServer) serve(listener net.Listener) error {
	config := &tls.Config{
		MinVersion:     tls.VersionTLS13,
		GetCertificate: s.getCertificate,
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(s.web.TLS.HTTP2)
	h := &http.Server{
		Handler: s, TLSConfig: config, Protocols: protocols, IdleTimeout: s.web.TLS.IdleTimeout,
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, connectionRequests{}, new(atomic.Int32))
		},
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				s.withLock(func() { s.counts.Connections++ })
			}
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	return h.ServeTLS(listener, "", "")
}

// getCertificate returns the certificate of the host that a client names, or whose address it
// connects to.
func (s *tlsServer) getCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	host, ok := s.web.hostNumber(cmp.Or(hello.ServerName, hello.Conn.LocalAddr().String()))
	if !ok {
		return nil, os.ErrNotExist
	}
	return s.certificates.certificateOf(host)
}

// ServeHTTP implements http.Handler: it serves pages and robots.txt files, and counts the requests.
func (s *tlsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, ok := s.web.hostNumber(r.Host)
	if !ok {
		s.withLock(func() { s.counts.NonexistentPages++ })
		http.NotFound(w, r)
		return
	}
	begin, t := time.Now(), s.web.TLS
	n := r.Context().Value(connectionRequests{}).(*atomic.Int32).Add(1)
	s.withLock(func() {
		s.beginRequest(host, begin)
		if n == 1 {
			s.countHandshake(host, r.TLS.DidResume)
		}
	})
	// Say what happens to the connection, as servers do, though HTTP/1.1 does not ask for it.
	if t.RequestsPerConnection > 0 && int(n) >= t.RequestsPerConnection {
		w.Header().Set("Connection", "close")
	} else if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "keep-alive")
		if t.KeepAliveHeader {
			w.Header().Set("Keep-Alive", "timeout="+strconv.Itoa(int(t.IdleTimeout.Seconds())))
		}
	}
	time.Sleep(t.Latency)
	s.respond(w, r, host)
}

// respond sends the response to a request to a host.
func (s *tlsServer) respond(w http.ResponseWriter, r *http.Request, host int) {
	b := s.buffers.Get().(*bytes.Buffer)
	defer s.buffers.Put(b)
	b.Reset()
	page, isPage := s.web.pageNumber(r.URL.Path)
	isRobots := r.URL.Path == "/robots.txt"
	header, status := w.Header(), http.StatusOK
	switch {
	case isRobots:
		header.Set("Content-Type", "text/plain; charset=utf-8")
		b.WriteString(robotsTxt)
	case isPage:
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Vary", "Accept-Encoding")
		compressed := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
		if compressed {
			header.Set("Content-Encoding", "gzip")
		}
		s.appendPage(b, host, page, s.originFunc(r), compressed)
	default:
		status = http.StatusNotFound
	}
	header.Set("Content-Length", strconv.Itoa(b.Len()))
	// The response counts as complete before it is written: afterwards, the client may already have
	// sent its next request.
	s.withLock(func() {
		switch {
		case isRobots:
			s.hosts[host].askedForRobots = true
		case isPage:
			s.requestsByPage[host*s.web.Pages+page]++
			s.counts.WireBytes += int64(b.Len())
		default:
			s.counts.NonexistentPages++
		}
		s.endRequest(host, time.Now())
	})
	w.WriteHeader(status)
	w.Write(b.Bytes())
}

// originFunc returns a function that returns the start of the URLs of a host, for the page that r asks
// for: if the URL of the page has an address, so have its links.
func (s *tlsServer) originFunc(r *http.Request) func(host int) string {
	name, _, _ := strings.Cut(r.Host, ":")
	if net.ParseIP(name) == nil {
		return s.web.originOf
	}
	return addressOrigin(r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
}

// appendPage appends a page to b, compressed with gzip (RFC 1952) or not. Its links to other hosts
// begin with what origin returns. The blocks of a compressed
// page refer to nothing before their part of the page, so that the chunks of the filler are
// compressed only once.
func (s *tlsServer) appendPage(b *bytes.Buffer, host, page int, origin func(int) string, compressed bool) {
	head, first, chunks, tail := s.web.tlsPageParts(s.filler, host, page, origin)
	if !compressed {
		b.WriteString(head)
		for i := range chunks {
			b.WriteString(s.filler.chunks[(first+i)%len(s.filler.chunks)])
		}
		b.WriteString(tail)
		return
	}
	b.WriteString("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff") // no name, no time, unknown system
	z := s.writers.Get().(*flate.Writer)
	defer s.writers.Put(z)
	z.Reset(b)
	io.WriteString(z, head)
	z.Flush()
	checksum := crc32.Update(0, crc32.IEEETable, []byte(head))
	for i := range chunks {
		n := (first + i) % len(s.filler.chunks)
		b.Write(s.deflated[n])
		checksum = crc32.Update(checksum, crc32.IEEETable, []byte(s.filler.chunks[n]))
	}
	z.Reset(b)
	io.WriteString(z, tail)
	z.Close()
	checksum = crc32.Update(checksum, crc32.IEEETable, []byte(tail))
	var trailer [8]byte
	binary.LittleEndian.PutUint32(trailer[:], checksum)
	binary.LittleEndian.PutUint32(trailer[4:], uint32(len(head)+chunks*chunkBytes+len(tail)))
	b.Write(trailer[:])
}

// beginRequest notes that a request to a host arrived. The caller holds s.mu.
func (s *tlsServer) beginRequest(host int, now time.Time) {
	h := &s.hosts[host]
	s.counts.Requests++
	if h.inProgress > 0 || !h.responseEnd.IsZero() && now.Sub(h.responseEnd) < s.web.TLS.Delay {
		s.counts.ShortGaps++
	}
	h.inProgress++
}

// countHandshake counts the handshake of a connection to a host. The caller holds s.mu.
func (s *tlsServer) countHandshake(host int, resumed bool) {
	if resumed {
		s.hosts[host].resumed++
	} else {
		s.hosts[host].full++
	}
}

// endRequest notes that the response to a request is complete. The caller holds s.mu.
func (s *tlsServer) endRequest(host int, now time.Time) {
	s.hosts[host].inProgress--
	s.hosts[host].responseEnd = now
}

// takeRequestCounts returns the counts and resets them.
func (s *tlsServer) takeRequestCounts() requestCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.counts
	for _, n := range s.requestsByPage {
		t.PageRequests += int(n)
		if n > 0 {
			t.Distinct++
		}
	}
	for _, h := range s.hosts {
		if h.askedForRobots {
			t.HostsAskedForRobots++
		}
		t.FullHandshakes += h.full
		t.ResumedHandshakes += h.resumed
		if n := h.full + h.resumed; n > 0 {
			t.HostsWithHandshakes++
			t.MostHandshakesOfHost = max(t.MostHandshakesOfHost, n)
		}
	}
	s.counts = requestCounts{}
	clear(s.requestsByPage)
	clear(s.hosts)
	return t
}

// withLock calls one while it holds s.mu.
func (s *tlsServer) withLock(one func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one()
}
