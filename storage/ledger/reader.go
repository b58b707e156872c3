package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
)

// A LinePosition is the position of a record.
type LinePosition struct {
	File string // name of the segment, without its directory
	Line int    // from 1
}

// String returns p as file:line.
func (p LinePosition) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// errStopReading makes forEachLine return early. Callers do not report it.
var errStopReading = errors.New("stop reading")

// Records returns the records of the ledger in a directory, in order. A line that is not a record yields
// a nil record and an error with its position, and reading continues. Records does not check the
// chain, which Verify does. It reads a ledger that is being written up to its current end, without a
// torn record there.
func Records(dir string) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		all, err := listSegments(dir)
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("ledger: no segment in %s: %w", dir, fs.ErrNotExist)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for _, s := range all {
			err := s.forEachLine(dir, func(number int, line []byte) error {
				r, err := decodeRecord(line)
				if errors.Is(err, errTorn) { // still being written, or cut off by a crash
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
			// The caller may stop after any record.
			switch {
			case errors.Is(err, errStopReading):
				return
			case err != nil && !yield(nil, fmt.Errorf("ledger: %s: %w", s.name, err)):
				return
			}
		}
	}
}
