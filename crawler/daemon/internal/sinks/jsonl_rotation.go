package sinks

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A RotatedJSONLFile is a file of lines that was full.
type RotatedJSONLFile struct {
	Path   string
	Serial int
}

// rotatedStampPattern is what the name of a closed file has before its ending: when it
// was closed, in UTC, and its number.
var rotatedStampPattern = regexp.MustCompile(`^-\d{8}T\d{6}Z-(\d{6,9})$`)

// RotatedJSONLFiles returns the closed files of a file of lines, oldest first. They
// are beside it: of pages.jsonl, pages-20261122T013501Z-000001.jsonl and so on.
func RotatedJSONLFiles(name string) ([]RotatedJSONLFile, error) {
	return rotatedJSONLFilesIn(confinedDir{path: filepath.Dir(name)}, filepath.Base(name))
}

// rotatedFileNames returns the names of the closed files of a file of lines, in its directory.
func rotatedFileNames(name string) (names []string, err error) {
	rotated, err := RotatedJSONLFiles(name)
	for _, f := range rotated {
		names = append(names, filepath.Base(f.Path))
	}
	return names, err
}

// rotatedJSONLFilesIn is RotatedJSONLFiles for an open directory.
func rotatedJSONLFilesIn(dir confinedDir, name string) ([]RotatedJSONLFile, error) {
	entries, err := dir.readDirEntries()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var rotated []RotatedJSONLFile
	stem, ext := splitExt(name)
	for _, e := range entries {
		suffix, hasStem := strings.CutPrefix(e.Name(), stem)
		suffix, hasExt := strings.CutSuffix(suffix, ext)
		m := rotatedStampPattern.FindStringSubmatch(suffix)
		if !hasStem || !hasExt || m == nil || !e.Type().IsRegular() {
			continue
		}
		serial, _ := strconv.Atoi(m[1]) // of nine digits at most
		rotated = append(rotated, RotatedJSONLFile{filepath.Join(dir.path, e.Name()), serial})
	}
	slices.SortFunc(rotated, func(a, b RotatedJSONLFile) int { return cmp.Compare(a.Serial, b.Serial) })
	return rotated, err
}

// splitExt divides the name of a file before its ending.
func splitExt(name string) (stem, ext string) {
	ext = filepath.Ext(name)
	return strings.TrimSuffix(name, ext), ext
}

// rotate closes the file, gives it its name, and begins another. Where that fails
// half way it may be called again, and a crash leaves no more than a name that
// the next run makes anew. The caller has f.mu.
func (f *jsonlFile) rotate() error {
	if f.file != nil {
		err := f.syncTracker.SyncAndClose(f.file) // before the name: some systems refuse it for an open file
		f.file = nil
		if err != nil {
			return err
		}
	}
	if err := f.renameToRotatedName(time.Now()); err != nil {
		return err
	}
	file, err := f.dir.openFile(filepath.Base(f.name), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, f.perm)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Chmod(f.perm), f.dir.sync()); err != nil { // whatever the umask
		return errors.Join(f.syncTracker.RecordFailure(err), file.Close()) // a line that is on the disk must have a name there
	}
	f.file, f.size, f.wholeLineBytes = file, 0, 0
	return nil
}

// renameToRotatedName gives the full file its own name, unless it has gone: an earlier try
// may have come so far.
func (f *jsonlFile) renameToRotatedName(now time.Time) error {
	name := filepath.Base(f.name)
	stem, ext := splitExt(name)
	rotatedName := fmt.Sprintf("%s-%s-%06d%s", stem, now.UTC().Format("20060102T150405Z"), f.lastRotatedSerial+1, ext)
	if _, err := f.dir.lstat(rotatedName); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(&fs.PathError{Op: "rename", Path: filepath.Join(f.dir.path, rotatedName), Err: fs.ErrExist}, err)
	}
	switch err := f.dir.rename(name, rotatedName); {
	case err == nil:
		f.lastRotatedSerial++
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// ForEachJSONLFile calls read for each of the files of a file of lines, oldest first.
// A file that is written to meanwhile is read as far as it goes.
func ForEachJSONLFile(name string, read func(io.Reader) error) (err error) {
	// Opened before the others are listed, it is one of them at worst.
	last, lastErr := os.Open(name)
	var lastInfo fs.FileInfo // nil: there is none
	if lastErr == nil {
		defer func() { err = errors.Join(err, last.Close()) }()
		if lastInfo, err = last.Stat(); err != nil {
			return err
		}
	}
	rotated, err := RotatedJSONLFiles(name)
	switch {
	case err != nil:
		return err
	case lastErr != nil && (len(rotated) == 0 || !errors.Is(lastErr, fs.ErrNotExist)):
		return lastErr
	}
	for _, c := range rotated {
		if err := readIfOtherFile(c.Path, lastInfo, read); err != nil {
			return err
		}
	}
	if last == nil {
		return nil // a crash came between the names
	}
	return read(last)
}

// readIfOtherFile calls read for a file, unless it is the one that last describes.
func readIfOtherFile(name string, last fs.FileInfo, read func(io.Reader) error) (err error) {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err != nil || os.SameFile(info, last) {
		return err
	}
	return read(f)
}
