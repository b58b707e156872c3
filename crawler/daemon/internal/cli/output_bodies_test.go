package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// Each distinct body is stored once, under the SHA-256 in the records of its pages.
func TestBodies(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	project := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\noutput: {bodies: true}\n")
	runCommand(t, v.CrawlArgs("-c", project, "http://shop.example/")...).want(t, command.ExitDone, "pages: 5 (")
	dir := filepath.Join(v.DataDir(), datadir.BodiesDir)
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
