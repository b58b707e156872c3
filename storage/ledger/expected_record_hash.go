package ledger

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// An ExpectedRecordHash is the place and the hash of a record that a reader has kept. A ledger with
// that record still has all records before it, unchanged. Verify checks ExpectedRecordHashes.
type ExpectedRecordHash struct {
	Number int64  `json:"n"`    // number of the record
	Hash   string `json:"hash"` // its hash, in hex
}

// String returns h in the format of ParseRecordHashes.
func (h ExpectedRecordHash) String() string { return fmt.Sprintf("%d %s", h.Number, h.Hash) }

// ParseRecordHashes reads kept records: on each line a number and a hash, as verify prints
// them, or a whole record. It ignores blank lines and those that begin with #. It
// returns an error if no record is left.
func ParseRecordHashes(text []byte) (hashes []ExpectedRecordHash, err error) {
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		h, err := parseRecordHash(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		hashes = append(hashes, h)
	}
	if len(hashes) == 0 {
		return nil, errors.New("it holds nothing: expected the number of a record and its hash, " +
			"as decorum ledger verify prints them")
	}
	return hashes, nil
}

// parseRecordHash reads a line of ParseRecordHashes.
func parseRecordHash(line string) (ExpectedRecordHash, error) {
	if line[0] == '{' {
		r, err := decodeRecord([]byte(line + "\n"))
		if err != nil {
			return ExpectedRecordHash{}, err
		}
		hash, _, _ := splitHashAndRecord([]byte(line + "\n"))
		return ExpectedRecordHash{r.Number, string(hash[:])}, nil
	}
	n, hash, _ := strings.Cut(line, " ")
	h := ExpectedRecordHash{Hash: strings.ToLower(strings.TrimSpace(hash))}
	var err error
	if h.Number, err = strconv.ParseInt(n, 10, 64); err != nil || h.Number < 1 {
		return ExpectedRecordHash{}, errors.New("it does not begin with the number of a record, and is not a record")
	}
	if sum, err := hex.DecodeString(h.Hash); err != nil || len(sum) != hashSize/2 {
		return ExpectedRecordHash{}, fmt.Errorf("the hash of record %d does not have %d digits in hex", h.Number, hashSize)
	}
	return h, nil
}

// checkExpectedRecord compares the present record with the ExpectedRecordHashes of its number.
func (v *verifier) checkExpectedRecord(hash string) {
	for i, h := range v.opts.ExpectedRecordHashes {
		if h.Number != v.recordNumber || v.expectedHashesFound[i] {
			continue
		}
		v.expectedHashesFound[i] = true
		if h.Hash == hash {
			v.report.ExpectedHashesFound++
			continue
		}
		v.addFindingf("is not the one that is held, whose hash is %s: it, or what it follows, was rewritten", h.Hash)
	}
}

// reportMissingExpectedHashes reports the ExpectedRecordHashes whose records are missing.
func (v *verifier) reportMissingExpectedHashes() {
	for i, h := range v.opts.ExpectedRecordHashes {
		if !v.expectedHashesFound[i] {
			v.recordNumber = h.Number
			v.addFindingf("is held, with the hash %s, and is not there", h.Hash)
		}
	}
}
