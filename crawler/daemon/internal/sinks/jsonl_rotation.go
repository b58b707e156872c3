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

// A RotatedJSONLFile is a JSONL file that was full, and was renamed.
type RotatedJSONLFile struct {
	Path   string
	Serial int // from 1
}

// rotatedStampPattern matches what rotation inserts into a file's name before its extension: the time of
// the rotation, in UTC, and the serial.
var rotatedStampPattern = regexp.MustCompile(`^-\d{8}T\d{6}Z-(\d{6,9})$`)

// RotatedJSONLFiles returns the rotated files of the JSONL file at path name, the oldest first. They are in
// the same directory: those of pages.jsonl are pages-20261122T013501Z-000001.jsonl and so on.
func RotatedJSONLFiles(name string) ([]RotatedJSONLFile, error) {
	return rotatedJSONLFilesIn(confinedDir{path: filepath.Dir(name)}, filepath.Base(name))
}

// rotatedFileNames returns the names, without the directory, of the rotated files of a JSONL file.
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
		serial, _ := strconv.Atoi(m[1]) // it has at most nine digits
		rotated = append(rotated, RotatedJSONLFile{filepath.Join(dir.path, e.Name()), serial})
	}
	slices.SortFunc(rotated, func(a, b RotatedJSONLFile) int { return cmp.Compare(a.Serial, b.Serial) })
	return rotated, err
}

// splitExt splits the name of a file before its extension.
func splitExt(name string) (stem, ext string) {
	ext = filepath.Ext(name)
	return strings.TrimSuffix(name, ext), ext
}

// rotate closes the file, renames it, and creates the next one. It can be called again after it has
// failed at any step. A crash between the rename and the creation leaves no file f.name, which the next
// run creates. The caller holds f.mu.
func (f *jsonlFile) rotate() error {
	// Close the file before the rename: some systems refuse to rename an open file.
	if f.file != nil {
		err := f.syncTracker.SyncAndClose(f.file)
		f.file = nil
		if err != nil {
			return err
		}
	}
	if err := f.renameToRotatedName(time.Now()); err != nil {
		return err
	}
	// Create the next file with the same mode, whatever the umask. Its name must be on the disk before a
	// line in it counts as durable.
	file, err := f.dir.openFile(filepath.Base(f.name), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, f.perm)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Chmod(f.perm), f.dir.sync()); err != nil {
		return errors.Join(f.syncTracker.RecordFailure(err), file.Close())
	}
	f.file, f.size, f.wholeLineBytes = file, 0, 0
	return nil
}

// renameToRotatedName renames the full file. It does nothing if the file is gone, because an earlier
// attempt may have renamed it. It never replaces a file. The caller holds f.mu.
func (f *jsonlFile) renameToRotatedName(now time.Time) error {
	name := filepath.Base(f.name)
	stem, ext := splitExt(name)
	rotatedName := fmt.Sprintf("%s-%s-%06d%s", stem, now.UTC().Format("20060102T150405Z"), f.lastRotatedSerial+1, ext)
	if _, err := f.dir.lstat(rotatedName); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(&fs.PathError{Op: "rename", Path: filepath.Join(f.dir.path, rotatedName), Err: fs.ErrExist},
			err)
	}
	switch err := f.dir.rename(name, rotatedName); {
	case err == nil:
		f.lastRotatedSerial++
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// ForEachJSONLFile calls read for each rotated file of the JSONL file at path name, the oldest first, and
// then for the file itself. A crawl may write, and rotate, meanwhile: each line that existed before the
// call is read once.
func ForEachJSONLFile(name string, read func(io.Reader) error) (err error) {
	// Open the present file before listing the rotated ones. If it is rotated in between, it is also in
	// the list, and is recognized there.
	last, lastErr := os.Open(name)
	var lastInfo fs.FileInfo // nil: name does not exist
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
		return nil // a crash left only rotated files
	}
	return read(last)
}

// readIfOtherFile calls read for the file at path name, unless it is the one that last describes.
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
