package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage/internal/record"
)

// load takes the file over: first it brings it to this format and marks it as
// opened, then it reads it. Of the origins it takes those into memory that have
// something to hand out, or changes in the log; URLs stay where they are.
func (s *Store) load() error {
	if err := s.inPlace(); err != nil {
		return err
	}
	if err := s.db.View(whole); err != nil {
		return err
	}
	if err := s.db.Update(create); err != nil {
		return err
	}
	if err := migrate(s.db, sealBytes); err != nil {
		return err
	}
	if err := s.db.Update(s.takeOver); err != nil {
		return err
	}
	return s.db.View(func(tx *bbolt.Tx) error {
		for _, name := range buckets() {
			if tx.Bucket([]byte(name)) == nil {
				return fmt.Errorf("bucket %q is missing: restore the file from a backup", name)
			}
		}
		var err error
		if s.files, err = readFiles(tx); err != nil {
			return s.damaged("lengths of files: %v", err)
		}
		if err := s.replayLog(tx); err != nil {
			return err
		}
		return s.loadOrigins(tx)
	})
}

// loadOrigins adds up the origins in the file that are not in memory, and
// takes those into it that are in play, or into the schedule as idle.
func (s *Store) loadOrigins(tx *bbolt.Tx) error {
	names := bucketOf(tx, bucketNames)
	return tx.Bucket([]byte(bucketOrigins)).ForEach(func(key, _ []byte) error {
		o, err := s.read(tx, key)
		if err != nil {
			return err
		}
		s.last = max(s.last, o.number)
		if s.numbers[o.number] != nil {
			return nil // the log knows it better
		}
		s.seen += o.seen
		s.parked += o.parked
		if o.isEmpty() {
			return nil
		}
		named, err := names.get(originKey(o.name.String()))
		if err != nil || len(named) != 4 || binary.BigEndian.Uint32(named) != o.number {
			return s.damaged("origin %v is not to be found by its name", o.name)
		}
		if err := s.admit(tx, o); err != nil {
			return err
		}
		s.turns.Update(&o.Origin)
		if len(s.hosts) > s.maxHostsInMemory() {
			s.evict(o.host)
		}
		return nil
	})
}

// A replayed log is the changes that it makes, and the origins and hosts as
// they are in the end.
type replayed struct {
	origins  map[uint32]*origin
	hosts    map[uint32][]byte
	nameless map[uint32]bool // origins without a record so far
}

func (r *replayed) get(number uint32) *origin {
	o := r.origins[number]
	if o == nil {
		o = &origin{number: number, fresh: &changes{size: 1}, born: true}
		r.origins[number], r.nameless[number] = o, true
	}
	return o
}

func (r *replayed) change(number uint32) *changes { return r.get(number).fresh }

func (r *replayed) origin(number uint32, value []byte) error {
	o := r.get(number)
	delete(r.nameless, number)
	return parseOrigin(value, o)
}

func (r *replayed) host(number uint32, value []byte) { r.hosts[number] = value }

// replayLog takes up what is in the log: it becomes what it was before the
// process ended, changes in memory that are yet to be folded. Where they were
// folded already, that will make no difference.
func (s *Store) replayLog(tx *bbolt.Tx) error {
	log := replayed{make(map[uint32]*origin), make(map[uint32][]byte), make(map[uint32]bool)}
	err := tx.Bucket([]byte(bucketLog)).ForEach(func(key, piece []byte) error {
		if len(key) != 8 {
			return s.damaged("log: key %x", key)
		}
		s.piece = binary.BigEndian.Uint64(key) + 1
		piece, err := checkSum(key, piece)
		if err != nil {
			return s.damaged("log: piece %x: %v", key, err)
		}
		n, err := readPiece(bytes.Clone(piece), &log) // pages move while changes stay
		s.logged += n
		if err != nil {
			return s.damaged("log: piece %x: %v", key, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(log.nameless) > 0 {
		return s.damaged("log: %d origins have changes and no name", len(log.nameless))
	}
	// In order: a host that is not in the file has the number of its first origin.
	for _, number := range slices.Sorted(maps.Keys(log.origins)) {
		if err := s.resume(tx, log.origins[number], &log); err != nil {
			return err
		}
	}
	return nil
}

// resume takes an origin out of the log into memory.
func (s *Store) resume(tx *bbolt.Tx, o *origin, log *replayed) error {
	if s.origins[o.name] != nil {
		return s.damaged("log: %v has two numbers", o.name)
	}
	if err := s.admit(tx, o); err != nil {
		return err
	}
	if value := log.hosts[o.host.number]; value != nil && !o.host.unfolded {
		clock, err := record.ParseHost(value)
		if err != nil {
			return s.damaged("log: host %q: %v", o.host.name, err)
		}
		o.host.unfolded = true
		s.wind(o.host, clock)
	}
	s.last = max(s.last, o.number)
	s.seen += o.seen
	s.parked += o.parked
	s.held += o.fresh.size
	s.dirty = append(s.dirty, o)
	s.turns.Update(&o.Origin)
	return nil
}
