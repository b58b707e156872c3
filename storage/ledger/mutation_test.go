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

var edits = flag.Int("edits", 200, "how many edits TestMutations makes")

// A copybook is a ledger in memory: its files, as they are.
type copybook map[string][]byte

// readAll returns the files in a directory, by their paths in it.
func readAll(t *testing.T, dir string) copybook {
	t.Helper()
	files := copybook{}
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

// become makes the directory, which held old, hold files.
func become(t *testing.T, dir string, old, files copybook) {
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

// pick returns a file at random, of those whose name has a part.
func (c copybook) pick(chance *rand.Rand, part string) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(c)), func(name string) bool { return !strings.Contains(name, part) })
	return names[chance.IntN(len(names))]
}

// An edit changes files, and says how.
type edit func(t *testing.T, chance *rand.Rand, files copybook) string

// fileEdits change files as they are on the disk.
var fileEdits = []edit{
	func(_ *testing.T, chance *rand.Rand, files copybook) string {
		name := files.pick(chance, "")
		text := bytes.Clone(files[name])
		i, bit := chance.IntN(len(text)), chance.IntN(8)
		text[i] ^= 1 << bit
		files[name] = text
		return fmt.Sprintf("bit %d of byte %d of %s flipped", bit, i, name)
	},
	func(_ *testing.T, chance *rand.Rand, files copybook) string {
		name := files.pick(chance, "")
		n := chance.IntN(len(files[name]))
		files[name] = files[name][:n]
		return fmt.Sprintf("%s cut to %d bytes", name, n)
	},
	func(_ *testing.T, chance *rand.Rand, files copybook) string {
		name := files.pick(chance, "")
		files[name] = append(bytes.Clone(files[name]), files[name][chance.IntN(len(files[name])):]...)
		return name + " has its own end twice"
	},
	func(_ *testing.T, chance *rand.Rand, files copybook) string {
		name := files.pick(chance, "")
		delete(files, name)
		return name + " removed"
	},
	func(_ *testing.T, chance *rand.Rand, files copybook) string {
		a := files.pick(chance, "robots")
		b := a
		for b == a {
			b = files.pick(chance, "robots")
		}
		files[a] = files[b]
		return a + " replaced by another"
	},
	func(_ *testing.T, chance *rand.Rand, files copybook) string {
		a := files.pick(chance, ".zst")
		b := a
		for b == a {
			b = files.pick(chance, ".zst")
		}
		files[a], files[b] = files[b], files[a]
		return fmt.Sprintf("%s and %s change places", a, b)
	},
}

// lineEdits change the records of one segment.
var lineEdits = []func(chance *rand.Rand, lines [][]byte) ([][]byte, string){
	func(chance *rand.Rand, lines [][]byte) ([][]byte, string) {
		i := chance.IntN(len(lines))
		return lines[:i], fmt.Sprintf("lines from %d on removed", i+1)
	},
	func(chance *rand.Rand, lines [][]byte) ([][]byte, string) {
		i := chance.IntN(len(lines))
		return slices.Delete(lines, i, i+1), fmt.Sprintf("line %d removed", i+1)
	},
	func(chance *rand.Rand, lines [][]byte) ([][]byte, string) {
		i, j := chance.IntN(len(lines)), chance.IntN(len(lines)+1)
		return slices.Insert(lines, j, bytes.Clone(lines[i])), fmt.Sprintf("line %d again before line %d", i+1, j+1)
	},
	func(chance *rand.Rand, lines [][]byte) ([][]byte, string) {
		i := chance.IntN(len(lines) - 1)
		j := i + 1 + chance.IntN(len(lines)-i-1)
		lines[i], lines[j] = lines[j], lines[i]
		return lines, fmt.Sprintf("lines %d and %d change places", i+1, j+1)
	},
	func(chance *rand.Rand, lines [][]byte) ([][]byte, string) {
		i := chance.IntN(len(lines))
		lines[i] = forge(chance, lines[i])
		return lines, fmt.Sprintf("line %d forged", i+1)
	},
}

