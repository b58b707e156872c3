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
	DefaultCheckpointInterval = 10 * time.Minute // between two
)

// Config says where a Ledger is, and whose it is.
type Config struct {
	// Dir is the directory; it is made if there is none. One Ledger at a time may
	// have it open: whoever opens it keeps others away.
	Dir string
	// MaxSegmentSize is how many bytes a segment has when it is compressed, or a record more;
	// that takes some tenths of a second at the default. Default DefaultMaxSegmentSize.
	MaxSegmentSize int64
	// SigningKey signs checkpoints; nil: there are none.
	SigningKey ed25519.PrivateKey
	// CheckpointInterval is how long after one the next is due, which the next record then
	// follows. There is one at the end of each segment, and of a run, besides. Default
	// DefaultCheckpointInterval.
	CheckpointInterval time.Duration
	// RunStart is what the records that follow are made by. Its KeyID is set by Open.
	RunStart RunStart
	// LastDurableExtent is the last durable result of Ledger.DurableExtent. That much of the segment must
	// be whole when it is opened after a crash; the rest is cut at the first record
	// that is not whole. With the zero LastDurableExtent nothing is known, and at most one torn
	// record is cut.
	LastDurableExtent DurableExtent
	// OnRecovered is told, when a crash left the ledger open, that it has been closed,
	// and how many bytes of a torn record were cut off. nil: nobody is.
	OnRecovered func(cut int64)

	// FileMode is the mode of new files. Default 0600. Users who may read the files may
	// list new directories.
	FileMode fs.FileMode

	now func() time.Time // nil: time.Now
}

// A Ledger is open for records. Its methods may be called at the same time.
type Ledger struct {
	cfg         Config
	robotsStore robotsFileStore
	syncTracker disk.AppendSyncTracker

	mu                 sync.Mutex // of what follows
	file               *os.File   // of the last segment; nil: the ledger is closed
	segmentSerial      int
	segmentSize        int64     // of whole records in it
	buffered           []byte    // whole records after them: they go with the next record, or with Sync
	head               chainHead // of what is held
	runRequestCount    int64     // requests of this run
	runUnansweredCount int64     // those of them without an answer
	checkpointedAt     time.Time // the last checkpoint, or the start
	checkpointNumber   int64     // number of that checkpoint; 0: this run has none
	clockBase          time.Time // as it was read when it was last found to have been set, or at the start
}

// Open opens the ledger in a directory for a run. What an earlier process left
// without its RunEnd is closed by a Recovery. A ledger that is damaged is not gone on
// with: that is an error which names the record.
func Open(cfg Config) (*Ledger, error) {
	cfg.MaxSegmentSize = cmp.Or(cfg.MaxSegmentSize, DefaultMaxSegmentSize)
	cfg.CheckpointInterval = cmp.Or(cfg.CheckpointInterval, DefaultCheckpointInterval)
	cfg.FileMode = cmp.Or(cfg.FileMode, disk.PrivateMode)
	switch {
	case cfg.Dir == "":
		return nil, errors.New("ledger: it needs a directory")
	case cfg.MaxSegmentSize < 0 || cfg.CheckpointInterval < 0:
		return nil, errors.New("ledger: neither a size nor a time can be negative")
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
	l := &Ledger{
		cfg: cfg, robotsStore: robotsFileStore{dir: filepath.Join(cfg.Dir, robotsDir), newFileMode: cfg.FileMode}, clockBase: cfg.now(),
		syncTracker: disk.AppendSyncTracker{ContentLabel: "what was written to the ledger", Remedy: "start the crawl again"},
	}
	l.checkpointedAt = l.clockBase
	if err := l.recoverAndBeginRun(); err != nil {
		return nil, fmt.Errorf("ledger: %w", errors.Join(err, l.syncAndCloseFile()))
	}
	return l, nil
}

// errClosed is of a Ledger that has been closed.
var errClosed = fmt.Errorf("ledger: %w", fs.ErrClosed)

// Append writes a record, and returns its number. When it returns, the record is
// with the operating system, but for a Response: that goes with the record after it, or
// with Sync, and what comes of a visit is not to be kept before Sync has returned.
// After an error nothing of the record is in the ledger, and Append may be called
// again; but after Sync has failed, it will fail as well.
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
	if err := l.writeOrBufferRecord(r); err != nil {
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

// checkpointAndRotateIfDue makes a checkpoint if it is time for one, and begins another segment if
// this one is full. It requires the lock.
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

// rotateSegment compresses the segment and begins the next. Where it fails it may be
// called again. It requires the lock.
func (l *Ledger) rotateSegment() error {
	if _, err := l.recordClockChangeIfAny(); err != nil { // another segment does not begin with that
		return err
	}
	if l.cfg.SigningKey != nil && l.checkpointNumber != l.head.number { // else it failed before
		if err := l.writeCheckpoint(); err != nil {
			return err
		}
	}
	if err := l.flushBuffered(); err != nil {
		return err
	}
	if err := errors.Join(l.file.Truncate(l.segmentSize), l.syncTracker.Sync()); err != nil { // no Sync may find it closed below
		return err
	}
	name, hash, err := compressSegment(l.cfg.Dir, l.segmentSerial, l.cfg.FileMode)
	if err != nil {
		return err
	}
	old := l.file
	if err := l.beginSegment(l.segmentSerial+1, &SegmentStart{PreviousFile: name, PreviousSHA256: hash, ChainHash: string(l.head.hash[:])}); err != nil {
		return err
	}
	return errors.Join(old.Close(), removeIfExists(old.Name()))
}

// beginSegment begins a segment: what the last one held is on the disk. It requires the
// lock.
func (l *Ledger) beginSegment(serial int, first *SegmentStart) error {
	f, err := os.OpenFile(filepath.Join(l.cfg.Dir, plainSegmentName(serial)), os.O_RDWR|os.O_CREATE|os.O_EXCL, disk.PrivateMode)
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

// A DurableExtent is how much of the segment that is written is on the disk.
type DurableExtent struct {
	SegmentSerial int   // of the segment; 0: no segment
	Size          int64 // bytes of whole records that Sync put there
}

// DurableExtent returns how much of the present segment is on the disk. Earlier segments are
// on the disk as a whole.
func (l *Ledger) DurableExtent() DurableExtent {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return DurableExtent{}
	}
	return DurableExtent{l.segmentSerial, l.syncTracker.SyncedBytes(l.file)}
}

// Sync returns when all that was written before is on the disk. When it has
// failed, the ledger takes no more: what the system has lost by then is not known,
// and asking again would not tell.
func (l *Ledger) Sync() error {
	l.mu.Lock()
	err := l.flushBuffered()
	l.mu.Unlock()
	if err != nil { // nothing is lost: it is still held
		return fmt.Errorf("ledger: %w", err)
	}
	return l.syncTracker.Sync()
}

// Close writes the RunEnd of the run, and a last checkpoint, and closes the ledger. It
// comes after the last request has its Response. Where one could not be written there
// is no RunEnd: the next Open closes the run, as that of a process that was killed.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return errClosed
	}
	return errors.Join(l.finishRun(), l.syncAndCloseFile())
}

// finishRun writes what ends the run, if it may. It requires the lock.
func (l *Ledger) finishRun() error {
	if l.syncTracker.Err() != nil {
		return nil // closing the file will say it
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
	err := l.file.Truncate(l.segmentSize)
	l.syncTracker.RecordWrite(l.file, l.segmentSize)
	return err
}

func (l *Ledger) syncAndCloseFile() error {
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return l.syncTracker.SyncAndClose(f)
}
