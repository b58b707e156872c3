package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// assumedPageSize is what a system writes to a disk at a time.
const pageSize = 4096

// A powerCut is what a loss of power does to a part of a file: pages that were not
// synced are there, or zeros, or what was on the disk before.
func powerCut(r *rand.Rand, text []byte, from int64) []byte {
	text = bytes.Clone(text)
	for at := from; at < int64(len(text)); {
		end := min(int64(len(text)), (at/pageSize+1)*pageSize)
		switch r.IntN(3) {
		case 0:
			clear(text[at:end])
		case 1:
			for i := at; i < end; i++ {
				text[i] = byte(r.Uint32())
			}
		}
		at = end
	}
	if r.IntN(2) == 0 {
		text = text[:from+r.Int64N(int64(len(text))-from+1)]
	}
	return text
}

// outputLine returns a line as records have it.
func outputLine(i int) string {
	return fmt.Sprintf(`{"url":"https://a.example/%d","text":"%s"}`+"\n", i, strings.Repeat("x", i%700))
}

// TestLinesAfterALossOfPower: what is behind the length on the disk is cut at the first
// line that is not whole, what is before it stays, and what is written next is read.
func TestLinesAfterALossOfPower(t *testing.T) {
	const durable, lines = 50, 120
	var before, all []byte
	for i := range lines {
		if all = append(all, outputLine(i)...); i < durable {
			before = all
		}
	}
	before = bytes.Clone(before)
	for seed := range uint64(100) {
		name := filepath.Join(t.TempDir(), datadir.OutputFile)
		torn := powerCut(rand.New(rand.NewPCG(seed, 1)), all, int64(len(before)))
		if err := os.WriteFile(name, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		recorded := datadir.OutputFileCheckpoint{OutputFileExtent: bolt.OutputFileExtent{SyncedSize: int64(len(before))}, IsRecorded: true, UncheckedSinceUncleanClose: true, Log: slog.New(slog.DiscardHandler)}
		f, err := openJSONLFile(nil, name, 0, datadir.PrivateFileMode, recorded)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if _, err := f.Write([]byte(outputLine(lines))); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name)
		if err != nil || !bytes.HasPrefix(got, before) || !bytes.HasSuffix(got, []byte("\n"+outputLine(lines))) {
			t.Fatalf("seed %d: lines that were on the disk are missing, or the new one is (%v)", seed, err)
		}
		for line := range bytes.Lines(got) {
			if !json.Valid(line) {
				t.Fatalf("seed %d: line %q", seed, line)
			}
		}
	}
}

