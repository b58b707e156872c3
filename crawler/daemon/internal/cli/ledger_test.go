package cli

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// verifyCleanLedger checks that the ledger of a crawl has no findings.
func verifyCleanLedger(t *testing.T, data string) *ledger.VerifyReport {
	t.Helper()
	report, err := ledger.Verify(datadir.StateDir(data).Path(datadir.LedgerDir), ledger.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		t.Error("the ledger: ", f)
	}
	return report
}

// checkLedgerAgainstLog compares the records of a crawl with the log of its servers. It returns how
// many recorded requests the servers did not see: a kill may have come between the record and the
// first byte of a request.
func checkLedgerAgainstLog(t *testing.T, dataDir string, log []crawltest.Exchange) (unsent int) {
	t.Helper()
	requests, recorded, answered := map[string]int{}, map[string]int{}, map[string]int{}
	for _, x := range log {
		requests[x.Method+" "+x.URL]++
	}
	open := map[int64]string{}
	for r, err := range ledger.Records(datadir.StateDir(dataDir).Path(datadir.LedgerDir)) {
		switch {
		case err != nil:
			t.Fatal(err)
		case r.Request != nil:
			requestLine := strings.TrimSpace(r.Request.Method + " " + r.Request.URL)
			if r.Request.Method == "" {
				requestLine = "GET " + requestLine
			}
			open[r.Number] = requestLine
			recorded[requestLine]++
		case r.Response != nil:
			answered[open[r.Response.RequestNumber]]++
		}
	}
	for requestLine, n := range requests {
		if recorded[requestLine] < n {
			t.Errorf("%s was requested %d times, and is recorded %d times", requestLine, n, recorded[requestLine])
		}
	}
	for requestLine, n := range recorded {
		if answered[requestLine] > requests[requestLine] {
			t.Errorf("%s is recorded as answered %d times, and was requested %d times", requestLine,
				answered[requestLine], requests[requestLine])
		}
		unsent += n - requests[requestLine]
	}
	return unsent
}

// keyFiles writes a new private key and its public key, in the format of openssl.
func keyFiles(t *testing.T) (private, public string) {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pubDER, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	private = testfile.Write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	if err := os.Chmod(private, 0o600); err != nil {
		t.Fatal(err)
	}
	return private, testfile.Write(t, "pub.pem",
		string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pubDER})))
}

// TestLedgerExpectedRecords checks that --holds finds the record that verify printed to be kept, does
// not find another hash, and rejects an empty file as wrong usage.
func TestLedgerExpectedRecords(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	data := filepath.Join(v.Dir, "data")
	runCommand(t, v.CrawlArgs("--data", data, "http://shop.example/")...).want(t, command.ExitDone, "pages: ")
	r := runCommand(t, "ledger", "verify", "--data", data)
	r.want(t, command.ExitDone, "to keep for --holds: ")
	_, printed, _ := strings.Cut(r.stdout, "to keep for --holds: ")
	printed, _, _ = strings.Cut(printed, "\n")
	verify := func(text string) commandResult {
		return runCommand(t, "ledger", "verify", "--data", data, "--holds", testfile.Write(t, "kept.txt", text))
	}
	verify(printed+"\n").want(t, command.ExitDone, "1 of 1 records of --holds found")
	n, _, _ := strings.Cut(printed, " ")
	verify(n+" "+strings.Repeat("0", 64)).want(t, command.ExitCheckFailed, "is not the kept record",
		"0 of 1 records of --holds found")
	verify("1000000 "+strings.Repeat("0", 64)).want(t, command.ExitCheckFailed, "record 1000000 was kept")
	verify("nothing").want(t, command.ExitUsage, "--holds: ")
}

