package api

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/internal/jsonline"
)

// An AuditEntry is a call that changed something, or was refused. Of calls by nobody
// that is known, and of those that are forbidden, an address has but as many kept as
// it may guess tokens: else it could push all others out of the files.
type AuditEntry struct {
	Seq     int64     `json:"seq"`            // counts up
	At      time.Time `json:"at"`             // when the call came
	Who     string    `json:"who,omitempty"`  // the name of the token; socket: a caller of the daemon's socket; empty: an unknown caller
	Role    Role      `json:"role,omitempty"` // of the token
	Remote  string    `json:"remote"`         // address and port; of the socket: user and process
	Method  string    `json:"method"`
	Path    string    `json:"path"`              // percent-encoded; like every text of a caller at most 1000 bytes
	Project string    `json:"project,omitempty"` // in the path, if one is
	Host    string    `json:"host,omitempty"`    // whose brake the call is about, in the path or in a form
	Reason  string    `json:"reason,omitempty"`  // as the caller gave it
	Status  int       `json:"status"`            // of the answer
	Error   string    `json:"error,omitempty"`   // why the call failed; empty: it did not
}

// An AuditPage is a part of the audit, the newest first.
type AuditPage struct {
	Entries    []AuditEntry `json:"entries"`
	NextBefore int64        `json:"before,omitempty"` // asks for the page that follows; none if there is none
}

// Defaults of AuditRotationLimits.
const (
	defaultMaxAuditFileSize = 16 << 20
	defaultMaxAuditFiles    = 20
)

// AuditRotationLimits says how much of an audit is kept.
type AuditRotationLimits struct {
	MaxFileSize int64 // of a file, in bytes; 0: 16 MiB
	MaxFiles    int   // that are full and kept; 0: 20
}

// An AuditLog is a file of JSON lines to which calls are appended, in full files
// beside it once it is full: audit-SEQ.jsonl, by their last entry.
type AuditLog struct {
	path           string
	rotationLimits AuditRotationLimits

	mu        sync.Mutex // guards what follows, and writing
	file      *os.File
	size      int64
	lastSeq   int64
	syncMu    sync.Mutex // held by who makes entries durable, for all that wait
	syncedSeq int64      // the last entry that is durable; guarded by sync
}

// OpenAuditLog opens the audit in a file, which is made if it is not there. A line
// that a crash tore is ended, and passed by by who reads.
func OpenAuditLog(path string, rotation AuditRotationLimits) (*AuditLog, error) {
	rotation.MaxFileSize, rotation.MaxFiles = cmp.Or(rotation.MaxFileSize, defaultMaxAuditFileSize), cmp.Or(rotation.MaxFiles, defaultMaxAuditFiles)
	a := &AuditLog{path: path, rotationLimits: rotation}
	if err := a.openFile(); err != nil {
		return nil, err
	}
	page, err := a.Page(0, 1)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if len(page.Entries) > 0 {
		a.lastSeq = page.Entries[0].Seq
	}
	a.syncedSeq = a.lastSeq
	return a, nil
}

