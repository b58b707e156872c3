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

// DefaultMaxHeaderBytes is Reader.MaxHeaderBytes where it is 0: 64 KiB.
const DefaultMaxHeaderBytes = 64 << 10

// A Record is one record of a file.
type Record struct {
	Version string // as in WARC/1.1
	Header  Header
	// Offset is where the record begins in the file; where a gzip member holds
	// more than one record, where the member does.
	Offset int64
	// Block is the record's content, Content-Length bytes. It can be read until
	// Next is called. Its end without all of them is io.ErrUnexpectedEOF.
	Block io.Reader
}

// Type returns the WARC-Type.
func (r *Record) Type() string { return r.Header.Get("WARC-Type") }

// A SyntaxError says where a file is no WARC file, or no longer one.
type SyntaxError struct {
	RecordOffset int64 // of the record
	Err          error
}

// Error says it.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("warc: record at byte %d: %v", e.RecordOffset, e.Err)
}

// Unwrap returns the cause.
func (e *SyntaxError) Unwrap() error { return e.Err }

// A Reader reads the records of a WARC file, of any version, one after the
// other. It holds one header in memory and no block.
type Reader struct {
	// MaxHeaderBytes is how many bytes the header of a record may have. Default
	// DefaultMaxHeaderBytes.
	MaxHeaderBytes int

	file         *countingReader
	gzipReader   *gzip.Reader  // nil: the file is plain
	input        *bufio.Reader // of the file, or of the gzip member
	memberOffset int64         // of the member
	recordOffset int64         // where the last record begins
	block        *blockReader  // its block
	err          error         // of the last Next, if it failed
}

// NewReader returns a Reader of a file, plain or of gzip members.
func NewReader(file io.Reader) *Reader { return &Reader{file: newCountingReader(file)} }

// Next returns the next record, passing by what is left of the last one's
// block, and io.EOF at the end of the file. All else that is wrong with the file
// is a *SyntaxError, and an error of reading it is wrapped in one; after it,
// Next returns it again.
func (r *Reader) Next() (*Record, error) {
	if r.err != nil {
		return nil, r.err
	}
	var err error
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

func (r *Reader) memberOrCurrentOffset() int64 {
	if r.gzipReader != nil || r.input == nil {
		return r.memberOffset
	}
	return r.file.bytesRead - int64(r.input.Buffered())
}

// skipRecordSeparators goes to where the next record begins, past the ends of lines that stand
// there, and returns its offset.
func (r *Reader) skipRecordSeparators() (int64, error) {
	if r.input == nil {
		if err := r.initInputReader(); err != nil {
			return 0, err
		}
	}
	for {
		c, err := r.input.ReadByte()
		switch {
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

// initInputReader finds out what kind of file it is.
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

// nextMember goes to the next gzip member; io.EOF if there is none.
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

// unexpectedEOF returns err, and io.ErrUnexpectedEOF where it is an end.
func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *Reader) readRecord() (*Record, error) {
	budget := cmp.Or(r.MaxHeaderBytes, DefaultMaxHeaderBytes)
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
		return nil, fmt.Errorf("Content-Length %q is no length", header.Get("Content-Length"))
	}
	r.block = &blockReader{input: r.input, remaining: length}
	return &Record{Version: version, Header: header, Offset: r.recordOffset, Block: r.block}, nil
}

// readHeader reads named fields up to the empty line.
func readHeader(in *bufio.Reader, budget *int) (Header, error) {
	var h Header
	for {
		line, err := readLine(in, budget)
		if err != nil || line == "" {
			return h, err
		}
		if line[0] == ' ' || line[0] == '\t' { // the field goes on (RFC 822, 3.1.1)
			if len(h) == 0 {
				return nil, fmt.Errorf("%.20q goes on with no field", line)
			}
			h[len(h)-1].Value += " " + strings.Trim(line, " \t")
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("%.40q is no named field", line)
		}
		h = append(h, Field{name, strings.Trim(value, " \t")})
	}
}

var errHeaderTooLong = errors.New("the header is longer than Reader.MaxHeader")

// readLine returns a line without its end, and takes its length off room.
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

// A blockReader reads the content of a record.
type blockReader struct {
	input     io.Reader
	remaining int64
}

// Read is part of io.Reader.
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
