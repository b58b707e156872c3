//go:build linux

package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

const diskFullEnv = "DECORUM_BOLT_FULL" // environment variable of the child: path of the directory

// TestFileSizeLimit: a store that reaches the system's limit on file sizes stalls, and continues when the
// limit is raised. The test runs in a child process, since the limit is the process's.
func TestFileSizeLimit(t *testing.T) {
	child := exec.Command(os.Args[0], "-test.run=^TestFileSizeLimitChild$", "-test.v")
	child.Env = append(os.Environ(), diskFullEnv+"="+t.TempDir())
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestFileSizeLimitChild(t *testing.T) {
	dir := os.Getenv(diskFullEnv)
	if dir == "" {
		t.Skip("run by TestFileSizeLimit")
	}
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	old := limit.Cur
	set := func(cur uint64) {
		limit.Cur = cur
		must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	}
	set(24 << 20)
	testFullDisk(t, dir, "file too large: raise the quota or the limit on file sizes", func() { set(old) })
}

// TestFullFileSystem: a store on a full file system stalls, and continues when the file system grows.
func TestFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("no file system may be mounted here: %v", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	testFullDisk(t, dir, "no space left on device: free some space on the disk", func() {
		must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=400m"))
	})
}

// testFullDisk writes to a store in dir until the disk is full. Then Lease fails, and other calls succeed
// until MaxBufferedChanges and wait from then on. After makeRoom all of them are durable.
func testFullDisk(t *testing.T, dir, cause string, makeRoom func()) {
	reported := make(chan error, 10)
	untilFull, stop := context.WithCancel(t.Context())
	defer stop()
	opts := Options{FlushEvery: time.Millisecond, MaxBufferedChanges: 20_000, OnStallChange: func(err error) {
		reported <- err
		stop()
	}}
	s := openStore(t, dir, opts)
	added := 0
	call := func(ctx context.Context) error {
		e := newEntry(t, "https://h%d.example/%d", added%50, added)
		e.CallbackData = make([]byte, 16<<10) // counts as 65 changes
		_, err := s.Add(ctx, []storage.Entry{e}, 0)
		if err == nil {
			added++
		}
		return err
	}
	for call(untilFull) == nil {
		if added > 20_000 {
			t.Fatal("the disk does not become full")
		}
	}
	stalled := <-reported
	if !errors.Is(stalled, storage.ErrWriteStalled) || !strings.Contains(stalled.Error(), cause) {
		t.Errorf("OnStallChange was called with %v, want %s", stalled, cause)
	}
	if _, _, err := s.Lease(t.Context(), time.Now(), time.Minute, 1); !errors.Is(err, storage.ErrWriteStalled) {
		t.Errorf("Lease: %v, want %v", err, storage.ErrWriteStalled)
	}
	before := added
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var err error
	for err == nil && added < before+2*opts.MaxBufferedChanges {
		err = call(ctx)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d calls succeeded in memory, then %v, want a wait", added-before, err)
	}
	makeRoom()
	if err := <-reported; err != nil { // the store recovers by itself
		t.Errorf("OnStallChange was called with %v, want nil", err)
	}
	must(t, call(t.Context()))
	must(t, s.Close())

	s = openStore(t, dir, opts)
	defer s.Close()
	if c := must1(s.Counts(t.Context())); c.SeenURLs != added || c.QueuedURLs != added {
		t.Errorf("%d were added, counts %+v", added, c)
	}
	for i := range added {
		if !must1(s.HasSeen(t.Context(), newEntry(t, "https://h%d.example/%d", i%50, i).URL)) {
			t.Fatalf("URL %d is lost", i)
		}
	}
}

// TestTruncatedWhileOpen: calls return errors, and the process does not crash, after the file of an open
// store was truncated.
func TestTruncatedWhileOpen(t *testing.T) {
	dir := t.TempDir()
	fillStore(t, dir)
	s := openStore(t, dir, Options{FlushEvery: time.Hour, noSync: true})
	must(t, os.Truncate(filepath.Join(dir, "frontier.db"), int64(2*os.Getpagesize())))
	_, _, err := s.Lease(t.Context(), time.Now(), time.Minute, 1)
	want := fmt.Sprintf("read %s: the file is damaged or truncated", s.engine.file.path)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Lease: %v, want %s", err, want)
	}
	if _, err := s.Add(t.Context(), []storage.Entry{newEntry(t, "https://new.example/")}, 0); err == nil {
		t.Error("Add returned no error")
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("Close: %v", err)
	}
}
