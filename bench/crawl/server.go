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

// A requestCounts is what the server was asked for since it was last asked.
type requestCounts struct {
	PageRequests        int // requests for pages
	Distinct            int // pages that were asked for
	HostsAskedForRobots int // hosts whose robots.txt was asked for
	NonexistentPages    int // requests for what there is not
}

// A server serves a web, and counts. Pages are made before the first request.
type server struct {
	web    webSize
	bodies [][]byte // by host, then page

	mu                      sync.Mutex
	requestsByPage          []int
	robotsRequestedHosts    map[string]bool
	nonexistentPageRequests int
}

// runServer is the server's process: it says its port, then its tally for each line
// of input, until there is no more.
func runServer(w webSize) error {
	s := &server{web: w, requestsByPage: make([]int, w.numPages()), robotsRequestedHosts: map[string]bool{}}
	for i := range w.numPages() {
		s.bodies = append(s.bodies, []byte(w.pageHTML(i/w.Pages, i%w.Pages)))
	}
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

// takeRequestCounts returns the tally, and begins a new one.
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

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		s.withLock(func() { s.robotsRequestedHosts[r.Host] = true })
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, "User-agent: *\nDisallow: /private/\nDisallow: /search?\nAllow: /\n")
		return
	}
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

func (s *server) withLock(one func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one()
}
