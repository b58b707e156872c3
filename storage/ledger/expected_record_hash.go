package ledger

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// An ExpectedRecordHash is the number and the hash of a record that a reader has kept. A ledger that has
// this record has all records before it unchanged. See VerifyOptions.ExpectedRecordHashes.
type ExpectedRecordHash struct {
	Number int64  `json:"n"`
	Hash   string `json:"hash"` // in hex
}

// String returns h in the format of ParseRecordHashes.
func (h ExpectedRecordHash) String() string { return fmt.Sprintf("%d %s", h.Number, h.Hash) }

// ParseRecordHashes parses kept records: each line has a number and a hash, as verify prints them, or is a
// record. It ignores blank lines and lines that begin with #. It returns an error if there are no
// others.
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
		return nil, errors.New("it is empty: expected the number of a record and its hash, " +
			"as decorum ledger verify prints them")
	}
	return hashes, nil
}

// parseRecordHash parses one line, which is not blank.
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
		return ExpectedRecordHash{}, fmt.Errorf("the hash of record %d does not have %d digits in hex", h.Number,
			hashSize)
	}
	return h, nil
}

// checkExpectedRecord compares the hash of the current record with the expected ones of its number.
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
		v.addFindingf("is not the kept record, whose hash is %s: it, or a record before it, was rewritten", h.Hash)
	}
}

// reportMissingExpectedHashes adds a finding for each expected record that the ledger lacks.
func (v *verifier) reportMissingExpectedHashes() {
	for i, h := range v.opts.ExpectedRecordHashes {
		if !v.expectedHashesFound[i] {
			v.recordNumber = h.Number
			v.addFindingf("was kept with the hash %s, and is missing", h.Hash)
		}
	}
}
