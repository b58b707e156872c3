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
	DefaultMaxSize    = 64 << 20         // bytes
	DefaultCheckpoint = 10 * time.Minute // between two
)

// Config says where a Ledger is, and whose it is.
type Config struct {
	// Dir is the directory; it is made if there is none. One Ledger at a time may
	// have it open: whoever opens it keeps others away.
	Dir string
	// MaxSize is how many bytes a segment has when it is compressed, or a record more;
	// that takes some tenths of a second at the default. Default DefaultMaxSize.
	MaxSize int64
	// Key signs checkpoints; nil: there are none.
	Key ed25519.PrivateKey
	// Checkpoint is how long after one the next is due, which the next record then
	// follows. There is one at the end of each segment, and of a run, besides. Default
	// DefaultCheckpoint.
	Checkpoint time.Duration
	// Run is what the records that follow are made by. Its Key is set by Open.
	Run Run
	// OnDisk is the last durable result of Ledger.OnDisk. That much of the segment must
	// be whole when it is opened after a crash; the rest is cut at the first record
	// that is not whole. With the zero Extent nothing is known, and at most one torn
	// record is cut.
	OnDisk Extent
	// Recovered is told, when a crash left the ledger open, that it has been closed,
	// and how many bytes of a torn record were cut off. nil: nobody is.
	Recovered func(cut int64)

	// Mode is the mode of new files. Default 0600. Users who may read the files may
	// list new directories.
	Mode fs.FileMode

	now func() time.Time // nil: time.Now
}

// A Ledger is open for records. Its methods may be called at the same time.
type Ledger struct {
	cfg   Config
	files robotsFiles
	tail  disk.SyncTracker

	mu     sync.Mutex // of what follows
	file   *os.File   // of the last segment; nil: the ledger is closed
	serial int
	size   int64     // of whole records in it
	held   []byte    // whole records after them: they go with the next record, or with Sync
	end    link      // of what is held
	sent   int64     // requests of this run
	open   int64     // those of them without an answer
	signed time.Time // the last checkpoint, or the start
	signer int64     // number of that checkpoint; 0: this run has none
	clock  time.Time // as it was read when it was last found to have been set, or at the start
}

// Open opens the ledger in a directory for a run. What an earlier process left
// without its End is closed by a Recovery. A ledger that is damaged is not gone on
// with: that is an error which names the record.
func Open(cfg Config) (*Ledger, error) {
	cfg.MaxSize = cmp.Or(cfg.MaxSize, DefaultMaxSize)
	cfg.Checkpoint = cmp.Or(cfg.Checkpoint, DefaultCheckpoint)
	cfg.Mode = cmp.Or(cfg.Mode, disk.PrivateMode)
	switch {
	case cfg.Dir == "":
		return nil, errors.New("ledger: it needs a directory")
	case cfg.MaxSize < 0 || cfg.Checkpoint < 0:
		return nil, errors.New("ledger: neither a size nor a time can be negative")
	}
	if cfg.Key != nil {
		cfg.Run.Key = KeyID(cfg.Key.Public().(ed25519.PublicKey))
	}
	if cfg.now == nil {
		cfg.now = time.Now
	}
	if err := disk.MakeDirAll(cfg.Dir, cfg.Mode); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	l := &Ledger{
		cfg: cfg, files: robotsFiles{dir: filepath.Join(cfg.Dir, robotsDir), mode: cfg.Mode}, clock: cfg.now(),
		tail: disk.SyncTracker{ContentLabel: "what was written to the ledger", Remedy: "start the crawl again"},
	}
	l.signed = l.clock
	if err := l.resume(); err != nil {
		return nil, fmt.Errorf("ledger: %w", errors.Join(err, l.closeFile()))
	}
	return l, nil
}

// errClosed is of a Ledger that has been closed.
var errClosed = fmt.Errorf("ledger: %w", fs.ErrClosed)

// Append writes a record, and returns its number. When it returns, the record is
// with the operating system, but for an Answer: that goes with the record after it, or
// with Sync, and what comes of a visit is not to be kept before Sync has returned.
// After an error nothing of the record is in the ledger, and Append may be called
// again; but after Sync has failed, it will fail as well.
func (l *Ledger) Append(r *Record) (n int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return 0, errClosed
	}
	if err := l.tail.Err(); err != nil {
		return 0, err
	}
	if err := l.prepare(); err != nil {
		return 0, fmt.Errorf("ledger: %w", err)
	}
	if err := l.write(r); err != nil {
		return 0, fmt.Errorf("ledger: %w", err)
	}
	switch {
	case r.Request != nil:
		l.sent++
		l.open++
	case r.Answer != nil:
		l.open--
	}
	return l.end.n, nil
}

