package sinks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// outputLine returns a line in the form of a record.
func outputLine(i int) string {
	return fmt.Sprintf(`{"url":"https://a.example/%d","text":"%s"}`+"\n", i, strings.Repeat("x", i%700))
}

// After a loss of power, the bytes beyond the durable length are cut at the first line that is not whole.
// The bytes before it stay, and the next line can be read.
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
		torn := testfile.AfterPowerCut(rand.New(rand.NewPCG(seed, 1)), all, int64(len(before)))
		if err := os.WriteFile(name, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		recorded := datadir.OutputFileCheckpoint{OutputFileExtent: bolt.OutputFileExtent{SyncedSize: int64(
			len(before))}, IsRecorded: true, UncheckedSinceUncleanClose: true, Log: slog.New(slog.DiscardHandler)}
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

// After an unclean stop, a damaged line before the durable length is an error that names the line. A file
// that is shorter than that is always an error. A file that was moved away, emptied or renamed is not an
// error.
func TestLinesThatWereOnTheDisk(t *testing.T) {
	var text []byte
	for i := range 50 {
		text = append(text, outputLine(i)...)
	}
	garbled := bytes.Clone(text)
	clear(garbled[1500:1600])
	recorded := datadir.OutputFileCheckpoint{OutputFileExtent: bolt.OutputFileExtent{SyncedSize: int64(len(text)),
		Serial: 2}, IsRecorded: true, UncheckedSinceUncleanClose: true, Log: slog.New(slog.DiscardHandler)}
	clean, longer := recorded, recorded
	clean.UncheckedSinceUncleanClose, longer.SyncedSize = false, recorded.SyncedSize+8
	line := 1 + bytes.Count(text[:1500], []byte("\n"))
	for name, tt := range map[string]struct {
		text     []byte
		recorded datadir.OutputFileCheckpoint
		closed   int // serial of a rotated file beside it
		want     string
	}{
		"whole":                   {text, recorded, 2, ""},
		"zeros":                   {garbled, recorded, 2, fmt.Sprintf("is damaged: line %d is not whole", line)},
		"zeros, and a clean stop": {garbled, clean, 2, ""},
		"shorter": {text[:1400], clean, 2,
			fmt.Sprintf("has 1400 bytes, and %d were on the disk", len(text))},
		"moved away":                 {nil, recorded, 2, ""},
		"emptied":                    {[]byte{}, recorded, 2, ""},
		"begun after that":           {text[:1400], recorded, 3, ""},
		"full files were moved away": {text, recorded, 0, ""},
		"ours, torn before the end": {append([]byte("# notes\n"), text[:len(text)-8]...), recorded,
			2, "line 51 is not whole"},
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
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("pages-20261122T013501Z-%06d.jsonl", tt.closed)),
					text, 0o600); err != nil {
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
