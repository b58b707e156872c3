package bolt

import (
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
)

// TestOutputFileLengths: only changed lengths are written, and they are read back.
func TestOutputFileLengths(t *testing.T) {
	f := openStoreFile(t, filepath.Join(t.TempDir(), "frontier.db"))
	defer f.close()
	var o outputFiles
	must(t, f.view(o.load))
	a, b := OutputFileExtent{Path: "a", SyncedSize: 1},
		OutputFileExtent{Path: "warc", Name: "b.warc", Serial: 2, SyncedSize: 3}
	o.markCommitted([]OutputFileExtent{a})
	changed := o.changed([]OutputFileExtent{a, b})
	if !slices.Equal(changed, []OutputFileExtent{b}) {
		t.Errorf("changed: %v, want %v", changed, b)
	}
	must(t, f.update(func(tx *bbolt.Tx) error { return writeOutputFileLengths(tx, changed) }))
	var again outputFiles
	must(t, f.view(again.load))
	if got := again.byPath(); !slices.Equal(got, changed) {
		t.Errorf("the file holds %v, want %v", got, changed)
	}
}
