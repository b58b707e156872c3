package ledger

import (
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// Defaults of Config.
const (
	DefaultMaxSegmentSize     = 64 << 20         // bytes
	DefaultCheckpointInterval = 10 * time.Minute // between two checkpoints
)

// Config says where a Ledger is, how it is written, and which run writes it.
type Config struct {
	// Dir is the directory, which Open makes if it does not exist. The caller must make sure that
	// only one Ledger at a time has it open.
	Dir string
	// MaxSegmentSize is the size in bytes at which a segment is compressed; it may be exceeded by
	// one record. Compression takes some tenths of a second at the default size. 0 means
	// DefaultMaxSegmentSize.
	MaxSegmentSize int64
	// SigningKey signs checkpoints. nil means that there are no checkpoints.
	SigningKey ed25519.PrivateKey
	// CheckpointInterval is the time after which the next record is preceded by a checkpoint. The
	// end of each segment and of a run has a checkpoint besides. 0 means
	// DefaultCheckpointInterval.
	CheckpointInterval time.Duration
	// RunStart describes the run that makes the records. Open sets its KeyID.
	RunStart RunStart
	// LastDurableExtent is the last result of Ledger.DurableExtent that the caller has stored
	// durably. After a crash Open requires that much of the segment to be intact, and cuts the rest
	// from the first bad record on. With the zero value nothing is known, and Open cuts at most
	// one torn record.
	LastDurableExtent DurableExtent
	// OnRecovered is called with the number of bytes that were cut, if Open finds that the last
	// run did not end, or that its end is followed by other bytes. nil means that nothing is
	// called.
	OnRecovered func(cut int64)

	// FileMode is the mode of new files; 0 means 0600. Users who may read the files may also list
	// new directories.
	FileMode fs.FileMode

	now func() time.Time // the clock; nil means time.Now
}

// A Ledger appends records to the files of a ledger. Its methods may be called at the same time. Open
// returns one.
type Ledger struct {
	cfg         Config
	robotsStore robotsFileStore
	syncTracker disk.AppendSyncTracker

	// mu guards file, segmentSerial, segmentSize, lineBuffer, buffered, head, runRequestCount,
	// runUnansweredCount, checkpointedAt, checkpointNumber and clockBase.
	mu                 sync.Mutex
	file               *os.File  // the last segment; nil when the ledger is closed
	segmentSerial      int       // number of the segment, from 1
	segmentSize        int64     // bytes of the records in file
	lineBuffer         []byte    // the memory in which a record is encoded
	buffered           []byte    // records after these, written with the next record or by Sync
	head               chainHead // the last record, buffered ones included
	runRequestCount    int64     // requests of this run
	runUnansweredCount int64     // requests of this run without a response
	checkpointedAt     time.Time // time of the last checkpoint, or of Open
	checkpointNumber   int64     // number of the last checkpoint; 0 if this run has none
	clockBase          time.Time // reading of the clock when it was last found to be set, or at Open
}

// Open opens the ledger in Config.Dir, and begins a run. If the last run has no RunEnd, or if a torn
// record follows it, Open cuts that record and writes a Recovery. It refuses a ledger that is damaged
// otherwise, with an error that names the record.
func Open(cfg Config) (*Ledger, error) {
	cfg.MaxSegmentSize = cmp.Or(cfg.MaxSegmentSize, DefaultMaxSegmentSize)
	cfg.CheckpointInterval = cmp.Or(cfg.CheckpointInterval, DefaultCheckpointInterval)
	cfg.FileMode = cmp.Or(cfg.FileMode, disk.PrivateMode)
	switch {
	case cfg.Dir == "":
		return nil, errors.New("ledger: Config.Dir is empty")
	case cfg.MaxSegmentSize < 0 || cfg.CheckpointInterval < 0:
		return nil, errors.New("ledger: MaxSegmentSize and CheckpointInterval must not be negative")
	}
	if cfg.SigningKey != nil {
		cfg.RunStart.KeyID = publicKeyID(cfg.SigningKey.Public().(ed25519.PublicKey))
	}
	if cfg.now == nil {
		cfg.now = time.Now
	}
	if err := disk.MakeDirsForFileMode(cfg.Dir, cfg.FileMode); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	// Continue what is in the directory, and write the RunStart.
	l := &Ledger{
		cfg: cfg, robotsStore: robotsFileStore{dir: filepath.Join(cfg.Dir, robotsDir), newFileMode: cfg.FileMode},
		clockBase: cfg.now(),
		syncTracker: disk.AppendSyncTracker{ContentLabel: "the last records of the ledger",
			Remedy: "start the crawl again"},
	}
	l.checkpointedAt = l.clockBase
	if err := l.recoverAndBeginRun(); err != nil {
		return nil, fmt.Errorf("ledger: %w", errors.Join(err, l.syncAndCloseFile()))
	}
	return l, nil
}

// errClosed is returned by methods of a closed Ledger. It wraps fs.ErrClosed.
var errClosed = fmt.Errorf("ledger: %w", fs.ErrClosed)

// Append writes a record, and returns its number. When it returns, the operating system has the
// record, except a Response, which is written with the next record, or by Sync. A caller must not
// store the outcome of a visit before Sync has returned. If Append fails, the ledger has nothing of
// the record, and the caller may try again; after a failed Sync, each Append fails. The ledger sets
// Number and Time; r is not changed.
func (l *Ledger) Append(r *Record) (n int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return 0, errClosed
	}
	if err := l.syncTracker.Err(); err != nil {
		return 0, err
	}
	if err := l.checkpointAndRotateIfDue(); err != nil {
		return 0, fmt.Errorf("ledger: %w", err)
	}
	if err := l.writeOrBufferRecord(r); err != nil { // leaves nothing of r
		return 0, fmt.Errorf("ledger: %w", err)
	}
	switch {
	case r.Request != nil:
		l.runRequestCount++
		l.runUnansweredCount++
	case r.Response != nil:
		l.runUnansweredCount--
	}
	return l.head.number, nil
}

