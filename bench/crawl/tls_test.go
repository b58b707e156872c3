package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"math"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
)

// smallTLSWeb is a small web for tests, with the delay of decorum at a host.
func smallTLSWeb(delay time.Duration) workload {
	return workload{Hosts: 6, Pages: 3, TLS: &tlsWeb{Links: 20, MeanBytes: 20_000, MedianBytes: 15_000,
		Delay: delay, IdleTimeout: time.Minute}}
}

// TestRunTLS: the program prints figures of each crawler that is installed for a web of https pages,
// with connections that the server keeps and with connections that it closes after each response.
// decorum makes one connection for each host or one for each request, and no short gap.
func TestRunTLS(t *testing.T) {
	for _, requestsPerConnection := range []int{0, 1} {
		w := smallTLSWeb(10 * time.Millisecond)
		w.TLS.RequestsPerConnection = requestsPerConnection
		all, err := selectCrawlers("decorum,wget2,colly,tokenizer loop,net/http")
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := benchmarkCrawlers(childProcessTask{Web: w, Workers: 8, Dir: t.TempDir()}, all,
			workload{Hosts: 1, Pages: 20}, 1, &out); err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if c.command != nil {
				if _, err := c.command(childProcessTask{}); errors.Is(err, errNotInstalled) {
					continue
				}
			}
			if !regexp.MustCompile(`(?m)^ *` + c.name + ` .*\d\.\d\d\d +\d+\.\d\d `).MatchString(out.String()) {
				t.Errorf("no figures of %s in\n%s", c.name, &out)
			}
		}
		// The columns are requests, repeated pages, connections and handshakes.
		want := map[int]string{0: " 24 +0 +6 +6 ", 1: " 24 +0 +24 +24 "}[requestsPerConnection]
		if !regexp.MustCompile(`(?m)^ *decorum .*` + want).MatchString(out.String()) {
			t.Errorf("the row of decorum does not match %q:\n%s", want, &out)
		}
	}
}

// TestFailedCrawl: a crawler that may fail with https has no figures if it does.
func TestFailedCrawl(t *testing.T) {
	server, err := startServerProcess(workload{Hosts: 1, Pages: 1}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer server.stop()
	fails := func(childProcessTask) (*exec.Cmd, error) {
		if _, err := http.Get("http://" + server.address.Proxy + "/robots.txt"); err != nil {
			return nil, err
		}
		return exec.Command("decorum-no-such-program"), nil
	}
	for _, test := range []struct {
		web       workload
		mayFail   bool
		wantError bool
	}{{smallTLSWeb(0), true, false}, {smallTLSWeb(0), false, true}, {workloads()["W1"], true, true}} {
		r := crawlerRow{crawler: crawler{command: fails, mayFailWithTLS: test.mayFail},
			task: childProcessTask{Web: test.web}, server: server}
		if err := r.measureRound(); (err != nil) != test.wantError || len(r.figuresByRound) > 0 {
			t.Errorf("%+v: %v, %d rounds with figures", test, err, len(r.figuresByRound))
		}
		if counts, err := server.takeRequestCounts(); err != nil || counts.HostsAskedForRobots > 0 {
			t.Errorf("the next crawl starts with %+v, %v", counts, err)
		}
	}
}

// TestTLSPages: a page is the same with and without compression, has the size that the distribution
// says, and links to every host in the form of its request.
func TestTLSPages(t *testing.T) {
	w := workloads()["web-2025"]
	s, err := newTLSServer(w)
	if err != nil {
		t.Fatal(err)
	}
	decoded, sent := 0, 0
	for host := range 40 {
		var plain, compressed bytes.Buffer
		s.appendPage(&plain, host, 0, w.originOf, false)
		s.appendPage(&compressed, host, 0, w.originOf, true)
		decoded, sent = decoded+plain.Len(), sent+compressed.Len()
		z, err := gzip.NewReader(&compressed)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, plain.Bytes()) {
			t.Fatalf("host %d: the compressed page has %d bytes, want %d: %v", host, len(got), plain.Len(), err)
		}
		// A page is never shorter than its links.
		if want := w.TLS.sizeOfPage(host); want > 20_000 && plain.Len() != want {
			t.Errorf("host %d: the page has %d bytes, want %d", host, plain.Len(), want)
		}
		if n := strings.Count(plain.String(), `<a class="entry" href="https://site-`); n != 79 {
			t.Errorf("host %d: the page has %d links to other hosts, want 79", host, n)
		}
	}
	if ratio := float64(decoded) / float64(sent); ratio < 3 || ratio > 6 {
		t.Errorf("pages are compressed to 1/%.1f, want 1/3 to 1/6 as on the web", ratio)
	}
	var page bytes.Buffer
	s.appendPage(&page, 3, 0, addressOrigin("127.0.0.1:443"), false)
	if !strings.Contains(page.String(), `href="https://127.1.0.238:443/`) {
		t.Error("a page for a client that uses addresses has no links with addresses")
	}
}

