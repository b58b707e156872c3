package sinks

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// outsideText is the content of a file outside of the confinement.
const outsideText = "the text of a file outside"

// While a file is replaced by a link that leads out of the confinement, opening it returns the file or an
// error, and never the target of the link.
func TestConfinementHoldsInRaces(t *testing.T) {
	root, outside := t.TempDir(), testfile.Write(t, "outside", outsideText)
	name, link, file := filepath.Join(root, "list"), filepath.Join(root, "link"), filepath.Join(root, "file")
	c := &confine.ProjectAccess{InputRoot: root, OutputRoot: root, ProjectDir: filepath.Join(root, "home"),
		ProtectedDataDir: t.TempDir(), ProjectFilesDir: t.TempDir()}
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = errors.Join(os.WriteFile(file, []byte("inside"), 0o600), os.Rename(file, name))
			_ = errors.Join(os.Symlink(outside, link), os.Rename(link, name))
		}
	})
	opened, dir := 0, confinedDir{}
	defer func() { close(stop); swapping.Wait(); _ = dir.closeRoot() }()
	dir, err := openJSONLDir(c, name, datadir.PrivateFileMode)
	if err != nil {
		t.Fatal(err)
	}
	for try := 0; try < 2000 || opened == 0 && try < 200_000; try++ {
		for _, open := range []func() (*os.File, error){
			func() (*os.File, error) { return c.OpenInput(name) },
			func() (*os.File, error) { return dir.openFile("list", os.O_RDWR|os.O_CREATE, datadir.PrivateFileMode) },
		} {
			f, err := open()
			if err != nil {
				continue
			}
			opened++
			text, err := io.ReadAll(f)
			if err := errors.Join(err, f.Close()); err != nil || strings.Contains(string(text), outsideText) {
				t.Fatalf("%q, %v", text, err)
			}
		}
	}
	if opened == 0 {
		t.Error("the file was never opened: the test says nothing")
	}
}
