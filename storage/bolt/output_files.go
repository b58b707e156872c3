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

// An OutputFileExtent says how many bytes of an output file are on the disk: see
// Options.ListOutputFiles.
type OutputFileExtent struct {
	// Path names the output: a file, or a directory whose current file is Name.
	Path string
	Name string // name in the directory Path; empty: Path is a file
	// Serial is the number of the file, if several files follow each other under one name.
	Serial     int64
	SyncedSize int64 // number of bytes from the beginning that are on the disk
}

// outputFiles has the lengths of output files that are in the store's file. Its methods require
// engine.mu. mayBeTorn does not change after Open and may be read without the lock.
type outputFiles struct {
	extents   map[string]OutputFileExtent // by path
	mayBeTorn bool                        // result of Store.OutputMayBeTorn
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

// changed returns those files whose extent differs from the one in the store's file.
func (o *outputFiles) changed(files []OutputFileExtent) (changed []OutputFileExtent) {
	for _, f := range files {
		if o.extents[f.Path] != f {
			changed = append(changed, f)
		}
	}
	return changed
}

// markCommitted records that the extents are in the store's file.
func (o *outputFiles) markCommitted(files []OutputFileExtent) {
	for _, f := range files {
		o.extents[f.Path] = f
	}
}

// writeOutputFileLengths writes the extents of files within tx. A program that reports extents has
// checked the ends of the files when it opened them, so keyUnchecked is deleted.
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

// ReadOutputFileRecords returns the lengths of the output files in the store at path, in the order of
// their paths, and whether the files are whole (the opposite of Store.OutputMayBeTorn at the next
// Open). No process may have the store open. ReadOutputFileRecords changes nothing. A missing store,
// and one of a format before 4, has no lengths. An empty file is an error.
func ReadOutputFileRecords(path string) (files []OutputFileExtent, clean bool, err error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, true, nil
	case err == nil && info.Size() == 0: // bbolt would write to an empty file
		return nil, false, fmt.Errorf("%s is empty: it was truncated, or the process that created it was "+
			"killed at once: restore it from a backup, or move it away to start over", path)
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
			if n, err := readFormatVersion(meta); err != nil || n != formatVersion ||
				tx.Bucket([]byte(bucketFiles)) == nil {
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
