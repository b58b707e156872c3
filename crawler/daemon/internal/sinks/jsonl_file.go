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

// A jsonlFile is a JSONL file to which lines are appended. Before it would grow beyond maxBytes, it is
// renamed with the time and its serial, and a new file is begun: see RotatedJSONLFiles. Its methods may be
// called at the same time.
type jsonlFile struct {
	name      string
	dir       confinedDir // the directory of name
	perm      fs.FileMode // of the next file
	maxBytes  int64       // 0: no limit. A single line that is longer makes a longer file
	isRegular bool        // false: a pipe or a device, which is never synced

	syncTracker       disk.AppendSyncTracker // it has its own lock
	mu                sync.Mutex             // guards file, size, wholeLineBytes, hasTornLine and lastRotatedSerial
	file              *os.File               // nil: the last file is full, and the next one does not exist
	size              int64                  // of file, in bytes
	wholeLineBytes    int64                  // the part of size that consists of whole lines
	hasTornLine       bool                   // the end of the last line has not been written yet
	lastRotatedSerial int                    // the highest serial of a rotated file
}

// newJSONLFile returns a jsonlFile for an open, empty file.
func newJSONLFile(name string, maxBytes int64, isRegular bool, file *os.File) *jsonlFile {
	return &jsonlFile{
		name: name, dir: confinedDir{path: filepath.Dir(name)}, perm: datadir.PrivateFileMode, maxBytes: maxBytes,
		isRegular: isRegular, file: file,
		syncTracker: disk.AppendSyncTracker{ContentLabel: "lines of output", Remedy: "continue with --resume"},
	}
}

// openJSONLFile opens a JSONL file within the confinement c, and creates it with mode, and its directory, if
// they are missing.
// Files that follow a full one get the mode of that file. durable says how much of the file was on the
// disk; openJSONLFile repairs the rest, and cuts a torn line at the end.
func openJSONLFile(
	c *confine.ProjectAccess, name string, maxBytes int64, mode fs.FileMode, durable datadir.OutputFileCheckpoint,
) (_ *jsonlFile, err error) {
	dir, err := openJSONLDir(c, name, mode)
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
		return nil, usage.Errorf(
			"output.jsonl_max_size: %s is not a regular file, and cannot be renamed when it is full", name)
	}
	// Record the name before the file is created. Otherwise a crash between the two would leave a file
	// that the project may not continue: see checkAppendToOwnOutput.
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

// continueJSONLFile is openJSONLFile for a file that is open: it checks that the project may append to it,
// and repairs its end.
func continueJSONLFile(
	c *confine.ProjectAccess, dir confinedDir, name string, maxBytes int64, file *os.File,
	durable datadir.OutputFileCheckpoint,
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
	f.syncTracker.RecordWrite(file, f.wholeLineBytes) // an earlier run may not have synced its lines
	return f, nil
}

// checkAppendToOwnOutput returns an error for a file that is not an output of the confined project. Its
// outputs are the files that it has begun by its record, and files in its own directory that begin with a
// line of output, because older versions kept no record.
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

// repairEnd prepares the file of an earlier run, if it is one, for further lines. It finds the highest
// serial, and repairs the end of the file.
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
	// If the file that durable describes was rotated since, no byte of this one is known to be on the disk.
	if int64(f.lastRotatedSerial) > durable.Serial {
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

// Write appends p, which is a whole line or the rest of a line that was written in part. It never splits
// a line between two files. When it returns, the operating system has p; Sync puts it on the disk.
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
	// Only whole lines count for syncTracker: a torn line is not durable output.
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

// needsRotation reports whether the next n bytes begin a new file. The caller holds f.mu.
func (f *jsonlFile) needsRotation(n int) bool {
	return f.maxBytes > 0 && !f.hasTornLine && f.size > 0 && f.size+int64(n) > f.maxBytes
}

// Sync returns when all that was written before is on the disk. After a failure, every later Write and
// Sync fails. It does not take f.mu, so that it works while a write waits.
func (f *jsonlFile) Sync() error { return f.syncTracker.Sync() }

// Close syncs and closes the file and its directory.
func (f *jsonlFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return f.dir.closeRoot()
	}
	return errors.Join(f.syncTracker.SyncAndClose(f.file), f.dir.closeRoot())
}

// cutOrEndTornLine cuts a line of output at the end of f that has no line end, as a full disk or a loss of
// power can leave it. Its visit was not acked, and is repeated. Other text at the end of f stays, and gets
// a line end.
func cutOrEndTornLine(f *os.File) error {
	// Find the start of the last line, block by block from the end.
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
	// Look at the beginning of that line. Zeros count as output: a file system puts them where the size
	// of a file was on the disk, and its bytes were not.
	head := make([]byte, min(info.Size()-end, int64(len(recordPrefix))))
	if _, err := f.ReadAt(head, end); err != nil {
		return err
	}
	if head[0] != 0 && !strings.HasPrefix(recordPrefix, string(head)) {
		_, err := f.WriteString("\n")
		return err
	}
	return f.Truncate(end)
}

// recordPrefix begins every line of output.
const recordPrefix = `{"url":`
