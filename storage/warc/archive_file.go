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

// An archiveFile is a file that is being written. ArchiveWriter.mu serialises its methods; only Sync may be
// called at the same time as another one.
type archiveFile struct {
	*os.File
	root           *os.Root // the directory of the archive
	finalPath      string   // path of the file when it is complete, without openSuffix
	warcinfoRecord []byte   // written together with the first visit
	size           int64    // bytes of complete records
}

// createFile makes a new file in the directory of cfg, unless a file has its final name. The warcinfo record
// is not written yet.
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

// encodeWarcinfo returns the warcinfo record of a file, which says who crawled and how.
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

// appendRecords writes records at the end of the file, after the warcinfo record if they are the first.
// Bytes that a failed write leaves there are overwritten by the next attempt, or cut when the file ends.
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

// renameOrRemoveEmpty gives the file, which is closed, its final name, or removes it if it has no records.
func (f *archiveFile) renameOrRemoveEmpty() error {
	name := filepath.Base(f.finalPath)
	if f.size == 0 {
		return f.root.Remove(name + openSuffix)
	}
	return renameToFinal(f.root, name)
}

// renameToFinal gives an open file its final name, durably.
func renameToFinal(root *os.Root, name string) error {
	if err := root.Rename(name+openSuffix, name); err != nil {
		return err
	}
	return disk.SyncOpenDir(root)
}

// recoverFiles recovers each file with openSuffix in the directory, in the order of their names. It skips
// anything that is not a regular file.
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
		// Leave files of other programs, and anything that is not a regular file, as they are.
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

// recoverFile cuts an open file after its last complete record, and gives it its final name, or removes it
// if it has no record. It returns the number of bytes that it cut. It returns an error, and cuts nothing,
// if a record before cfg.LastDurableExtent is damaged, or if a file has the final name already.
func recoverFile(cfg Config, name string) (cutBytes int64, err error) {
	f, err := cfg.Root.OpenFile(name+openSuffix, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// Compare the end of the last complete record with what was on the disk.
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
		return 0, fmt.Errorf("%s is damaged: its records are intact for %d bytes, and %d were on the disk: "+
			"restore it from a backup, or move it away; its visits are not archived again",
			filepath.Join(cfg.Dir, name+openSuffix), validSize, durableSize)
	}
	cutBytes = info.Size() - validSize
	if validSize == 0 {
		return cutBytes, cfg.Root.Remove(name + openSuffix)
	}
	if _, err := cfg.Root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		path := filepath.Join(cfg.Dir, name)
		return 0, errors.Join(fmt.Errorf("both %s and %s exist: move one of them away", path, path+openSuffix), err)
	}
	// Write the bytes after the durable part again: they may not be on the disk although the system
	// considers them written, and a later fsync alone would not write them.
	if err := errors.Join(f.Truncate(validSize),
		disk.RewriteSameBytes(f, durableSize, validSize), f.Sync()); err != nil {
		return 0, err
	}
	return cutBytes, renameToFinal(cfg.Root, name)
}

// wholeMembersEnd returns the offset of the first gzip member of f that is torn or damaged, or the end of f.
// It returns an error if f cannot be read.
func wholeMembersEnd(f io.Reader) (int64, error) {
	var end int64
	var z gzip.Reader
	// countingReader reads no byte beyond a member, so bytesRead is the end of the member.
	for c := newCountingReader(f); ; end = c.bytesRead {
		err := z.Reset(c)
		if err == nil {
			z.Multistream(false)
			_, err = io.Copy(io.Discard, &z)
		}
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			return 0, err // a read error says nothing about the members
		}
		if err != nil {
			return end, nil
		}
	}
}
