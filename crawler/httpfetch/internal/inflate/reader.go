package inflate

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// ErrCorrupt is the error of input that is not DEFLATE data.
var ErrCorrupt = errors.New("inflate: the input is corrupt")

const (
	windowSize = 32 << 10 // how far a distance leads back at most
	// maxStepLen is the most that a step writes: two literals and the longest copy, eight bytes at a time.
	maxStepLen = 2 + 258 + 7
	// bufferSize leaves room for the window, half as much that Read has not returned, and a step.
	bufferSize = windowSize + windowSize/2 + maxStepLen
)

// A blockKind is what a Reader reads next.
type blockKind uint8

const (
	blockHeader  blockKind = iota // the header of a block
	storedBlock                   // the rest of a stored block
	huffmanBlock                  // the rest of a compressed block
	endOfData                     // nothing
)

// A Reader decodes DEFLATE data. Reset makes one usable.
type Reader struct {
	src *bufio.Reader
	err error // what Read returns once all output is read

	// bits has numBits bits that are taken from src and not decoded, the lowest bit first: fewer than 8
	// between two symbols, so that all bytes behind the data are left in src.
	bits    uint64
	numBits uint

	next        blockKind
	isLastBlock bool
	storedLeft  int     // bytes left of a stored block
	litLen      []entry // tables of the block
	dist        []entry
	litLenSpace []entry // memory of the tables of blocks with their own codes
	distSpace   []entry

	out     [bufferSize]byte // output: the window, and what Read has not returned
	written int              // end of the output in out
	read    int              // end of what Read has returned
}

// Reset makes r read from src as if it were new. Read takes no more from src than belongs to the data.
func (r *Reader) Reset(src *bufio.Reader) {
	r.src, r.err = src, nil
	r.bits, r.numBits = 0, 0
	r.next, r.isLastBlock = blockHeader, false
	r.written, r.read = 0, 0
}

// Read implements io.Reader. Its errors are ErrCorrupt, io.ErrUnexpectedEOF, and those of the source.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for r.read == r.written {
		if r.err != nil {
			return 0, r.err
		}
		r.makeRoom()
		r.err = r.decode()
	}
	n := copy(p, r.out[r.read:r.written])
	r.read += n
	return n, nil
}

// makeRoom moves the window to the start of out if there is no room behind it. Read must have returned all output.
func (r *Reader) makeRoom() {
	if r.written < bufferSize-maxStepLen {
		return
	}
	copy(r.out[:], r.out[r.written-windowSize:r.written])
	r.written, r.read = windowSize, windowSize
}

