package disk

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// createSynced creates a file with stable content and a stable name.
func createSynced(t *testing.T, d *Disk, name string, content []byte) *Node {
	t.Helper()
	n, err := d.CreateNode(d.Root(), name, false)
	must(t, err)
	must(t, d.Write(n, name, content, 0))
	must(t, d.SyncNode(n, name))
	must(t, d.SyncNode(d.Root(), "/"))
	return n
}

// blocksOf returns one block for each letter, filled with the letter.
func blocksOf(letters string) []byte {
	var b []byte
	for _, l := range []byte(letters) {
		b = append(b, bytes.Repeat([]byte{l}, BlockSize)...)
	}
	return b
}

// firstLetters returns the first byte of each block, with "." for zero.
func firstLetters(b []byte) string {
	var s []byte
	for i := 0; i < len(b); i += BlockSize {
		s = append(s, max(b[i], '.'))
	}
	return string(s)
}

// cutOutcomes cuts the power of 500 disks that do has prepared, and returns the contents of a file
// afterwards, as firstLetters.
func cutOutcomes(t *testing.T, strict bool, name string, do func(*Disk)) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	for seed := range 500 {
		d := New()
		d.PerDirJournal = strict
		do(d)
		d.CutPower(rand.New(rand.NewPCG(1, uint64(seed))))
		n, err := d.NodeAtPath(name)
		if err != nil {
			seen["no file"] = true
			continue
		}
		seen[firstLetters(d.CurrentContent(n))] = true
	}
	return seen
}

// checkOutcomes checks that the outcomes are exactly those in want.
func checkOutcomes(t *testing.T, got map[string]bool, want ...string) {
	t.Helper()
	for _, w := range want {
		if !got[w] {
			t.Errorf("no cut resulted in %q", w)
		}
		delete(got, w)
	}
	for g := range got {
		t.Errorf("a cut resulted in %q", g)
	}
}

func TestCutWritesAnySubsetOfBlocks(t *testing.T) {
	checkOutcomes(t, cutOutcomes(t, false, "f", func(d *Disk) {
		n := createSynced(t, d, "f", blocksOf("ab"))
		must(t, d.Write(n, "f", blocksOf("xy"), 0))
	}), "ab", "xb", "ay", "xy")
}

func TestCutChoosesASize(t *testing.T) {
	checkOutcomes(t, cutOutcomes(t, false, "f", func(d *Disk) {
		n := createSynced(t, d, "f", blocksOf("a"))
		must(t, d.Write(n, "f", blocksOf("b"), BlockSize))
		must(t, d.Write(n, "f", blocksOf("c"), 2*BlockSize))
	}), "a", "ab", "a.", "abc", "a.c", "ab.", "a..")
	checkOutcomes(t, cutOutcomes(t, false, "f", func(d *Disk) {
		n := createSynced(t, d, "f", blocksOf("abc"))
		must(t, d.Truncate(n, "f", BlockSize))
	}), "a", "abc", "ab.", "a.c", "a..")
}

func TestSyncIsStable(t *testing.T) {
	checkOutcomes(t, cutOutcomes(t, false, "f", func(d *Disk) {
		n := createSynced(t, d, "f", blocksOf("ab"))
		must(t, d.Write(n, "f", blocksOf("xyz"), 0))
		must(t, d.SyncNode(n, "f"))
	}), "xyz")
}

// TestFailedSync: the blocks of a failed sync are lost, even if a later sync of the file succeeds.
func TestFailedSync(t *testing.T) {
	checkOutcomes(t, cutOutcomes(t, false, "f", func(d *Disk) {
		n := createSynced(t, d, "f", blocksOf("ab"))
		must(t, d.Write(n, "f", blocksOf("x"), 0))
		fault := d.InjectFault(IOErrorRule{Op: Sync, NamePart: "f", FailCount: 1})
		if err := d.SyncNode(n, "f"); !errors.Is(err, syscall.EIO) || d.FailedOpCount(fault) != 1 {
			t.Errorf("error %v", err)
		}
		must(t, d.Write(n, "f", blocksOf("y"), BlockSize))
		must(t, d.SyncNode(n, "f"))
	}), "ay")
}

func TestRenameAfterCut(t *testing.T) {
	replace := func(sync func(*Disk, *Node)) func(*Disk) {
		return func(d *Disk) {
			createSynced(t, d, "f", blocksOf("a"))
			n, err := d.CreateNode(d.Root(), "new", false)
			must(t, err)
			must(t, d.Write(n, "new", blocksOf("b"), 0))
			must(t, d.SyncNode(n, "new"))
			must(t, d.Rename(d.Root(), "new", d.Root(), "f"))
			sync(d, n)
		}
	}
	nothing := func(*Disk, *Node) {}
	ofFile := func(d *Disk, n *Node) { must(t, d.SyncNode(n, "f")) }
	ofDir := func(d *Disk, _ *Node) { must(t, d.SyncNode(d.Root(), "/")) }
	checkOutcomes(t, cutOutcomes(t, false, "f", replace(nothing)), "a", "b")
	checkOutcomes(t, cutOutcomes(t, false, "f", replace(ofFile)), "b")
	checkOutcomes(t, cutOutcomes(t, true, "f", replace(ofFile)), "a", "b")
	checkOutcomes(t, cutOutcomes(t, true, "f", replace(ofDir)), "b")
}

func TestFaults(t *testing.T) {
	d := New()
	n := createSynced(t, d, "frontier.db", blocksOf("a"))
	fault := d.InjectFault(IOErrorRule{Op: Write, NamePart: "frontier", AfterCount: 1, FailCount: 2})
	for i, want := range []error{nil, syscall.EIO, syscall.EIO, nil} {
		if err := d.Write(n, "frontier.db", []byte("x"), 0); err != want {
			t.Errorf("write %d: %v, want %v", i, err, want)
		}
	}
	if err := d.Write(n, "ledger", []byte("x"), 0); err != nil || d.FailedOpCount(fault) != 2 {
		t.Errorf("another file: %v, %d hits", err, d.FailedOpCount(fault))
	}
}
