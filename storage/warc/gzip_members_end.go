package warc

import (
	"bufio"
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
)

// A counter counts what was read. It is an io.ByteReader, so that gzip reads
// not a byte beyond the end of a member.
type counter struct {
	*bufio.Reader
	n int64
}

func newCounter(r io.Reader) *counter { return &counter{Reader: bufio.NewReaderSize(r, 64<<10)} }

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	return n, err
}

func (c *counter) ReadByte() (byte, error) {
	b, err := c.Reader.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// wholeMembers returns where the last gzip member ends of those that are whole,
// one after the other from the beginning of f.
func wholeMembers(f io.Reader) (int64, error) {
	var whole int64
	var z gzip.Reader
	for c := newCounter(f); ; whole = c.n {
		err := z.Reset(c)
		if err == nil {
			z.Multistream(false)
			_, err = io.Copy(io.Discard, &z)
		}
		if failed := new(os.PathError); errors.As(err, &failed) {
			return 0, err // the file cannot be read: nobody knows what is in it
		}
		if err != nil {
			return whole, nil
		}
	}
}