// TestLedgerCommands checks that the commands verify and show the ledger of a crawl, and name what is
// wrong with a damaged one.
func TestLedgerCommands(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	key, public := keyFiles(t)
	_, other := keyFiles(t)
	project := testfile.Write(t, "p.yaml", fmt.Sprintf("output: {ledger_key: %q, ledger_refusals: true}\n", key))
	dataDir := filepath.Join(v.Dir, "data")
	runCommand(t, v.CrawlArgs("-c", project, "--data", dataDir, "http://shop.example/")...).want(t,
		command.ExitDone, "pages: ")
	if report := verifyCleanLedger(t, dataDir); report.Requests != int64(len(v.Web.Log())) || report.Refusals == 0 ||
		report.CheckedVerdicts == 0 || !report.Closed || report.Checkpoints == 0 {
		t.Errorf("report %+v", *report)
	}
	if unsent := checkLedgerAgainstLog(t, dataDir, v.Web.Log()); unsent != 0 {
		t.Errorf("%d requests are written down that the server did not see", unsent)
	}
	ledgerPath := filepath.Join(dataDir, datadir.LedgerDir)
	runCommand(t, "ledger", "verify", "--data", dataDir, "--key", public).want(t, command.ExitDone, "")
	runCommand(t, "ledger", "verify", "--data", ledgerPath, "--format", "json").want(t, command.ExitDone, "")
	runCommand(t, "ledger", "verify", "--data", dataDir, "--key", other).want(t, command.ExitCheckFailed, "")
	runCommand(t, "ledger", "verify", "--data", dataDir, "--key", key).want(t, command.ExitUsage,
		"no public key in PEM found")
	runCommand(t, "ledger", "verify", "--data", t.TempDir()).want(t, command.ExitUsage, "holds no ledger")
	runCommand(t, "ledger", "show", "--data", dataDir, "--host", "shop.example").want(t, command.ExitDone, "")
	runCommand(t, "ledger", "show", "--data", dataDir, "--url", "http://shop.example/", "--format",
		"jsonl").want(t, command.ExitDone, "")
	runCommand(t, "ledger", "show", "--data", dataDir, "--host", "else.example").want(t, command.ExitCheckFailed,
		"no record of else.example")

	checkOpenLedger(t, dataDir)

	file := filepath.Join(ledgerPath, "ledger-000001.jsonl")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), `"slots":1`, `"slots":2`, 1)),
		0o644); err != nil {
		t.Fatal(err)
	}
	runCommand(t, "ledger", "verify", "--data", dataDir).want(t, command.ExitCheckFailed, "")
	runCommand(t, v.CrawlArgs("--resume", "--data", dataDir)...).want(t, command.ExitFailed,
		"the ledger is damaged: ledger-000001.jsonl, line ")
}

// checkOpenLedger checks that verify accepts a ledger that is not closed only while its crawl runs,
// whether --data names the data directory or the ledger's directory.
func checkOpenLedger(t *testing.T, dataDir string) {
	t.Helper()
	ledgerPath := filepath.Join(dataDir, datadir.LedgerDir)
	l, err := ledger.Open(ledger.Config{Dir: ledgerPath,
		RunStart: ledger.RunStart{ProductToken: "decorum", RobotsDialect: "google"}})
	if err != nil {
		t.Fatal(err)
	}
	lock, err := datadir.StateDir(dataDir).Lock()
	if err != nil {
		t.Fatal(err)
	}
	runCommand(t, "ledger", "verify", "--data", dataDir).want(t, command.ExitDone, "")
	runCommand(t, "ledger", "verify", "--data", ledgerPath).want(t, command.ExitDone, "")
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	runCommand(t, "ledger", "verify", "--data", ledgerPath).want(t, command.ExitCheckFailed, "")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLedgerOfCallbacks checks that the ledger records the requests of callbacks, GET, HEAD and POST,
// as the server sees them.
func TestLedgerOfCallbacks(t *testing.T) {
	site := daemontest.ShopSite()
	site.OtherMethodPages = map[string]crawltest.PageFunc{"/box": crawltest.StaticPage(crawltest.HTML("thanks"))}
	v := daemontest.NewWebFixture(t, site)
	post := func(c *collyfetch.Collector) {
		c.OnHTML("title", func(e *colly.HTMLElement) {
			_ = e.Request.Post("http://shop.example/box", map[string]string{"a": "b"})
			_ = c.Head("http://shop.example/a")
			_ = e.Request.Visit("/b?x=1&y=2")
		})
	}
	project := testfile.Write(t, "p.yaml", "handler: post\n")
	a := &program{Env: command.Env{Stdout: terminal.NewStickyErrorWriter(io.Discard),
		Stderr:       terminal.NewStatusLineWriter(io.Discard),
		Dependencies: engine.Dependencies{Handlers: collyfetch.NamedCallbacks{"post": post}}}}
	if code := a.main(v.CrawlArgs("-c", project, "http://shop.example/")); code != command.ExitDone {
		t.Errorf("exit code %d", code)
	}
	report := verifyCleanLedger(t, v.DataDir())
	if unsent := checkLedgerAgainstLog(t, v.DataDir(), v.Web.Log()); unsent != 0 || report.Requests < 5 {
		t.Errorf("%d requests are written down that the server did not see, of %+v", unsent, *report)
	}
}
