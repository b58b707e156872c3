package bolt

import (
	"context"
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

	"github.com/decorum-crawler/decorum/storage/internal/record"
)

// A File is how much of a file of output is on the disk: see Options.Files.
type File struct {
	// Path names the output: a file, or a directory in which Name is the present file.
	Path string
	Name string // in the directory Path; empty: Path is a file
	// Serial is the number of the file, if several files follow each other under a
	// name.
	Serial int64
	Size   int64 // bytes from its beginning that are on the disk
}

// Files returns the files that the store knows, by path, as of its last write.
func (s *Store) Files(ctx context.Context) ([]File, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return inOrder(s.files), nil
}

// WasUnclean reports whether files of output may be torn: the store was not closed in
// order before Open, or before an earlier Open, and has written no lengths since.
func (s *Store) WasUnclean() bool { return s.unclean }

// changedFiles returns the files whose new lengths are not yet in the store's file.
// Options.Before has put these bytes on the disk.
func (s *Store) changedFiles() (changed []File) {
	if s.opts.Files == nil {
		return nil
	}
	files := s.opts.Files()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range files {
		if s.files[f.Path] != f {
			changed = append(changed, f)
		}
	}
	return changed
}

// putFiles writes the lengths of files. The openers of the files have checked them.
func putFiles(tx *bbolt.Tx, files []File) error {
	if len(files) == 0 {
		return nil
	}
	if err := bucketOf(tx, bucketMeta).Delete([]byte(keyUnchecked)); err != nil {
		return err
	}
	b := bucketOf(tx, bucketFiles)
	for _, f := range files {
		value := record.AppendString(nil, f.Name)
		value = binary.AppendUvarint(value, uint64(f.Serial))
		value = binary.AppendUvarint(value, uint64(f.Size))
		if err := b.set([]byte(f.Path), value); err != nil {
			return err
		}
	}
	return nil
}

// settleFiles records that lengths are in the file. It requires the lock.
func (s *Store) settleFiles(files []File) {
	for _, f := range files {
		s.files[f.Path] = f
	}
}

// readFiles reads the lengths of all files.
func readFiles(tx *bbolt.Tx) (map[string]File, error) {
	files := make(map[string]File)
	b := bucketOf(tx, bucketFiles)
	err := b.ForEach(func(key, value []byte) error {
		value, err := b.check(key, value)
		if err != nil {
			return err
		}
		r := record.Reader{B: value}
		f := File{Path: string(key), Name: r.String(), Serial: int64(r.Int()), Size: int64(r.Int())}
		files[f.Path] = f
		return r.End()
	})
	return files, err
}

// ReadFiles returns the files that the store at path knows, and whether they are whole
// (see WasUnclean). No process may have the store open. ReadFiles changes nothing. A
// missing store, and one of a format before 4, knows no files. An empty file is an error.
func ReadFiles(path string) (files []File, clean bool, err error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, true, nil
	case err == nil && info.Size() == 0: // bbolt would write to an empty file
		return nil, false, fmt.Errorf("%s is empty: it was cut short, or whoever made it was killed at once: "+
			"restore it from a backup, or move it away to begin anew", path)
	}
	err = guard(func() error {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, ReadOnly: true})
		if err != nil {
			return err
		}
		defer db.Close()
		return db.View(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte(bucketMeta))
			if meta == nil {
				return whole(tx)
			}
			clean = meta.Get([]byte(keyClean)) != nil && meta.Get([]byte(keyUnchecked)) == nil
			if n, err := formatOf(meta); err != nil || n != format || tx.Bucket([]byte(bucketFiles)) == nil {
				return errors.Join(err, whole(tx))
			}
			known, err := readFiles(tx)
			files = inOrder(known)
			return err
		})
	})
	if err != nil {
		return nil, false, explain(path, err)
	}
	return files, clean, nil
}

// inOrder returns files in the order of their paths.
func inOrder(files map[string]File) []File {
	return slices.SortedFunc(maps.Values(files), func(a, b File) int { return strings.Compare(a.Path, b.Path) })
}
