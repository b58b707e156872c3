package warc

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// Suffixes of file names. A file that is being written has both.
const (
	fileSuffix = ".warc.gz"
	openSuffix = ".open"
)

// DefaultMaxFileSize is the default of Config.MaxFileSize: 1 GiB.
const DefaultMaxFileSize = 1 << 30

// Config says where an ArchiveWriter writes its files, and what they are called and say.
type Config struct {
	// Dir is the directory, which OpenArchiveWriter makes if it does not exist. The caller must make
	// sure that only one ArchiveWriter at a time has it open.
	Dir string
	// Root is Dir, opened by the caller, who closes it after the ArchiveWriter. The ArchiveWriter
	// opens files through Root, so that no symbolic link leads out of the directory. If it is nil,
	// OpenArchiveWriter opens Dir.
	Root *os.Root
	// FileMode is the mode of new files; 0 means 0600. If OpenArchiveWriter makes Dir, users who may
	// read the files may also list it.
	FileMode fs.FileMode
	// FilePrefix begins the names of files. It has letters, digits, "_", "-" and ".". Empty means
	// "decorum".
	FilePrefix string
	// MaxFileSize is the size in bytes beyond which a file does not grow. A visit is never divided:
	// one that is larger gets a larger file. 0 means DefaultMaxFileSize.
	MaxFileSize int64
	// WarcinfoFields are the lines of each file's warcinfo record (WARC 1.1, 6.1) after format and
	// conformsTo.
	WarcinfoFields []Field
	// LastDurableExtent is the last result of ArchiveWriter.DurableExtent that the caller has stored
	// durably. After a crash OpenArchiveWriter requires that much of the file to be intact. The zero
	// value means that the length is unknown.
	LastDurableExtent DurableExtent
	// OnRecovered is called for each file that a crash left open, with its final path and the number
	// of bytes that were cut. nil means that nothing is called.
	OnRecovered func(file string, cut int64)
}

// withDefaults returns the configuration with defaults in place of zero values, or an error if it is invalid.
func (cfg Config) withDefaults() (Config, error) {
	cfg.FilePrefix = cmp.Or(cfg.FilePrefix, "decorum")
	cfg.MaxFileSize = cmp.Or(cfg.MaxFileSize, DefaultMaxFileSize)
	cfg.FileMode = cmp.Or(cfg.FileMode, disk.PrivateMode)
	switch {
	case cfg.Dir == "":
		return cfg, errors.New("Config.Dir is empty")
	case cfg.MaxFileSize < 0:
		return cfg, fmt.Errorf("Config.MaxFileSize is %d: it must not be negative", cfg.MaxFileSize)
	case sanitizeName(cfg.FilePrefix) != cfg.FilePrefix:
		return cfg, fmt.Errorf("%q cannot begin the name of a file: expected letters, digits, '_', '-' and '.'",
			cfg.FilePrefix)
	}
	return cfg, nil
}

// sanitizeName replaces each character but letters, digits, "-", "_" and "." by "_".
func sanitizeName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, s)
}

// An ArchiveWriter writes visits to the WARC files in a directory. OpenArchiveWriter returns one. All methods
// may be called at the same time.
type ArchiveWriter struct {
	cfg         Config
	hostname    string // part of file names
	syncTracker disk.AppendSyncTracker
	ownRoot     *os.Root // closed by Close; nil if Config.Root was set

	mu         sync.Mutex   // guards file, nextSerial and closed
	file       *archiveFile // the current file; nil before the first visit that it gets
	nextSerial int          // number of the next file, from 0
	closed     bool
}

// OpenArchiveWriter opens the archive in Config.Dir. It recovers files that a crash left open, and returns an
// error if it cannot. The first WriteVisit begins a file.
func OpenArchiveWriter(cfg Config) (*ArchiveWriter, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("warc: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	var ownRoot *os.Root
	if cfg.Root == nil {
		if ownRoot, err = openOrCreateRoot(cfg.Dir, cfg.FileMode); err != nil {
			return nil, fmt.Errorf("warc: %w", err)
		}
		cfg.Root = ownRoot // closed by Close, unlike the caller's
	}
	if err := recoverFiles(cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("warc: cannot recover a file that a crash left open: %w", err),
			closeRoot(ownRoot))
	}
	return &ArchiveWriter{
		cfg: cfg, hostname: sanitizeName(host), ownRoot: ownRoot,
		syncTracker: disk.AppendSyncTracker{ContentLabel: "the last records of the archive",
			Remedy: "start the crawl again"},
	}, nil
}

