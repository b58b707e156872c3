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

// How every line begins. The hash is of what comes after it.
const (
	hashStart = `{"hash":"`
	hashEnd   = `",`
	hashSize  = 2 * sha256.Size
	headSize  = len(hashStart) + hashSize + len(hashEnd)
	placeSize = headSize + 80 // and number and time
)

// A link is the end of a chain: the next record follows it.
type link struct {
	n    int64
	hash [hashSize]byte // in hex
}

// origin is what the first record follows.
func origin() (l link) {
	for i := range l.hash {
		l.hash[i] = '0'
	}
	return l
}

// next returns the hash of a line that follows l, of which rest is what comes
// after its own hash.
func (l link) next(rest []byte) (hash [hashSize]byte) {
	h := sha256.New()
	h.Write(l.hash[:])
	h.Write(rest)
	var sum [sha256.Size]byte
	hex.Encode(hash[:], h.Sum(sum[:0]))
	return hash
}

// append appends the line of a record that follows l, and returns the new end. body is
// what Record.encode returns.
func (l link) append(b []byte, now time.Time, body []byte) ([]byte, link) {
	start := len(b)
	b = append(b, hashStart...)
	b = append(b, l.hash[:]...)
	b = append(b, hashEnd...)
	b = append(b, `"n":`...)
	b = strconv.AppendInt(b, l.n+1, 10)
	b = append(b, `,"time":"`...)
	b = now.AppendFormat(b, time.RFC3339Nano)
	b = append(b, `",`...)
	b = append(b, body[1:]...) // without its brace, with its line end
	line := b[start:]
	end := link{l.n + 1, l.next(line[headSize : len(line)-1])}
	copy(line[len(hashStart):], end.hash[:])
	return b, end
}

// What is wrong with a line.
var (
	errNotRecord = errors.New("is no record of a ledger")
	errTorn      = errors.New("has no line end")
)

// split returns the hash that a line states and what it is a hash of. A line has
// its line end.
func split(line []byte) (hash [hashSize]byte, rest []byte, err error) {
	rest, whole := bytes.CutSuffix(line, []byte("\n"))
	switch {
	case !whole:
		return hash, nil, errTorn
	case len(rest) < headSize || !bytes.HasPrefix(rest, []byte(hashStart)) ||
		string(rest[headSize-len(hashEnd):headSize]) != hashEnd:
		return hash, nil, errNotRecord
	}
	copy(hash[:], rest[len(hashStart):])
	return hash, rest[headSize:], nil
}

// decode reads a line, whatever its hash.
func decode(line []byte) (*Record, error) {
	if _, _, err := split(line); err != nil {
		return nil, err
	}
	r := new(Record)
	if err := json.Unmarshal(line, r); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotRecord, err)
	}
	if r.N < 1 || r.kinds() != 1 {
		return nil, errNotRecord
	}
	return r, nil
}

// follows reads a line that must come next after l.
func (l link) follows(line []byte) (*Record, link, error) {
	r, err := decode(line)
	if err != nil {
		return nil, l, err
	}
	hash, rest, _ := split(line)
	if r.N != l.n+1 {
		return r, l, fmt.Errorf("is record %d where %d should be", r.N, l.n+1)
	}
	if hash != l.next(rest) {
		return r, l, errors.New("does not have the hash that it states")
	}
	return r, link{r.N, hash}, nil
}