// TestLinesThatWereOnTheDisk: after an unclean stop, a file that is not whole up to its
// durable length is an error that names the line. A file that is shorter is always an
// error. A file that was moved away, emptied, or renamed is not.
func TestLinesThatWereOnTheDisk(t *testing.T) {
	var text []byte
	for i := range 50 {
		text = append(text, outputLine(i)...)
	}
	garbled := bytes.Clone(text)
	clear(garbled[1500:1600])
	recorded := datadir.OutputFileCheckpoint{OutputFileExtent: bolt.OutputFileExtent{SyncedSize: int64(len(text)), Serial: 2}, IsRecorded: true, UncheckedSinceUncleanClose: true, Log: slog.New(slog.DiscardHandler)}
	clean, longer := recorded, recorded
	clean.UncheckedSinceUncleanClose, longer.SyncedSize = false, recorded.SyncedSize+8
	line := 1 + bytes.Count(text[:1500], []byte("\n"))
	for name, tt := range map[string]struct {
		text     []byte
		recorded datadir.OutputFileCheckpoint
		closed   int // number of a full file beside it
		want     string
	}{
		"whole":                      {text, recorded, 2, ""},
		"zeros":                      {garbled, recorded, 2, fmt.Sprintf("is damaged: line %d is not whole", line)},
		"zeros, and a clean stop":    {garbled, clean, 2, ""},
		"shorter":                    {text[:1400], clean, 2, fmt.Sprintf("has 1400 bytes, and %d were on the disk", len(text))},
		"moved away":                 {nil, recorded, 2, ""},
		"emptied":                    {[]byte{}, recorded, 2, ""},
		"begun after that":           {text[:1400], recorded, 3, ""},
		"full files were moved away": {text, recorded, 0, ""},
		"ours, torn before the end":  {append([]byte("# notes\n"), text[:len(text)-8]...), recorded, 2, "line 51 is not whole"},
		"and the whole of ours":      {append([]byte("# notes\n"), text...), longer, 2, ""},
		"theirs, after a clean stop": {append(bytes.Clone(text), "# notes"...), clean, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, datadir.OutputFile)
			if tt.text != nil {
				if err := os.WriteFile(file, tt.text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tt.closed > 0 {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("pages-20261122T013501Z-%06d.jsonl", tt.closed)), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f, err := openJSONLFile(nil, file, 0, datadir.PrivateFileMode, tt.recorded)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "move it away") {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

// TestCrawlAfterALossOfPower: a crawl that is killed, and of whose output and ledger
// everything that was not synced is lost or garbled, goes on; one whose files are
// damaged before that says which, and nothing is sent.
func TestCrawlAfterALossOfPower(t *testing.T) {
	site := chainSite("a.example", 40)
	v := newCrawlFixture(t, site)
	archive := filepath.Join(v.dir, "warc")
	runCommand(t, v.crawlArgs("--max-pages=20", "--warc", archive, "http://a.example/0")...).want(t, ExitStopped)
	recorded, err := datadir.StateDir(v.dataDir()).ReadDurableOutputLengths(project.Default(), nil)
	if err != nil || !recorded.Find(filepath.Join(v.dataDir(), datadir.OutputFile)).IsRecorded || !recorded.Find(archive).IsRecorded ||
		!recorded.Find(filepath.Join(v.dataDir(), datadir.LedgerDir)).IsRecorded || recorded.UncheckedSinceUncleanClose {
		t.Fatalf("known %+v (%v), want output, archive and ledger of a clean stop", recorded, err)
	}
	store, err := bolt.Open(filepath.Join(v.dataDir(), datadir.StoreFile), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	killedState, err := os.ReadFile(filepath.Join(v.dataDir(), datadir.StoreFile)) // as after a kill
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil || os.WriteFile(filepath.Join(v.dataDir(), datadir.StoreFile), killedState, 0o600) != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{datadir.OutputFile, filepath.Join(datadir.LedgerDir, "ledger-000001.jsonl")} {
		file := filepath.Join(v.dataDir(), name)
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
		sent := len(v.web.Log())
		runCommand(t, v.crawlArgs("--resume")...).want(t, ExitFailed, filepath.Base(file), "is damaged", "away")
		if len(v.web.Log()) != sent {
			t.Errorf("%s: something was sent", name)
		}
		withUnsyncedTail := append(text, []byte(strings.Repeat(`{"url":"https://a.example/lost"}`+"\n", 1000))...)
		if err := os.WriteFile(file, powerCut(r, withUnsyncedTail, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(v.dataDir(), datadir.StoreFile), killedState, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Whoever looks at the crawl before it goes on does not hide that it was killed.
	output := filepath.Join(v.dataDir(), datadir.OutputFile)
	text, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, strings.Repeat("\x00", 80)+"\n"+`{"url":"https://a.example/lost"}`+"\n"...)
	if err := os.WriteFile(output, text, 0o600); err != nil {
		t.Fatal(err)
	}
	runCommand(t, "frontier", "stats", "--data", v.dataDir()).want(t, ExitDone)
	runCommand(t, v.crawlArgs("--resume")...).want(t, ExitDone)
	got := slices.Compact(sortedURLs(slices.DeleteFunc(readRecords(t, filepath.Join(v.dataDir(), datadir.OutputFile)), func(r OutputRecord) bool {
		return r.URL == "https://a.example/lost"
	})))
	if want := slices.Compact(requestedPages(v.web.Log())); !slices.Equal(got, want) {
		t.Errorf("pages %q are in the output, want %q", got, want)
	}
	verifyCleanLedger(t, v.dataDir())
	if report := v.web.Judge(crawltest.JudgeOptions{}); len(report.Violations) > 0 {
		t.Errorf("the judge says:\n%s", report)
	}
}

// TestOutputsAreNoState: output may not use the files of the crawl's state, or the
// names that they have while they are replaced.
func TestOutputsAreNoState(t *testing.T) {
	d := datadir.StateDir(filepath.Join(t.TempDir(), "data"))
	for name, owned := range map[string]bool{
		"crawl.yaml": true, "crawl.yaml.new": true, "lengths.json.new": true, "x/../lock": true,
		"ledger": true, "ledger/pages.jsonl": true, "pages.jsonl": false, "pages.new": false, "ledgers/a": false,
	} {
		if d.IsOwnStateFile(d.Path(name)) != owned {
			t.Errorf("%s is a file of the state: %v, want %v", name, !owned, owned)
		}
	}
}
