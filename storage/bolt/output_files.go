package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/internal/binaryrecord"
)

// An OutputFileExtent is how much of a file of output is on the disk: see Options.ListOutputFiles.
type OutputFileExtent struct {
	// Path names the output: a file, or a directory in which Name is the present file.
	Path string
	Name string // in the directory Path; empty: Path is a file
	// Serial is the number of the file, if several files follow each other under a
	// name.
	Serial     int64
	SyncedSize int64 // bytes from its beginning that are on the disk
}

// An outputFiles holds what the file of the store says of output. It requires the lock of the
// store, but for mayBeTorn, which Open sets.
type outputFiles struct {
	extents   map[string]OutputFileExtent // by path
	mayBeTorn bool                        // what Store.OutputMayBeTorn returns
}

// load reads the lengths of all files.
func (o *outputFiles) load(tx *bbolt.Tx) error {
	o.extents = make(map[string]OutputFileExtent)
	return newChecksummedBucket(tx, bucketFiles).ForEach(func(key, value []byte) error {
		value, err := verifyAndTrimChecksum(key, value)
		if err != nil {
			return err
		}
		r := binaryrecord.Reader{RemainingData: value}
		f := OutputFileExtent{Path: string(key), Name: r.String(), Serial: int64(r.Int()), SyncedSize: int64(r.Int())}
		o.extents[f.Path] = f
		return r.CheckFullyRead()
	})
}

// byPath returns the files in the order of their paths.
func (o *outputFiles) byPath() []OutputFileExtent {
	byPath := func(a, b OutputFileExtent) int { return strings.Compare(a.Path, b.Path) }
	return slices.SortedFunc(maps.Values(o.extents), byPath)
}

// changed returns those of files of which the file of the store holds another length, or none.
func (o *outputFiles) changed(files []OutputFileExtent) (changed []OutputFileExtent) {
	for _, f := range files {
		if o.extents[f.Path] != f {
			changed = append(changed, f)
		}
	}
	return changed
}

// markCommitted records that lengths are in the file.
func (o *outputFiles) markCommitted(files []OutputFileExtent) {
	for _, f := range files {
		o.extents[f.Path] = f
	}
}

// writeOutputFileLengths writes the lengths of files. The openers of the files have checked them.
func writeOutputFileLengths(tx *bbolt.Tx, files []OutputFileExtent) error {
	if len(files) == 0 {
		return nil
	}
	if err := newChecksummedBucket(tx, bucketMeta).Delete([]byte(keyUnchecked)); err != nil {
		return err
	}
	b := newChecksummedBucket(tx, bucketFiles)
	for _, f := range files {
		value := binaryrecord.AppendString(nil, f.Name)
		value = binary.AppendUvarint(value, uint64(f.Serial))
		value = binary.AppendUvarint(value, uint64(f.SyncedSize))
		if err := b.setOrDelete([]byte(f.Path), value); err != nil {
			return err
		}
	}
	return nil
}

// ReadOutputFileRecords returns the files that the store at path knows, and whether they are whole
// (see OutputMayBeTorn). No process may have the store open. ReadOutputFileRecords changes nothing. A
// missing store, and one of a format before 4, knows no files. An empty file is an error.
func ReadOutputFileRecords(path string) (files []OutputFileExtent, clean bool, err error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, true, nil
	case err == nil && info.Size() == 0: // bbolt would write to an empty file
		return nil, false, fmt.Errorf("%s is empty: it was cut short, or whoever made it was killed at once: "+
			"restore it from a backup, or move it away to begin anew", path)
	}
	err = catchFault(func() error {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, ReadOnly: true})
		if err != nil {
			return err
		}
		defer db.Close()
		return db.View(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte(bucketMeta))
			if meta == nil {
				return checkNotTruncated(tx)
			}
			clean = meta.Get([]byte(keyClean)) != nil && meta.Get([]byte(keyUnchecked)) == nil
			if n, err := readFormatVersion(meta); err != nil || n != formatVersion || tx.Bucket([]byte(bucketFiles)) == nil {
				return errors.Join(err, checkNotTruncated(tx))
			}
			var known outputFiles
			err := known.load(tx)
			files = known.byPath()
			return err
		})
	})
	if err != nil {
		return nil, false, explainOpenError(path, err)
	}
	return files, clean, nil
}
