package warc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// An archiveFile is one that is being written. Only Sync may be called at the same time
// as another method.
type archiveFile struct {
	*os.File
	root           *os.Root // of its directory
	finalPath      string   // final name, after Close
	warcinfoRecord []byte   // the warcinfo record: written with the first of the other records
	size           int64    // of whole records
}

// createFile makes a new file in the directory of cfg.
func createFile(cfg Config, name string, now time.Time) (*archiveFile, error) {
	if _, err := cfg.Root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(&fs.PathError{Op: "create", Path: filepath.Join(cfg.Dir, name), Err: fs.ErrExist}, err)
	}
	info, err := encodeWarcinfo(name, cfg.WarcinfoFields, now)
	if err != nil {
		return nil, err
	}
	f, err := cfg.Root.OpenFile(name+openSuffix, os.O_RDWR|os.O_CREATE|os.O_EXCL, disk.PrivateMode)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(disk.SetMode(f, cfg.FileMode), disk.SyncOpenDir(cfg.Root)); err != nil {
		return nil, errors.Join(err, f.Close(), cfg.Root.Remove(name+openSuffix))
	}
	return &archiveFile{File: f, root: cfg.Root, finalPath: filepath.Join(cfg.Dir, name), warcinfoRecord: info}, nil
}

// encodeWarcinfo returns the record that says of a file by whom it was written, and
// how.
func encodeWarcinfo(name string, info []Field, now time.Time) ([]byte, error) {
	h := newHeader(TypeWarcinfo, now)
	h.addFieldUnlessEmpty("WARC-Filename", name)
	block := appendFields(nil, append([]Field{
		{"format", "WARC File Format 1.1"},
		{"conformsTo", "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"},
	}, info...))
	var b bytes.Buffer
	err := writeRecord(&b, h, mediaTypeFields, block)
	return b.Bytes(), err
}

// appendRecords writes records at the end. What a failure leaves there is written over
// by the next try, and cut off in the end.
func (f *archiveFile) appendRecords(records []byte) error {
	if f.size == 0 {
		records = append(bytes.Clone(f.warcinfoRecord), records...)
	}
	n, err := f.WriteAt(records, f.size)
	if err != nil {
		return err
	}
	f.size += int64(n)
	return nil
}

// renameOrRemoveEmpty gives the file, which has been closed, its final name. One that holds
// nothing is removed.
func (f *archiveFile) renameOrRemoveEmpty() error {
	name := filepath.Base(f.finalPath)
	if f.size == 0 {
		return f.root.Remove(name + openSuffix)
	}
	return renameToFinal(f.root, name)
}

// renameToFinal gives a file that was open its final name.
func renameToFinal(root *os.Root, name string) error {
	if err := root.Rename(name+openSuffix, name); err != nil {
		return err
	}
	return disk.SyncOpenDir(root)
}

// recoverFiles closes the files that a crash left open.
func recoverFiles(cfg Config) error {
	dir, err := cfg.Root.Open(".")
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), openSuffix)
		if !ok || !strings.HasSuffix(name, fileSuffix) || !e.Type().IsRegular() {
			continue
		}
		cutBytes, err := recoverFile(cfg, name)
		if err != nil {
			return err
		}
		if cfg.OnRecovered != nil {
			cfg.OnRecovered(filepath.Join(cfg.Dir, name), cutBytes)
		}
	}
	return nil
}

// recoverFile cuts an open file back to its last whole record, and closes it.
// One that has none is removed.
func recoverFile(cfg Config, name string) (cutBytes int64, err error) {
	f, err := cfg.Root.OpenFile(name+openSuffix, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	validSize, err := wholeMembersEnd(f)
	if err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	durableSize := int64(0)
	if cfg.LastDurableExtent.FileName == name {
		durableSize = cfg.LastDurableExtent.Size
	}
	if validSize < durableSize {
		return 0, fmt.Errorf("%s is damaged: its records are whole for %d bytes, and %d were on the disk: "+
			"restore it from a backup, or move it away; what it holds is not archived again",
			filepath.Join(cfg.Dir, name+openSuffix), validSize, durableSize)
	}
	cutBytes = info.Size() - validSize
	if validSize == 0 {
		return cutBytes, cfg.Root.Remove(name + openSuffix)
	}
	if _, err := cfg.Root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		path := filepath.Join(cfg.Dir, name)
		return 0, errors.Join(fmt.Errorf("%s is there, and so is %s: move one of them away", path, path+openSuffix), err)
	}
	if err := errors.Join(f.Truncate(validSize), disk.RewriteSameBytes(f, durableSize, validSize), f.Sync()); err != nil {
		return 0, err
	}
	return cutBytes, renameToFinal(cfg.Root, name)
}

// wholeMembersEnd returns where the last gzip member ends of those that are whole,
// one after the other from the beginning of f.
func wholeMembersEnd(f io.Reader) (int64, error) {
	var end int64
	var z gzip.Reader
	for c := newCountingReader(f); ; end = c.bytesRead {
		err := z.Reset(c)
		if err == nil {
			z.Multistream(false)
			_, err = io.Copy(io.Discard, &z)
		}
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			return 0, err // the file cannot be read: nobody knows what is in it
		}
		if err != nil {
			return end, nil
		}
	}
}
