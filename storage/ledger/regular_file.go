package ledger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// openRegularFile opens a file below a directory for reading. A stranger may have written
// the directory: openRegularFile refuses anything but a regular file without waiting for
// it, and a symbolic link that leads out of the directory.
func openRegularFile(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// A device is not even opened, because that may have an effect.
	if err := requireRegularFile(root.Stat(name)); err != nil {
		return nil, err
	}
	// The file may have been replaced since: with O_NONBLOCK the open of a pipe does
	// not block.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := requireRegularFile(f.Stat()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// requireRegularFile returns an error unless info is of a regular file.
func requireRegularFile(info fs.FileInfo, err error) error {
	switch {
	case err != nil:
		return err
	case info.Mode()&fs.ModeNamedPipe != 0:
		return errors.New("it is a named pipe and not a regular file")
	case !info.Mode().IsRegular():
		return fmt.Errorf("it is not a regular file (%v)", info.Mode().Type())
	}
	return nil
}

// readRegularFile returns the content of a file as openRegularFile opens it, and an error if it
// has more than limit bytes.
func readRegularFile(dir, name string, limit int64) (text []byte, err error) {
	f, err := openRegularFile(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		return nil, fmt.Errorf("it is longer than %d bytes", limit)
	}
	return text, err
}
