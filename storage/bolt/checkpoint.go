package bolt

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// foldPages is about how many pages of the file one transaction folds into:
// bbolt holds each of them in memory, twice.
const foldPages = 2000

// fillPercent is how full bbolt leaves a page that it splits. Most grow in the
// middle, where one origin ends and the next begins.
const fillPercent = 0.75

// maxLogFactor bounds the log, in changes for each that may be held: changes that
// undo each other are held once, and are all in the log.
const maxLogFactor = 4

// logging is the state of the log in the file.
type logging struct {
	piece   uint64 // number of the next one
	logged  int    // changes in the log
	passEnd uint64 // the present pass folds all of the log before this piece
	before  int    // changes there
}

// A write is what one transaction brings to the file: the pieces of the log
// since the write before, and some origins' changes, each in its place. It is
// written whole or not at all, and does not change once it is made.
type write struct {
	number uint64
	pieces [][]byte
	first  uint64 // number of the first piece
	folds  []fold
	hosts  *counting // new hosts; nil: no host is new
	trim   uint64    // the whole log before this piece is folded; 0: a part is not
	freed  int       // changes of the log that go with that
	plain  bool      // without checksums, as in formats before 4: for migrations
}

// A fold is what becomes of one origin.
type fold struct {
	*changes
	o      *origin
	number uint32
	born   bool // perhaps not in names yet
	name   string
	record []byte    // nil if only some of the fingerprints are folded
	host   *hostFold // if it has changed
}

type hostFold struct {
	number uint32
	name   string
	record []byte
}

// presses reports whether so much is held that it should be folded now.
func (s *Store) presses() bool {
	maxChanges := s.maxBufferedChanges()
	return s.held >= maxChanges*3/4 || s.logged >= maxLogFactor*maxChanges*3/4
}

// eases reports whether there is time to fold beside so many changes that are to be
// written, and enough held for it to be worth it: several for each origin. A store
// that is never quite idle, as a daemon's, would otherwise hold what a fast crawl needs.
func (s *Store) eases(unsaved int) bool {
	const several = 4
	worth := s.held >= max(s.maxBufferedChanges()/8, several*len(s.dirty))
	return unsaved < s.opts.FlushSize/8 && (worth || len(s.pass) > 0)
}

// seal makes the next write; nil if there is nothing to write.
func (s *Store) seal() *write {
	unsaved := s.unsaved()
	idle := unsaved == 0
	if idle && (s.logged == 0 || !s.calm && !s.presses()) {
		s.calm = true
		return nil
	}
	s.calm = idle
	s.writes++
	w := &write{number: s.writes, first: s.piece, hosts: s.sealCounted()}
	s.logChangedRecords()
	s.logged += s.redo.n
	w.pieces = s.redo.take()
	s.piece += uint64(len(w.pieces))
	if idle || s.presses() || s.eases(unsaved) {
		s.takeFolds(w)
	}
	return w
}

// unsaved returns how many changes are to be written, about.
func (s *Store) unsaved() int {
	return s.redo.n + len(s.unlogged) + len(s.hostsUnlogged) + s.unsavedHosts()
}

// logChangedRecords puts into the log what the changed origins and hosts are now.
func (s *Store) logChangedRecords() {
	var buf []byte
	for _, o := range s.unlogged {
		o.unlogged = false
		buf = appendOrigin(buf[:0], o)
		s.redo.putRecord(opOrigin, o.number, buf)
	}
	for _, h := range s.hostsUnlogged {
		h.unlogged = false
		buf = record.AppendHost(buf[:0], &h.Clock)
		s.redo.putRecord(opHost, h.number, buf)
	}
	clear(s.unlogged) // lets them be collected
	clear(s.hostsUnlogged)
	s.unlogged, s.hostsUnlogged = s.unlogged[:0], s.hostsUnlogged[:0]
}

// takeFolds adds the next origins of the pass to w: their state of now, all of
// which is in the log or in w. A pass folds every origin that has changes at
// its beginning, in the order of the file; when it has ended, the log from
// before is not needed any more.
func (s *Store) takeFolds(w *write) {
	if len(s.pass) == 0 {
		s.pass, s.dirty = s.dirty, nil
		slices.SortFunc(s.pass, func(a, b *origin) int { return cmp.Compare(a.number, b.number) })
		s.passEnd, s.before = s.piece, s.logged
	}
	pages := 0
	for len(s.pass) > 0 && pages < s.opts.foldPages {
		o := s.pass[0]
		if o.fresh.seen.len() > s.opts.foldPages {
			if pages == 0 {
				w.folds = append(w.folds, foldPrints(o, s.opts.foldPages))
			}
			return // the rest of o in the next
		}
		f := newFold(o)
		s.pass = s.pass[1:]
		pages += f.pages()
		w.folds = append(w.folds, f)
	}
	if len(s.pass) == 0 {
		s.pass = nil
		w.trim, w.freed = s.passEnd, s.before
	}
}