// TestSizeOfPage: webs of few and of many pages have the median and the mean of the distribution.
func TestSizeOfPage(t *testing.T) {
	web := workloads()["web-2025"].TLS
	for _, pages := range []int{500, 20_000} {
		sizes, sum := make([]int, pages), 0
		for n := range sizes {
			sizes[n] = web.sizeOfPage(n)
			sum += sizes[n]
		}
		slices.Sort(sizes)
		for _, figure := range [][2]int{{sizes[pages/2], web.MedianBytes}, {sum / pages, web.MeanBytes}} {
			if math.Abs(float64(figure[0])/float64(figure[1])-1) > 0.03 {
				t.Errorf("%d pages have the median %d and the mean %d", pages, sizes[pages/2], sum/pages)
			}
		}
	}
}

// TestHostNumber: hosts are known by name and by address, with and without a port.
func TestHostNumber(t *testing.T) {
	w := workload{Hosts: 1000}
	for name, want := range map[string]int{
		"site-0.example": 0, "site-999.example:443": 999, hostAddress(300).String(): 300, "127.1.1.44:8443": 300,
		"site-1000.example": -1, "site-01.example": -1, "site--1.example": -1, "www.example": -1, "127.0.0.1": -1,
		"127.1.3.232": -1, "": -1,
	} {
		if got, ok := w.hostNumber(name); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q is host %d, %v, want %d", name, got, ok, want)
		}
	}
}

// TestShortGaps: requests within the delay after a response count, and requests before the response.
func TestShortGaps(t *testing.T) {
	s, err := newTLSServer(smallTLSWeb(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	at := func(after time.Duration) time.Time { return start.Add(after) }
	s.beginRequest(0, at(0))
	s.endRequest(0, at(time.Second))
	s.beginRequest(0, at(2*time.Second))
	s.beginRequest(1, at(2*time.Second))
	if n := s.takeRequestCounts().ShortGaps; n != 0 {
		t.Errorf("%d short gaps, want none", n)
	}
	s.beginRequest(0, at(0))
	s.beginRequest(0, at(2*time.Second))
	s.endRequest(0, at(3*time.Second))
	s.endRequest(0, at(3*time.Second))
	s.beginRequest(0, at(4*time.Second-1))
	if n := s.takeRequestCounts().ShortGaps; n != 2 {
		t.Errorf("%d short gaps, want 2", n)
	}
}

// TestWorkloadFlags: flags change the workload that -workload names, wherever it stands.
func TestWorkloadFlags(t *testing.T) {
	parse := func(args ...string) (workload, error) {
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		web := workloadFlags(flags)
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		return web()
	}
	w, err := parse("-hosts", "400", "-idle-timeout", "500ms", "-keep-alive-header", "true", "-workload", "broad")
	if err != nil || w.Hosts != 400 || w.Pages != 10 || w.TLS.IdleTimeout != time.Second/2 || !w.TLS.KeepAliveHeader {
		t.Errorf("%+v, %+v, %v", w, w.TLS, err)
	}
	for _, args := range [][]string{{"-workload", "W3"}, {"-hosts", "x"}, {"-idle-timeout", "1s"},
		{"-workload", "broad", "-delay", "1"}} {
		if w, err := parse(args...); err == nil {
			t.Errorf("%s: %+v", args, w)
		}
	}
}
