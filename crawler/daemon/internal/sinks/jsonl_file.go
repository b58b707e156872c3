package sinks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/disk"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// A jsonlFile is a file of lines, which are appended. One that would grow beyond
// its size gets a name with the time and its number instead, and a new one is
// begun: see RotatedJSONLFiles. Its methods may be called at the same time.
type jsonlFile struct {
	name      string
	dir       confinedDir // the directory of name
	perm      fs.FileMode // of the next file
	maxBytes  int64       // bytes; 0: no limit. A line that is longer alone has a longer file
	isRegular bool        // false: a pipe or a device, which no disk holds

	syncTracker       disk.AppendSyncTracker
	mu                sync.Mutex // of what follows
	file              *os.File   // nil: the last one is full, and the next is not begun
	size              int64
	wholeLineBytes    int64 // of size: whole lines
	hasTornLine       bool  // the end of the last line has not been written yet
	lastRotatedSerial int   // the highest number of a closed file
}

// newJSONLFile returns a jsonlFile over a file that is open.
func newJSONLFile(name string, maxBytes int64, isRegular bool, file *os.File) *jsonlFile {
	return &jsonlFile{
		name: name, dir: confinedDir{path: filepath.Dir(name)}, perm: datadir.PrivateFileMode, maxBytes: maxBytes, isRegular: isRegular, file: file,
		syncTracker: disk.AppendSyncTracker{ContentLabel: "lines of output", Remedy: "go on with --resume"},
	}
}

// openJSONLFile opens a file of lines within c, and creates it with the mode if it is
// missing. Files that follow a full one get its mode. openJSONLFile cuts a torn line at the
// end. known says how much of the file is on the disk.
func openJSONLFile(
	c *confine.ProjectAccess, name string, maxBytes int64, mode fs.FileMode, durable datadir.OutputFileCheckpoint,
) (_ *jsonlFile, err error) {
	dir, err := openJSONLDir(c, name)
	if err != nil {
		return nil, usage.Errorf("cannot open the output: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dir.closeRoot())
		}
	}()
	info, statErr := dir.lstat(filepath.Base(name))
	if maxBytes > 0 && statErr == nil && !info.Mode().IsRegular() {
		return nil, usage.Errorf("output.jsonl_max_size: %s is no regular file, which could be given another name when it is full", name)
	}
	// Record the name before the file is created: a crash between the two must not
	// leave a file that the project may not continue, see checkAppendToOwnOutput.
	isNew := errors.Is(statErr, fs.ErrNotExist)
	if isNew && c != nil && !c.IsKnownOutput(name) {
		if err := c.RecordOutput(name); err != nil {
			return nil, err
		}
	}
	file, err := dir.openFile(filepath.Base(name), os.O_RDWR|os.O_APPEND|os.O_CREATE, datadir.PrivateFileMode)
	if err != nil {
		return nil, usage.Errorf("cannot open the output: %w", err)
	}
	if isNew {
		err = disk.SetMode(file, mode)
	}
	var f *jsonlFile
	if err == nil {
		f, err = continueJSONLFile(c, dir, name, maxBytes, file, durable)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

// continueJSONLFile is openJSONLFile for an open file: it checks that the file is writable, and
// repairs its end.
func continueJSONLFile(
	c *confine.ProjectAccess, dir confinedDir, name string, maxBytes int64, file *os.File, durable datadir.OutputFileCheckpoint,
) (*jsonlFile, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkAppendToOwnOutput(c, name, file, info.Size()); err != nil {
		return nil, err
	}
	f := newJSONLFile(name, maxBytes, info.Mode().IsRegular(), file)
	f.dir, f.perm = dir, info.Mode().Perm()
	if !f.isRegular {
		return f, nil
	}
	if err := f.repairEnd(durable); err != nil {
		return nil, fmt.Errorf("cannot continue the output: %w", err)
	}
	f.syncTracker.RecordWrite(file, f.wholeLineBytes) // by an earlier run, perhaps
	return f, nil
}

// checkAppendToOwnOutput refuses to append to a file that is not an output of the project. A file
// that the project has begun is one. So is a file in the project's own directory that
// begins with a line of output: projects of older versions began files without a
// record.
func checkAppendToOwnOutput(c *confine.ProjectAccess, name string, f *os.File, size int64) error {
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

// repairEnd makes a file that an earlier run may have left fit to be gone on with.
func (f *jsonlFile) repairEnd(durable datadir.OutputFileCheckpoint) error {
	if err := f.dir.sync(); err != nil {
		return err
	}
	rotated, err := rotatedJSONLFilesIn(f.dir, filepath.Base(f.name))
	if err != nil {
		return err
	}
	if n := len(rotated); n > 0 {
		f.lastRotatedSerial = rotated[n-1].Serial
	}
	if int64(f.lastRotatedSerial) > durable.Serial { // a later file: the recorded one is full and has its own name
		durable.SyncedSize = 0
	}
	if durable.IsRecorded {
		err = f.repairAfterDurableEnd(durable)
	} else {
		err = cutOrEndTornLine(f.file)
	}
	if err != nil {
		return err
	}
	f.size, err = f.file.Seek(0, io.SeekEnd)
	f.wholeLineBytes = f.size
	return err
}

// Write appends p, which is a line, or the rest of one of which a part was
// written: lines are never divided between files. When it returns, p is with the
// operating system.
func (f *jsonlFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.syncTracker.Err(); err != nil {
		return 0, err
	}
	if f.file == nil || f.needsRotation(len(p)) {
		if err := f.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := f.file.Write(p)
	if n > 0 {
		f.size, f.hasTornLine = f.size+int64(n), p[n-1] != '\n'
		if !f.hasTornLine {
			f.wholeLineBytes = f.size
		}
		if f.isRegular {
			f.syncTracker.RecordWrite(f.file, f.wholeLineBytes)
		}
	}
	return n, err
}

// needsRotation reports whether the next n bytes belong into another file.
func (f *jsonlFile) needsRotation(n int) bool {
	return f.maxBytes > 0 && !f.hasTornLine && f.size > 0 && f.size+int64(n) > f.maxBytes
}

// Sync returns when all that was written before is on the disk. When it has
// failed, the file takes no more.
func (f *jsonlFile) Sync() error { return f.syncTracker.Sync() }

// Close closes the file when all of it is on the disk.
func (f *jsonlFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return f.dir.closeRoot()
	}
	return errors.Join(f.syncTracker.SyncAndClose(f.file), f.dir.closeRoot())
}

// cutOrEndTornLine cuts a last line of ours without an end: a full disk or a loss of
// power may leave one. Its visit was never acked, and will be made again. The
// end of a file that is not ours is left alone, and gets a line end.
func cutOrEndTornLine(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	end, block := info.Size(), make([]byte, 64<<10)
	for end > 0 {
		part := block[:min(end, int64(len(block)))]
		if _, err := f.ReadAt(part, end-int64(len(part))); err != nil {
			return err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			end -= int64(len(part) - i - 1)
			break
		}
		end -= int64(len(part))
	}
	if end == info.Size() {
		return nil
	}
	head := make([]byte, min(info.Size()-end, int64(len(recordPrefix))))
	if _, err := f.ReadAt(head, end); err != nil {
		return err
	}
	// Zeros are what a file system puts where the size of a file was on the
	// disk, and its bytes were not.
	if head[0] != 0 && !strings.HasPrefix(recordPrefix, string(head)) {
		_, err := f.WriteString("\n")
		return err
	}
	return f.Truncate(end)
}

// recordPrefix is how every line of ours begins.
const recordPrefix = `{"url":`
