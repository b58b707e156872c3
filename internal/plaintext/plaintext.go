// Package plaintext makes texts of others fit for a terminal, a log or an error, and reads
// lines of text.
package plaintext

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
)

// ReplaceControlChars returns s without what a terminal would act on: files are written by
// anybody. That is control characters, and those that change the direction of the text
// around them, by which one name looks like another.
func ReplaceControlChars(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// ReplaceNonPrintable leaves out of a text what would play with a terminal.
func ReplaceNonPrintable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// maxQuotedBytes is how many bytes of a value an error repeats.
const maxQuotedBytes = 100

// quotedValuePattern matches a value in an error, as %q or regexp writes it, up to the last
// quotation mark, since a pattern may contain some.
var quotedValuePattern = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|(?s:`.*`)")

// HideQuoted returns a problem with "…" for each of its values.
func HideQuoted(problem string) string {
	return ReplaceControlChars(quotedValuePattern.ReplaceAllLiteralString(problem, `"…"`))
}

// TruncateQuoted returns a text with no more than maxQuotedBytes bytes of each value in it.
func TruncateQuoted(text string) string {
	return quotedValuePattern.ReplaceAllStringFunc(text, func(value string) string {
		if len(value) <= maxQuotedBytes+2 {
			return value
		}
		return Truncate(value) + value[len(value)-1:]
	})
}

// Truncate returns the first maxQuotedBytes bytes of a text, and "…" if it is longer.
func Truncate(text string) string {
	if len(text) <= maxQuotedBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuotedBytes], "") + "…"
}

// ByteOrderMark is what some editors begin a file in UTF-8 with. It is no part of what
// the file says.
const ByteOrderMark = "\ufeff"

// DescribeScanError returns an error of a bufio.Scanner as who wrote the lines understands it.
func DescribeScanError(err error) error {
	if errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("the line is longer than %d bytes", bufio.MaxScanTokenSize)
	}
	return err
}

// maxURLBytes is how many bytes of a URL TruncateURL returns.
const maxURLBytes = 300

// TruncateURL returns the first 300 bytes of a URL.
func TruncateURL(u string) string { return u[:min(len(u), maxURLBytes)] }

// FormatBytes returns a number of bytes with the largest unit that fits, up to TiB: 1536 is
// "1.5 KiB".
func FormatBytes(n int64) string {
	x, unit := float64(n), "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if x < 1024 {
			break
		}
		x, unit = x/1024, larger
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", x, unit)
}

// MaxLineBytes is how many bytes ReadLine allows a line: a robots.txt of more than 2 MiB
// fits into a line of JSON however its bytes are escaped.
const MaxLineBytes = 16 << 20

// ErrLineTooLong is the error of ReadLine for a line of more than MaxLineBytes.
var ErrLineTooLong = fmt.Errorf("the line is longer than %d bytes", MaxLineBytes)

// ReadLine appends the next line, with its line end, to buf and returns the result. It
// reads a line of more than MaxLineBytes to its end, drops it, and returns
// ErrLineTooLong. At the end of the input the error is io.EOF, and a last line without
// a line end is returned with it.
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
