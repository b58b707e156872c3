package warc

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// DefaultMaxHeaderBytes is the default of Reader.MaxHeaderBytes: 64 KiB.
const DefaultMaxHeaderBytes = 64 << 10

// A Record is one record of a file.
type Record struct {
	Version string // the first line, such as WARC/1.1
	Header  Header
	// Offset is the offset of the record in the file, in bytes; that of its gzip member if the
	// member holds several records.
	Offset int64
	// Block is the content of the record, Content-Length bytes. It can be read until the next call
	// of Next. If the file ends early, it returns io.ErrUnexpectedEOF.
	Block io.Reader
}

// Type returns the value of WARC-Type, such as TypeResponse.
func (r *Record) Type() string { return r.Header.Get("WARC-Type") }

// A SyntaxError is an error of Reader.Next, with the position of the record.
type SyntaxError struct {
	RecordOffset int64 // offset of the record in the file, in bytes
	Err          error // the cause
}

// Error returns the offset and the cause.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("warc: record at byte %d: %v", e.RecordOffset, e.Err)
}

// Unwrap returns the cause.
func (e *SyntaxError) Unwrap() error { return e.Err }

// A Reader reads the records of a WARC file of any version, one after another. It keeps one header in memory,
// and no block. It must not be used by several goroutines at a time.
type Reader struct {
	// MaxHeaderBytes is how many bytes the header of a record may have. 0 means
	// DefaultMaxHeaderBytes.
	MaxHeaderBytes int

	file         *countingReader
	gzipReader   *gzip.Reader  // nil if the file is plain
	input        *bufio.Reader // reads the file, or the current gzip member; nil before the first Next
	memberOffset int64         // offset of the current gzip member
	recordOffset int64         // offset of the last record
	block        *blockReader  // the block of the last record
	err          error         // the error of Next, which every later call returns
}

// NewReader returns a Reader of a file, which may be plain or consist of gzip members.
func NewReader(file io.Reader) *Reader { return &Reader{file: newCountingReader(file)} }

// Next skips the rest of the last record's block, and returns the next record. It returns io.EOF at the end
// of the file, and otherwise a *SyntaxError, which may wrap an error of reading the file. After an error,
// Next always returns the same error.
func (r *Reader) Next() (*Record, error) {
	if r.err != nil {
		return nil, r.err
	}
	var err error
	// Skip what the caller has left of the last block, and the line ends after it.
	if r.block != nil {
		_, err = io.Copy(io.Discard, r.block)
	}
	if err == nil {
		r.recordOffset, err = r.skipRecordSeparators()
	}
	var record *Record
	if err == nil {
		record, err = r.readRecord()
	}
	if err != nil && err != io.EOF {
		err = &SyntaxError{r.recordOffset, err}
	}
	r.err = err
	return record, err
}

// memberOrCurrentOffset returns the offset of the current gzip member, or, in a plain file, of the next byte.
func (r *Reader) memberOrCurrentOffset() int64 {
	if r.gzipReader != nil || r.input == nil {
		return r.memberOffset
	}
	return r.file.bytesRead - int64(r.input.Buffered())
}

// skipRecordSeparators skips the line ends between two records, and returns the offset of the next record.
func (r *Reader) skipRecordSeparators() (int64, error) {
	if r.input == nil {
		if err := r.initInputReader(); err != nil {
			return 0, err
		}
	}
	for {
		c, err := r.input.ReadByte()
		switch {
		// Records may continue in the next gzip member.
		case err == io.EOF && r.gzipReader != nil:
			if err := r.nextMember(); err != nil {
				return r.memberOffset, err
			}
		case err != nil:
			return r.memberOrCurrentOffset(), err
		case c != '\r' && c != '\n':
			err := r.input.UnreadByte()
			return r.memberOrCurrentOffset(), err
		}
	}
}

// initInputReader sets up r for a plain or a compressed file, by the first two bytes.
func (r *Reader) initInputReader() error {
	magic, err := r.file.Peek(2)
	if err != nil && len(magic) == 0 {
		return err
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		r.input = bufio.NewReader(r.file)
		return nil
	}
	r.input, r.gzipReader = bufio.NewReader(nil), new(gzip.Reader)
	return r.nextMember()
}

