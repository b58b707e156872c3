package inputfile

import (
	"fmt"
	"io"
	"os"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// An OpenFunc opens a file for reading: os.Open, or a function that confines the files of projects
// that were submitted to a daemon's API to one directory.
type OpenFunc func(name string) (*os.File, error)

// MaxSmallBytes is the longest file that ReadSmall reads.
const MaxSmallBytes = 1 << 20

// ReadSmall reads a file of at most MaxSmallBytes. A file that was named by mistake may be much
// longer, and a device has no end.
func ReadSmall(open OpenFunc, name string) ([]byte, error) {
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxSmallBytes+1))
	if err == nil && len(text) > MaxSmallBytes {
		err = fmt.Errorf("%s is longer than %d bytes", name, MaxSmallBytes)
	}
	return text, err
}

// maxKeyBytes limits the length of a key file. A file of an Ed25519 key has about 120 bytes.
const maxKeyBytes = 64 << 10

// ReadPrivateKey reads a private key with parse from a regular file that no other user may read.
func ReadPrivateKey[K any](open OpenFunc, name string, parse func([]byte) (K, error)) (k K, err error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return k, fmt.Errorf("%s is not a key file", name) // opening a pipe would block
	}
	f, err := open(name)
	if err != nil {
		return k, err
	}
	defer f.Close()
	// Check the open file: the name may refer to another file by now.
	info, err := f.Stat()
	switch {
	case err != nil:
		return k, err
	case !info.Mode().IsRegular() || info.Size() > maxKeyBytes:
		return k, fmt.Errorf("%s is not a key file", name)
	case disk.ReadableByOthers(info):
		return k, fmt.Errorf("others may read the key in %s: chmod 600 the file, and create a new key if they may "+
			"have read it", name)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyBytes))
	if err != nil {
		return k, err
	}
	if k, err = parse(text); err != nil {
		return k, fmt.Errorf("%s: %w", name, err)
	}
	return k, nil
}
