package ledger

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
)

// testKey signs the samples.
var testKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

// testRunStart is when fuzzed records are of.
var testRunStart = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// testRun is what the samples are made by.
func testRun() Run {
	return Run{Software: "test", UserAgent: "examplebot/1.0 (+https://example.com/bot)", Agent: "examplebot",
		Dialect: "google", Extensions: true, DelayMS: 1000, Refusals: true,
		Hosts: map[string]Override{"h2.test": {DelayMS: new(int64(0)), Reason: "our own"}}}
}

// robotsOf returns the robots.txt of a host of the samples.
func robotsOf(host int) []byte {
	if host == 1 {
		return fmt.Appendf(nil, "User-agent: *\nCrawl-delay: 3\nDisallow: /closed # of %d\n", host)
	}
	return fmt.Appendf(nil, "User-agent: other\nDisallow: /\nUser-agent: examplebot\nAllow: /closed/but\nDisallow: /closed # of %d\n", host)
}

// A writer writes a sample, in virtual time.
type writer struct {
	t    *testing.T
	l    *Ledger
	ends [4]time.Time // of the last visits to hosts
}

func open(t *testing.T, cfg Config) *Ledger {
	t.Helper()
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (w *writer) append(r Record) int64 {
	w.t.Helper()
	n, err := w.l.Append(&r)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// verdict returns the verdict of a host's robots.txt, which it keeps.
func (w *writer) verdict(host int, path string) (decorum.URL, *Verdict) {
	w.t.Helper()
	u, err := decorum.ParseURL(fmt.Sprintf("http://h%d.test%s", host, path))
	if err != nil {
		w.t.Fatal(err)
	}
	if host == 3 { // has none
		return u, NewVerdict(robots.AllowAll().Check(u), robots.Snapshot{Outcome: robots.AllowedAll, Fetched: time.Now()})
	}
	body := robotsOf(host)
	hash := sum(body)
	if !w.l.HasRobots(hash) {
		if err := w.l.KeepRobots(hash, body); err != nil {
			w.t.Fatal(err)
		}
	}
	agent, _ := robots.NewAgent("examplebot")
	rules := robots.Parse(body, robots.Google).For(agent)
	return u, NewVerdict(rules.Check(u), robots.Snapshot{SHA256: hash, Fetched: time.Now(), Outcome: robots.RulesKnown})
}

// rest is what the samples' hosts are owed.
func rest(host int) time.Duration {
	return []time.Duration{time.Second, 3 * time.Second, 0, time.Second}[host]
}

// ask writes a request, when the host is due.
func (w *writer) ask(host int, path string) int64 {
	u, verdict := w.verdict(host, path)
	q := &Request{URL: u.String(), Kind: Page, Origin: u.Origin().String(), IP: "127.0.0.1", Source: "link",
		Referrer: "http://h0.test/", Robots: verdict, Slots: 1}
	if end := w.ends[host]; end.IsZero() && host == 1 { // its robots.txt has been asked for
		q.RequiredMS, q.ObservedMS = rest(host).Milliseconds(), rest(host).Milliseconds()
	} else if !end.IsZero() {
		time.Sleep(end.Add(rest(host)).Sub(w.l.cfg.now()))
		q.RequiredMS, q.ObservedMS = rest(host).Milliseconds(), w.l.cfg.now().Sub(end).Milliseconds()
	}
	return w.append(Record{Request: q})
}

// visit writes a request and its answer.
func (w *writer) visit(host int, path string) {
	w.answer(host, w.ask(host, path))
}

// answer writes the answer to a request, after a while.
func (w *writer) answer(host int, n int64) {
	time.Sleep(50 * time.Millisecond)
	w.ends[host] = w.l.cfg.now()
	w.append(Record{Answer: &Answer{Request: n, End: w.ends[host], Status: 200, Bytes: 1234}})
}

// refuse writes a refusal.
func (w *writer) refuse(host int) {
	u, verdict := w.verdict(host, "/closed/x")
	w.append(Record{Refusal: &Refusal{URL: u.String(), Origin: u.Origin().String(), Source: "link", Why: "disallowed", Robots: verdict}})
}

// crawl writes some visits to all hosts.
func (w *writer) crawl(pages int) {
	for i := range pages {
		for host := range 4 {
			w.visit(host, fmt.Sprintf("/%d", i))
		}
		w.refuse(i % 2)
		w.visit(0, fmt.Sprintf("/closed/but/%d", i))
	}
}

// sample writes a ledger of three runs, of which the second is killed while it
// waits for an answer, in segments of some records each, with checkpoints.
func sample(t *testing.T, dir string, pages int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Dir: dir, MaxSize: 8 << 10, Key: testKey, Checkpoint: 20 * time.Second, Run: testRun()}
		w := &writer{t: t, l: open(t, cfg)}
		w.crawl(pages)
		if err := w.l.Close(); err != nil {
			t.Fatal(err)
		}
		w.l = open(t, cfg)
		w.crawl(pages)
		w.ask(0, "/killed")
		kill(t, w.l)
		time.Sleep(10 * time.Second)
		w.ends = [4]time.Time{}
		w.l = open(t, cfg)
		w.crawl(pages)
		if err := w.l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// kill leaves a ledger as a process does that is killed.
func kill(t *testing.T, l *Ledger) {
	t.Helper()
	if err := l.closeFile(); err != nil {
		t.Fatal(err)
	}
}

// verify checks a ledger with its key.
func verify(t *testing.T, dir string) *Report {
	t.Helper()
	report, err := Verify(dir, VerifyOptions{Key: testKey.Public().(ed25519.PublicKey)})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// unpack returns what a segment of that name holds.
func unpack(t *testing.T, name string, text []byte) []byte {
	t.Helper()
	if !strings.HasSuffix(name, packedEnding) {
		return text
	}
	z, err := zstd.NewReader(bytes.NewReader(text), zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// repack returns the file of a segment of that name, with these lines.
func repack(t *testing.T, name string, lines [][]byte) []byte {
	t.Helper()
	plain := bytes.Join(lines, nil)
	if !strings.HasSuffix(name, packedEnding) {
		return plain
	}
	var b bytes.Buffer
	if err := packTo(&b, bytes.NewReader(plain)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sum returns the SHA-256 of text, in hex.
func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}
