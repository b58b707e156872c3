package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// IsOwnStateFile recognizes the files of the crawl's state, and the names that they have while they are
// replaced. Outputs may not use these.
func TestOutputsAreNoState(t *testing.T) {
	d := StateDir(filepath.Join(t.TempDir(), "data"))
	for name, owned := range map[string]bool{
		"crawl.yaml": true, "crawl.yaml.new": true, "lengths.json.new": true, "x/../lock": true,
		"ledger": true, "ledger/pages.jsonl": true, "pages.jsonl": false, "pages.new": false, "ledgers/a": false,
	} {
		if d.IsOwnStateFile(d.Path(name)) != owned {
			t.Errorf("%s is a file of the state: %v, want %v", name, !owned, owned)
		}
	}
}

// The directory of a daemon's project is recognized by relative paths and by links, too.
func TestDaemonProject(t *testing.T) {
	data := StateDir(t.TempDir())
	dir := data.Path(filepath.Join(ProjectsDir, "shop"))
	if err := os.MkdirAll(dir, PrivateDirMode); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{data.Path(DaemonStateFile), filepath.Join(dir, StoreFile)} {
		if err := os.WriteFile(path, []byte("{}"), PrivateFileMode); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ cwd, path string }{
		{"/", dir}, {dir, "."}, {dir, "../shop/"}, {filepath.Dir(dir), "shop"}, {string(data), "projects/shop"},
		{"/", link}, {link, "."}, {filepath.Dir(link), "link"},
	} {
		t.Run("", func(t *testing.T) {
			t.Chdir(tt.cwd)
			d := StateDir(tt.path)
			if _, name := d.DaemonProject(); name != "shop" {
				t.Errorf("%s in %s is the project %q, want shop", tt.path, tt.cwd, name)
			}
			if files, err := d.StoreFiles(); err != nil || !slices.Equal(files, []string{StoreFile}) {
				t.Errorf("%s in %s has the files %q, %v", tt.path, tt.cwd, files, err)
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(d.robotsStorePath()), DaemonStateFile)); err != nil {
				t.Errorf("%s in %s has its robots.txt files in %s", tt.path, tt.cwd, d.robotsStorePath())
			}
		})
	}
	if _, name := data.DaemonProject(); name != "" {
		t.Errorf("the daemon's directory is the project %q", name)
	}
}

// TestNewCrawlFiles checks that the files of a crawl that another process made before Lock are kept, and that
// what the caller made is removed.
func TestNewCrawlFiles(t *testing.T) {
	d := StateDir(filepath.Join(t.TempDir(), "data"))
	for _, isOthers := range []bool{false, true} {
		files := d.NewCrawlFiles()
		if isOthers { // between the two calls, another process has run a crawl
			if err := os.MkdirAll(string(d), PrivateDirMode); err != nil {
				t.Fatal(err)
			}
			writeStoreFile(t, d)
		}
		lock, err := d.Lock()
		if err != nil {
			t.Fatal(err)
		}
		files.FindMissing()
		if !isOthers {
			writeStoreFile(t, d)
		}
		if err := errors.Join(files.Remove(), lock.Close()); err != nil {
			t.Error(err)
		}
		if hasCrawl, err := d.HasCrawl(); err != nil || hasCrawl != isOthers {
			t.Errorf("after Remove there is a crawl: %v, %v; want %v", hasCrawl, err, isOthers)
		}
	}
}

func writeStoreFile(t *testing.T, d StateDir) {
	t.Helper()
	if err := os.WriteFile(d.Path(StoreFile), []byte("a store"), PrivateFileMode); err != nil {
		t.Fatal(err)
	}
}
