package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Every line begins with hashStart, the hash and hashEnd. The hash covers the bytes after these.
const (
	hashStart         = `{"hash":"`
	hashEnd           = `",`
	hashSize          = 2 * sha256.Size
	linePrefixSize    = len(hashStart) + hashSize + len(hashEnd)
	maxLinePrefixSize = linePrefixSize + 80 // with number and time
)

// A chainHead is the last record of a chain: its number and its hash.
type chainHead struct {
	number int64
	hash   [hashSize]byte // in hex
}

// genesisHead returns the head of an empty chain: number 0, and 64 zeros.
func genesisHead() (l chainHead) {
	for i := range l.hash {
		l.hash[i] = '0'
	}
	return l
}

// nextHash returns the hash of the line that follows l. rest is the line after its own hash.
func (l chainHead) nextHash(rest []byte) (hash [hashSize]byte) {
	h := sha256.New()
	h.Write(l.hash[:])
	h.Write(rest)
	var sum [sha256.Size]byte
	hex.Encode(hash[:], h.Sum(sum[:0]))
	return hash
}

// appendRecord appends the line of the record that follows l to b, and returns the new head. body is
// what Record.encodeLine returns.
func (l chainHead) appendRecord(b []byte, now time.Time, body []byte) ([]byte, chainHead) {
	start := len(b)
	b = append(b, hashStart...)
	b = append(b, l.hash[:]...) // overwritten below
	b = append(b, hashEnd...)
	b = append(b, `"n":`...)
	b = strconv.AppendInt(b, l.number+1, 10)
	b = append(b, `,"time":"`...)
	b = now.AppendFormat(b, time.RFC3339Nano)
	b = append(b, `",`...)
	b = append(b, body[1:]...) // without the first brace, with the line end
	line := b[start:]
	head := chainHead{l.number + 1, l.nextHash(line[linePrefixSize : len(line)-1])}
	copy(line[len(hashStart):], head.hash[:])
	return b, head
}

// Errors of lines, worded to follow the position of a line.
var (
	errNotRecord = errors.New("is not a ledger record")
	errTorn      = errors.New("has no line end")
)

// splitHashAndRecord returns the hash that a line states, and the bytes that the hash covers, without
// the line end. It returns errTorn if the line end is missing.
func splitHashAndRecord(line []byte) (hash [hashSize]byte, rest []byte, err error) {
	rest, complete := bytes.CutSuffix(line, []byte("\n"))
	switch {
	case !complete:
		return hash, nil, errTorn
	case len(rest) < linePrefixSize || !bytes.HasPrefix(rest, []byte(hashStart)) ||
		string(rest[linePrefixSize-len(hashEnd):linePrefixSize]) != hashEnd:
		return hash, nil, errNotRecord
	}
	copy(hash[:], rest[len(hashStart):])
	return hash, rest[linePrefixSize:], nil
}

// decodeRecord decodes a line. It does not check the hash.
func decodeRecord(line []byte) (*Record, error) {
	if _, _, err := splitHashAndRecord(line); err != nil {
		return nil, err
	}
	r := new(Record)
	if err := json.Unmarshal(line, r); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotRecord, err)
	}
	if r.Number < 1 || r.countSetKinds() != 1 {
		return nil, errNotRecord
	}
	return r, nil
}

// decodeAndVerifyNext decodes a line, and returns an error unless the record follows l.
func (l chainHead) decodeAndVerifyNext(line []byte) (*Record, chainHead, error) {
	r, err := decodeRecord(line)
	if err != nil {
		return nil, l, err
	}
	hash, rest, _ := splitHashAndRecord(line)
	if r.Number != l.number+1 {
		return r, l, fmt.Errorf("is record %d where %d should be", r.Number, l.number+1)
	}
	if hash != l.nextHash(rest) {
		return r, l, errors.New("does not have the hash that it states")
	}
	return r, chainHead{r.Number, hash}, nil
}
