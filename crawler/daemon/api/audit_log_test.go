package api

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func openTestAuditLog(t *testing.T, name string, cfg AuditRotationLimits) *AuditLog {
	t.Helper()
	a, err := OpenAuditLog(name, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// checkAuditEntries checks that the audit, read in pages of pageSize entries, has exactly the
// entries from newest to oldest.
func checkAuditEntries(t *testing.T, a *AuditLog, newest, oldest int64, pageSize int) {
	t.Helper()
	wantSeq := newest
	for before := int64(0); ; {
		page, err := a.Page(before, pageSize)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			if e.Seq != wantSeq || e.Path != fmt.Sprintf("/%d", e.Seq) {
				t.Fatalf("entry %d of %s, want %d", e.Seq, e.Path, wantSeq)
			}
			wantSeq--
		}
		if before = page.NextBefore; before == 0 {
			break
		}
	}
	if wantSeq != oldest-1 {
		t.Errorf("the oldest entry is %d, want %d", wantSeq+1, oldest)
	}
}

func TestAuditRotates(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit.jsonl")
	cfg := AuditRotationLimits{MaxFileSize: 600, MaxFiles: 3}
	a := openTestAuditLog(t, name, cfg)
	lines := 0
	for i := range 40 {
		if i == 20 { // the daemon restarts
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			a = openTestAuditLog(t, name, cfg)
		}
		if err := a.appendEntry(AuditEntry{Path: fmt.Sprintf("/%d", i+1)}); err != nil {
			t.Fatal(err)
		}
	}
	files, err := a.rotatedFiles()
	if err != nil || len(files) != cfg.MaxFiles {
		t.Fatalf("%d full files are kept: %v", len(files), err)
	}
	for _, f := range append(files, name) {
		text, err := os.ReadFile(f)
		if err != nil || len(text) > 800 {
			t.Errorf("%s has %d bytes, %v", f, len(text), err)
		}
		lines += strings.Count(string(text), "\n")
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f, info.Mode(), err)
		}
	}
	if lines >= 40 || lines < 20 {
		t.Errorf("%d lines are kept", lines)
	}
	for _, pageSize := range []int{1, 7, 1000} {
		checkAuditEntries(t, a, 40, int64(41-lines), pageSize)
	}
}

// After a crash a reader skips the incomplete last line, and the next entry starts on a new line.
func TestAuditAfterCrash(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit.jsonl")
	a := openTestAuditLog(t, name, AuditRotationLimits{})
	for i := range 3 {
		if err := a.appendEntry(AuditEntry{Path: fmt.Sprintf("/%d", i+1)}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for torn := 1; torn < 30; torn++ {
		if err := os.WriteFile(name, text[:len(text)-torn], 0o600); err != nil {
			t.Fatal(err)
		}
		a := openTestAuditLog(t, name, AuditRotationLimits{})
		want := int64(3)
		if torn == 1 { // the last entry is complete without its line ending
			want = 4
		}
		if err := a.appendEntry(AuditEntry{Path: fmt.Sprintf("/%d", want)}); err != nil {
			t.Fatal(err)
		}
		checkAuditEntries(t, a, want, 1, 2)
	}
}

func TestAuditByManyAtATime(t *testing.T) {
	a := openTestAuditLog(t, filepath.Join(t.TempDir(), "audit.jsonl"),
		AuditRotationLimits{MaxFileSize: 4000, MaxFiles: 1000})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 50 {
				if err := a.appendEntry(AuditEntry{Path: "/x"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	page, err := a.Page(0, 2000)
	if err != nil || len(page.Entries) != 1000 {
		t.Fatalf("%d entries, %v", len(page.Entries), err)
	}
	for i, e := range page.Entries {
		if e.Seq != int64(1000-i) {
			t.Fatalf("entry %d is number %d", i, e.Seq)
		}
	}
}

func TestClosedAuditLog(t *testing.T) {
	a := openTestAuditLog(t, filepath.Join(t.TempDir(), "audit.jsonl"), AuditRotationLimits{})
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.appendEntry(AuditEntry{}); err == nil {
		t.Error("appendEntry returned no error for an entry that it did not write")
	}
}
