package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/table"
)

// A crawlPart is a part of the work of decorum. A sample of a CPU profile belongs to the first part
// of crawlParts that has one of its functions in the stack, whichever function called which: the
// SHA-256 within a TLS handshake is handshake, and a read of the network by inflate is network.
type crawlPart struct {
	name      string
	functions []string // parts of names, with the path of the package
}

// decorumPath begins the names of functions of this module.
const decorumPath = "github.com/decorum-crawler/decorum/"

// crawlParts returns the parts of a crawl, from the functions that are called to those that call.
func crawlParts() []crawlPart {
	return []crawlPart{
		{"garbage collection", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep",
			"runtime.bgscavenge", "runtime.gcStart"}},
		{"TLS handshake", []string{"crypto/tls.(*Conn).handshakeContext", "crypto/tls.(*Conn).clientHandshake",
			"crypto/tls.(*Conn).handlePostHandshakeMessage"}},
		{"connect, close", []string{"net.(*Dialer).", "net.(*sysDialer).", "net.(*conn).Close"}},
		{"TLS records", []string{"crypto/tls.(*halfConn)."}},
		{"network", []string{"net.(*conn).Read", "net.(*conn).Write", "net.(*netFD).", "crypto/tls.(*Conn)."}},
		{"output, ledger", []string{decorumPath + "crawler/daemon/internal/sinks.", decorumPath + "storage/ledger.",
			decorumPath + "storage/warc.", decorumPath + "crawler.(*ledgerEntries)"}},
		{"inflate", []string{"compress/flate.", "compress/gzip.", "internal/inflate.", "compress/zstd.", "brotli."}},
		{"hash", []string{"crypto/sha256.", "fips140/sha256."}},
		{"scan", []string{decorumPath + "crawler/extract.", "golang.org/x/net/html"}},
		{"frontier", []string{decorumPath + "frontier", decorumPath + "storage", "go.etcd.io/bbolt"}},
		{"robots, politeness", []string{decorumPath + "robots", decorumPath + "politeness"}},
		{"HTTP", []string{"net/http.", "net/textproto.", decorumPath + "crawler/httpfetch."}},
		{"rest of decorum", []string{decorumPath}},
		{"goroutine scheduler", []string{"runtime.mcall", "runtime.schedule", "runtime.findRunnable", "runtime.mstart",
			"runtime.sysmon", "runtime.morestack"}},
		{"other", []string{""}},
	}
}

// printShares prints the CPU time of each part of decorum in a profile that bench/crawl -profile or a
// daemon wrote. It needs the go command.
func printShares(profile string, out io.Writer) error {
	var stderr bytes.Buffer
	cmd := exec.Command("go", "tool", "pprof", "-traces", "-unit=ns", profile)
	cmd.Stderr = &stderr
	traces, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go tool pprof: %w: %s", err, &stderr)
	}
	parts := crawlParts()
	times, err := timesOfParts(bytes.NewReader(traces), parts)
	if err != nil {
		return err
	}
	sum := time.Duration(0)
	for _, t := range times {
		sum += t
	}
	slices.SortStableFunc(parts, func(a, b crawlPart) int { return cmp.Compare(times[b.name], times[a.name]) })
	t := table.New(out, "part", "CPU s", "share")
	for _, p := range parts {
		spent := times[p.name]
		fmt.Fprintf(t, "%s\t%.2f\t%.1f %%\t\n", p.name, spent.Seconds(), 100*float64(spent)/float64(sum))
	}
	fmt.Fprintf(t, "sum\t%.2f\t\t\n", sum.Seconds())
	return t.Flush()
}

// timesOfParts returns the CPU time of each part, by its name, in the output of pprof -traces: after
// each line that begins with dashes, a time with the called function, and below it those that call.
func timesOfParts(traces io.Reader, parts []crawlPart) (map[string]time.Duration, error) {
	times := map[string]time.Duration{}
	var stack []string
	var spent time.Duration
	finish := func() {
		if len(stack) == 0 {
			return
		}
		i := slices.IndexFunc(parts, func(p crawlPart) bool { return p.isIn(stack) })
		times[parts[i].name] += spent
		stack, spent = stack[:0], 0
	}
	inTraces := false
	lines := bufio.NewScanner(traces)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "-----") {
			finish()
			inTraces = true
			continue
		}
		words := strings.Fields(lines.Text())
		if !inTraces || len(words) == 0 {
			continue
		}
		if len(stack) == 0 {
			d, err := time.ParseDuration(words[0])
			if err != nil || len(words) < 2 {
				continue // a label of the sample
			}
			spent, words = d, words[1:]
		}
		stack = append(stack, words[0])
	}
	finish()
	return times, lines.Err()
}

// isIn reports whether a stack belongs to the part if it belongs to none of the parts before it.
func (p crawlPart) isIn(stack []string) bool {
	return slices.ContainsFunc(stack, func(function string) bool {
		return slices.ContainsFunc(p.functions, func(part string) bool { return strings.Contains(function, part) })
	})
}
