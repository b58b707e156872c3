package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// recoverAndBeginRun continues the ledger in the directory, or begins one, and writes the RunStart.
// Open calls it before other goroutines know l.
func (l *Ledger) recoverAndBeginRun() error {
	l.head = genesisHead()
	all, err := listSegments(l.cfg.Dir)
	if err != nil {
		return err
	}
	var recovery *Recovery // nil if the last run has ended
	switch {
	case len(all) == 0:
		err = l.beginSegment(1, nil)
	case all[len(all)-1].isCompressed:
		recovery, err = l.beginSegmentAfterCompressed(all[len(all)-1])
	default:
		recovery, err = l.resumeSegment(all)
	}
	if err != nil {
		return err
	}
	if recovery != nil {
		if l.cfg.OnRecovered != nil {
			l.cfg.OnRecovered(recovery.CutBytes)
		}
		if err := l.writeOrBufferRecord(&Record{Recovery: recovery}); err != nil {
			return err
		}
	}
	return errors.Join(l.writeOrBufferRecord(&Record{RunStart: &l.cfg.RunStart}),
		l.syncTracker.Sync(), disk.SyncDir(l.cfg.Dir))
}

// resumeSegment opens the last segment, which is not compressed, and cuts a torn record off its end. It
// returns the Recovery to write, or nil if the last run has ended and nothing was cut.
func (l *Ledger) resumeSegment(all []segment) (*Recovery, error) {
	s := all[len(all)-1]
	name := filepath.Join(l.cfg.Dir, s.name)
	if s.serial > 1 {
		if err := l.loadHeadBeforeLastSegment(all); err != nil {
			return nil, err
		}
	}
	// A crash during rotation leaves a compressed copy beside it: remove that.
	if err := removeIfExists(name + compressedSuffix); err != nil {
		return nil, err
	}
	durableSize, err := l.lastSegmentDurableSize(all)
	if err != nil {
		return nil, err
	}
	// Find the end of the last intact record.
	runEnded, err := l.recoverEndFromSegment(s, durableSize)
	if err != nil {
		return nil, err
	}
	if l.file, err = os.OpenFile(name, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	l.segmentSerial = s.serial
	info, err := l.file.Stat()
	if err != nil {
		return nil, err
	}
	cutBytes := info.Size() - l.segmentSize
	// Cut the rest, and write the bytes after the durable part again: they may not be on the disk
	// although the system considers them written, and a later fsync alone would not write them.
	if durableSize < 0 {
		durableSize = l.segmentSize
	}
	if err := errors.Join(l.file.Truncate(l.segmentSize),
		disk.RewriteSameBytes(l.file, durableSize, l.segmentSize)); err != nil {
		return nil, err
	}
	l.syncTracker.RecordWrite(l.file, l.segmentSize)
	if l.segmentSize == 0 && s.serial > 1 { // a crash came before its SegmentStart was written
		first, err := l.newSegmentStart(all[len(all)-2])
		if err == nil {
			err = l.writeOrBufferRecord(&Record{SegmentStart: first})
		}
		if err != nil {
			return nil, err
		}
	}
	if cutBytes == 0 && (runEnded || l.head.number == 0) {
		return nil, nil
	}
	return &Recovery{CutBytes: cutBytes}, nil
}

// newSegmentStart returns the SegmentStart after a compressed segment, whose last record is l.head.
func (l *Ledger) newSegmentStart(previous segment) (*SegmentStart, error) {
	hash, err := hashFile(filepath.Join(l.cfg.Dir, previous.name))
	return &SegmentStart{PreviousFile: previous.name, PreviousSHA256: hash, ChainHash: string(l.head.hash[:])}, err
}

// beginSegmentAfterCompressed begins a segment after the last one, which is compressed and complete: a
// crash came before the next was begun. It returns a Recovery if the last run has not ended.
func (l *Ledger) beginSegmentAfterCompressed(s segment) (*Recovery, error) {
	if l.cfg.LastDurableExtent.SegmentSerial > s.serial {
		return nil, l.missingSegmentError(s)
	}
	runEnded, err := l.recoverEndFromSegment(s, -1)
	if err != nil {
		return nil, err
	}
	first, err := l.newSegmentStart(s)
	if err != nil {
		return nil, err
	}
	if err := l.beginSegment(s.serial+1, first); err != nil || runEnded {
		return nil, err
	}
	return &Recovery{}, nil
}

// loadHeadBeforeLastSegment sets l.head to the last record before the last segment. The SegmentStart of
// the last segment states it. If that is missing, it reads the segment before.
func (l *Ledger) loadHeadBeforeLastSegment(all []segment) error {
	err := all[len(all)-1].forEachLine(l.cfg.Dir, func(_ int, line []byte) error {
		r, err := decodeRecord(line)
		if err != nil || r.SegmentStart == nil || len(r.SegmentStart.ChainHash) != hashSize {
			return nil
		}
		l.head.number = r.Number - 1
		copy(l.head.hash[:], r.SegmentStart.ChainHash)
		return errStopReading
	})
	switch {
	case errors.Is(err, errStopReading):
		return nil
	case errors.Is(err, errLineTooLong) && l.cfg.LastDurableExtent.SegmentSerial != 0:
		// The file holds zeros, which recoverEndFromSegment cuts.
	case err != nil:
		return err
	case len(all) < 2:
		return fmt.Errorf("%s follows a file that is missing", all[0].name)
	}
	_, err = l.recoverEndFromSegment(all[len(all)-2], -1)
	l.segmentSize = 0
	return err
}

// runIsEndedAfter reports whether the last run has ended, if r is the last record: r is a RunEnd, or
// follows one as a checkpoint, or as a clock change before the checkpoint. endedBefore is the result for
// the record before r.
func runIsEndedAfter(r *Record, endedBefore bool) bool {
	return r.RunEnd != nil || endedBefore && (r.Checkpoint != nil || r.ClockChange != nil)
}

// lastSegmentDurableSize returns how many bytes of the last segment are known to be on the disk, or -1
// if nothing is known.
func (l *Ledger) lastSegmentDurableSize(all []segment) (int64, error) {
	last := all[len(all)-1]
	switch extent := l.cfg.LastDurableExtent; {
	case extent.SegmentSerial == 0:
		return -1, nil
	case extent.SegmentSerial > last.serial:
		return 0, l.missingSegmentError(last)
	case extent.SegmentSerial == last.serial:
		return extent.Size, nil
	}
	return 0, nil // the segment was begun after the extent was recorded
}

// missingSegmentError returns the error for a segment that was on the disk and is missing. last is the
// last existing one.
func (l *Ledger) missingSegmentError(last segment) error {
	return fmt.Errorf("%s is missing, and %d bytes of it were on the disk: "+
		"restore it, or move the directory %s away to begin another ledger (the last there is %s)",
		plainSegmentName(l.cfg.LastDurableExtent.SegmentSerial), l.cfg.LastDurableExtent.Size, l.cfg.Dir, last.name)
}

// errBadRecord makes forEachLine return at the first bad record. Callers do not report it.
var errBadRecord = errors.New("stop at a bad record")

// recoverEndFromSegment reads a segment whose first record follows l.head, and sets l.head and
// l.segmentSize to the end of its last intact record. The first durableSize bytes must be intact. After
// them, everything from the first bad record on is not part of the ledger: a loss of power may leave any
// bytes there. If durableSize is -1, only one torn record may follow the last intact one. It reports
// whether the last run has ended.
func (l *Ledger) recoverEndFromSegment(s segment, durableSize int64) (runEnded bool, err error) {
	var badLine error // the error of the previous line
	first := s.serial > 1 && s.isCompressed && l.head.number == 0
	err = s.forEachLine(l.cfg.Dir, func(number int, line []byte) error {
		if badLine != nil {
			return badLine
		}
		if first { // the segment states which record it follows
			first = false
			if r, err := decodeRecord(line); err == nil && r.SegmentStart != nil {
				l.head.number = r.Number - 1
				copy(l.head.hash[:], r.SegmentStart.ChainHash)
			}
		}
		r, head, err := l.head.decodeAndVerifyNext(line)
		if err != nil {
			badLine = fmt.Errorf("the ledger is damaged: %s, line %d %w; see decorum ledger verify, and move the "+
				"directory away to begin another", s.name, number, err)
			if durableSize >= 0 {
				return errBadRecord
			}
			return nil
		}
		l.head = head
		l.segmentSize += int64(len(line))
		runEnded = runIsEndedAfter(r, runEnded)
		return nil
	})
	if s.isCompressed {
		l.segmentSize = 0
		err = errors.Join(err, badLine) // a compressed segment was complete
	}
	// Decide whether the bad part was on the disk: then the ledger is damaged.
	switch {
	case errors.Is(err, errBadRecord) || err == nil && l.segmentSize < durableSize:
		if err = nil; l.segmentSize < durableSize {
			err = cmp.Or(badLine, fmt.Errorf("the ledger is damaged: %s is intact for %d bytes, and %d were on the "+
				"disk; "+
				"restore it from a backup, or move the directory away to begin another", s.name,
				l.segmentSize, durableSize))
		}
	case errors.Is(err, errLineTooLong) && durableSize >= 0 && l.segmentSize >= durableSize:
		// A long part of zeros, without a line end, is cut as well.
		err = nil
	}
	return runEnded, err
}
