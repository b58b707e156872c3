package sinks

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// recordOutputIfNew records that the project begins a file of lines, unless the file exists: see
// checkAppendToOwnOutput.
func recordOutputIfNew(c *confine.Paths, name string, dir jsonlDir) error {
	if c == nil || c.IsKnownOutput(name) {
		return nil
	}
	if _, err := dir.lstat(filepath.Base(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return c.RecordOutput(name)
}

// checkAppendToOwnOutput refuses to append to a file that is not an output of the project. A file
// that the project has begun is one. So is a file in the project's own directory that
// begins with a line of output: projects of older versions began files without a
// record.
func checkAppendToOwnOutput(c *confine.Paths, name string, f *os.File, size int64) error {
	if c == nil || size == 0 || c.IsKnownOutput(name) {
		return nil
	}
	head := make([]byte, len(recordPrefix))
	if n, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	} else if datadir.IsWithin(name, c.ProjectDir) && string(head[:n]) == recordPrefix {
		return nil
	}
	return usage.Errorf("output.jsonl: %s exists, and this project, which came by the API, has not written it: "+
		"move it away, name another file, or put the project file into %s by hand", name, c.ProjectFilesDir)
}

// claimWARCDir refuses a directory with an unfinished WARC file of another project:
// opening the directory would cut such files, and remove those without a record.
func claimWARCDir(c *confine.Paths, name string, dir *os.Root) error {
	if c == nil || datadir.IsWithin(name, c.ProjectDir) || c.IsKnownOutput(name) {
		return nil
	}
	unfinished, err := fs.Glob(dir.FS(), "*.warc.gz.open")
	if err != nil {
		return err
	}
	if len(unfinished) > 0 {
		return usage.Errorf("output.warc: %s holds %s, and this project, which came by the API, has not written it: "+
			"move it away, name another directory, or put the project file into %s by hand", name, unfinished[0], c.ProjectFilesDir)
	}
	return c.RecordOutput(name)
}
