//go:build unix

package daemon

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// modesByPath returns the modes of all that is in a directory, and of itself, by path.
func modesByPath(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	modes := map[string]fs.FileMode{}
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		modes[rel] = info.Mode().Perm()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return modes
}

// checkModes checks the modes in a directory: of directories and of files.
func checkModes(t *testing.T, dir string, dirs, files fs.FileMode) {
	t.Helper()
	for path, mode := range modesByPath(t, dir) {
		info, err := os.Lstat(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]fs.FileMode{true: dirs, false: files}[info.IsDir()]; mode != want {
			t.Errorf("%s: mode %o, want %o", path, mode, want)
		}
	}
}

const allOutputs = "output: {jsonl_max_size: 1KiB, warc: %s, bodies: true, ledger: true, ledger_max_size: 1KiB%s}\n"

// What a crawl makes, no other user can read; with output.mode they can read its outputs,
// and not its state. What is there keeps its mode, and full files are followed by new
// ones of the same.
func TestModesOfCrawl(t *testing.T) {
	for _, tt := range []struct {
		mode        string
		dirs, files fs.FileMode
	}{{"", 0o700, 0o600}, {", mode: 0640", 0o750, 0o640}, {", mode: '0644'", 0o755, 0o644}} {
		v := NewCrawlFixture(t, ShopSite())
		v.Dir = filepath.Join(v.Dir, "made")
		warc := filepath.Join(v.Dir, "warc")
		p := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\n"+strings.NewReplacer("%s, b", warc+", b", "%s}", tt.mode+"}").Replace(allOutputs))
		runCommand(t, v.CrawlArgs("-c", p, "http://shop.example/")...).want(t, ExitDone)
		data := v.DataDir()
		for _, dir := range []string{warc, filepath.Join(data, datadir.BodiesDir), filepath.Join(data, datadir.LedgerDir)} {
			for path, mode := range modesByPath(t, dir) {
				if filepath.Base(path) == sinks.WARCLockFile && mode != 0o600 {
					t.Errorf("%s: %o", path, mode)
				}
			}
			if err := os.RemoveAll(filepath.Join(dir, sinks.WARCLockFile)); err != nil {
				t.Fatal(err)
			}
			checkModes(t, dir, tt.dirs, tt.files)
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		lines := 0
		for path, mode := range modesByPath(t, data) {
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

// What a daemon makes, no other user can read.
func TestModesOfDaemon(t *testing.T) {
	f := newDaemonFixture(t, ShopSite())
	f.start(false)
	if _, err := loadOrCreateDaemonTokens(f.Supervisor.DataDir); err != nil {
		t.Fatal(err)
	}
	audit, err := api.OpenAuditLog(f.Supervisor.DataDir.Path(datadir.AuditFile), api.AuditRotationLimits{})
	if err != nil {
		t.Fatal(err)
	}
	defer audit.Close()
	if _, err := f.PutProject(t.Context(), "p", []byte(f.ProjectYAML("http://shop.example/", NoDelayYAML, "output: {warc: archive, bodies: true}"))); err != nil {
		t.Fatal(err)
	}
	f.DoActions("p", api.ActionStart)
	f.WaitForState("p", api.StateDone)
	checkModes(t, string(f.Supervisor.DataDir), 0o700, 0o600)
	if _, err := f.PutProject(t.Context(), "q", []byte(f.ProjectYAML("http://shop.example/", NoDelayYAML))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"p", "q"} { // q has no directory yet
		if err := f.DeleteProject(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	checkModes(t, string(f.Supervisor.DataDir), 0o700, 0o600)
}
