package ledger

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var editCount = flag.Int("edits", 200, "how many edits TestMutations makes")

// A ledgerFiles holds the files of a ledger in memory, by path.
type ledgerFiles map[string][]byte

// readFiles returns the files in a directory, by their relative paths.
func readFiles(t *testing.T, dir string) ledgerFiles {
	t.Helper()
	files := ledgerFiles{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		files[rel], err = os.ReadFile(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// replaceFiles replaces old, the files of a directory, by files.
func replaceFiles(t *testing.T, dir string, old, files ledgerFiles) {
	t.Helper()
	for name := range old {
		if files[name] == nil {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range files {
		if !bytes.Equal(old[name], text) {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// pickFile returns the name of a random file among those whose names contain part.
func (c ledgerFiles) pickFile(rng *rand.Rand, part string) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(c)), func(name string) bool {
		return !strings.Contains(name, part)
	})
	return names[rng.IntN(len(names))]
}

// A fileEdit changes files, and returns a description of the change.
type fileEdit func(t *testing.T, rng *rand.Rand, files ledgerFiles) string

// fileEdits change whole files.
var fileEdits = []fileEdit{
	func(_ *testing.T, rng *rand.Rand, files ledgerFiles) string {
		name := files.pickFile(rng, "")
		text := bytes.Clone(files[name])
		i, bit := rng.IntN(len(text)), rng.IntN(8)
		text[i] ^= 1 << bit
		files[name] = text
		return fmt.Sprintf("bit %d of byte %d of %s flipped", bit, i, name)
	},
	func(_ *testing.T, rng *rand.Rand, files ledgerFiles) string {
		name := files.pickFile(rng, "")
		n := rng.IntN(len(files[name]))
		files[name] = files[name][:n]
		return fmt.Sprintf("%s cut to %d bytes", name, n)
	},
	func(_ *testing.T, rng *rand.Rand, files ledgerFiles) string {
		name := files.pickFile(rng, "")
		files[name] = append(bytes.Clone(files[name]), files[name][rng.IntN(len(files[name])):]...)
		return name + " has its own end twice"
	},
	func(_ *testing.T, rng *rand.Rand, files ledgerFiles) string {
		name := files.pickFile(rng, "")
		delete(files, name)
		return name + " removed"
	},
	func(_ *testing.T, rng *rand.Rand, files ledgerFiles) string {
		a := files.pickFile(rng, "robots")
		b := a
		for b == a {
			b = files.pickFile(rng, "robots")
		}
		files[a] = files[b]
		return a + " replaced by another"
	},
	func(_ *testing.T, rng *rand.Rand, files ledgerFiles) string {
		a := files.pickFile(rng, ".zst")
		b := a
		for b == a {
			b = files.pickFile(rng, ".zst")
		}
		files[a], files[b] = files[b], files[a]
		return fmt.Sprintf("%s and %s change places", a, b)
	},
}

// lineEdits change the records of one segment.
var lineEdits = []func(chance *rand.Rand, lines [][]byte) ([][]byte, string){
	func(rng *rand.Rand, lines [][]byte) ([][]byte, string) {
		i := rng.IntN(len(lines))
		return lines[:i], fmt.Sprintf("lines from %d on removed", i+1)
	},
	func(rng *rand.Rand, lines [][]byte) ([][]byte, string) {
		i := rng.IntN(len(lines))
		return slices.Delete(lines, i, i+1), fmt.Sprintf("line %d removed", i+1)
	},
	func(rng *rand.Rand, lines [][]byte) ([][]byte, string) {
		i, j := rng.IntN(len(lines)), rng.IntN(len(lines)+1)
		return slices.Insert(lines, j, bytes.Clone(lines[i])), fmt.Sprintf("line %d again before line %d", i+1, j+1)
	},
	func(rng *rand.Rand, lines [][]byte) ([][]byte, string) {
		i := rng.IntN(len(lines) - 1)
		j := i + 1 + rng.IntN(len(lines)-i-1)
		lines[i], lines[j] = lines[j], lines[i]
		return lines, fmt.Sprintf("lines %d and %d change places", i+1, j+1)
	},
	func(rng *rand.Rand, lines [][]byte) ([][]byte, string) {
		i := rng.IntN(len(lines))
		lines[i] = alterRecord(rng, lines[i])
		return lines, fmt.Sprintf("line %d forged", i+1)
	},
}

// alterRecord changes a digit or a letter in a record.
func alterRecord(rng *rand.Rand, line []byte) []byte {
	start := linePrefixSize + rng.IntN(len(line)-linePrefixSize-2)
	for i := range line[start : len(line)-1] {
		c := line[start+i]
		line = bytes.Clone(line)
		switch {
		case c >= '0' && c <= '9':
			line[start+i] = '0' + (c-'0'+1)%10
			return line
		case c >= 'a' && c <= 'z':
			line[start+i] = 'a' + (c-'a'+1)%26
			return line
		}
	}
	line[len(line)-3] ^= 1
	return line
}

// editLines changes the lines of a segment, and encodes it again. If rechained is set, it also gives all later
// records the hashes that follow: whoever can write the files can do that, but cannot sign.
func editLines(t *testing.T, rng *rand.Rand, files ledgerFiles, rechained bool) string {
	t.Helper()
	name := files.pickFile(rng, "ledger-")
	all := linesOf(t, files)
	lines, how := lineEdits[rng.IntN(len(lineEdits))](rng, all[name])
	all[name] = lines
	if rechained {
		how += ", and the chain computed again"
		rechain(all)
	}
	old := maps.Clone(all)
	for _, file := range slices.Sorted(maps.Keys(old)) {
		if rechained || file == name {
			files[file] = encodeSegment(t, file, old[file])
		}
	}
	if rechained {
		fixSegmentHashes(t, files, all)
	}
	return name + ": " + how
}

// linesOf returns the lines of all segments, by file name.
func linesOf(t *testing.T, files ledgerFiles) map[string][][]byte {
	t.Helper()
	all := map[string][][]byte{}
	for name, text := range files {
		if strings.HasPrefix(name, "ledger-") {
			all[name] = slices.Collect(bytes.Lines(decompressSegment(t, name, text)))
		}
	}
	return all
}

// rechain gives records consecutive numbers and the hashes that follow, except lines that cannot be decoded.
func rechain(all map[string][][]byte) {
	end := genesisHead()
	for _, file := range slices.Sorted(maps.Keys(all)) {
		for i, line := range all[file] {
			all[file][i], end = rechainRecord(end, line)
		}
	}
}

// rechainRecord returns the line of a record as it follows end, and the new end.
func rechainRecord(end chainHead, line []byte) ([]byte, chainHead) {
	r, err := decodeRecord(line)
	if err != nil {
		return line, end
	}
	if r.SegmentStart != nil {
		r.SegmentStart.ChainHash = string(end.hash[:])
	}
	at := r.Time
	body, err := r.encodeLine(nil)
	if err != nil {
		return line, end
	}
	return end.appendRecord(nil, at, body)
}

// fixSegmentHashes corrects the SHA-256 of the previous file in each SegmentStart.
func fixSegmentHashes(t *testing.T, files ledgerFiles, all map[string][][]byte) {
	t.Helper()
	end := genesisHead()
	before := ""
	for _, file := range slices.Sorted(maps.Keys(all)) {
		for i, line := range all[file] {
			if r, err := decodeRecord(line); err == nil && r.SegmentStart != nil && before != "" {
				r.SegmentStart.PreviousSHA256 = sha256Hex(files[before])
				line, _ = json.Marshal(r)
				line = append(line, '\n')
			}
			all[file][i], end = rechainRecord(end, line)
		}
		files[file] = encodeSegment(t, file, all[file])
		before = file
	}
}

// Each of many random edits, made one at a time, leads to a finding.
func TestMutations(t *testing.T) {
	dir := t.TempDir()
	writeSample(t, dir, 2)
	original := readFiles(t, dir)
	if r := verifySigned(t, dir); !r.OK() {
		t.Fatal(r.Findings)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range *editCount {
		files, how := applyRandomEdit(t, rng, original)
		replaceFiles(t, dir, original, files)
		report, err := Verify(dir, VerifyOptions{PublicKey: testKey.Public().(ed25519.PublicKey)})
		if err == nil && report.OK() {
			t.Errorf("not found: %s", how)
		} else {
			found++
		}
		replaceFiles(t, dir, files, original)
	}
	t.Logf("%d edits, %d found", *editCount, found)
	if r := verifySigned(t, dir); !r.OK() {
		t.Fatal(r.Findings)
	}
}

// applyRandomEdit returns the files with one edit, and a description of it.
func applyRandomEdit(t *testing.T, rng *rand.Rand, original ledgerFiles) (files ledgerFiles, how string) {
	t.Helper()
	// Repeat an edit that changes nothing: rechaining may restore a forged hash.
	for files = maps.Clone(original); sameFiles(original, files); {
		n := rng.IntN(len(fileEdits) + 2)
		if n < len(fileEdits) {
			how = fileEdits[n](t, rng, files)
		} else {
			how = editLines(t, rng, files, n == len(fileEdits))
		}
	}
	return files, how
}

func sameFiles(a, b ledgerFiles) bool {
	return maps.EqualFunc(a, b, func(x, y []byte) bool { return bytes.Equal(x, y) })
}

// A run that names no key has a finding when the ledger is verified with a key, because nothing signs it.
// Otherwise someone who can write the files could replace a run that names one.
func TestUnsignedRun(t *testing.T) {
	for name, keys := range map[string][]ed25519.PrivateKey{"alone": {nil}, "after a signed one": {testKey, nil}} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			for _, key := range keys {
				w := &sampleWriter{t: t, ledger: openLedger(t, Config{Dir: dir, SigningKey: key, RunStart: testRun()})}
				w.writeVisits(1)
				if err := w.ledger.Close(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
			}
		})
		if r, err := Verify(dir, VerifyOptions{}); err != nil || !r.OK() {
			t.Errorf("%s: %+v, %v, want no findings without the key", name, r, err)
		}
		if r := verifySigned(t, dir); r.OK() {
			t.Errorf("%s: %d unsigned records and no finding", name, r.UnsignedRecords)
		}
	}
}