// checkpointAndRotateIfDue writes a checkpoint if one is due, and begins another segment if this one
// is full. The caller holds l.mu.
func (l *Ledger) checkpointAndRotateIfDue() error {
	if l.cfg.SigningKey != nil && l.cfg.now().Sub(l.checkpointedAt) >= l.cfg.CheckpointInterval {
		if err := l.writeCheckpoint(); err != nil {
			return err
		}
	}
	if l.segmentSize+int64(len(l.buffered)) < l.cfg.MaxSegmentSize {
		return nil
	}
	return l.rotateSegment()
}

// rotateSegment compresses the segment and begins the next one. It may be called again after it has
// failed. The caller holds l.mu.
func (l *Ledger) rotateSegment() error {
	// A clock change is recorded in this segment, because the next must begin with its SegmentStart.
	if _, err := l.recordClockChangeIfAny(); err != nil {
		return err
	}
	// Sign the end of the segment, unless an earlier attempt has done so.
	if l.cfg.SigningKey != nil && l.checkpointNumber != l.head.number {
		if err := l.writeCheckpoint(); err != nil {
			return err
		}
	}
	if err := l.flushBuffered(); err != nil {
		return err
	}
	// Sync before the file is closed below: a concurrent Sync must not find it closed.
	if err := errors.Join(l.file.Truncate(l.segmentSize), l.syncTracker.Sync()); err != nil {
		return err
	}
	name, hash, err := compressSegment(l.cfg.Dir, l.segmentSerial, l.cfg.FileMode)
	if err != nil {
		return err
	}
	old := l.file
	if err := l.beginSegment(l.segmentSerial+1,
		&SegmentStart{PreviousFile: name, PreviousSHA256: hash, ChainHash: string(l.head.hash[:])}); err != nil {
		return err
	}
	return errors.Join(old.Close(), removeIfExists(old.Name()))
}

// beginSegment makes the file of a segment, and writes first into it unless that is nil. The previous
// segment is on the disk. If it fails, the previous segment stays current. The caller holds l.mu.
func (l *Ledger) beginSegment(serial int, first *SegmentStart) error {
	f, err := os.OpenFile(filepath.Join(l.cfg.Dir, plainSegmentName(serial)),
		os.O_RDWR|os.O_CREATE|os.O_EXCL, disk.PrivateMode)
	if err != nil {
		return err
	}
	if err := errors.Join(disk.SetMode(f, l.cfg.FileMode), disk.SyncDir(l.cfg.Dir)); err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	oldFile, oldSerial, oldSize := l.file, l.segmentSerial, l.segmentSize
	l.file, l.segmentSerial, l.segmentSize = f, serial, 0
	if first == nil {
		return nil
	}
	if err := l.writeOrBufferRecord(&Record{SegmentStart: first}); err != nil {
		l.file, l.segmentSerial, l.segmentSize = oldFile, oldSerial, oldSize
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return nil
}

// A DurableExtent is how much of the current segment is on the disk.
type DurableExtent struct {
	SegmentSerial int   // number of the segment, from 1; 0 means that nothing is known
	Size          int64 // bytes of its records that are on the disk
}

// DurableExtent returns how much of the current segment is on the disk. Earlier segments are on the
// disk completely. It returns the zero value if the ledger is closed.
func (l *Ledger) DurableExtent() DurableExtent {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return DurableExtent{}
	}
	return DurableExtent{l.segmentSerial, l.syncTracker.SyncedBytes(l.file)}
}

// Sync returns when all earlier records are on the disk. If the disk reports a failure, the ledger
// accepts no more records: what the system has lost is unknown, and a second attempt would not show
// it.
func (l *Ledger) Sync() error {
	l.mu.Lock()
	err := l.flushBuffered()
	l.mu.Unlock()
	if err != nil { // nothing is lost: the records are still buffered
		return fmt.Errorf("ledger: %w", err)
	}
	return l.syncTracker.Sync()
}

// Close writes the RunEnd and a last checkpoint, and closes the ledger. The caller must have appended
// the Response of each Request. If a Response is missing, Close writes no RunEnd, and the next Open
// writes a Recovery, as after a kill.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return errClosed
	}
	return errors.Join(l.finishRun(), l.syncAndCloseFile())
}

// finishRun writes the RunEnd and the checkpoint, unless a Sync has failed. The caller holds l.mu.
func (l *Ledger) finishRun() error {
	if l.syncTracker.Err() != nil {
		return nil // syncAndCloseFile returns the error
	}
	if err := l.flushBuffered(); err != nil {
		return err
	}
	if l.runUnansweredCount == 0 {
		if err := l.writeOrBufferRecord(&Record{RunEnd: &RunEnd{Requests: l.runRequestCount}}); err != nil {
			return err
		}
	}
	if l.cfg.SigningKey != nil {
		if err := l.writeCheckpoint(); err != nil {
			return err
		}
	}
	// A failed write may have left bytes after the last record: cut them.
	err := l.file.Truncate(l.segmentSize)
	l.syncTracker.RecordWrite(l.file, l.segmentSize)
	return err
}

// syncAndCloseFile syncs and closes the segment. It does nothing if the ledger is closed. The caller
// holds l.mu, or no other goroutine uses l.
func (l *Ledger) syncAndCloseFile() error {
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return l.syncTracker.SyncAndClose(f)
}
