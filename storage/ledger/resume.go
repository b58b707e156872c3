package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// resume goes on with what is in the directory, and begins the run.
func (l *Ledger) resume() error {
	l.end = origin()
	all, err := segments(l.cfg.Dir)
	if err != nil {
		return err
	}
	var left *Recovery // nil: nothing was
	switch {
	case len(all) == 0:
		err = l.begin(1, nil)
	case all[len(all)-1].packed:
		left, err = l.after(all[len(all)-1])
	default:
		left, err = l.goOn(all)
	}
	if err != nil {
		return err
	}
	if left != nil {
		if l.cfg.Recovered != nil {
			l.cfg.Recovered(left.CutBytes)
		}
		if err := l.write(&Record{Recovery: left}); err != nil {
			return err
		}
	}
	return errors.Join(l.write(&Record{Run: &l.cfg.Run}), l.tail.Sync(), disk.SyncDir(l.cfg.Dir))
}

// goOn opens the last segment, which is not full, and cuts a torn record off its
// end. It returns the Recovery that must be written, nil if all is well.
func (l *Ledger) goOn(all []segment) (*Recovery, error) {
	s := all[len(all)-1]
	name := filepath.Join(l.cfg.Dir, s.name)
	if s.serial > 1 {
		if err := l.startAfter(all); err != nil {
			return nil, err
		}
	}
	// Its compressed twin, if a crash came before the next segment was begun.
	if err := remove(name + packedEnding); err != nil {
		return nil, err
	}
	onDisk, err := l.onDiskOf(all)
	if err != nil {
		return nil, err
	}
	tail, err := l.scan(s, onDisk)
	if err != nil {
		return nil, err
	}
	if l.file, err = os.OpenFile(name, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	l.serial = s.serial
	info, err := l.file.Stat()
	if err != nil {
		return nil, err
	}
	cut := info.Size() - l.size
	if onDisk < 0 {
		onDisk = l.size
	}
	if err := errors.Join(l.file.Truncate(l.size), disk.RewriteRange(l.file, onDisk, l.size)); err != nil {
		return nil, err
	}
	l.tail.RecordWrite(l.file, l.size)
	if l.size == 0 && s.serial > 1 { // a crash came before its first record
		if err := l.introduce(all[len(all)-2]); err != nil {
			return nil, err
		}
	}
	if cut == 0 && (tail.runEnded || l.end.n == 0) {
		return nil, nil
	}
	return &Recovery{CutBytes: cut}, nil
}

// introduce writes the first record of a segment that follows another.
func (l *Ledger) introduce(before segment) error {
	first, err := l.following(before)
	if err != nil {
		return err
	}
	return l.write(&Record{Segment: first})
}

// following returns the record that begins the segment after a compressed one,
// whose last record l.end is.
func (l *Ledger) following(before segment) (*Segment, error) {
	hash, err := hashFile(filepath.Join(l.cfg.Dir, before.name))
	return &Segment{Previous: before.name, SHA256: hash, Chain: string(l.end.hash[:])}, err
}

// after begins the segment that follows a compressed one, which is whole.
func (l *Ledger) after(s segment) (*Recovery, error) {
	if l.cfg.OnDisk.Serial > s.serial {
		return nil, l.missing(s)
	}
	tail, err := l.scan(s, -1)
	if err != nil {
		return nil, err
	}
	first, err := l.following(s)
	if err != nil {
		return nil, err
	}
	if err := l.begin(s.serial+1, first); err != nil || tail.runEnded {
		return nil, err
	}
	return &Recovery{}, nil
}

// startAfter finds the end of what stands before the last segment: that segment
// says it, if it has a record.
func (l *Ledger) startAfter(all []segment) error {
	err := all[len(all)-1].forEachLine(l.cfg.Dir, func(_ int, line []byte) error {
		r, err := decode(line)
		if err != nil || r.Segment == nil || len(r.Segment.Chain) != hashSize {
			return nil
		}
		l.end.n = r.N - 1
		copy(l.end.hash[:], r.Segment.Chain)
		return errEnough
	})
	switch {
	case errors.Is(err, errEnough):
		return nil
	case errors.Is(err, errLong) && l.cfg.OnDisk.Serial != 0: // zeros, which scan cuts
	case err != nil:
		return err
	case len(all) < 2:
		return fmt.Errorf("%s follows a file that is missing", all[0].name)
	}
	_, err = l.scan(all[len(all)-2], -1)
	l.size = 0
	return err
}

// A tail is how a ledger ends.
type tail struct {
	runEnded bool // by an End, and perhaps a checkpoint after it, before which the clock may have been set
}

// note tells t of the next record.
func (t *tail) note(r *Record) {
	t.runEnded = r.End != nil || t.runEnded && (r.Checkpoint != nil || r.Clock != nil)
}

// onDiskOf returns how many bytes of the last segment are known to be on the disk; -1:
// unknown.
func (l *Ledger) onDiskOf(all []segment) (int64, error) {
	last := all[len(all)-1]
	switch known := l.cfg.OnDisk; {
	case known.Serial == 0:
		return -1, nil
	case known.Serial > last.serial:
		return 0, l.missing(last)
	case known.Serial == last.serial:
		return known.Size, nil
	}
	return 0, nil // the segment was begun later
}

// missing returns the error for a missing last segment.
func (l *Ledger) missing(last segment) error {
	return fmt.Errorf("%s is missing, and %d bytes of it were on the disk: "+
		"restore it, or move the directory %s away to begin another ledger (the last there is %s)",
		plainName(l.cfg.OnDisk.Serial), l.cfg.OnDisk.Size, l.cfg.Dir, last.name)
}

// errCut ends the reading of a segment at its first bad record.
var errCut = errors.New("the rest is cut")

// scan reads a segment that comes after l.end, and moves l.end and l.size to the end of
// its last whole record. The first onDisk bytes must be whole. The rest is not part of
// the ledger from the first bad record on: a loss of power may leave any bytes there.
// If onDisk is -1, only one torn record may follow the last whole one.
func (l *Ledger) scan(s segment, onDisk int64) (t tail, err error) {
	var bad error // what is wrong with the last line
	first := s.serial > 1 && s.packed && l.end.n == 0
	err = s.forEachLine(l.cfg.Dir, func(number int, line []byte) error {
		if bad != nil {
			return bad
		}
		if first { // it says itself what it follows
			first = false
			if r, err := decode(line); err == nil && r.Segment != nil {
				l.end.n = r.N - 1
				copy(l.end.hash[:], r.Segment.Chain)
			}
		}
		r, end, err := l.end.follows(line)
		if err != nil {
			bad = fmt.Errorf("the ledger is damaged: %s, line %d %w; see decorum ledger verify, and move the directory away to begin another", s.name, number, err)
			if onDisk >= 0 {
				return errCut
			}
			return nil
		}
		l.end = end
		l.size += int64(len(line))
		t.note(r)
		return nil
	})
	if s.packed {
		l.size = 0
		err = errors.Join(err, bad) // nothing can be torn there
	}
	switch {
	case errors.Is(err, errCut) || err == nil && l.size < onDisk:
		if err = nil; l.size < onDisk {
			err = l.cutShort(s, onDisk, bad)
		}
	case errors.Is(err, errLong) && onDisk >= 0 && l.size >= onDisk: // zeros have no line end
		err = nil
	}
	return t, err
}

// cutShort returns the error for a segment that is not whole up to its durable length. bad
// is the error of its first bad line; nil: every line is whole.
func (l *Ledger) cutShort(s segment, onDisk int64, bad error) error {
	if bad != nil {
		return bad
	}
	return fmt.Errorf("the ledger is damaged: %s is whole for %d bytes, and %d were on the disk; "+
		"restore it from a backup, or move the directory away to begin another",
		s.name, l.size, onDisk)
}
