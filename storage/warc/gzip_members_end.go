package warc

import (
	"bufio"
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
)

// A countingReader counts what was read. It is an io.ByteReader, so that gzip reads
// not a byte beyond the end of a member.
type countingReader struct {
	*bufio.Reader
	bytesRead int64
}

func newCountingReader(r io.Reader) *countingReader {
	return &countingReader{Reader: bufio.NewReaderSize(r, 64<<10)}
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.bytesRead += int64(n)
	return n, err
}

func (c *countingReader) ReadByte() (byte, error) {
	b, err := c.Reader.ReadByte()
	if err == nil {
		c.bytesRead++
	}
	return b, err
}

// wholeMembersEnd returns where the last gzip member ends of those that are whole,
// one after the other from the beginning of f.
func wholeMembersEnd(f io.Reader) (int64, error) {
	var end int64
	var z gzip.Reader
	for c := newCountingReader(f); ; end = c.bytesRead {
		err := z.Reset(c)
		if err == nil {
			z.Multistream(false)
			_, err = io.Copy(io.Discard, &z)
		}
		if pathErr := new(os.PathError); errors.As(err, &pathErr) {
			return 0, err // the file cannot be read: nobody knows what is in it
		}
		if err != nil {
			return end, nil
		}
	}
}
