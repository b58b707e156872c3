package plaintext

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// ByteOrderMark is the prefix of a UTF-8 file that some editors write. It is not part of the text.
const ByteOrderMark = "\ufeff"

// DescribeScanError returns an error of a bufio.Scanner in terms of the text: a too long line, with
// the limit.
func DescribeScanError(err error) error {
	if errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("the line is longer than %d bytes", bufio.MaxScanTokenSize)
	}
	return err
}

// MaxLineBytes is the longest line that ReadLine returns: a robots.txt of more than 2 MiB fits into
// a line of JSON however its bytes are escaped.
const MaxLineBytes = 16 << 20

// ErrLineTooLong is the error of ReadLine for a line of more than MaxLineBytes.
var ErrLineTooLong = fmt.Errorf("the line is longer than %d bytes", MaxLineBytes)

// ReadLine appends the next line, including its line end, to buf and returns the result. It reads a
// line of more than MaxLineBytes to its end, drops it, and returns ErrLineTooLong. At the end of
// the input it returns io.EOF, together with a last line that has no line end.
func ReadLine(r *bufio.Reader, buf []byte) ([]byte, error) {
	isTooLong := false
	for {
		part, err := r.ReadSlice('\n')
		if len(buf)+len(part) > MaxLineBytes {
			isTooLong, part = true, nil
		}
		buf = append(buf, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil && isTooLong, errors.Is(err, io.EOF) && isTooLong:
			return buf[:0], ErrLineTooLong
		}
		return buf, err
	}
}
