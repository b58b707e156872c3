package bolt

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
)

// TestEngine: an engine without queues keeps changes of origins, and refuses calls after close.
func TestEngine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "frontier.db")
	name, until := newEntry(t, "https://a.example/").URL.Origin(), time.Unix(2e9, 0).UTC()
	e, meta, _, err := openEngine(path, Options{FlushEvery: time.Hour})
	must(t, err)
	e.start()
	change := func(o *residentOrigin) {
		o.HeldUntil, o.seenCount = until, 3
		e.journal.markChanged(o)
	}
	must(t, e.changeOrigin(t.Context(), name, change))
	must(t, e.Flush(t.Context()))
	if stats, err := e.FileStats(); err != nil || stats.Size == 0 || stats.UnappliedLogChanges == 0 {
		t.Errorf("file stats %+v (%v), want a change in the log", stats, err)
	}
	ended := false
	must(t, e.close(func() { ended = true }))
	if !ended {
		t.Error("close did not call lastChanges")
	}
	for call, err := range map[string]error{
		"change": e.changeOrigin(t.Context(), name, change), "flush": e.Flush(t.Context()), "close": e.close(func() {}),
		"view": e.viewOrigin(t.Context(), name, func(*bbolt.Tx, *residentOrigin) {}),
	} {
		if !errors.Is(err, storage.ErrClosed) {
			t.Errorf("%s after close: %v, want %v", call, err, storage.ErrClosed)
		}
	}
	again, metaAgain, totals, err := openEngine(path, Options{})
	must(t, err)
	again.start()
	defer again.close(func() {})
	if totals.seenCount != 3 || metaAgain.openCount != meta.openCount+1 || !metaAgain.crashedAt.IsZero() {
		t.Errorf("opened again: %+v, %+v, want the origin's count, and no crash", metaAgain, totals)
	}
	found := false
	must(t, again.viewOrigin(t.Context(), name, func(_ *bbolt.Tx, o *residentOrigin) {
		found = o.HeldUntil.Equal(until)
	}))
	if !found {
		t.Error("the change is not there")
	}
}
