package daemon

import (
	"fmt"
	"io"
	"os"
)

// An OpenFunc opens a file that a project names for reading: os.Open, or one that
// confines projects that came by the API of a daemon to a directory.
type OpenFunc func(name string) (*os.File, error)

// maxSmallFileBytes is how many bytes a file may have that holds a key, a token, a
// password or certificates.
const maxSmallFileBytes = 1 << 20

// readSmallFile reads a small file. A file named by mistake may be much longer,
// and a device has no end.
func readSmallFile(open OpenFunc, name string) ([]byte, error) {
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSmallFileBytes+1))
	if err == nil && len(text) > maxSmallFileBytes {
		err = fmt.Errorf("%s is longer than %d bytes", name, maxSmallFileBytes)
	}
	return text, err
}
