package inflate

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// Errors of gzip members.
var (
	ErrHeader   = errors.New("inflate: the header is not that of gzip")
	ErrChecksum = errors.New("inflate: the checksum or the length is not that of the data")
)

// gzipMagic is how a gzip member begins.
const gzipMagic = "\x1f\x8b"

// Flags in the header of a gzip member (RFC 1952, section 2.3.1).
const (
	hasHeaderChecksum = 1 << 1
	hasExtraField     = 1 << 2
	hasName           = 1 << 3
	hasComment        = 1 << 4
	reservedFlags     = 0xe0
)

// A GzipReader reads gzip members, one after the other (RFC 1952, section 2.2). It ignores other data behind them,
// as browsers do, because some servers append such data. Reset makes one usable.
type GzipReader struct {
	src      *bufio.Reader
	err      error // the error that ended the reading, which Read repeats; nil: none did
	member   Reader
	checksum uint32 // of what was read of the member
	length   uint32 // of what was read of the member, modulo 1<<32
}

// Reset makes z read from src as if it were new. It reads the header of the first member. The errors are ErrHeader,
// io.ErrUnexpectedEOF, and those of src.
func (z *GzipReader) Reset(src *bufio.Reader) error {
	z.src = src
	z.err = z.openMember()
	return z.err
}

// Read implements io.Reader. Its errors are those of Reader.Read, and ErrHeader and ErrChecksum. A decoder that reads
// from z may call Read again after an error, which Read then repeats.
func (z *GzipReader) Read(p []byte) (int, error) {
	for z.err == nil {
		n, err := z.member.Read(p)
		z.checksum = crc32.Update(z.checksum, crc32.IEEETable, p[:n])
		z.length += uint32(n)
		if err == nil {
			return n, nil
		}
		if z.err = err; err == io.EOF {
			z.err = z.openNextMember()
		}
	}
	return 0, z.err
}

// openNextMember reads the trailer of a member, and the header of the next one. It returns io.EOF if none follows.
func (z *GzipReader) openNextMember() error {
	if err := z.checkTrailer(); err != nil {
		return err
	}
	magic, err := z.src.Peek(len(gzipMagic))
	switch {
	case err != nil && err != io.EOF:
		return err
	case string(magic) != gzipMagic:
		return io.EOF
	}
	return z.openMember()
}

// openMember reads the header of a member.
func (z *GzipReader) openMember() error {
	z.checksum, z.length = 0, 0
	z.member.Reset(z.src)
	var header [10]byte // magic, method, flags, and six bytes of no use here
	if _, err := io.ReadFull(z.src, header[:]); err != nil {
		return noEOF(err)
	}
	const deflate = 8
	flags := header[3]
	if string(header[:2]) != gzipMagic || header[2] != deflate || flags&reservedFlags != 0 {
		return ErrHeader
	}
	if flags&hasExtraField != 0 {
		var length [2]byte
		if _, err := io.ReadFull(z.src, length[:]); err != nil {
			return noEOF(err)
		}
		if _, err := z.src.Discard(int(binary.LittleEndian.Uint16(length[:]))); err != nil {
			return noEOF(err)
		}
	}
	for _, text := range []byte{hasName, hasComment} {
		if flags&text == 0 {
			continue
		}
		for c := byte(1); c != 0; {
			var err error
			if c, err = z.src.ReadByte(); err != nil {
				return noEOF(err)
			}
		}
	}
	if flags&hasHeaderChecksum != 0 {
		if _, err := z.src.Discard(2); err != nil {
			return noEOF(err)
		}
	}
	return nil
}

// checkTrailer reads the trailer of a member and compares it with what was read.
func (z *GzipReader) checkTrailer() error {
	var trailer [8]byte
	if _, err := io.ReadFull(z.src, trailer[:]); err != nil {
		return noEOF(err)
	}
	if binary.LittleEndian.Uint32(trailer[:]) != z.checksum || binary.LittleEndian.Uint32(trailer[4:]) != z.length {
		return ErrChecksum
	}
	return nil
}

// noEOF returns err, and io.ErrUnexpectedEOF in place of io.EOF.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
