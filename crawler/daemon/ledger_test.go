package daemon

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
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// verifyIn checks the ledger of a crawl, in which nothing may be wrong.
func verifyIn(t *testing.T, data string) *ledger.Report {
	t.Helper()
	report, err := ledger.Verify(stateDir(data).path(ledgerDir), ledger.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		t.Error("the ledger: ", f)
	}
	return report
}

// inLedger compares the records of a crawl with what its servers saw. It returns how
// many records are of requests that they did not see: those may only be of requests
// which a kill has cut off, between the record and the first byte.
func inLedger(t *testing.T, data string, log []crawltest.Exchange) (unseen int) {
	t.Helper()
	saw, wrote, answered := map[string]int{}, map[string]int{}, map[string]int{}
	for _, x := range log {
		saw[x.Method+" "+x.URL]++
	}
	open := map[int64]string{}
	for r, err := range ledger.Records(stateDir(data).path(ledgerDir)) {
		switch {
		case err != nil:
			t.Fatal(err)
		case r.Request != nil:
			what := strings.TrimSpace(r.Request.Method + " " + r.Request.URL)
			if r.Request.Method == "" {
				what = "GET " + what
			}
			open[r.N] = what
			wrote[what]++
		case r.Answer != nil:
			answered[open[r.Answer.Request]]++
		}
	}
	for what, n := range saw {
		if wrote[what] < n {
			t.Errorf("%s was asked for %d times, and is written down %d times", what, n, wrote[what])
		}
	}
	for what, n := range wrote {
		if answered[what] > saw[what] {
			t.Errorf("%s is written down as answered %d times, and was asked for %d times", what, answered[what], saw[what])
		}
		unseen += n - saw[what]
	}
	return unseen
}

// keyFiles writes a new key and its public half, as openssl does.
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
	private = write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	if err := os.Chmod(private, 0o600); err != nil {
		t.Fatal(err)
	}
	return private, write(t, "pub.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pubDER})))
}

// TestLedgerHolds: what verify prints to be kept is found again by --holds, another hash is
// not, and a file that holds nothing is wrong usage.
func TestLedgerHolds(t *testing.T) {
	t.Parallel()
	v := visitTo(t, shop())
	data := filepath.Join(v.dir, "data")
	call(t, v.args("--data", data, "http://shop.example/")...).want(t, ExitDone, "pages: ")
	r := call(t, "ledger", "verify", "--data", data)
	r.want(t, ExitDone, "to keep for --holds: ")
	_, printed, _ := strings.Cut(r.stdout, "to keep for --holds: ")
	printed, _, _ = strings.Cut(printed, "\n")
	verify := func(text string) result {
		return call(t, "ledger", "verify", "--data", data, "--holds", write(t, "kept.txt", text))
	}
	verify(printed+"\n").want(t, ExitDone, "1 of 1 held records are there")
	n, _, _ := strings.Cut(printed, " ")
	verify(n+" "+strings.Repeat("0", 64)).want(t, ExitNo, "is not the one that is held", "0 of 1 held records are there")
	verify("1000000 "+strings.Repeat("0", 64)).want(t, ExitNo, "record 1000000 is held")
	verify("nothing").want(t, ExitUsage, "--holds: ")
}

