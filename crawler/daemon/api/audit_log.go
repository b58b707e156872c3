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

// An AuditEntry records a call that may have changed something, or was refused. Calls by unknown
// callers and forbidden calls are recorded at a limited rate for each network, the rate of guessed
// tokens, so that they cannot push all other entries out of the files.
type AuditEntry struct {
	Seq int64     `json:"seq"` // the number of the entry; it increases by one with each
	At  time.Time `json:"at"`  // when the call came
	// Who is the name of the token; socket: a caller of the daemon's socket; empty: an unknown caller.
	Who     string `json:"who,omitempty"`
	Role    Role   `json:"role,omitempty"` // of the token
	Remote  string `json:"remote"`         // IP address and port; of the socket: user and process
	Method  string `json:"method"`
	Path    string `json:"path"`              // percent-encoded; at most 1000 bytes, as all texts from the caller
	Project string `json:"project,omitempty"` // the project in the path, if there is one
	Host    string `json:"host,omitempty"`    // the host or domain of a brake, in the path or in a form
	Reason  string `json:"reason,omitempty"`  // as the caller gave it
	Status  int    `json:"status"`            // of the answer
	Error   string `json:"error,omitempty"`   // why the call failed; absent: it succeeded
}

// An AuditPage is a page of the audit, the newest entry first.
type AuditPage struct {
	Entries    []AuditEntry `json:"entries"`
	NextBefore int64        `json:"before,omitempty"` // the parameter before of the next page; absent: this is the last
}

// The defaults of AuditRotationLimits.
const (
	defaultMaxAuditFileSize = 16 << 20
	defaultMaxAuditFiles    = 20
)

// AuditRotationLimits says how much of an audit is kept.
type AuditRotationLimits struct {
	MaxFileSize int64 // of a file, in bytes; 0: 16 MiB
	MaxFiles    int   // full files kept beside the current one; 0: 20
}

// An AuditLog appends entries to a file of JSON Lines. A full file is renamed to
// audit-SEQ.jsonl beside it, where SEQ is the number of its last entry.
type AuditLog struct {
	path           string
	rotationLimits AuditRotationLimits

	mu      sync.Mutex // guards file, size and lastSeq, and serialises writes to file
	file    *os.File   // nil: closed, or the last rotation failed to open a file
	size    int64      // of file, in bytes
	lastSeq int64      // the number of the last entry written

	syncMu    sync.Mutex // guards syncedSeq, and serialises syncs; locked before mu
	syncedSeq int64      // the number of the last durable entry
}

// OpenAuditLog opens the audit in a file, and creates the file if it is missing. It ends a line
// that a crash left incomplete; readers skip such a line.
func OpenAuditLog(path string, rotation AuditRotationLimits) (*AuditLog, error) {
	rotation.MaxFileSize, rotation.MaxFiles = cmp.Or(rotation.MaxFileSize, defaultMaxAuditFileSize),
		cmp.Or(rotation.MaxFiles, defaultMaxAuditFiles)
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

// openFile opens the file at a.path, and ends its last line if that is incomplete. The caller holds
// a.mu, or is the only user of a.
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

// appendEntry gives an entry its number and writes it. The entry is durable when appendEntry
// returns. Concurrent calls share a sync.
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

// syncUpTo makes the entries of f up to seq durable, unless another call has done so.
func (a *AuditLog) syncUpTo(seq int64, f *os.File) error {
	a.syncMu.Lock()
	defer a.syncMu.Unlock()
	if a.syncedSeq >= seq {
		return nil
	}
	// The sync covers all entries written before it, those of waiting calls as well.
	a.mu.Lock()
	latest := a.lastSeq
	a.mu.Unlock()
	if err := f.Sync(); errors.Is(err, os.ErrClosed) {
		return nil // f was full, or the audit is closed: rotate and Close sync f before they close it
	} else if err != nil {
		return err
	}
	a.syncedSeq = latest
	return nil
}

// writeEntry appends an entry and returns its number and its file. f is nil if the entry was not
// written. An f with an error means that the entry was written, but the full file could not be
// rotated.
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

// rotate renames the full file, opens a new one, and removes the oldest files beyond MaxFiles. If
// the file cannot be renamed, it keeps growing. The caller holds a.mu.
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

// Page returns the last entries before the one with the number before, at most limit of them. If
// before is 0, it returns the last entries of all.
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

// lastAuditEntries returns the last n entries of a file before the one with the number before, the
// newest first. before 0 means the end of the file.
func lastAuditEntries(path string, before int64, n int) ([]AuditEntry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var last []AuditEntry // up to 2n entries: dropping n at once moves each entry at most once
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // at io.EOF, an incomplete line is one that is being written
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

// Close makes the entries durable and closes the file. Later entries fail.
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
