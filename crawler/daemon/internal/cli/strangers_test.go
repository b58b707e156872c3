package cli

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/server"
)

// The number of idle clients without a token in TestStrangers: 10,000 in .ci/proofs.
var idleConns = flag.Int("strangers", 300, "how many idle connections TestStrangers opens")

// fullIdleConns is the number of idle clients up to which a brake takes effect within maxBrakeTime.
const (
	fullIdleConns = 10_000
	maxBrakeTime  = time.Second
)

// asIdleClientsEnv is the environment variable that makes the test binary a process of idle clients.
// It holds the address that they connect to; their number is the only argument.
const asIdleClientsEnv = "DECORUM_TEST_AS_STRANGERS"

// runIdleClients opens idle connections, and reopens each when it is closed, until the process is
// killed. It prints a line when each of them has been open once.
func runIdleClients(addr string) {
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	var opened atomic.Int64
	for range n {
		go func() {
			for first := true; ; time.Sleep(time.Second) {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					continue // no port is free: try again
				}
				if first && opened.Add(1) == int64(n) {
					fmt.Println("all have been open")
				}
				first = false
				_, _ = c.Read(make([]byte, 1))
				c.Close()
			}
		}()
	}
	select {}
}

// startIdleClients runs the idle clients as a separate process until the test ends.
func startIdleClients(t *testing.T, addr string, n int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, strconv.Itoa(n))
	c.Env = append(os.Environ(), asIdleClientsEnv+"="+addr)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the idle clients printed %q: %v", line, err)
	}
}

// listenAddrPattern matches the address on which a daemon listens, in its log.
var listenAddrPattern = regexp.MustCompile(`msg="the daemon runs".* listen=(\S+)`)

// startDaemonProcess runs decorum serve as a separate process until the test ends, and returns its
// address.
func (f *commandFixture) startDaemonProcess(t *testing.T, args ...string) (addr string) {
	t.Helper()
	var stderr syncBuffer
	c, _ := newCommandProcess(t, append([]string{"serve", "--listen=127.0.0.1:0", "--data", f.WebFixture.DataDir(),
		"--projects", f.ProjectFilesPath(),
		"--start-new"}, args...)...)
	c.Stdout, c.Stderr = io.Discard, &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	var m []string
	waitWithOutput(t, "the daemon", &stderr, func() bool {
		m = listenAddrPattern.FindStringSubmatch(stderr.String())
		return m != nil
	})
	return m[1]
}

// clientFrom returns a client that calls the daemon over TCP from the given loopback address.
func (f *commandFixture) clientFrom(t *testing.T, addr, from string) *api.Client {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(f.WebFixture.DataDir(), server.TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{DialContext: d.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &api.Client{Server: "http://" + addr, Token: strings.TrimSpace(string(token)),
		HTTP: &http.Client{Transport: transport}}
}

// While clients without a token hold and reopen as many idle connections as they can, a brake takes
// effect, both through the socket and over TCP from another address, and a connection that has shown
// its token stays open.
func TestStrangers(t *testing.T) {
	t.Parallel()
	f := newCommandFixture(t, daemontest.ChainSite("a.example", 100_000), daemontest.ChainSite("b.example", 100_000))
	for _, name := range []string{"a", "b"} {
		f.PutProjectFile(name, f.ProjectYAML("http://"+name+".example/0", "politeness: {delay: 20ms, adaptive: 0}",
			"scope: {max_depth: 1000000}"))
	}
	limits := []string{"--stranger-connections=100"} // fewer than the idle clients of the default test
	if *idleConns >= fullIdleConns {
		limits = nil
	}
	addr := f.startDaemonProcess(t, limits...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	other := f.clientFrom(t, addr, "127.0.0.2")
	daemontest.WaitUntil(t, "both are visited", func() bool { return f.visitCount("a") > 2 && f.visitCount("b") > 2 })
	startIdleClients(t, addr, *idleConns)

	begin := time.Now()
	runCommand(t, "brake", "a.example", "--reason", "they wrote", "--data", f.WebFixture.DataDir()).want(t,
		command.ExitDone, "a.example: stopped")
	bySocket := f.checkNoLaterVisits("a", begin)
	begin = time.Now()
	if _, err := other.SetBrake(ctx, "b.example", api.BrakeRequest{Stop: true, Reason: "they wrote"}); err != nil {
		t.Fatal(err)
	}
	byTCP := f.checkNoLaterVisits("b", begin)
	t.Logf("%d strangers: a brake takes effect in %v by the socket, in %v by TCP from 127.0.0.2",
		*idleConns, bySocket, byTCP)
	if *idleConns >= fullIdleConns && max(bySocket, byTCP) > maxBrakeTime {
		t.Errorf("that is more than %v", maxBrakeTime)
	}
}

// visitCount returns the number of requests to a host of the web.
func (f *commandFixture) visitCount(name string) (n int) {
	for _, x := range f.Web.Log() {
		if strings.HasPrefix(x.URL, "http://"+name+".example/") {
			n++
		}
	}
	return n
}

// checkNoLaterVisits is called when the call that sets a brake has returned. It returns the time since
// begin, and checks that no visit to the host begins later.
func (f *commandFixture) checkNoLaterVisits(name string, begin time.Time) (took time.Duration) {
	f.T.Helper()
	at := time.Now()
	time.Sleep(200 * time.Millisecond) // ten times the host's delay: a late visit would be in the log
	later := 0
	for _, x := range f.Web.Log() {
		if strings.HasPrefix(x.URL, "http://"+name+".example/") && x.Start.After(at) {
			// A busy server may see one request late that was sent before the brake: a host gets one
			// visit at a time.
			if later++; later > 1 {
				f.T.Errorf("%s was visited %v after its brake was answered", x.URL, x.Start.Sub(at))
			}
		}
	}
	return at.Sub(begin)
}
