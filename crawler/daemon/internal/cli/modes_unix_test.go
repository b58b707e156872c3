//go:build unix

package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

const allOutputs = "output: {jsonl_max_size: 1KiB, warc: %s, bodies: true, ledger: true, ledger_max_size: 1KiB%s}\n"

// Other users cannot read the files of a crawl. With output.mode they can read its outputs, but not
// its state. Existing files keep their modes, and a rotated file has the mode of the one before.
func TestModesOfCrawl(t *testing.T) {
	for _, tt := range []struct {
		mode        string
		dirs, files fs.FileMode
	}{{"", 0o700, 0o600}, {", mode: 0640", 0o750, 0o640}, {", mode: '0644'", 0o755, 0o644}} {
		v := daemontest.NewWebFixture(t, daemontest.ShopSite())
		v.Dir = filepath.Join(v.Dir, "made")
		warc := filepath.Join(v.Dir, "warc")
		p := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\n"+
			strings.NewReplacer("%s, b", warc+", b", "%s}", tt.mode+"}").Replace(allOutputs))
		runCommand(t, v.CrawlArgs("-c", p, "http://shop.example/")...).want(t, command.ExitDone)
		data := v.DataDir()
		for _, dir := range []string{warc, filepath.Join(data, datadir.BodiesDir),
			filepath.Join(data, datadir.LedgerDir)} {
			for path, mode := range testfile.ModesByPath(t, dir) {
				if filepath.Base(path) == sinks.WARCLockFile && mode != 0o600 {
					t.Errorf("%s: %o", path, mode)
				}
			}
			if err := os.RemoveAll(filepath.Join(dir, sinks.WARCLockFile)); err != nil {
				t.Fatal(err)
			}
			testfile.CheckModes(t, dir, tt.dirs, tt.files)
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		lines := 0
		for path, mode := range testfile.ModesByPath(t, data) {
			want := fs.FileMode(0o600)
			switch {
			case path == ".":
				want = 0o700
			case strings.HasSuffix(path, ".jsonl"):
				want = tt.files
				lines++
			}
			if mode != want {
				t.Errorf("output%s: %s: mode %o, want %o", tt.mode, path, mode, want)
			}
		}
		if lines < 2 {
			t.Errorf("%d files of lines: none was full", lines)
		}
	}
}
