package sinks

import (
	"os"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
)

// A stored body is left alone, an incomplete one is written again, and the unfinished files of a crash are
// removed.
func TestBodiesAreStoredOnce(t *testing.T) {
	dir := t.TempDir()
	const sum = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // of hello
	b, err := openBodyStore(dir, datadir.PrivateFileMode)
	if err != nil {
		t.Fatal(err)
	}
	name := b.joinPath(sum[:2], sum[2:4], sum)
	put := func() time.Time {
		t.Helper()
		if err := b.putBody(sum, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(name)
		if err != nil || string(text) != "hello" {
			t.Fatalf("%q, %v", text, err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	put()
	long := time.Unix(1e9, 0)
	if err := os.Chtimes(name, long, long); err != nil {
		t.Fatal(err)
	}
	if at := put(); !at.Equal(long) {
		t.Errorf("written again at %v", at)
	}
	if err := os.WriteFile(name, []byte("hel"), 0o644); err != nil {
		t.Fatal(err)
	}
	put()
	if err := os.WriteFile(b.joinPath(unfinishedDir, sum+"-1"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if b, err = openBodyStore(dir, datadir.PrivateFileMode); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(b.joinPath(unfinishedDir)); err != nil || len(left) > 0 {
		t.Errorf("%v, %v are left", left, err)
	}
}
