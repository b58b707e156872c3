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

// Endings of names. A file that is being written has both.
const (
	fileSuffix = ".warc.gz"
	openSuffix = ".open"
)

// DefaultMaxFileSize is Config.MaxFileSize where it is 0: 1 GiB.
const DefaultMaxFileSize = 1 << 30

// Config says where an ArchiveWriter is, and who writes it.
type Config struct {
	// Dir is the directory; it is made if there is none. One ArchiveWriter at a time
	// may have it open.
	Dir string
	// Root is Dir, opened by the caller, who closes it after the ArchiveWriter. The ArchiveWriter
	// opens files through it, so that no symbolic link leads out of the directory. nil:
	// OpenArchiveWriter opens Dir.
	Root *os.Root
	// FileMode is the mode of new files. Default 0600. If OpenArchiveWriter creates Dir, users who may
	// read the files may list it.
	FileMode fs.FileMode
	// FilePrefix begins the names of files: letters, digits, "_" and "-".
	// Default "decorum".
	FilePrefix string
	// MaxFileSize is how many bytes a file may grow to. A visit is never divided, so
	// that one which is larger alone has a larger file. Default DefaultMaxFileSize.
	MaxFileSize int64
	// WarcinfoFields are the lines of each file's warcinfo record (6.1), beyond format and
	// conformsTo.
	WarcinfoFields []Field
	// LastDurableExtent is the last durable result of ArchiveWriter.DurableExtent. That much of the file must
	// be whole when it is opened after a crash; the zero LastDurableExtent: the length is unknown.
	LastDurableExtent DurableExtent
	// OnRecovered is told of each file that a crash left open and that has been
	// closed, and how many bytes of a torn record were cut off. nil: nobody is.
	OnRecovered func(file string, cut int64)
}

func (cfg Config) withDefaults() (Config, error) {
	cfg.FilePrefix = cmp.Or(cfg.FilePrefix, "decorum")
	cfg.MaxFileSize = cmp.Or(cfg.MaxFileSize, DefaultMaxFileSize)
	cfg.FileMode = cmp.Or(cfg.FileMode, disk.PrivateMode)
	switch {
	case cfg.Dir == "":
		return cfg, errors.New("an archive needs a directory")
	case cfg.MaxFileSize < 0:
		return cfg, fmt.Errorf("files of %d bytes at most", cfg.MaxFileSize)
	case sanitizeName(cfg.FilePrefix) != cfg.FilePrefix:
		return cfg, fmt.Errorf("%q cannot begin the name of a file: expected letters, digits, _ and -", cfg.FilePrefix)
	}
	return cfg, nil
}

// sanitizeName puts a "_" in the place of what a part of a file's name does not have.
func sanitizeName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, s)
}

// An ArchiveWriter is a directory of WARC files. All methods may be called at the
// same time.
type ArchiveWriter struct {
	cfg         Config
	hostname    string
	syncTracker disk.AppendSyncTracker
	ownRoot     *os.Root // closed by Close; nil: Config.Root was set

	mu         sync.Mutex
	file       *archiveFile // nil: none is open
	nextSerial int
	closed     bool
}

// OpenArchiveWriter opens the archive in a directory. Files that a crash left open are
// closed first. A file is begun when there is something to write.
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
		cfg.Root = ownRoot
	}
	if err := recoverFiles(cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("warc: cannot close what a crash left open: %w", err), closeRoot(ownRoot))
	}
	return &ArchiveWriter{
		cfg: cfg, hostname: sanitizeName(host), ownRoot: ownRoot,
		syncTracker: disk.AppendSyncTracker{ContentLabel: "what was written to the archive", Remedy: "start the crawl again"},
	}, nil
}

// openOrCreateRoot opens a directory for files of a mode, and creates it if it is missing.
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

// A DurableExtent is how much of the file that is written is on the disk.
type DurableExtent struct {
	FileName string // final name of the file, without its directory; empty: no file
	Size     int64  // bytes of whole records that Sync put there
}

// DurableExtent returns how much of the present file is on the disk. Earlier files are on the
// disk as a whole.
func (a *ArchiveWriter) DurableExtent() DurableExtent {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return DurableExtent{}
	}
	return DurableExtent{filepath.Base(a.file.finalPath), a.syncTracker.SyncedBytes(a.file)}
}

// WriteVisit archives a visit, and says what later visits to its URL may refer to;
// what is zero has no date. When it returns the records are with the operating
// system. It fails with ErrNoResponse where there is nothing to archive. After any
// other error nothing of the visit is in the archive, and WriteVisit may be called
// again; but after Sync has failed, it will fail as well.
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

func (a *ArchiveWriter) writeRecords(records []byte) error {
	if err := a.syncTracker.Err(); err != nil {
		return err
	}
	if a.closed {
		return errClosed
	}
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

// newFile begins the next file.
func (a *ArchiveWriter) newFile(now time.Time) (*archiveFile, error) {
	stamp := strings.Replace(now.UTC().Format("20060102150405.000"), ".", "", 1)
	name := fmt.Sprintf("%s-%s-%05d-%s%s", a.cfg.FilePrefix, stamp, a.nextSerial, a.hostname, fileSuffix)
	f, err := createFile(a.cfg, name, now)
	if err == nil {
		a.nextSerial++
	}
	return f, err
}

// finalizeFile gives the present file its final name. If that fails, what is in
// the file may not be on the disk, and nothing more is written.
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

// Sync returns when all that was written before is on the disk. When it has
// failed, the archive takes no more: what the system has lost by then is not
// known, and asking again would not tell. What was not synced must be written
// anew, to the archive opened again.
func (a *ArchiveWriter) Sync() error { return a.syncTracker.Sync() }

// Close closes the archive and gives its file the final name; not if Sync has
// failed: then the next OpenArchiveWriter sees what is left of it.
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

// errClosed is of an ArchiveWriter that has been closed.
var errClosed = fmt.Errorf("warc: %w", fs.ErrClosed)
