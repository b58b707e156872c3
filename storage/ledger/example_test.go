package ledger_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// A program records a request with the verdict that permits it, and then its response. Anyone who has the
// directory can verify both.
func Example() {
	dir, err := os.MkdirTemp("", "ledger-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := ledger.Open(ledger.Config{Dir: dir, RunStart: ledger.RunStart{
		Software: "example/1.0", UserAgent: "examplebot/1.0 (+https://example.org/bot)", ProductToken: "examplebot",
		RobotsDialect: robots.Google.String(), RobotsExtensions: true, DelayMS: 1000}})
	if err != nil {
		log.Fatal(err)
	}
	if err := visit(l, "https://example.com/open"); err != nil {
		log.Fatal(err)
	}
	if err := l.Close(); err != nil {
		log.Fatal(err)
	}

	report, err := ledger.Verify(dir, ledger.VerifyOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.OK(), report.Requests, "request,", report.CheckedVerdicts, "verdict derived again")
	for record, err := range ledger.Records(dir) {
		if err == nil && record.Request != nil {
			fmt.Println(record.Number, record.Request.URL, record.Request.RobotsVerdict.Rule)
		}
	}
	// Output:
	// true 1 request, 1 verdict derived again
	// 2 https://example.com/open allow: /open
}

// visit records a visit that robots.txt allows.
func visit(l *ledger.Ledger, url string) error {
	u, err := decorum.ParseURL(url)
	if err != nil {
		return err
	}
	body := []byte("User-agent: examplebot\nAllow: /open\nDisallow: /\n")
	sum := sha256.Sum256(body)
	file := gate.FetchSummary{SHA256: hex.EncodeToString(sum[:]), FetchedAt: time.Now(), Outcome: gate.OutcomeRules}
	if err := l.StoreRobotsFile(file.SHA256, body); err != nil {
		return err
	}
	agent, err := robots.NewAgent("examplebot")
	if err != nil {
		return err
	}
	verdict := robots.Parse(body, robots.Google).RulesFor(agent).Check(u)
	n, err := l.Append(&ledger.Record{Request: &ledger.Request{URL: url, Kind: ledger.KindPage,
		Origin:    u.Origin().String(),
		URLSource: "seed", Slots: 1, RobotsVerdict: ledger.NewRobotsVerdict(verdict, file)}})
	if err != nil {
		return err
	}
	// Here the program sends the request.
	_, err = l.Append(&ledger.Record{Response: &ledger.Response{RequestNumber: n, EndedAt: time.Now(),
		Status: 200, BodyBytes: 4096}})
	return err
}
