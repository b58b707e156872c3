package inflate

import "math/bits"

// An entry is what a table says of the code that the next bits begin with. Its lowest byte has the number of bits
// to consume: those of the code, and extra bits that belong to it. The length of the code alone is in bits 8 to
// 11, and the value from bit 16 on: a literal byte, or the least length or distance, to which the
// extra bits are added.
type entry uint32

// Flags of an entry. Without one, it is a length or a distance.
const (
	isLiteral    entry = 1 << 31
	isUnusual    entry = 1 << 15 // one of the following, or no code at all
	isEndOfBlock entry = 1 << 14
	isSubtable   entry = 1 << 13 // value is the index of a table for longer codes, bits 8 to 11 its number of bits
)

// numBits returns how many bits to consume.
func (e entry) numBits() uint { return uint(e & 0xff) }

// codeLen returns how many of these bits are the code.
func (e entry) codeLen() uint { return uint(e >> 8 & 0xf) }

// value returns the value without extra bits.
func (e entry) value() int { return int(e &^ isLiteral >> 16) }

// Limits of RFC 1951, section 3.2.7.
const (
	maxCodeLen       = 15
	maxLitLenSymbols = 286
	maxDistSymbols   = 30
	numCodeLenCodes  = 19
	endOfBlock       = 256
)

// Bits of input that select an entry in the first part of a table. Most codes are not longer.
const (
	litLenBits  = 10
	distBits    = 8
	codeLenBits = 7
)

// litLenEntries, distEntries and codeLenEntries are the entries of symbols, without the lengths of codes.
var (
	litLenEntries  = newLitLenEntries()
	distEntries    = newDistEntries()
	codeLenEntries = newCodeLenEntries()
)

// newLitLenEntries returns the entries of literals, the end of a block, and lengths.
func newLitLenEntries() (entries [maxLitLenSymbols]entry) {
	for i := range endOfBlock {
		entries[i] = isLiteral | entry(i)<<16
	}
	entries[endOfBlock] = isUnusual | isEndOfBlock
	base := 3
	for i := range 28 {
		extra := max(0, i/4-1)
		entries[endOfBlock+1+i] = entry(base)<<16 | entry(extra)
		base += 1 << extra
	}
	entries[maxLitLenSymbols-1] = 258 << 16
	return entries
}

// newDistEntries returns the entries of distances.
func newDistEntries() (entries [maxDistSymbols]entry) {
	base := 1
	for i := range entries {
		extra := max(0, i/2-1)
		entries[i] = entry(base)<<16 | entry(extra)
		base += 1 << extra
	}
	return entries
}

// newCodeLenEntries returns the entries of the codes for lengths of codes.
func newCodeLenEntries() (entries [numCodeLenCodes]entry) {
	for i := range entries {
		entries[i] = entry(i) << 16
	}
	return entries
}

// buildTable builds the table of a Huffman code in t and returns it. lengths has the length of the code of each
// symbol, 0 for symbols without one, and symbols their entries; a symbol beyond them is invalid. The first
// 1<<rootBits entries are for the next rootBits bits; tables for longer codes follow. buildTable returns false if
// the lengths make no code: like zlib, it accepts one with unused bits only if that is a single code of one bit.
// Nothing can be decoded with a table without codes.
func buildTable(t []entry, lengths []uint8, symbols []entry, rootBits uint) ([]entry, bool) {
	// Count the codes of each length, and check that they are as many as there can be.
	var count [maxCodeLen + 1]int
	maxLen := uint(0)
	for _, n := range lengths {
		count[n]++
		maxLen = max(maxLen, uint(n))
	}
	count[0] = 0
	unused := 1
	for _, n := range count[1 : maxLen+1] {
		if unused = unused<<1 - n; unused < 0 {
			return t, false
		}
	}
	isComplete := unused == 0 && maxLen > 0
	if !isComplete && maxLen > 1 {
		return t, false
	}
	t = append(t[:0], make([]entry, 1<<rootBits)...)
	if !isComplete {
		for i := range t {
			t[i] = isUnusual
		}
	}
	// Sort the symbols by the lengths of their codes, and then by value: the order of the codes.
	var next [maxCodeLen + 1]int
	for i := 1; i < maxCodeLen; i++ {
		next[i+1] = next[i] + count[i]
	}
	var sorted [maxLitLenSymbols + 2]uint16
	numCodes := next[maxCodeLen] + count[maxCodeLen]
	for symbol, n := range lengths {
		if n > 0 {
			sorted[next[n]] = uint16(symbol)
			next[n]++
		}
	}
	// Enter each code wherever its bits, which arrive in reverse order, are the lowest bits of the index.
	code, lastLen := uint(0), uint(0)
	var subtable []entry
	subtableRoot := -1 // the root bits of the codes in subtable
	for _, symbol := range sorted[:numCodes] {
		n := uint(lengths[symbol])
		code <<= n - lastLen
		lastLen = n
		reversed := uint(bits.Reverse16(uint16(code)) >> (16 - n))
		e := isUnusual
		if int(symbol) < len(symbols) {
			e = symbols[symbol]
		}
		e += entry(n<<8 | n)
		code++
		if n <= rootBits {
			for i := reversed; i < 1<<rootBits; i += 1 << n {
				t[i] = e
			}
			count[n]--
			continue
		}
		if root := int(reversed & (1<<rootBits - 1)); root != subtableRoot {
			subtableRoot = root
			size := subtableBits(&count, n, rootBits, maxLen)
			t[root] = isUnusual | isSubtable | entry(len(t))<<16 | entry(size)<<8
			start := len(t)
			t = append(t, make([]entry, 1<<size)...)
			subtable = t[start:]
		}
		for i := reversed >> rootBits; i < uint(len(subtable)); i += 1 << (n - rootBits) {
			subtable[i] = e
		}
		count[n]--
	}
	return t, true
}

// subtableBits returns the number of bits of a table that begins with a code of n bits: enough for the codes that
// share its first rootBits bits. count has the codes of each length that are not in a table yet.
func subtableBits(count *[maxCodeLen + 1]int, n, rootBits, maxLen uint) uint {
	unused := 1 << (n - rootBits)
	for ; n < maxLen; n++ {
		if unused -= count[n]; unused <= 0 {
			break
		}
		unused <<= 1
	}
	return n - rootBits
}
