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

// A tally is what the server was asked for since it was last asked.
type tally struct {
	Asked    int // requests for pages
	Distinct int // pages that were asked for
	Robots   int // hosts whose robots.txt was asked for
	Strange  int // requests for what there is not
}

// A server serves a web, and counts. Pages are made before the first request.
type server struct {
	web    web
	bodies [][]byte // by host, then page

	mu      sync.Mutex
	asked   []int
	robots  map[string]bool
	strange int
}

// serve is the server's process: it says its port, then its tally for each line
// of input, until there is no more.
func serve(w web) error {
	s := &server{web: w, asked: make([]int, w.size()), robots: map[string]bool{}}
	for i := range w.size() {
		s.bodies = append(s.bodies, []byte(w.body(i/w.Pages, i%w.Pages)))
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
		if err := out.Encode(s.take()); err != nil {
			return err
		}
	}
	listener.Close()
	<-ended
	return nil
}

// take returns the tally, and begins a new one.
func (s *server) take() tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := tally{Robots: len(s.robots), Strange: s.strange}
	for i, n := range s.asked {
		t.Asked += n
		if n > 0 {
			t.Distinct++
		}
		s.asked[i] = 0
	}
	clear(s.robots)
	s.strange = 0
	return t
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		s.count(func() { s.robots[r.Host] = true })
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, "User-agent: *\nDisallow: /private/\nDisallow: /search?\nAllow: /\n")
		return
	}
	var host int
	_, err := fmt.Sscanf(r.Host, "site-%d.example", &host)
	page, ok := s.web.find(r.URL.Path)
	if err != nil || !ok || host < 0 || host >= s.web.Hosts {
		s.count(func() { s.strange++ })
		http.NotFound(w, r)
		return
	}
	i := host*s.web.Pages + page
	s.count(func() { s.asked[i]++ })
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(pageBytes))
	w.Write(s.bodies[i])
}

func (s *server) count(one func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one()
}