// TestLedgerCommands: what a crawl has written down can be checked and shown, and
// what is wrong with it is named.
func TestLedgerCommands(t *testing.T) {
	t.Parallel()
	v := visitTo(t, shop())
	key, public := keyFiles(t)
	_, other := keyFiles(t)
	project := write(t, "p.yaml", fmt.Sprintf("output: {ledger_key: %q, ledger_refusals: true}\n", key))
	data := filepath.Join(v.dir, "data")
	call(t, v.args("-c", project, "--data", data, "http://shop.example/")...).want(t, ExitDone, "pages: ")
	if report := verifyIn(t, data); report.Requests != int64(len(v.web.Log())) || report.Refusals == 0 ||
		report.Verdicts == 0 || !report.Closed || report.Checkpoints == 0 {
		t.Errorf("report %+v", *report)
	}
	if unseen := inLedger(t, data, v.web.Log()); unseen != 0 {
		t.Errorf("%d requests are written down that the server did not see", unseen)
	}
	home := filepath.Join(data, ledgerDir)
	call(t, "ledger", "verify", "--data", data, "--key", public).want(t, ExitDone, "")
	call(t, "ledger", "verify", "--data", home, "--format", "json").want(t, ExitDone, "")
	call(t, "ledger", "verify", "--data", data, "--key", other).want(t, ExitNo, "")
	call(t, "ledger", "verify", "--data", data, "--key", key).want(t, ExitUsage, "no public key in PEM is in it")
	call(t, "ledger", "verify", "--data", t.TempDir()).want(t, ExitUsage, "holds no ledger")
	call(t, "ledger", "show", "--data", data, "--host", "shop.example").want(t, ExitDone, "")
	call(t, "ledger", "show", "--data", data, "--url", "http://shop.example/", "--format", "jsonl").want(t, ExitDone, "")
	call(t, "ledger", "show", "--data", data, "--host", "else.example").want(t, ExitNo, "nothing of else.example")

	goesOn(t, data)

	file := filepath.Join(home, "ledger-000001.jsonl")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), `"slots":1`, `"slots":2`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	call(t, "ledger", "verify", "--data", data).want(t, ExitNo, "")
	call(t, v.args("--resume", "--data", data)...).want(t, ExitFailed, "the ledger is damaged: ledger-000001.jsonl, line ")
}

// goesOn checks that a ledger which is not closed is right while its crawl goes on, by
// whichever of its directories it is named, and else is not.
func goesOn(t *testing.T, data string) {
	t.Helper()
	home := filepath.Join(data, ledgerDir)
	l, err := ledger.Open(ledger.Config{Dir: home, Run: ledger.Run{Agent: "decorum", Dialect: "google"}})
	if err != nil {
		t.Fatal(err)
	}
	lock, err := stateDir(data).lock()
	if err != nil {
		t.Fatal(err)
	}
	call(t, "ledger", "verify", "--data", data).want(t, ExitDone, "")
	call(t, "ledger", "verify", "--data", home).want(t, ExitDone, "")
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	call(t, "ledger", "verify", "--data", home).want(t, ExitNo, "")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// A warning is told, and nothing is wrong with it.
func TestVerifiedWithWarnings(t *testing.T) {
	var out strings.Builder
	a := &app{stdout: newPrinter(&out)}
	report := &ledger.Report{Warnings: []ledger.Finding{{File: "ledger-000001.jsonl", Line: 7, RecordNumber: 7, What: "the clock was set"}}, MoreWarnings: 2}
	if err := a.printVerified(report, ledger.VerifyOptions{}); err != nil || !report.OK() {
		t.Error(err, report.OK())
	}
	for _, want := range []string{"warning: ledger-000001.jsonl:7: record 7 the clock was set\n", "all is right, with 3 warnings\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q does not say %q", out.String(), want)
		}
	}
}

// TestLedgerOfCallbacks: what callbacks ask for is written down as it is asked for.
func TestLedgerOfCallbacks(t *testing.T) {
	site := shop()
	site.OtherMethodPages = map[string]crawltest.PageFunc{"/box": crawltest.StaticPage(crawltest.HTML("thanks"))}
	v := visitTo(t, site)
	post := func(c *collyfetch.Collector) {
		c.OnHTML("title", func(e *colly.HTMLElement) {
			_ = e.Request.Post("http://shop.example/box", map[string]string{"a": "b"})
			_ = c.Head("http://shop.example/a")
			_ = e.Request.Visit("/b?x=1&y=2")
		})
	}
	project := write(t, "p.yaml", "handler: post\n")
	a := &app{stdout: newPrinter(io.Discard), screen: newScreen(io.Discard), handlers: Handlers{"post": post}}
	if code := a.main(v.args("-c", project, "http://shop.example/")); code != ExitDone {
		t.Errorf("exit code %d", code)
	}
	report := verifyIn(t, v.data())
	if unseen := inLedger(t, v.data(), v.web.Log()); unseen != 0 || report.Requests < 5 {
		t.Errorf("%d requests are written down that the server did not see, of %+v", unseen, *report)
	}
}