func (a *AuditLog) openFile() error {
	f, err := os.OpenFile(a.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("cannot open the audit: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err = f.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			_, err = f.Write([]byte("\n"))
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot open the audit: %w", err), f.Close())
	}
	a.file, a.size = f, info.Size()
	return nil
}

// appendEntry keeps an entry, which gets its number. It is on the disk when appendEntry
// returns; calls at the same time are made durable together.
func (a *AuditLog) appendEntry(e AuditEntry) error {
	seq, f, err := a.writeEntry(e)
	if f != nil {
		err = errors.Join(err, a.syncUpTo(seq, f))
	}
	if err != nil {
		return fmt.Errorf("cannot write the audit: %w", err)
	}
	return nil
}

// syncUpTo makes an entry of a file durable, unless another call has done it.
func (a *AuditLog) syncUpTo(seq int64, f *os.File) error {
	a.syncMu.Lock()
	defer a.syncMu.Unlock()
	if a.syncedSeq >= seq {
		return nil
	}
	a.mu.Lock()
	latest := a.lastSeq
	a.mu.Unlock()
	if err := f.Sync(); errors.Is(err, os.ErrClosed) {
		return nil // a full file is made durable before it is closed
	} else if err != nil {
		return err
	}
	a.syncedSeq = latest
	return nil
}

// writeEntry appends an entry. The file is nil if that could not be; with an error and
// a file, it is written, and the full file was not put aside.
func (a *AuditLog) writeEntry(e AuditEntry) (seq int64, f *os.File, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file != nil && a.size >= a.rotationLimits.MaxFileSize {
		err = a.rotate()
	}
	if a.file == nil {
		return 0, nil, errors.Join(err, fs.ErrClosed)
	}
	e.Seq = a.lastSeq + 1
	line, writeErr := json.Marshal(e)
	line = jsonline.EscapeControlChars(line)
	if writeErr != nil {
		return 0, nil, writeErr
	}
	n, writeErr := a.file.Write(append(line, '\n'))
	a.size += int64(n)
	if writeErr != nil {
		return 0, nil, errors.Join(err, writeErr)
	}
	a.lastSeq++
	return a.lastSeq, a.file, err
}

// rotate puts the full file aside and begins another. If that cannot be, the
// full one grows on. mu is held.
func (a *AuditLog) rotate() error {
	err := errors.Join(a.file.Sync(), a.file.Close())
	a.file = nil
	rotated := fmt.Sprintf("%s-%012d.jsonl", strings.TrimSuffix(a.path, ".jsonl"), a.lastSeq)
	err = errors.Join(err, os.Rename(a.path, rotated), a.openFile())
	files, listErr := a.rotatedFiles()
	for err = errors.Join(err, listErr); len(files) > a.rotationLimits.MaxFiles; files = files[:len(files)-1] {
		err = errors.Join(err, os.Remove(files[len(files)-1]))
	}
	return err
}

// rotatedFiles returns the full files, the newest first.
func (a *AuditLog) rotatedFiles() ([]string, error) {
	pattern := strings.TrimSuffix(filepath.Base(a.path), ".jsonl") + "-*.jsonl"
	files, err := fs.Glob(os.DirFS(filepath.Dir(a.path)), pattern)
	slices.Sort(files)
	slices.Reverse(files)
	for i, f := range files {
		files[i] = filepath.Join(filepath.Dir(a.path), f)
	}
	return files, err
}

// Page returns the entries before the one with that number, of all if it is 0:
// at most limit of them.
func (a *AuditLog) Page(before int64, limit int) (*AuditPage, error) {
	full, err := a.rotatedFiles()
	if err != nil {
		return nil, err
	}
	page := &AuditPage{Entries: []AuditEntry{}}
	for _, name := range append([]string{a.path}, full...) {
		last, err := lastAuditEntries(name, before, limit+1-len(page.Entries))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		page.Entries = append(page.Entries, last...)
		if len(page.Entries) > limit {
			page.Entries = page.Entries[:limit]
			page.NextBefore = page.Entries[limit-1].Seq
			break
		}
	}
	return page, nil
}

// lastAuditEntries returns the last n entries of a file before the one with that
// number, the newest first.
func lastAuditEntries(path string, before int64, n int) ([]AuditEntry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var last []AuditEntry // at most 2n, so that few are moved
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // the end; a line without one is being written
			if !errors.Is(err, io.EOF) {
				return nil, err
			}
			break
		}
		var e AuditEntry
		if json.Unmarshal(line, &e) != nil || before > 0 && e.Seq >= before {
			continue
		}
		if last = append(last, e); len(last) >= 2*n {
			last = append(last[:0], last[len(last)-n:]...)
		}
	}
	last = last[max(0, len(last)-n):]
	slices.Reverse(last)
	return last, nil
}

// Close closes the file.
func (a *AuditLog) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return nil
	}
	f := a.file
	a.file = nil
	return errors.Join(f.Sync(), f.Close())
}
