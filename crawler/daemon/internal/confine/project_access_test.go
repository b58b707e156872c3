package confine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
)

// A confined project cannot write to the daemon's own directories, whatever path leads to them.
func TestConfinementKnowsTheDaemonsDirectories(t *testing.T) {
	base := t.TempDir()
	real, alias := filepath.Join(base, "real"), filepath.Join(base, "alias")
	c := &ProjectAccess{OutputRoot: alias, ProtectedDataDir: filepath.Join(real, "data"),
		ProjectFilesDir: filepath.Join(real, "projects")}
	c.ProjectDir = filepath.Join(c.ProtectedDataDir, datadir.ProjectsDir, "p")
	for _, dir := range []string{c.ProjectDir, c.ProjectFilesDir, filepath.Join(real, "out")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(real, alias); err != nil {
		t.Fatal(err)
	}
	for dir, open := range map[string]bool{"out": true, "data": false, "data/projects": false,
		"data/projects/other": false, "projects": false} {
		root, err := c.OpenOutputDir(filepath.Join(alias, dir), datadir.PrivateFileMode)
		if (err == nil) != open {
			t.Errorf("%s: %v, want it open: %v", dir, err, open)
		}
		if err == nil {
			root.Close()
		}
	}
	root, err := c.OpenOutputDir(filepath.Join(c.ProjectDir, "sub"), datadir.PrivateFileMode)
	if err != nil {
		t.Fatal(err)
	}
	root.Close()
}
