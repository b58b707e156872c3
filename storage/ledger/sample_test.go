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
	"github.com/decorum-crawler/decorum/robots/gate"
)

// testKey signs the samples.
var testKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

// fuzzTime is the time of the seeds of FuzzSegment.
var fuzzTime = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// testRun returns the RunStart of the samples.
func testRun() RunStart {
	return RunStart{Software: "test", UserAgent: "examplebot/1.0 (+https://example.com/bot)",
		ProductToken:  "examplebot",
		RobotsDialect: "google", RobotsExtensions: true, DelayMS: 1000, RecordsRefusals: true,
		HostOverrides: map[string]HostOverride{"h2.test": {DelayMS: new(int64(0)), Reason: "our own"}}}
}

// sampleRobots returns the robots.txt of a sample host.
func sampleRobots(host int) []byte {
	if host == 1 {
		return fmt.Appendf(nil, "User-agent: *\nCrawl-delay: 3\nDisallow: /closed # of %d\n", host)
	}
	return fmt.Appendf(nil, "User-agent: other\nDisallow: /\nUser-agent: examplebot\nAllow: /closed/but\nDisallow: "+
		"/closed # of %d\n", host)
}

// A sampleWriter writes a sample ledger, in virtual time.
type sampleWriter struct {
	t        *testing.T
	ledger   *Ledger
	lastEnds [4]time.Time // end of the last visit, by host
}

func openLedger(t *testing.T, cfg Config) *Ledger {
	t.Helper()
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (w *sampleWriter) appendRecord(r Record) int64 {
	w.t.Helper()
	n, err := w.ledger.Append(&r)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// robotsVerdict returns a URL and the verdict of the host's robots.txt, which it stores in the ledger.
func (w *sampleWriter) robotsVerdict(host int, path string) (decorum.URL, *RobotsVerdict) {
	w.t.Helper()
	u, err := decorum.ParseURL(fmt.Sprintf("http://h%d.test%s", host, path))
	if err != nil {
		w.t.Fatal(err)
	}
	if host == 3 { // has no robots.txt
		return u, NewRobotsVerdict(robots.AllowAll().Check(u),
			gate.FetchSummary{Outcome: gate.OutcomeAllowAll, FetchedAt: time.Now()})
	}
	body := sampleRobots(host)
	hash := sha256Hex(body)
	if !w.ledger.HasRobotsFile(hash) {
		if err := w.ledger.StoreRobotsFile(hash, body); err != nil {
			w.t.Fatal(err)
		}
	}
	agent, _ := robots.NewAgent("examplebot")
	rules := robots.Parse(body, robots.Google).RulesFor(agent)
	return u, NewRobotsVerdict(rules.Check(u),
		gate.FetchSummary{SHA256: hash, FetchedAt: time.Now(), Outcome: gate.OutcomeRules})
}

// sampleDelay returns the required delay of a sample host.
func sampleDelay(host int) time.Duration {
	return []time.Duration{time.Second, 3 * time.Second, 0, time.Second}[host]
}

// writeRequest waits until the host is due, and writes a request.
func (w *sampleWriter) writeRequest(host int, path string) int64 {
	u, verdict := w.robotsVerdict(host, path)
	q := &Request{URL: u.String(), Kind: KindPage, Origin: u.Origin().String(),
		ServerIP: "127.0.0.1", URLSource: "link",
		Referrer: "http://h0.test/", RobotsVerdict: verdict, Slots: 1}
	if end := w.lastEnds[host]; end.IsZero() && host == 1 { // as if its robots.txt had been fetched before
		q.RequiredDelayMS, q.ObservedDelayMS = sampleDelay(host).Milliseconds(), sampleDelay(host).Milliseconds()
	} else if !end.IsZero() {
		time.Sleep(end.Add(sampleDelay(host)).Sub(w.ledger.cfg.now()))
		q.RequiredDelayMS, q.ObservedDelayMS = sampleDelay(host).Milliseconds(),
			w.ledger.cfg.now().Sub(end).Milliseconds()
	}
	return w.appendRecord(Record{Request: q})
}

// writeVisit writes a request and its response.
func (w *sampleWriter) writeVisit(host int, path string) {
	w.writeResponse(host, w.writeRequest(host, path))
}

// writeResponse writes the response to a request, after 50 ms.
func (w *sampleWriter) writeResponse(host int, n int64) {
	time.Sleep(50 * time.Millisecond)
	w.lastEnds[host] = w.ledger.cfg.now()
	w.appendRecord(Record{Response: &Response{RequestNumber: n, EndedAt: w.lastEnds[host],
		Status: 200, BodyBytes: 1234}})
}

// writeRefusal writes a refusal by the robots.txt of a host.
func (w *sampleWriter) writeRefusal(host int) {
	u, verdict := w.robotsVerdict(host, "/closed/x")
	w.appendRecord(Record{Refusal: &Refusal{URL: u.String(), Origin: u.Origin().String(), URLSource: "link",
		Reason: "disallowed", RobotsVerdict: verdict}})
}

// writeVisits writes pages visits to each host, with refusals between them.
func (w *sampleWriter) writeVisits(pages int) {
	for i := range pages {
		for host := range 4 {
			w.writeVisit(host, fmt.Sprintf("/%d", i))
		}
		w.writeRefusal(i % 2)
		w.writeVisit(0, fmt.Sprintf("/closed/but/%d", i))
	}
}

// writeSample writes a signed ledger of three runs, in segments of some records each. The second run is
// killed while it waits for a response.
func writeSample(t *testing.T, dir string, pages int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Dir: dir, MaxSegmentSize: 8 << 10, SigningKey: testKey,
			CheckpointInterval: 20 * time.Second, RunStart: testRun()}
		w := &sampleWriter{t: t, ledger: openLedger(t, cfg)}
		w.writeVisits(pages)
		if err := w.ledger.Close(); err != nil {
			t.Fatal(err)
		}
		w.ledger = openLedger(t, cfg)
		w.writeVisits(pages)
		w.writeRequest(0, "/killed")
		closeAsKilled(t, w.ledger)
		time.Sleep(10 * time.Second)
		w.lastEnds = [4]time.Time{}
		w.ledger = openLedger(t, cfg)
		w.writeVisits(pages)
		if err := w.ledger.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// closeAsKilled closes the file of a ledger without the end of the run, as a kill does.
func closeAsKilled(t *testing.T, l *Ledger) {
	t.Helper()
	if err := l.syncAndCloseFile(); err != nil {
		t.Fatal(err)
	}
}

// verifySigned verifies a ledger with testKey.
func verifySigned(t *testing.T, dir string) *VerifyReport {
	t.Helper()
	report, err := Verify(dir, VerifyOptions{PublicKey: testKey.Public().(ed25519.PublicKey)})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// decompressSegment returns the records of a segment file with the given name and content.
func decompressSegment(t *testing.T, name string, text []byte) []byte {
	t.Helper()
	if !strings.HasSuffix(name, compressedSuffix) {
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

// encodeSegment returns the content of a segment file with the given name and lines.
func encodeSegment(t *testing.T, name string, lines [][]byte) []byte {
	t.Helper()
	plain := bytes.Join(lines, nil)
	if !strings.HasSuffix(name, compressedSuffix) {
		return plain
	}
	var b bytes.Buffer
	if err := compressZstd(&b, bytes.NewReader(plain)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sha256Hex returns the SHA-256 of text, in hex.
func sha256Hex(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}