// nextMember begins to read the next gzip member. It returns io.EOF at the end of the file.
func (r *Reader) nextMember() error {
	r.memberOffset = r.file.bytesRead
	if _, err := r.file.Peek(1); err != nil {
		return err
	}
	if err := r.gzipReader.Reset(r.file); err != nil {
		return unexpectedEOF(err)
	}
	r.gzipReader.Multistream(false)
	r.input.Reset(r.gzipReader)
	return nil
}

// unexpectedEOF returns io.ErrUnexpectedEOF in place of io.EOF, and any other error unchanged.
func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readRecord reads a version and a header, and returns the record with its block unread.
func (r *Reader) readRecord() (*Record, error) {
	budget := cmp.Or(r.MaxHeaderBytes, DefaultMaxHeaderBytes) // bytes that the header may still have
	version, err := readLine(r.input, &budget)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(version, "WARC/") {
		return nil, fmt.Errorf("begins with %.20q, not with WARC/", version)
	}
	header, err := readHeader(r.input, &budget)
	if err != nil {
		return nil, err
	}
	length, ok := header.contentLength()
	if !ok {
		return nil, fmt.Errorf("Content-Length %q is not a valid length", header.Get("Content-Length"))
	}
	r.block = &blockReader{input: r.input, remaining: length}
	return &Record{Version: version, Header: header, Offset: r.recordOffset, Block: r.block}, nil
}

// readHeader reads named fields up to the empty line. It subtracts their length from budget.
func readHeader(in *bufio.Reader, budget *int) (Header, error) {
	var h Header
	for {
		line, err := readLine(in, budget)
		if err != nil || line == "" {
			return h, err
		}
		if line[0] == ' ' || line[0] == '\t' { // continues the field before (RFC 822, section 3.1.1)
			if len(h) == 0 {
				return nil, fmt.Errorf("%.20q is a continuation line without a field before it", line)
			}
			h[len(h)-1].Value += " " + strings.Trim(line, " \t")
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("%.40q is not a named field: it has no colon", line)
		}
		h = append(h, Field{name, strings.Trim(value, " \t")})
	}
}

// errHeaderTooLong is returned for a header of more than Reader.MaxHeaderBytes.
var errHeaderTooLong = errors.New("the header is longer than Reader.MaxHeaderBytes")

// readLine returns a line without its end, and subtracts its length from budget. It returns errHeaderTooLong
// if budget is used up.
func readLine(in *bufio.Reader, budget *int) (string, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if *budget -= len(part); *budget < 0 {
			return "", errHeaderTooLong
		}
		line = append(line, part...)
		switch err {
		case nil:
			return strings.TrimSuffix(string(line[:len(line)-1]), "\r"), nil
		case bufio.ErrBufferFull:
		default:
			return "", unexpectedEOF(err)
		}
	}
}

// A blockReader reads the block of a record.
type blockReader struct {
	input     io.Reader
	remaining int64 // bytes of the block that are unread
}

// Read implements io.Reader. It returns io.ErrUnexpectedEOF if the input ends before the block.
func (b *blockReader) Read(p []byte) (int, error) {
	if b.remaining == 0 {
		return 0, io.EOF
	}
	n, err := b.input.Read(p[:min(int64(len(p)), b.remaining)])
	if b.remaining -= int64(n); b.remaining > 0 {
		return n, unexpectedEOF(err)
	}
	return n, nil
}

// A countingReader counts the bytes that were read. It is an io.ByteReader, so that gzip reads no byte beyond
// the end of a member.
type countingReader struct {
	*bufio.Reader
	bytesRead int64
}

// newCountingReader returns a countingReader with a buffer of 64 KiB.
func newCountingReader(r io.Reader) *countingReader {
	return &countingReader{Reader: bufio.NewReaderSize(r, 64<<10)}
}

// Read implements io.Reader.
func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.bytesRead += int64(n)
	return n, err
}

// ReadByte implements io.ByteReader.
func (c *countingReader) ReadByte() (byte, error) {
	b, err := c.Reader.ReadByte()
	if err == nil {
		c.bytesRead++
	}
	return b, err
}
