package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
)

// A requestCounts has the counts of requests to the server since the counts were last taken.
type requestCounts struct {
	PageRequests        int // requests for pages
	Distinct            int // different pages requested
	HostsAskedForRobots int // hosts whose robots.txt was requested
	NonexistentPages    int // requests for paths without a page
}

// A server serves a web and counts requests. It generates all pages before the first request.
type server struct {
	web    webSize
	bodies [][]byte // by host, then page

	mu                      sync.Mutex      // guards requestsByPage, robotsRequestedHosts, nonexistentPageRequests
	requestsByPage          []int           // indexes as in bodies
	robotsRequestedHosts    map[string]bool // by Host header
	nonexistentPageRequests int
}

// runServer runs the server's process. It writes its address as a line, then its requestCounts as
// JSON for each line of input, and returns at the end of the input.
func runServer(w webSize) error {
	s := &server{web: w, requestsByPage: make([]int, w.numPages()), robotsRequestedHosts: map[string]bool{}}
	for i := range w.numPages() {
		s.bodies = append(s.bodies, []byte(w.pageHTML(i/w.Pages, i%w.Pages)))
	}
	// Serve, and answer the parent.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- http.Serve(listener, s) }()
	fmt.Println(listener.Addr())
	out := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err := out.Encode(s.takeRequestCounts()); err != nil {
			return err
		}
	}
	listener.Close()
	<-ended
	return nil
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
		io.WriteString(w, "User-agent: *\nDisallow: /private/\nDisallow: /search?\nAllow: /\n")
		return
	}
	// The Host header and the path have the numbers of the page.
	var host int
	_, err := fmt.Sscanf(r.Host, "site-%d.example", &host)
	page, ok := s.web.pageNumber(r.URL.Path)
	if err != nil || !ok || host < 0 || host >= s.web.Hosts {
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