// prepare makes a checkpoint if it is time for one, and begins another segment if
// this one is full. It requires the lock.
func (l *Ledger) prepare() error {
	if l.cfg.Key != nil && l.cfg.now().Sub(l.signed) >= l.cfg.Checkpoint {
		if err := l.sign(); err != nil {
			return err
		}
	}
	if l.size+int64(len(l.held)) < l.cfg.MaxSize {
		return nil
	}
	return l.rotate()
}

// rotate compresses the segment and begins the next. Where it fails it may be
// called again. It requires the lock.
func (l *Ledger) rotate() error {
	if _, err := l.tick(); err != nil { // another segment does not begin with that
		return err
	}
	if l.cfg.Key != nil && l.signer != l.end.n { // else it failed before
		if err := l.sign(); err != nil {
			return err
		}
	}
	if err := l.flush(); err != nil {
		return err
	}
	if err := errors.Join(l.file.Truncate(l.size), l.tail.Sync()); err != nil { // no Sync may find it closed below
		return err
	}
	name, hash, err := pack(l.cfg.Dir, l.serial, l.cfg.Mode)
	if err != nil {
		return err
	}
	full := l.file
	if err := l.begin(l.serial+1, &Segment{Previous: name, SHA256: hash, Chain: string(l.end.hash[:])}); err != nil {
		return err
	}
	return errors.Join(full.Close(), remove(full.Name()))
}

// begin begins a segment: what the last one held is on the disk. It requires the
// lock.
func (l *Ledger) begin(serial int, first *Segment) error {
	f, err := os.OpenFile(filepath.Join(l.cfg.Dir, plainName(serial)), os.O_RDWR|os.O_CREATE|os.O_EXCL, disk.PrivateMode)
	if err != nil {
		return err
	}
	if err := errors.Join(disk.SetMode(f, l.cfg.Mode), disk.SyncDir(l.cfg.Dir)); err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	oldFile, oldSerial, oldSize := l.file, l.serial, l.size
	l.file, l.serial, l.size = f, serial, 0
	if first == nil {
		return nil
	}
	if err := l.write(&Record{Segment: first}); err != nil {
		l.file, l.serial, l.size = oldFile, oldSerial, oldSize
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return nil
}

// An Extent is how much of the segment that is written is on the disk.
type Extent struct {
	Serial int   // of the segment; 0: no segment
	Size   int64 // bytes of whole records that Sync put there
}

// OnDisk returns how much of the present segment is on the disk. Earlier segments are
// on the disk as a whole.
func (l *Ledger) OnDisk() Extent {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return Extent{}
	}
	return Extent{l.serial, l.tail.SyncedBytes(l.file)}
}

// Sync returns when all that was written before is on the disk. When it has
// failed, the ledger takes no more: what the system has lost by then is not known,
// and asking again would not tell.
func (l *Ledger) Sync() error {
	l.mu.Lock()
	err := l.flush()
	l.mu.Unlock()
	if err != nil { // nothing is lost: it is still held
		return fmt.Errorf("ledger: %w", err)
	}
	return l.tail.Sync()
}

// Close writes the End of the run, and a last checkpoint, and closes the ledger. It
// comes after the last request has its Answer. Where one could not be written there
// is no End: the next Open closes the run, as that of a process that was killed.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return errClosed
	}
	return errors.Join(l.finish(), l.closeFile())
}

// finish writes what ends the run, if it may. It requires the lock.
func (l *Ledger) finish() error {
	if l.tail.Err() != nil {
		return nil // closing the file will say it
	}
	if err := l.flush(); err != nil {
		return err
	}
	if l.open == 0 {
		if err := l.write(&Record{End: &End{Requests: l.sent}}); err != nil {
			return err
		}
	}
	if l.cfg.Key != nil {
		if err := l.sign(); err != nil {
			return err
		}
	}
	err := l.file.Truncate(l.size)
	l.tail.RecordWrite(l.file, l.size)
	return err
}

func (l *Ledger) closeFile() error {
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return l.tail.SyncAndClose(f)
}
