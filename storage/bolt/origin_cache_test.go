package bolt

import (
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// newTestIndex returns an originCache over a file and the journal of its log.
func newTestIndex(t *testing.T, f *storeFile, opts Options) *originCache {
	t.Helper()
	opts = opts.withDefaults()
	damage := &damageReporter{onDamaged: func(err error) { t.Error(err) }}
	j := &journal{opts: &opts, damage: damage, newHosts: &admittedHostCounter{damage: damage}, nextSegment: 1}
	x := &originCache{
		opts: &opts, damageReporter: damage, journal: j, heads: &headCache{opts: &opts},
		hosts:   make(map[string]*residentHost),
		origins: make(map[decorum.Origin]*residentOrigin), originsByNumber: make(map[uint32]*residentOrigin),
	}
	must(t, f.view(func(tx *bbolt.Tx) error {
		log, err := j.replay(tx)
		if err == nil {
			_, err = x.load(tx, log)
		}
		return err
	}))
	return x
}

// checkpointJournal writes and checkpoints all changes of a journal.
func checkpointJournal(t *testing.T, f *storeFile, j *journal, checkpointed func(*residentOrigin)) {
	t.Helper()
	for j.unwrittenChangeCount() > 0 || j.loggedChangeCount > 0 {
		if w := j.nextBatch(); w != nil {
			must(t, f.update(w.apply))
			j.markBatchWritten(w, checkpointed)
		}
	}
}

// TestOriginIndex: an origin without URLs leaves memory after its checkpoint when others are used. It is
// found in the file under its number, with its host's clock.
func TestOriginIndex(t *testing.T) {
	f := openStoreFile(t, filepath.Join(t.TempDir(), "frontier.db"))
	defer f.close()
	opts := Options{MaxHostsInMemory: 1}
	x := newTestIndex(t, f, opts)
	a, b := newEntry(t, "https://a.example/").URL.Origin(), newEntry(t, "https://b.example/").URL.Origin()
	due := time.Unix(1e9, 0).UTC()
	must(t, f.view(func(tx *bbolt.Tx) error {
		o := must1(x.getOrCreate(tx, a))
		o.host.SetState(storage.HostState{Due: due})
		x.journal.markOriginAndHostChanged(o)
		must1(x.getOrCreate(tx, b))
		if again := must1(x.getOrCreate(tx, a)); again != o || o.number != 1 || x.lastOriginNumber != 2 {
			t.Errorf("the second call returned another origin, or numbers are wrong: %d, %d",
				o.number, x.lastOriginNumber)
		}
		return nil
	}))
	checkpointJournal(t, f, x.journal, x.keepRecent)
	if len(x.origins) != 1 || len(x.hosts) != 1 || len(x.originsByNumber) != 1 || x.origins[b] == nil {
		t.Errorf("%d origins of %d hosts are in memory, want %v alone", len(x.origins), len(x.hosts), b)
	}
	for name, x := range map[string]*originCache{"same": x, "opened again": newTestIndex(t, f, opts)} {
		must(t, f.view(func(tx *bbolt.Tx) error {
			info, found, err := x.infoByName(tx, a)
			if err != nil || !found || !info.HostState.Due.Equal(due) || x.origins[a] != nil {
				t.Errorf("%s: %+v (found %t, %v), want the host's clock, and nothing in memory", name, info, found, err)
			}
			o, err := x.find(tx, a)
			if err != nil || o.number != 1 || x.origins[a] != o || x.hosts["a.example"] != o.host {
				t.Errorf("%s: found %+v (%v), want the first origin", name, o, err)
			}
			if o, err := x.find(tx, newEntry(t, "https://c.example/").URL.Origin()); o != nil || err != nil {
				t.Errorf("%s: found %+v (%v), want nothing", name, o, err)
			}
			return nil
		}))
	}
}