// forge changes a number or a word in a record.
func forge(chance *rand.Rand, line []byte) []byte {
	start := headSize + chance.IntN(len(line)-headSize-2)
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

// editLines changes the lines of a segment, packs it again, and, if whole, gives
// all that follows the hashes that it would have had: who can write files can do
// that, but cannot sign.
func editLines(t *testing.T, chance *rand.Rand, files copybook, whole bool) string {
	t.Helper()
	name := files.pick(chance, "ledger-")
	all := linesOf(t, files)
	lines, how := lineEdits[chance.IntN(len(lineEdits))](chance, all[name])
	all[name] = lines
	if whole {
		how += ", and the chain made anew"
		rechain(all)
	}
	old := maps.Clone(all)
	for _, file := range slices.Sorted(maps.Keys(old)) {
		if whole || file == name {
			files[file] = repack(t, file, old[file])
		}
	}
	if whole {
		restate(t, files, all)
	}
	return name + ": " + how
}

// linesOf returns the lines of all segments.
func linesOf(t *testing.T, files copybook) map[string][][]byte {
	t.Helper()
	all := map[string][][]byte{}
	for name, text := range files {
		if strings.HasPrefix(name, "ledger-") {
			all[name] = slices.Collect(bytes.Lines(unpack(t, name, text)))
		}
	}
	return all
}

// rechain gives records the numbers and hashes that follow each other, as far as
// they can be read.
func rechain(all map[string][][]byte) {
	end := origin()
	for _, file := range slices.Sorted(maps.Keys(all)) {
		for i, line := range all[file] {
			all[file][i], end = relink(end, line)
		}
	}
}

func relink(end link, line []byte) ([]byte, link) {
	r, err := decode(line)
	if err != nil {
		return line, end
	}
	if r.Segment != nil {
		r.Segment.Chain = string(end.hash[:])
	}
	at := r.Time
	body, err := r.encode()
	if err != nil {
		return line, end
	}
	return end.append(nil, at, body)
}

// restate corrects the SHA-256 that segments state of the files before them.
func restate(t *testing.T, files copybook, all map[string][][]byte) {
	t.Helper()
	end := origin()
	before := ""
	for _, file := range slices.Sorted(maps.Keys(all)) {
		for i, line := range all[file] {
			if r, err := decode(line); err == nil && r.Segment != nil && before != "" {
				r.Segment.SHA256 = sum(files[before])
				line, _ = json.Marshal(r)
				line = append(line, '\n')
			}
			all[file][i], end = relink(end, line)
		}
		files[file] = repack(t, file, all[file])
		before = file
	}
}

// TestMutations makes edits at random, one at a time: each is found.
func TestMutations(t *testing.T) {
	dir := t.TempDir()
	sample(t, dir, 2)
	good := readAll(t, dir)
	if r := verify(t, dir); !r.OK() {
		t.Fatal(r.Findings)
	}
	chance := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range *edits {
		files, how := edited(t, chance, good)
		become(t, dir, good, files)
		report, err := Verify(dir, VerifyOptions{Key: testKey.Public().(ed25519.PublicKey)})
		if err == nil && report.OK() {
			t.Errorf("not found: %s", how)
		} else {
			found++
		}
		become(t, dir, files, good)
	}
	t.Logf("%d edits, %d found", *edits, found)
	if r := verify(t, dir); !r.OK() {
		t.Fatal(r.Findings)
	}
}

// edited returns the files with one edit, and how they were edited.
func edited(t *testing.T, chance *rand.Rand, good copybook) (files copybook, how string) {
	t.Helper()
	for files = maps.Clone(good); same(good, files); { // a hash that was forged may have been made anew
		n := chance.IntN(len(fileEdits) + 2)
		if n < len(fileEdits) {
			how = fileEdits[n](t, chance, files)
		} else {
			how = editLines(t, chance, files, n == len(fileEdits))
		}
	}
	return files, how
}

func same(a, b copybook) bool {
	return maps.EqualFunc(a, b, func(x, y []byte) bool { return bytes.Equal(x, y) })
}

// A run that names no key, which whoever writes the files can put in the place of one
// that does, is not right for who has the key, since nothing signs it.
func TestUnsignedRun(t *testing.T) {
	for name, keys := range map[string][]ed25519.PrivateKey{"alone": {nil}, "after a signed one": {testKey, nil}} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			for _, key := range keys {
				w := &writer{t: t, l: open(t, Config{Dir: dir, Key: key, Run: testRun()})}
				w.crawl(1)
				if err := w.l.Close(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
			}
		})
		if r, err := Verify(dir, VerifyOptions{}); err != nil || !r.OK() {
			t.Errorf("%s: %+v, %v, want that all is right without the key", name, r, err)
		}
		if r := verify(t, dir); r.OK() {
			t.Errorf("%s: not found: %d records that no checkpoint signs", name, r.Unsigned)
		}
	}
}
