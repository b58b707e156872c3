package bolt

import (
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
)

// TestCommitter: a committer calls BeforeWrite, then writes the changes and the lengths of the output
// files. It reports the origins that it has checkpointed, and writes the rest when it stops.
func TestCommitter(t *testing.T) {
	var mu sync.Mutex
	var syncErr error
	length := OutputFileExtent{Path: "pages.jsonl", SyncedSize: 7}
	opts := Options{
		FlushEvery:      time.Hour,
		BeforeWrite:     func() error { return syncErr },
		ListOutputFiles: func() []OutputFileExtent { return []OutputFileExtent{length} },
	}.withDefaults()
	f := openStoreFile(t, filepath.Join(t.TempDir(), "frontier.db"))
	j, files := newTestJournal(), &outputFiles{}
	must(t, f.view(files.load))
	var checkpointed []*residentOrigin
	c := &committer{
		storeMu: &mu, opts: &opts, file: f, journal: j, outputFiles: files,
		checkpointed: func(o *residentOrigin) { checkpointed = append(checkpointed, o) },
		requests:     make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go c.run()

	o := newTestOrigin(t, 1, "https://a.example")
	mu.Lock()
	j.setNote(o, "key", []byte("value"))
	syncErr = syscall.ENOSPC
	err := c.flush(t.Context())
	if !errors.Is(err, storage.ErrWriteStalled) || len(files.extents) > 0 {
		t.Errorf("flush: %v, lengths %v, want %v and none", err, files.extents, storage.ErrWriteStalled)
	}
	syncErr = nil
	must(t, c.flush(t.Context()))
	if files.extents[length.Path] != length || j.loggedChangeCount == 0 || j.unwrittenChangeCount() > 0 {
		t.Errorf("after flush: lengths %v, %d changes in the log, %d unwritten", files.extents,
			j.loggedChangeCount, j.unwrittenChangeCount())
	}
	mu.Unlock()
	for j.loggedChangeCount > 0 { // as the goroutine does in an idle store
		c.commit()
	}
	mu.Lock()
	j.setNote(o, "key", []byte("second"))
	mu.Unlock()
	c.stop()
	if !slices.Contains(checkpointed, o) {
		t.Error("the origin was not reported after its checkpoint")
	}
	must(t, f.view(func(tx *bbolt.Tx) error {
		log, err := newTestJournal().replay(tx)
		if err == nil && string(log.origins[1].pendingChanges.notes["key"]) != "second" {
			t.Errorf("the log has %v, want the last note", log.origins)
		}
		return err
	}))
	must(t, f.close())
}

// A failed write is repeated after a growing delay, also if it followed another write at once.
func TestDelayAfterFailedWritesGrows(t *testing.T) {
	for _, tt := range []struct{ last, flushEvery, want time.Duration }{
		{0, time.Second, time.Second},
		{0, 10 * time.Millisecond, 10 * time.Millisecond},
		{10 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond},
		{4 * time.Second, time.Second, maxRetryDelay},
		{maxRetryDelay, time.Second, maxRetryDelay},
		{time.Minute, time.Minute, time.Minute},
	} {
		if got := nextRetryDelay(tt.last, tt.flushEvery); got != tt.want {
			t.Errorf("after a delay of %v, with FlushEvery %v, the next is %v, want %v", tt.last,
				tt.flushEvery, got, tt.want)
		}
	}
}
