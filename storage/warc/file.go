package warc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// A file is one that is being written. Only Sync may be called at the same time
// as another method.
type file struct {
	*os.File
	name   string // when it is closed
	opener []byte // the warcinfo record: written with the first of the others
	size   int64  // of whole records
}

// createFile makes a new file.
func createFile(name string, info []Field, now time.Time) (*file, error) {
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(&fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}, err)
	}
	opener, err := warcinfo(filepath.Base(name), info, now)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name+openEnding, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	if err := disk.SyncDir(filepath.Dir(name)); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return &file{File: f, name: name, opener: opener}, nil
}

// warcinfo returns the record that says of a file by whom it was written, and
// how.
func warcinfo(name string, info []Field, now time.Time) ([]byte, error) {
	h := newHeader(Info, now)
	h.add("WARC-Filename", name)
	block := appendFields(nil, append([]Field{
		{"format", "WARC File Format 1.1"},
		{"conformsTo", "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"},
	}, info...))
	var b bytes.Buffer
	err := writeRecord(&b, h, warcFields, block)
	return b.Bytes(), err
}

// append writes records at the end. What a failure leaves there is written over
// by the next try, and cut off in the end.
func (f *file) append(records []byte) error {
	if f.size == 0 {
		records = append(bytes.Clone(f.opener), records...)
	}
	n, err := f.WriteAt(records, f.size)
	if err != nil {
		return err
	}
	f.size += int64(n)
	return nil
}

// settle gives the file, which has been closed, its final name. One that holds
// nothing is removed.
func (f *file) settle() error {
	if f.size == 0 {
		return os.Remove(f.Name())
	}
	return closed(f.name)
}

// closed gives a file that was open its final name.
func closed(name string) error {
	if err := os.Rename(name+openEnding, name); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(name))
}

// recoverAll closes the files that a crash left open.
func recoverAll(cfg Config) error {
	entries, err := os.ReadDir(cfg.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), openEnding)
		if !ok || !strings.HasSuffix(name, ending) || !e.Type().IsRegular() {
			continue
		}
		name = filepath.Join(cfg.Dir, name)
		cut, err := recoverFile(name)
		if err != nil {
			return err
		}
		if cfg.Recovered != nil {
			cfg.Recovered(name, cut)
		}
	}
	return nil
}

// recoverFile cuts an open file back to its last whole record, and closes it.
// One that has none is removed.
func recoverFile(name string) (cut int64, err error) {
	f, err := os.OpenFile(name+openEnding, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	whole, err := wholeMembers(f)
	if err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	cut = info.Size() - whole
	if whole == 0 {
		return cut, os.Remove(f.Name())
	}
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return 0, errors.Join(fmt.Errorf("%s is there, and so is %s: move one of them away", name, f.Name()), err)
	}
	if err := errors.Join(f.Truncate(whole), f.Sync()); err != nil {
		return 0, err
	}
	return cut, closed(name)
}
