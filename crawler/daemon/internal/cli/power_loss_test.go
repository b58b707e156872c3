package cli

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// TestCrawlAfterALossOfPower checks that a crawl continues after a loss of power, which loses or
// garbles everything in its output and ledger that was not synced. If a file is damaged before that
// point, the crawl names the file and sends no request.
func TestCrawlAfterALossOfPower(t *testing.T) {
	site := daemontest.ChainSite("a.example", 40)
	v := daemontest.NewWebFixture(t, site)
	archive := filepath.Join(v.Dir, "warc")
	runCommand(t, v.CrawlArgs("--max-pages=20", "--warc", archive, "http://a.example/0")...).want(t,
		command.ExitDone)
	recorded, err := datadir.StateDir(v.DataDir()).ReadDurableOutputLengths(project.Default())
	if err != nil || !recorded.Find(filepath.Join(v.DataDir(), datadir.OutputFile)).IsRecorded ||
		!recorded.Find(archive).IsRecorded ||
		!recorded.Find(filepath.Join(v.DataDir(), datadir.LedgerDir)).IsRecorded ||
		recorded.UncheckedSinceUncleanClose {
		t.Fatalf("known %+v (%v), want output, archive and ledger of a clean stop", recorded, err)
	}
	store, err := bolt.Open(filepath.Join(v.DataDir(), datadir.StoreFile), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	killedState, err := os.ReadFile(filepath.Join(v.DataDir(), datadir.StoreFile)) // as after a kill
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil || os.WriteFile(filepath.Join(v.DataDir(), datadir.StoreFile), killedState, 0o600) != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{datadir.OutputFile, filepath.Join(datadir.LedgerDir, "ledger-000001.jsonl")} {
		file := filepath.Join(v.DataDir(), name)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		size := recorded.Find(filepath.Dir(file)).SyncedSize
		if name == datadir.OutputFile {
			size = recorded.Find(file).SyncedSize
		}
		if size == 0 || size > int64(len(text)) {
			t.Fatalf("%d bytes of %s are known, it has %d", size, name, len(text))
		}
		garbled := bytes.Clone(text)
		clear(garbled[size/2 : size/2+50])
		if err := os.WriteFile(file, garbled, 0o600); err != nil {
			t.Fatal(err)
		}
		sent := len(v.Web.Log())
		runCommand(t, v.CrawlArgs("--resume")...).want(t, command.ExitFailed, filepath.Base(file), "is damaged", "away")
		if len(v.Web.Log()) != sent {
			t.Errorf("%s: something was sent", name)
		}
		withUnsyncedTail := append(text, []byte(strings.Repeat(`{"url":"https://a.example/lost"}`+"\n", 1000))...)
		if err := os.WriteFile(file, testfile.AfterPowerCut(r, withUnsyncedTail, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(v.DataDir(), datadir.StoreFile), killedState, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// An inspection of the killed crawl before --resume does not hide that it was killed.
	output := filepath.Join(v.DataDir(), datadir.OutputFile)
	text, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, strings.Repeat("\x00", 80)+"\n"+`{"url":"https://a.example/lost"}`+"\n"...)
	if err := os.WriteFile(output, text, 0o600); err != nil {
		t.Fatal(err)
	}
	runCommand(t, "frontier", "stats", "--data", v.DataDir()).want(t, command.ExitDone)
	runCommand(t, v.CrawlArgs("--resume")...).want(t, command.ExitDone)
	got := slices.Compact(daemontest.SortedURLs(slices.DeleteFunc(daemontest.ReadRecords(t,
		filepath.Join(v.DataDir(), datadir.OutputFile)), func(r sinks.OutputRecord) bool {
		return r.URL == "https://a.example/lost"
	})))
	if want := slices.Compact(daemontest.RequestedPages(v.Web.Log())); !slices.Equal(got, want) {
		t.Errorf("pages %q are in the output, want %q", got, want)
	}
	verifyCleanLedger(t, v.DataDir())
	if report := v.Web.Judge(crawltest.JudgeOptions{}); len(report.Violations) > 0 {
		t.Errorf("the judge says:\n%s", report)
	}
}
