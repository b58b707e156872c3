package httpfetch_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/crawler/internal/tickettest"
	"github.com/decorum-crawler/decorum/internal/testlisten"
)

// idleServerEnv makes the test program the server of BenchmarkIdleConnections, so that the memory of the server
// does not count.
const idleServerEnv = "HTTPFETCH_TEST_IDLE_SERVER"

// TestIdleServer is the server of BenchmarkIdleConnections. It prints its addresses for http and https and its
// certificate authority, and runs until its standard input ends.
func TestIdleServer(t *testing.T) {
	if os.Getenv(idleServerEnv) == "" {
		t.Skip("runs as a part of BenchmarkIdleConnections")
	}
	ca := newAuthority(t)
	var mu sync.Mutex
	configs := map[string]*tls.Config{}
	secure := &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		mu.Lock()
		defer mu.Unlock()
		if configs[hello.ServerName] == nil {
			now := time.Now()
			configs[hello.ServerName] = ca.newServerConfig(t, hello.ServerName, now.Add(-time.Hour), now.Add(time.Hour))
		}
		return configs[hello.ServerName], nil
	}}
	page := bytes.Repeat([]byte("x"), 5_000) // about what a page of 20 KiB takes with gzip
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) })
	plain, encrypted := testlisten.Listen(t, "127.0.0.1:0"), testlisten.Listen(t, "127.0.0.1:0")
	go func() { _ = http.Serve(plain, handler) }()
	go func() { _ = http.Serve(tls.NewListener(encrypted, secure), handler) }()
	fmt.Println("addresses", plain.Addr(), encrypted.Addr(), base64.StdEncoding.EncodeToString(ca.certificate.Raw))
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
}

// BenchmarkIdleConnections measures the memory that an idle connection takes in the crawling process, without
// the socket: heap and stacks after one visit to each of 500 hosts, with the transport of http1 and with that of
// net/http, for http and for https. Every host has its own certificate (ECDSA P-256).
func BenchmarkIdleConnections(b *testing.B) {
	server := exec.Command(os.Args[0], "-test.run=^TestIdleServer$")
	server.Env = append(os.Environ(), idleServerEnv+"=1")
	stdin, err := server.StdinPipe()
	must(b, err)
	stdout, err := server.StdoutPipe()
	must(b, err)
	must(b, server.Start())
	defer func() { stdin.Close(); _ = server.Wait() }()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	must(b, err)
	fields := strings.Fields(line)
	der, err := base64.StdEncoding.DecodeString(fields[3])
	must(b, err)
	authority, err := x509.ParseCertificate(der)
	must(b, err)
	roots := x509.NewCertPool()
	roots.AddCert(authority)

	for i, scheme := range []string{"http", "https"} {
		for _, withNetHTTP := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/net-http=%v", scheme, withNetHTTP), func(b *testing.B) {
				host, port, err := net.SplitHostPort(fields[1+i])
				must(b, err)
				cfg := httpfetch.Config{UserAgent: userAgent, AllowPrivate: true, RootCAs: roots, HTTP2: withNetHTTP,
					ConnectToRules: []string{"::" + host + ":" + port}, MaxIdleTime: time.Hour,
					IdleConns: httpfetch.NewIdleConns(1000)}
				for b.Loop() {
					b.ReportMetric(measureIdleConnections(b, cfg, scheme), "B/conn")
				}
			})
		}
	}
}

// measureIdleConnections returns the bytes for each idle connection of a new Fetcher.
func measureIdleConnections(b *testing.B, cfg httpfetch.Config, scheme string) float64 {
	const hosts = 500
	f, err := httpfetch.New(cfg)
	must(b, err)
	visit := func(i int) {
		url := fmt.Sprintf("%s://h%d.test/", scheme, i)
		tickettest.Use(b, tickettest.Config{URL: url}, func(t crawler.Ticket) {
			if _, err := f.Fetch(b.Context(), t); err != nil {
				b.Fatal(err)
			}
		})
	}
	used := func() float64 {
		var m runtime.MemStats
		for range 3 { // pools are empty after two collections
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc + m.StackInuse)
	}
	visit(hosts)
	before := used()
	for i := range hosts {
		visit(i)
	}
	if n := cfg.IdleConns.Len(); n != hosts+1 {
		b.Fatalf("%d connections are idle, want %d", n, hosts+1)
	}
	perConn := (used() - before) / hosts
	f.CloseIdleConnections()
	return perConn
}
