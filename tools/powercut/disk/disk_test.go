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

// file makes a file with a stable content and name.
func file(t *testing.T, d *Disk, name string, content []byte) *Node {
	t.Helper()
	n, err := d.Create(d.Root(), name, false)
	must(t, err)
	must(t, d.Write(n, name, content, 0))
	must(t, d.Sync(n, name))
	must(t, d.Sync(d.Root(), "/"))
	return n
}

// blocks returns content of so many blocks, each of one letter.
func blocks(letters string) []byte {
	var b []byte
	for _, l := range []byte(letters) {
		b = append(b, bytes.Repeat([]byte{l}, BlockSize)...)
	}
	return b
}

// letters returns the first byte of each block, "." for zero.
func letters(b []byte) string {
	var s []byte
	for i := 0; i < len(b); i += BlockSize {
		s = append(s, max(b[i], '.'))
	}
	return string(s)
}

// outcomes returns what 500 cuts of disks that do prepares leave of a file.
func outcomes(t *testing.T, strict bool, name string, do func(*Disk)) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	for seed := range 500 {
		d := New()
		d.Strict = strict
		do(d)
		d.Cut(rand.New(rand.NewPCG(1, uint64(seed))))
		n, err := d.Find(name)
		if err != nil {
			seen["no file"] = true
			continue
		}
		seen[letters(d.Content(n))] = true
	}
	return seen
}

func check(t *testing.T, got map[string]bool, want ...string) {
	t.Helper()
	for _, w := range want {
		if !got[w] {
			t.Errorf("never came out: %q", w)
		}
		delete(got, w)
	}
	for g := range got {
		t.Errorf("must not come out: %q", g)
	}
}

func TestCutWritesAnySubsetOfBlocks(t *testing.T) {
	check(t, outcomes(t, false, "f", func(d *Disk) {
		n := file(t, d, "f", blocks("ab"))
		must(t, d.Write(n, "f", blocks("xy"), 0))
	}), "ab", "xb", "ay", "xy")
}

func TestCutChoosesASize(t *testing.T) {
	check(t, outcomes(t, false, "f", func(d *Disk) {
		n := file(t, d, "f", blocks("a"))
		must(t, d.Write(n, "f", blocks("b"), BlockSize))
		must(t, d.Write(n, "f", blocks("c"), 2*BlockSize))
	}), "a", "ab", "a.", "abc", "a.c", "ab.", "a..")
	check(t, outcomes(t, false, "f", func(d *Disk) {
		n := file(t, d, "f", blocks("abc"))
		must(t, d.Truncate(n, "f", BlockSize))
	}), "a", "abc", "ab.", "a.c", "a..")
}

func TestSyncIsStable(t *testing.T) {
	check(t, outcomes(t, false, "f", func(d *Disk) {
		n := file(t, d, "f", blocks("ab"))
		must(t, d.Write(n, "f", blocks("xyz"), 0))
		must(t, d.Sync(n, "f"))
	}), "xyz")
}

// A Sync that failed loses what it was for, though a later one succeeds.
func TestFailedSync(t *testing.T) {
	check(t, outcomes(t, false, "f", func(d *Disk) {
		n := file(t, d, "f", blocks("ab"))
		must(t, d.Write(n, "f", blocks("x"), 0))
		fault := d.Inject(Fault{Op: Sync, Name: "f", Times: 1})
		if err := d.Sync(n, "f"); !errors.Is(err, syscall.EIO) || d.Hits(fault) != 1 {
			t.Errorf("error %v", err)
		}
		must(t, d.Write(n, "f", blocks("y"), BlockSize))
		must(t, d.Sync(n, "f"))
	}), "ay")
}

func TestNames(t *testing.T) {
	replace := func(sync func(*Disk, *Node)) func(*Disk) {
		return func(d *Disk) {
			file(t, d, "f", blocks("a"))
			n, err := d.Create(d.Root(), "new", false)
			must(t, err)
			must(t, d.Write(n, "new", blocks("b"), 0))
			must(t, d.Sync(n, "new"))
			must(t, d.Rename(d.Root(), "new", d.Root(), "f"))
			sync(d, n)
		}
	}
	nothing := func(*Disk, *Node) {}
	ofFile := func(d *Disk, n *Node) { must(t, d.Sync(n, "f")) }
	ofDir := func(d *Disk, _ *Node) { must(t, d.Sync(d.Root(), "/")) }
	check(t, outcomes(t, false, "f", replace(nothing)), "a", "b")
	check(t, outcomes(t, false, "f", replace(ofFile)), "b")
	check(t, outcomes(t, true, "f", replace(ofFile)), "a", "b")
	check(t, outcomes(t, true, "f", replace(ofDir)), "b")
}

func TestFaults(t *testing.T) {
	d := New()
	n := file(t, d, "frontier.db", blocks("a"))
	fault := d.Inject(Fault{Op: Write, Name: "frontier", After: 1, Times: 2})
	for i, want := range []error{nil, syscall.EIO, syscall.EIO, nil} {
		if err := d.Write(n, "frontier.db", []byte("x"), 0); err != want {
			t.Errorf("write %d: %v, want %v", i, err, want)
		}
	}
	if err := d.Write(n, "ledger", []byte("x"), 0); err != nil || d.Hits(fault) != 2 {
		t.Errorf("another file: %v, %d hits", err, d.Hits(fault))
	}
}
