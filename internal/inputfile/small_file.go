// Package inputfile reads small files that somebody else names: keys, tokens, passwords,
// certificates. It bounds what is read, and refuses a private key that others may read.
package inputfile

import (
	"fmt"
	"io"
	"os"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// An OpenFunc opens a file that a project names for reading: os.Open, or one that
// confines projects that came by the API of a daemon to a directory.
type OpenFunc func(name string) (*os.File, error)

// MaxSmallBytes is how many bytes a file may have that holds a key, a token, a
// password or certificates.
const MaxSmallBytes = 1 << 20

// ReadSmall reads a small file. A file named by mistake may be much longer,
// and a device has no end.
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

// maxKeyBytes bounds the file of a key. One of Ed25519 has some 120 bytes.
const maxKeyBytes = 64 << 10

// ReadPrivateKey reads a private key from a file that no other user may read.
func ReadPrivateKey[K any](open OpenFunc, name string, parse func([]byte) (K, error)) (k K, err error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return k, fmt.Errorf("%s is not the file of a key", name) // opening a pipe would wait
	}
	f, err := open(name)
	if err != nil {
		return k, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return k, err
	case !info.Mode().IsRegular() || info.Size() > maxKeyBytes:
		return k, fmt.Errorf("%s is not the file of a key", name)
	case disk.ReadableByOthers(info):
		return k, fmt.Errorf("others may read the key in %s: chmod 600 it, and make a new one unless they have not", name)
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
