package disk

import (
	"errors"
	"os"
)

// Rewrite writes the bytes of f from one place to another again as they are. After an
// fsync that failed, the system may show bytes that are not on the disk, and take them
// for written: another fsync alone would not put them there.
func Rewrite(f *os.File, from, to int64) error {
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

// RewriteAppended is Rewrite for the end of a file that is open for appending, by its
// name: there every write goes to the end.
func RewriteAppended(name string, open func(string, int, os.FileMode) (*os.File, error), from, to int64) (err error) {
	if from >= to {
		return nil
	}
	f, err := open(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return Rewrite(f, from, to)
}
