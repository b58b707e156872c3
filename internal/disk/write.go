package disk

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"syscall"
)

// WriteFileAtomic writes content to the file name, which appears only when it is complete and its
// bytes are on the disk; call SyncDir to make the name durable. Until then the file has a temporary
// name in dir, which must be on the same file system, so that several processes may write the same
// file at a time. The file has the mode, whatever the umask.
func WriteFileAtomic(name, dir string, mode fs.FileMode, content []byte) error {
	f, err := os.CreateTemp(dir, "new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// RewriteSameBytes writes the bytes of f from offset from up to offset to again, unchanged. After a
// failed fsync the operating system may show bytes that are not on the disk and consider them
// written: another fsync alone would not write them.
func RewriteSameBytes(f *os.File, from, to int64) error {
	block := make([]byte, 1<<20)
	for from < to {
		part := block[:min(int64(len(block)), to-from)]
		if _, err := f.ReadAt(part, from); err != nil {
			return err
		}
		if _, err := f.WriteAt(part, from); err != nil {
			return err
		}
		from += int64(len(part))
	}
	return nil
}

// ReopenAndRewriteRange does what RewriteSameBytes does for a file that is open for appending. It
// opens the file again by name, because each write to the open file would go to its end.
func ReopenAndRewriteRange(name string, open func(string, int, os.FileMode) (*os.File, error),
	from, to int64) (err error) {
	if from >= to {
		return nil
	}
	f, err := open(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return RewriteSameBytes(f, from, to)
}

// SyncDir makes the names in the directory name durable after files were created, renamed or
// removed there.
func SyncDir(name string) error { return syncDir(os.Open, name) }

// SyncOpenDir does what SyncDir does for an open directory.
func SyncOpenDir(root *os.Root) error { return syncDir(root.Open, ".") }

// syncDir opens the directory name with open and syncs it.
func syncDir(open func(string) (*os.File, error), name string) error {
	if runtime.GOOS == "windows" { // Windows cannot sync a directory
		return nil
	}
	dir, err := open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// IsFull reports whether a write that failed with err can succeed once the disk has space: ENOSPC,
// EDQUOT or EFBIG. After any other error (EIO, EROFS) the contents of the disk are unknown.
func IsFull(err error) bool {
	full := []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}
	return slices.ContainsFunc(full, func(e syscall.Errno) bool { return errors.Is(err, e) })
}