// decode decodes until there is no more room in out. It returns io.EOF at the end of the data.
func (r *Reader) decode() error {
	for r.written < bufferSize-maxStepLen {
		var err error
		switch r.next {
		case blockHeader:
			err = r.readBlockHeader()
		case storedBlock:
			err = r.copyStored()
		case huffmanBlock:
			err = r.decodeBlock()
		default:
			return io.EOF
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endBlock ends a block.
func (r *Reader) endBlock() {
	r.next = blockHeader
	if r.isLastBlock {
		r.next = endOfData
	}
}

// need takes bytes from src until there are n bits, at most 32. It takes no more than it needs.
func (r *Reader) need(n uint) error {
	for r.numBits < n {
		b, err := r.src.ReadByte()
		if err != nil {
			return noEOF(err)
		}
		r.bits |= uint64(b) << r.numBits
		r.numBits += 8
	}
	return nil
}

// take removes the lowest n bits from bits and returns them.
func (r *Reader) take(n uint) uint {
	v := uint(r.bits & (1<<n - 1))
	r.bits >>= n
	r.numBits -= n
	return v
}

// readBits reads n bits, at most 32.
func (r *Reader) readBits(n uint) (uint, error) {
	if err := r.need(n); err != nil {
		return 0, err
	}
	return r.take(n), nil
}

// readBlockHeader reads the header of a block, and the tables of its codes.
func (r *Reader) readBlockHeader() error {
	h, err := r.readBits(3)
	if err != nil {
		return err
	}
	r.isLastBlock = h&1 != 0
	switch h >> 1 {
	case 0:
		return r.readStoredHeader()
	case 1:
		r.next, r.litLen, r.dist = huffmanBlock, fixedLitLen, fixedDist
		return nil
	case 2:
		r.next = huffmanBlock
		return r.readTables()
	}
	return ErrCorrupt
}

// readStoredHeader reads the length of a stored block, which begins at a byte.
func (r *Reader) readStoredHeader() error {
	r.take(r.numBits % 8)
	length, err := r.readBits(32)
	if err != nil {
		return err
	}
	if r.storedLeft = int(length & 0xffff); uint(r.storedLeft) != ^length>>16&0xffff {
		return ErrCorrupt
	}
	r.next = storedBlock
	if r.storedLeft == 0 { // as after each flush of the sender
		r.endBlock()
	}
	return nil
}

// copyStored copies from a stored block what there is room for.
func (r *Reader) copyStored() error {
	n, err := r.src.Read(r.out[r.written:min(r.written+r.storedLeft, bufferSize-maxStepLen)])
	r.written += n
	if r.storedLeft -= n; r.storedLeft == 0 {
		r.endBlock()
		return nil
	}
	return noEOF(err)
}

// codeLenOrder is the order of the lengths of codes for lengths of codes.
var codeLenOrder = [numCodeLenCodes]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// readTables reads the codes of a block (RFC 1951, section 3.2.7).
func (r *Reader) readTables() error {
	h, err := r.readBits(14)
	if err != nil {
		return err
	}
	numLitLen, numDist, numCodeLen := int(h&31)+257, int(h>>5&31)+1, int(h>>10)+4
	if numLitLen > maxLitLenSymbols || numDist > maxDistSymbols {
		return ErrCorrupt
	}
	// Read the codes in which the lengths of the other codes are written.
	var codeLens [numCodeLenCodes]uint8
	for _, symbol := range codeLenOrder[:numCodeLen] {
		n, err := r.readBits(3)
		if err != nil {
			return err
		}
		codeLens[symbol] = uint8(n)
	}
	table, ok := buildTable(r.litLenSpace, codeLens[:], codeLenEntries[:], codeLenBits)
	if !ok {
		return ErrCorrupt
	}
	r.litLenSpace = table
	// Read the lengths of the other codes.
	var lengths [maxLitLenSymbols + maxDistSymbols]uint8
	for i := 0; i < numLitLen+numDist; {
		e, err := r.readEntry(table, codeLenBits)
		if err != nil {
			return err
		}
		n := e.value()
		if n < 16 {
			lengths[i] = uint8(n)
			i++
			continue
		}
		var repeated uint8
		base, extra := 3, uint(2)
		switch n {
		case 16:
			if i == 0 {
				return ErrCorrupt
			}
			repeated = lengths[i-1]
		case 17:
			extra = 3
		default:
			base, extra = 11, 7
		}
		more, err := r.readBits(extra)
		if err != nil {
			return err
		}
		end := i + base + int(more)
		if end > numLitLen+numDist {
			return ErrCorrupt
		}
		for ; i < end; i++ {
			lengths[i] = repeated
		}
	}
	if r.litLenSpace, ok = buildTable(r.litLenSpace, lengths[:numLitLen], litLenEntries[:], litLenBits); !ok {
		return ErrCorrupt
	}
	if r.distSpace, ok = buildTable(r.distSpace, lengths[numLitLen:numLitLen+numDist], distEntries[:], distBits); !ok {
		return ErrCorrupt
	}
	r.litLen, r.dist = r.litLenSpace, r.distSpace
	return nil
}

// fixedLitLen and fixedDist are the tables of blocks with the codes of RFC 1951, section 3.2.6.
var fixedLitLen, fixedDist = newFixedTables()

func newFixedTables() (litLen, dist []entry) {
	var lengths [288]uint8
	for i := range lengths {
		switch {
		case i < 144, i >= 280:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		default:
			lengths[i] = 7
		}
	}
	litLen, _ = buildTable(nil, lengths[:], litLenEntries[:], litLenBits)
	for i := range 32 {
		lengths[i] = 5
	}
	dist, _ = buildTable(nil, lengths[:32], distEntries[:], distBits)
	return litLen, dist
}

// readEntry reads a code, without extra bits, and returns its entry.
func (r *Reader) readEntry(table []entry, rootBits uint) (entry, error) {
	for {
		// Bits that are not there yet are 0: the entry is the right one if there are as many as its code has.
		e := table[r.bits&(1<<rootBits-1)]
		if e&isSubtable != 0 {
			e = table[uint64(e.value())+r.bits>>rootBits&(1<<e.codeLen()-1)]
		}
		if n := max(1, e.codeLen()); n <= r.numBits {
			if e&isUnusual != 0 && e&isEndOfBlock == 0 {
				return 0, ErrCorrupt
			}
			r.take(n)
			return e, nil
		}
		if err := r.need(r.numBits + 1); err != nil {
			return 0, err
		}
	}
}

// decodeBlock decodes a compressed block until there is no more room in out.
func (r *Reader) decodeBlock() error {
	for r.next == huffmanBlock && r.written < bufferSize-maxStepLen {
		in, _ := r.src.Peek(r.src.Buffered()) // cannot fail: it is buffered
		if len(in) < maxStepInput {
			if err := r.decodeSlow(); err != nil {
				return err
			}
			continue
		}
		taken, err := r.decodeFast(in)
		_, _ = r.src.Discard(taken) // likewise
		if err != nil {
			return err
		}
	}
	return nil
}

// decodeSlow decodes a symbol of a compressed block.
func (r *Reader) decodeSlow() error {
	e, err := r.readEntry(r.litLen, litLenBits)
	switch {
	case err != nil:
		return err
	case e&isLiteral != 0:
		r.out[r.written] = byte(e >> 16)
		r.written++
		return nil
	case e&isEndOfBlock != 0:
		r.endBlock()
		return nil
	}
	more, err := r.readBits(e.numBits() - e.codeLen())
	if err != nil {
		return err
	}
	length := e.value() + int(more)
	if e, err = r.readEntry(r.dist, distBits); err != nil {
		return err
	}
	if more, err = r.readBits(e.numBits() - e.codeLen()); err != nil {
		return err
	}
	distance := e.value() + int(more)
	if distance > r.written {
		return ErrCorrupt
	}
	for range length {
		r.out[r.written] = r.out[r.written-distance]
		r.written++
	}
	return nil
}

// maxStepInput is how many bytes of input a step of decodeFast loads at most.
const maxStepInput = 16

// decodeFast decodes symbols from in, which follows bits, while maxStepInput bytes are left of it and while there is
// room in out. It returns how many bytes of in it has taken.
func (r *Reader) decodeFast(in []byte) (taken int, err error) {
	litLenRoot, distRoot := (*[1 << litLenBits]entry)(r.litLen), (*[1 << distBits]entry)(r.dist)
	hold, numBits := r.bits, r.numBits // beyond numBits, hold may have bits that are loaded again
	out, at, pos := &r.out, r.written, 0
	for r.next == huffmanBlock && pos <= len(in)-maxStepInput && at < bufferSize-maxStepLen {
		// Load at least 56 bits, and decode up to two literals of 10 bits. 36 bits are left for a third one,
		// or for a length.
		hold |= binary.LittleEndian.Uint64(in[pos:]) << (numBits & 63)
		pos += int(63-numBits) >> 3
		numBits |= 56
		e := litLenRoot[hold%(1<<litLenBits)]
		for i := 0; i < 2 && e&isLiteral != 0; i++ {
			out[at] = byte(e >> 16)
			at++
			hold >>= e & 63
			numBits -= uint(e & 63)
			e = litLenRoot[hold%(1<<litLenBits)]
		}
		if e&isSubtable != 0 {
			e = r.litLen[uint64(e.value())+hold>>litLenBits%(1<<e.codeLen())]
		}
		extra := hold % (1 << (e & 63))
		hold >>= e & 63
		numBits -= uint(e & 63)
		switch {
		case e&isLiteral != 0:
			out[at] = byte(e >> 16)
			at++
			continue
		case e&isEndOfBlock != 0:
			r.endBlock()
			continue
		case e&isUnusual != 0:
			return 0, ErrCorrupt
		}
		length := e.value() + int(extra>>(e>>8&15))

		// A distance has up to 28 bits.
		if numBits < 28 {
			hold |= binary.LittleEndian.Uint64(in[pos:]) << (numBits & 63)
			pos += int(63-numBits) >> 3
			numBits |= 56
		}
		e = distRoot[hold%(1<<distBits)]
		if e&isSubtable != 0 {
			e = r.dist[uint64(e.value())+hold>>distBits%(1<<e.codeLen())]
		}
		extra = hold % (1 << (e & 63))
		hold >>= e & 63
		numBits -= uint(e & 63)
		distance := e.value() + int(extra>>(e>>8&15))
		from, end := at-distance, at+length
		if e&isUnusual != 0 || from < 0 {
			return 0, ErrCorrupt
		}
		// Copy eight bytes at a time, beyond the end: the next step writes over these. Bytes that are copied again
		// are copied one by one.
		if distance >= 8 {
			for ; at < end; at, from = at+8, from+8 {
				binary.LittleEndian.PutUint64(out[at:at+8], binary.LittleEndian.Uint64(out[from:from+8]))
			}
		} else {
			for ; at < end; at, from = at+1, from+1 {
				out[at] = out[from]
			}
		}
		at = end
	}
	// Leave whole bytes in the source: they may not belong to the data.
	pos -= int(numBits / 8)
	numBits %= 8
	r.bits, r.numBits, r.written = hold%(1<<numBits), numBits, at
	return pos, nil
}
