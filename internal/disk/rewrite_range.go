package disk

import (
	"errors"
	"os"
)

// RewriteSameBytes writes the bytes of f between two offsets again, unchanged. After a failed
// fsync the system may show bytes that are not on the disk, and consider them written:
// another fsync alone would not write them.
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

// ReopenAndRewriteRange is RewriteSameBytes for the end of a file that is open for appending. It opens
// the file again by name, because each write to f itself would go to its end.
func ReopenAndRewriteRange(name string, open func(string, int, os.FileMode) (*os.File, error), from, to int64) (err error) {
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
