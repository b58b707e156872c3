package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
)

// A LinePosition is where a record stands.
type LinePosition struct {
	File string // the segment's, without its directory
	Line int    // from 1
}

// String returns it as file:line.
func (p LinePosition) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// errStopReading ends the reading of a segment.
var errStopReading = errors.New("that is enough")

// Records returns the records of the ledger in a directory, in their order, with
// what was wrong with each: a line that is no record is nil, and an error. It does
// not check the chain, which Verify does. A ledger that is written to meanwhile is
// read as far as it goes; a torn record at its end is left out.
func Records(dir string) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		all, err := listSegments(dir)
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("ledger: there is none in %s: %w", dir, fs.ErrNotExist)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for _, s := range all {
			err := s.forEachLine(dir, func(number int, line []byte) error {
				r, err := decodeRecord(line)
				if errors.Is(err, errTorn) {
					return nil
				}
				if err != nil {
					err = fmt.Errorf("ledger: %v %w", LinePosition{s.name, number}, err)
				}
				if !yield(r, err) {
					return errStopReading
				}
				return nil
			})
			switch {
			case errors.Is(err, errStopReading):
				return
			case err != nil && !yield(nil, fmt.Errorf("ledger: %s: %w", s.name, err)):
				return
			}
		}
	}
}
