package ledger

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Hold is the place and the hash of a record that a reader has kept. A ledger with
// that record still has all records before it, unchanged. Verify checks Holds.
type Hold struct {
	N    int64  `json:"n"`    // number of the record
	Hash string `json:"hash"` // its hash, in hex
}

// String returns h in the format of ParseHolds.
func (h Hold) String() string { return fmt.Sprintf("%d %s", h.N, h.Hash) }

// ParseHolds reads kept records: on each line a number and a hash, as verify prints
// them, or a whole record. It ignores blank lines and those that begin with #. It
// returns an error if no record is left.
func ParseHolds(text []byte) (holds []Hold, err error) {
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		h, err := parseHold(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		holds = append(holds, h)
	}
	if len(holds) == 0 {
		return nil, errors.New("it holds nothing: expected the number of a record and its hash, " +
			"as decorum ledger verify prints them")
	}
	return holds, nil
}

// parseHold reads a line of ParseHolds.
func parseHold(line string) (Hold, error) {
	if line[0] == '{' {
		r, err := decode([]byte(line + "\n"))
		if err != nil {
			return Hold{}, err
		}
		hash, _, _ := split([]byte(line + "\n"))
		return Hold{r.N, string(hash[:])}, nil
	}
	n, hash, _ := strings.Cut(line, " ")
	h := Hold{Hash: strings.ToLower(strings.TrimSpace(hash))}
	var err error
	if h.N, err = strconv.ParseInt(n, 10, 64); err != nil || h.N < 1 {
		return Hold{}, errors.New("it does not begin with the number of a record, and is not a record")
	}
	if sum, err := hex.DecodeString(h.Hash); err != nil || len(sum) != hashSize/2 {
		return Hold{}, fmt.Errorf("the hash of record %d does not have %d digits in hex", h.N, hashSize)
	}
	return h, nil
}

// checkHolds compares the present record with the Holds of its number.
func (v *verifier) checkHolds(hash string) {
	for i, h := range v.opts.Holds {
		if h.N != v.number || v.held[i] {
			continue
		}
		v.held[i] = true
		if h.Hash == hash {
			v.report.Held++
			continue
		}
		v.find("is not the one that is held, whose hash is %s: it, or what it follows, was rewritten", h.Hash)
	}
}

// endHolds reports the Holds whose records are missing.
func (v *verifier) endHolds() {
	for i, h := range v.opts.Holds {
		if !v.held[i] {
			v.number = h.N
			v.find("is held, with the hash %s, and is not there", h.Hash)
		}
	}
}
