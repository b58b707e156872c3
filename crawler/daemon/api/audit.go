package api

import (
	"bufio"
	"bytes"
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
	Entries []AuditEntry `json:"entries"`
	Before  int64        `json:"before,omitempty"` // asks for the page that follows; none if there is none
}

// Defaults of AuditConfig.
const (
	auditFileSize = 16 << 20
	auditFiles    = 20
)

// AuditConfig says how much of an audit is kept.
type AuditConfig struct {
	MaxSize int64 // of a file, in bytes; 0: 16 MiB
	Files   int   // that are full and kept; 0: 20
}

// An Audit is a file of JSON lines to which calls are appended, in full files
// beside it once it is full: audit-SEQ.jsonl, by their last entry.
type Audit struct {
	name string
	cfg  AuditConfig

	mu     sync.Mutex // guards what follows, and writing
	file   *os.File
	size   int64
	seq    int64
	sync   sync.Mutex // held by who makes entries durable, for all that wait
	synced int64      // the last entry that is durable; guarded by sync
}

// OpenAudit opens the audit in a file, which is made if it is not there. A line
// that a crash tore is ended, and passed by by who reads.
func OpenAudit(name string, cfg AuditConfig) (*Audit, error) {
	cfg.MaxSize, cfg.Files = cmp.Or(cfg.MaxSize, auditFileSize), cmp.Or(cfg.Files, auditFiles)
	a := &Audit{name: name, cfg: cfg}
	if err := a.open(); err != nil {
		return nil, err
	}
	page, err := a.Page(0, 1)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if len(page.Entries) > 0 {
		a.seq = page.Entries[0].Seq
	}
	a.synced = a.seq
	return a, nil
}

func (a *Audit) open() error {
	f, err := os.OpenFile(a.name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
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

// Append keeps an entry, which gets its number. It is on the disk when Append
// returns; calls at the same time are made durable together.
func (a *Audit) Append(e AuditEntry) error {
	seq, f, err := a.write(e)
	if f != nil {
		err = errors.Join(err, a.settle(seq, f))
	}
	if err != nil {
		return fmt.Errorf("cannot write the audit: %w", err)
	}
	return nil
}

// settle makes an entry of a file durable, unless another call has done it.
func (a *Audit) settle(seq int64, f *os.File) error {
	a.sync.Lock()
	defer a.sync.Unlock()
	if a.synced >= seq {
		return nil
	}
	a.mu.Lock()
	latest := a.seq
	a.mu.Unlock()
	if err := f.Sync(); errors.Is(err, os.ErrClosed) {
		return nil // a full file is made durable before it is closed
	} else if err != nil {
		return err
	}
	a.synced = latest
	return nil
}

// write appends an entry. The file is nil if that could not be; with an error and
// a file, it is written, and the full file was not put aside.
func (a *Audit) write(e AuditEntry) (seq int64, f *os.File, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file != nil && a.size >= a.cfg.MaxSize {
		err = a.rotate()
	}
	if a.file == nil {
		return 0, nil, errors.Join(err, fs.ErrClosed)
	}
	e.Seq = a.seq + 1
	line, failed := json.Marshal(e)
	line = jsonline.Escape(line)
	if failed != nil {
		return 0, nil, failed
	}
	n, failed := a.file.Write(append(line, '\n'))
	a.size += int64(n)
	if failed != nil {
		return 0, nil, errors.Join(err, failed)
	}
	a.seq++
	return a.seq, a.file, err
}

// rotate puts the full file aside and begins another. If that cannot be, the
// full one grows on. mu is held.
func (a *Audit) rotate() error {
	err := errors.Join(a.file.Sync(), a.file.Close())
	a.file = nil
	full := fmt.Sprintf("%s-%012d.jsonl", strings.TrimSuffix(a.name, ".jsonl"), a.seq)
	err = errors.Join(err, os.Rename(a.name, full), a.open())
	files, e := a.full()
	for err = errors.Join(err, e); len(files) > a.cfg.Files; files = files[:len(files)-1] {
		err = errors.Join(err, os.Remove(files[len(files)-1]))
	}
	return err
}

// full returns the full files, the newest first.
func (a *Audit) full() ([]string, error) {
	pattern := strings.TrimSuffix(filepath.Base(a.name), ".jsonl") + "-*.jsonl"
	files, err := fs.Glob(os.DirFS(filepath.Dir(a.name)), pattern)
	slices.Sort(files)
	slices.Reverse(files)
	for i, f := range files {
		files[i] = filepath.Join(filepath.Dir(a.name), f)
	}
	return files, err
}

// Page returns the entries before the one with that number, of all if it is 0:
// at most limit of them.
func (a *Audit) Page(before int64, limit int) (*AuditPage, error) {
	full, err := a.full()
	if err != nil {
		return nil, err
	}
	page := &AuditPage{Entries: []AuditEntry{}}
	for _, name := range append([]string{a.name}, full...) {
		last, err := lastEntries(name, before, limit+1-len(page.Entries))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		page.Entries = append(page.Entries, last...)
		if len(page.Entries) > limit {
			page.Entries = page.Entries[:limit]
			page.Before = page.Entries[limit-1].Seq
			break
		}
	}
	return page, nil
}

// lastEntries returns the last n entries of a file before the one with that
// number, the newest first.
func lastEntries(name string, before int64, n int) ([]AuditEntry, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var last [][]byte // at most 2n, so that few are moved
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // the end; a line without one is being written
			if !errors.Is(err, io.EOF) {
				return nil, err
			}
			break
		}
		var e struct{ Seq int64 }
		if json.Unmarshal(line, &e) != nil || before > 0 && e.Seq >= before {
			continue
		}
		if last = append(last, bytes.TrimSpace(line)); len(last) >= 2*n {
			last = append(last[:0], last[len(last)-n:]...)
		}
	}
	entries := make([]AuditEntry, 0, n)
	for _, line := range slices.Backward(last[max(0, len(last)-n):]) {
		var e AuditEntry
		if err := json.Unmarshal(line, &e); err == nil {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// Close closes the file.
func (a *Audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return nil
	}
	f := a.file
	a.file = nil
	return errors.Join(f.Sync(), f.Close())
}