// newFold takes the changes of an origin.
func newFold(o *origin) fold {
	f := fold{changes: o.fresh, o: o, number: o.number, born: o.born, name: o.name.String(), record: appendOrigin(nil, o)}
	o.fresh, o.folding, o.born = nil, o.fresh, false
	if h := o.host; h.unfolded || f.born {
		h.unfolded = false
		f.host = &hostFold{h.number, h.name, record.AppendHost(nil, &h.Clock)}
	}
	return f
}

// foldPrints takes the first n fingerprints of an origin, ahead of its other
// changes, where there are so many that each could be on a page of its own.
// Until the pass is over they are in the log too, with the URLs they are of.
func foldPrints(o *origin, n int) fold {
	f := fold{changes: &changes{seen: o.fresh.seen.cut(n)}, o: o, number: o.number}
	o.folding = f.changes
	return f
}

// settle takes note that w is in the file.
func (s *Store) settle(w *write) {
	for _, f := range w.folds {
		s.held -= f.size
		f.o.folding = nil
		s.entertain(f.o)
	}
	s.settleCounted(w.hosts)
	s.logged -= w.freed
	s.writing, s.written = nil, w.number
}

// apply writes w, bucket by bucket, in the order of keys: neighbours share a page.
func (w *write) apply(tx *bbolt.Tx) error {
	steps := []struct {
		bucket string
		fold   func(*fold, bucket) error
	}{
		{bucketNames, (*fold).putNames},
		{bucketHosts, (*fold).putHost},
		{bucketOrigins, (*fold).putRecord},
		{bucketURLs, (*fold).putURLs},
		{bucketPrints, (*fold).putPrints},
		{bucketResting, (*fold).putResting},
		{bucketNotes, (*fold).putNotes},
	}
	for _, step := range steps {
		b := bucket{tx.Bucket([]byte(step.bucket)), w.plain}
		b.FillPercent = fillPercent
		for i := range w.folds {
			if err := step.fold(&w.folds[i], b); err != nil {
				return err
			}
		}
	}
	if err := w.hosts.put(tx); err != nil {
		return err
	}
	return w.log(tx.Bucket([]byte(bucketLog)))
}

// log brings the log up to date. What is folded already does not go there.
func (w *write) log(b *bbolt.Bucket) error {
	b.FillPercent = 1 // it grows at its end
	for i, piece := range w.pieces {
		if number := w.first + uint64(i); number >= w.trim {
			key := binary.BigEndian.AppendUint64(nil, number)
			if err := b.Put(key, withSum(key, piece)); err != nil {
				return err
			}
		}
	}
	if w.trim == 0 {
		return nil
	}
	key, _ := b.Cursor().First()
	if key == nil {
		return nil
	}
	for number := binary.BigEndian.Uint64(key); number < w.trim; number++ {
		if err := b.Delete(binary.BigEndian.AppendUint64(nil, number)); err != nil {
			return err
		}
	}
	return nil
}

func (f *fold) putNames(names bucket) error {
	if !f.born || names.Get(originKey(f.name)) != nil {
		return nil
	}
	if err := names.set(originKey(f.name), numberKey(f.number)); err != nil {
		return err
	}
	return names.set(hostKey(f.host.name), numberKey(f.host.number))
}

func (f *fold) putHost(hosts bucket) error {
	if f.host == nil {
		return nil
	}
	return hosts.set(numberKey(f.host.number), f.host.record)
}

func (f *fold) putRecord(origins bucket) error {
	if f.record == nil {
		return nil
	}
	return origins.set(numberKey(f.number), f.record)
}

func (f *fold) putURLs(urls bucket) error {
	key := make([]byte, 0, urlKeyLen)
	for c := f.urls.seek(change{slot: slot{0, firstPlace}}); ; c.next() {
		change, ok := c.peek()
		if !ok {
			return nil
		}
		if err := putSealed(urls.Bucket, appendURLKey(key, f.number, change.slot), change.value); err != nil {
			return err
		}
	}
}

// putSealed puts a value that ends with its checksum; a nil value deletes the key.
func putSealed(b *bbolt.Bucket, key, value []byte) error {
	if value == nil {
		return b.Delete(key)
	}
	return b.Put(key, value)
}

func (f *fold) putPrints(prints bucket) error {
	fresh := make([]print, 0, f.seen.len())
	for c := f.seen.seek(0); ; c.next() {
		p, ok := c.peek()
		if !ok {
			return addPrints(prints, f.number, fresh)
		}
		fresh = append(fresh, p)
	}
}

func (f *fold) putResting(resting bucket) error {
	for _, p := range slices.Sorted(maps.Keys(f.rests)) {
		var value []byte
		if at := f.rests[p]; at != nowhere {
			value = appendURLKey(nil, f.number, slot{schedule.Resting, at})
		}
		if err := resting.set(appendPrintKey(nil, f.number, p), value); err != nil {
			return err
		}
	}
	return nil
}

func (f *fold) putNotes(notes bucket) error {
	for _, key := range slices.Sorted(maps.Keys(f.notes)) {
		if err := notes.set(appendNoteKey(nil, f.number, key), f.notes[key]); err != nil {
			return err
		}
	}
	return nil
}