// openOrCreateRoot opens a directory, and makes it if it does not exist. Users who may read files of the
// given mode may list it.
func openOrCreateRoot(dir string, mode fs.FileMode) (*os.Root, error) {
	if err := disk.MakeDirsForFileMode(dir, mode); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// closeRoot closes a directory, unless it is nil.
func closeRoot(root *os.Root) error {
	if root == nil {
		return nil
	}
	return root.Close()
}

// A DurableExtent is how much of the current file is on the disk.
type DurableExtent struct {
	FileName string // final name of the file, without its directory; empty before the first WriteVisit
	Size     int64  // bytes of its records that are on the disk
}

// DurableExtent returns how much of the current file is on the disk. Earlier files are on the disk
// completely. It returns the zero value before the first WriteVisit of a file.
func (a *ArchiveWriter) DurableExtent() DurableExtent {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return DurableExtent{}
	}
	return DurableExtent{filepath.Base(a.file.finalPath), a.syncTracker.SyncedBytes(a.file)}
}

// WriteVisit writes the records of a visit. It returns the capture to which later visits to the URL may
// refer, as Visit.PreviousCapture; its Date is zero if they cannot refer to any. When WriteVisit returns,
// the operating system has the records. It returns an error that wraps ErrNoResponse if there is no
// response to archive. After any other error, the archive has nothing of the visit, and the caller may
// try again; after a failed Sync, each WriteVisit fails.
func (a *ArchiveWriter) WriteVisit(v *Visit) (CaptureDateAndDigest, error) {
	b, capture, err := v.encodeRecords()
	if err != nil {
		return CaptureDateAndDigest{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.writeRecords(b.Bytes()); err != nil {
		return CaptureDateAndDigest{}, err
	}
	return capture, nil
}

// writeRecords appends the records of one visit, and begins another file first if this one would become too
// large. The caller holds a.mu.
func (a *ArchiveWriter) writeRecords(records []byte) error {
	if err := a.syncTracker.Err(); err != nil {
		return err
	}
	if a.closed {
		return errClosed
	}
	// A visit is never divided between files: end this one first if the visit would exceed its limit.
	if a.file != nil && a.file.size > 0 && a.file.size+int64(len(records)) > a.cfg.MaxFileSize {
		if err := a.finalizeFile(); err != nil {
			return err
		}
	}
	if a.file == nil {
		f, err := a.newFile(time.Now())
		if err != nil {
			return fmt.Errorf("warc: cannot begin a file: %w", err)
		}
		a.file = f
	}
	if err := a.file.appendRecords(records); err != nil {
		return fmt.Errorf("warc: %w", err)
	}
	a.syncTracker.RecordWrite(a.file, a.file.size)
	return nil
}

// newFile begins the next file. The caller holds a.mu.
func (a *ArchiveWriter) newFile(now time.Time) (*archiveFile, error) {
	stamp := strings.Replace(now.UTC().Format("20060102150405.000"), ".", "", 1)
	name := fmt.Sprintf("%s-%s-%05d-%s%s", a.cfg.FilePrefix, stamp, a.nextSerial, a.hostname, fileSuffix)
	f, err := createFile(a.cfg, name, now)
	if err == nil {
		a.nextSerial++
	}
	return f, err
}

// finalizeFile syncs and closes the current file, and gives it its final name. If that fails, its records may
// not be on the disk, and nothing more is written. The caller holds a.mu.
func (a *ArchiveWriter) finalizeFile() error {
	f := a.file
	a.file = nil
	err := f.Truncate(f.size)
	a.syncTracker.RecordWrite(f, f.size)
	if err = errors.Join(err, a.syncTracker.SyncAndClose(f)); err == nil {
		err = f.renameOrRemoveEmpty()
	}
	if err != nil {
		return a.syncTracker.RecordFailure(err)
	}
	return nil
}

// Sync returns when all earlier records are on the disk. If the disk reports a failure, the archive accepts no
// more visits: what the system has lost is unknown, and a second attempt would not show it. Visits that were
// not synced must be written again, after OpenArchiveWriter.
func (a *ArchiveWriter) Sync() error { return a.syncTracker.Sync() }

// Close closes the archive, and gives the current file its final name. If Sync has failed, the file stays open,
// and the next OpenArchiveWriter recovers what is left of it.
func (a *ArchiveWriter) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return errClosed
	}
	a.closed = true
	err := a.syncTracker.Err()
	if a.file != nil {
		err = a.finalizeFile()
	}
	return errors.Join(err, closeRoot(a.ownRoot))
}

// errClosed is returned by methods of a closed ArchiveWriter. It wraps fs.ErrClosed.
var errClosed = fmt.Errorf("warc: %w", fs.ErrClosed)
