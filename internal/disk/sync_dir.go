// Package disk is what the keepers of files share.
package disk

import (
	"errors"
	"os"
	"runtime"
)

// SyncDir makes the names in a directory durable: files that were made, renamed
// or removed there.
func SyncDir(name string) error { return syncDir(os.Open, name) }

// SyncOpenDir is SyncDir for an open directory.
func SyncOpenDir(root *os.Root) error { return syncDir(root.Open, ".") }

func syncDir(open func(string) (*os.File, error), name string) error {
	if runtime.GOOS == "windows" { // has no such thing
		return nil
	}
	dir, err := open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
