package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// A requestCounts has the counts of requests to the server since the counts were last taken.
type requestCounts struct {
	PageRequests        int // requests for pages
	Distinct            int // different pages requested
	HostsAskedForRobots int // hosts whose robots.txt was requested
	NonexistentPages    int // requests for paths without a page

	// The server's own use, which is not the crawler's.
	ServerCPUSeconds float64 // user and system time
	ServerRSSMiB     float64 // peak resident memory since the server started

	// Counts of a web of https pages.
	Requests             int // for pages, robots.txt and all other paths
	Connections          int // accepted
	FullHandshakes       int
	ResumedHandshakes    int
	HostsWithHandshakes  int   // hosts that had a handshake
	MostHandshakesOfHost int   // of the host that had most
	ShortGaps            int   // requests to a host within the delay after its last response, or before its end
	WireBytes            int64 // bodies of pages as sent
}

// handshakes returns the number of TLS handshakes.
func (c requestCounts) handshakes() int { return c.FullHandshakes + c.ResumedHandshakes }

// resumedAfterFirst returns the share of the handshakes after the first one with each host that
// resumed a session. Without such handshakes, it returns 0.
func (c requestCounts) resumedAfterFirst() float64 {
	return float64(c.ResumedHandshakes) / float64(max(1, c.handshakes()-c.HostsWithHandshakes))
}

// robotsTxt is the robots.txt of each host.
const robotsTxt = "User-agent: *\nDisallow: /private/\nDisallow: /search?\nAllow: /\n"

// A server serves a web and counts requests. It generates all pages before the first request.
type server struct {
	web    workload
	bodies [][]byte // by host, then page

	mu                      sync.Mutex      // guards requestsByPage, robotsRequestedHosts, nonexistentPageRequests
	requestsByPage          []int           // indexes as in bodies
	robotsRequestedHosts    map[string]bool // by Host header
	nonexistentPageRequests int
}

// A serverAddress is where a server process listens.
type serverAddress struct {
	Proxy  string // an HTTP proxy that connects to the server for every host; it serves http pages itself
	TLS    string // https
	CAFile string // certificate of the authority that issued the certificates of the hosts
}

// runServer runs the server's process. It writes its address as a line of JSON, then its
// requestCounts as JSON for each line of input, and returns at the end of the input.
func runServer(p childProcessTask) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := serverAddress{Proxy: listener.Addr().String()}
	var take func() requestCounts
	var handler http.Handler
	// Closing the listeners ends the goroutines.
	var group sync.WaitGroup
	defer group.Wait()
	if p.Web.TLS == nil {
		s := newServer(p.Web)
		take, handler = s.takeRequestCounts, s
	} else {
		s, err := newTLSServer(p.Web)
		if err != nil {
			return err
		}
		tlsListener, err := listenOnLoopback()
		if err != nil {
			return err
		}
		defer tlsListener.Close()
		_, port, err := net.SplitHostPort(tlsListener.Addr().String())
		if err != nil {
			return err
		}
		address.TLS, address.CAFile = "127.0.0.1:"+port, filepath.Join(p.Dir, "ca.pem")
		if err := os.WriteFile(address.CAFile, s.certificates.pem(), 0o600); err != nil {
			return err
		}
		take, handler = s.takeRequestCounts, connectProxy(address.TLS)
		group.Go(func() { s.serve(tlsListener) })
	}
	group.Go(func() { http.Serve(listener, handler) })
	defer listener.Close()
	return answerParent(address, take)
}

// answerParent writes the address and, for each line of input, the counts that take returns and the
// CPU time since the last line.
func answerParent(address serverAddress, take func() requestCounts) error {
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(address); err != nil {
		return err
	}
	cpuBefore, _ := ownUsage()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		counts := take()
		cpu, rss := ownUsage()
		counts.ServerCPUSeconds, counts.ServerRSSMiB = cpu-cpuBefore, rss
		cpuBefore = cpu
		if err := out.Encode(counts); err != nil {
			return err
		}
	}
	return nil
}

// newServer returns a server of the web w.
func newServer(w workload) *server {
	s := &server{web: w, requestsByPage: make([]int, w.numPages()), robotsRequestedHosts: map[string]bool{}}
	for i := range w.numPages() {
		s.bodies = append(s.bodies, []byte(w.pageHTML(i/w.Pages, i%w.Pages)))
	}
	return s
}

// takeRequestCounts returns the counts and resets them.
func (s *server) takeRequestCounts() requestCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := requestCounts{HostsAskedForRobots: len(s.robotsRequestedHosts), NonexistentPages: s.nonexistentPageRequests}
	for i, n := range s.requestsByPage {
		t.PageRequests += n
		if n > 0 {
			t.Distinct++
		}
		s.requestsByPage[i] = 0
	}
	clear(s.robotsRequestedHosts)
	s.nonexistentPageRequests = 0
	return t
}

// ServeHTTP implements http.Handler: it serves pages and robots.txt files, and counts the requests.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		s.withLock(func() { s.robotsRequestedHosts[r.Host] = true })
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, robotsTxt)
		return
	}
	// The Host header and the path have the numbers of the page.
	host, hostOK := s.web.hostNumber(r.Host)
	page, pageOK := s.web.pageNumber(r.URL.Path)
	if !hostOK || !pageOK {
		s.withLock(func() { s.nonexistentPageRequests++ })
		http.NotFound(w, r)
		return
	}
	i := host*s.web.Pages + page
	s.withLock(func() { s.requestsByPage[i]++ })
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(pageBytes))
	w.Write(s.bodies[i])
}

// withLock calls one while it holds s.mu.
func (s *server) withLock(one func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one()
}
