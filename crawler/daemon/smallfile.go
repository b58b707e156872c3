package daemon

import (
	"fmt"
	"io"
)

// maxSmallFileBytes is how many bytes a file may have that holds a key, a token, a
// password or certificates.
const maxSmallFileBytes = 1 << 20

// readSmallFile reads a small file within c. A file named by mistake may be much longer,
// and a device has no end.
func readSmallFile(c *confinement, name string) ([]byte, error) {
	f, err := c.openInput(name)
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
