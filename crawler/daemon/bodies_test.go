package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// Bodies are kept once each under the SHA-256 that their lines name.
func TestBodies(t *testing.T) {
	t.Parallel()
	v := newCrawlFixture(t, shopSite())
	project := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\noutput: {bodies: true}\n")
	runCommand(t, v.crawlArgs("-c", project, "http://shop.example/")...).want(t, ExitDone, "pages: 5 (")
	dir := filepath.Join(v.dataDir(), datadir.BodiesDir)
	want := map[string]int{}
	for _, r := range outputRecords(t, v) {
		if r.SHA256 != "" {
			want[filepath.Join(dir, r.SHA256[:2], r.SHA256[2:4], r.SHA256)] = r.Bytes
		}
	}
	got := map[string]int{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		got[name] = int(info.Size())
		return err
	})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("bodies (-want +got) %v\n%s", err, diff)
	}
}

// A body that is there is left alone, one that is not whole is written anew,
// and what a crash left unfinished is gone.
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
