package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTimesOfParts: a sample belongs to one part, whichever function of it is called by another.
func TestTimesOfParts(t *testing.T) {
	const traces = `File: crawl
Duration: 10s, Total samples = 75ms
-----------+-------------------------------------------------------
     bytes:  64B
10000000ns   crypto/internal/fips140/sha256.blockSHANI
             crypto/tls.(*Conn).clientHandshake
             net/http.(*persistConn).addTLS.func2
-----------+-------------------------------------------------------
20000000ns   crypto/internal/fips140/sha256.blockSHANI
             github.com/decorum-crawler/decorum/crawler/httpfetch.(*Fetcher).Fetch (inline)
-----------+-------------------------------------------------------
30000000ns   runtime.memmove
             github.com/klauspost/compress/flate.(*decompressor).Read
             github.com/decorum-crawler/decorum/crawler/httpfetch.(*Fetcher).Fetch
-----------+-------------------------------------------------------
      15ms   runtime.futex
`
	times, err := timesOfParts(strings.NewReader(traces), crawlParts())
	if err != nil {
		t.Fatal(err)
	}
	for part, want := range map[string]time.Duration{
		"TLS handshake": 10 * time.Millisecond, "hash": 20 * time.Millisecond, "inflate": 30 * time.Millisecond,
		"other": 15 * time.Millisecond, "HTTP": 0,
	} {
		if times[part] != want {
			t.Errorf("%s takes %s, want %s", part, times[part], want)
		}
	}
}

// TestCrawlParts: the packages of decorum that parts name exist.
func TestCrawlParts(t *testing.T) {
	for _, p := range crawlParts() {
		for _, function := range p.functions {
			path, ok := strings.CutPrefix(function, decorumPath)
			if !ok || path == "" {
				continue
			}
			path, _, _ = strings.Cut(path, ".")
			if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(path))); err != nil {
				t.Errorf("%s: %s: %v", p.name, function, err)
			}
		}
	}
}

// TestShares: the shares of a profile of a crawl are printed.
func TestShares(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is not in the path")
	}
	all, err := selectCrawlers("decorum")
	if err != nil {
		t.Fatal(err)
	}
	p := childProcessTask{Web: smallTLSWeb(time.Millisecond), Workers: 8, Dir: t.TempDir(), Profile: t.TempDir()}
	var out bytes.Buffer
	if err := benchmarkCrawlers(p, all, workload{Hosts: 1, Pages: 20}, 1, &out); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := printShares(filepath.Join(p.Profile, "decorum.cpu"), &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), " %"); n != len(crawlParts()) {
		t.Errorf("%d parts have a share, want %d:\n%s", n, len(crawlParts()), &out)
	}
	if err := printShares(filepath.Join(p.Profile, "none.cpu"), &out); err == nil {
		t.Error("no error without a profile")
	} else if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		t.Error(err)
	}
}
