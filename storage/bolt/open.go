package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/decorum-crawler/decorum"
)

// The bucket meta.
const (
	format = 1 // of the file

	keyFormat = "format"
	keyClean  = "clean"  // 1 if the last one to open the file closed it in order
	keyOpened = "opened" // how often the file was opened: the upper bits of tokens
	keyFloor  = "floor"  // no host is due before
)

// Open opens the store at path, and makes it if there is none. Only one
// process can have it open. Close must be called in the end.
func Open(path string, opts Options) (*Store, error) {
	s := &Store{
		opts:    opts.withDefaults(),
		path:    path,
		kick:    make(chan struct{}, 1),
		quit:    make(chan struct{}),
		ended:   make(chan struct{}),
		pending: newBatch(1),
		attempt: make(chan struct{}),
		hosts:   make(map[string]*host),
		origins: make(map[decorum.Origin]*origin),
		leases:  make(map[uint64]*lease),
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	go s.run()
	return s, nil
}

// open opens the file and loads what is in it.
func (s *Store) open() error {
	var file *os.File
	err := guard(func() (err error) {
		// The list of free pages is in the file (NoFreelistSync is false): else
		// bbolt would read the whole file to find them on being opened and
		// after a write that failed, in a goroutine whose panics nobody catches.
		s.db, err = bbolt.Open(s.path, 0o600, &bbolt.Options{
			Timeout:         time.Second,
			NoSync:          s.opts.noSync,
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: 1 << 28,
			OpenFile: func(name string, flag int, perm os.FileMode) (_ *os.File, err error) {
				file, err = os.OpenFile(name, flag, perm)
				return file, err
			},
		})
		if err != nil {
			return err
		}
		s.update = s.db.Update
		return s.load()
	})
	switch {
	case err == nil:
		return nil
	case s.db != nil:
		s.db.Close()
	case file != nil:
		unlock(file) // bbolt did, and closed it, unless it panicked
		file.Close()
	}
	return s.explain(err)
}

// explain says what to do about an error of opening.
func (s *Store) explain(err error) error {
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return fmt.Errorf("in use by another process: %s", s.path)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("open %s: %w", s.path, err)
	case errors.Is(err, bbolterrors.ErrInvalid), errors.Is(err, bbolterrors.ErrVersionMismatch),
		errors.Is(err, bbolterrors.ErrChecksum):
		return fmt.Errorf("%s is no store of a crawl, or it is damaged: %w: give another path, or restore it from a backup",
			s.path, err)
	}
	return fmt.Errorf("open %s: %w; if the file is damaged, restore it from a backup, or move it away to begin anew", s.path, err)
}

// load takes the file over: first it marks it as opened, then it reads it.
func (s *Store) load() error {
	if err := s.db.View(whole); err != nil {
		return err
	}
	clean := false
	err := s.db.Update(func(tx *bbolt.Tx) (err error) {
		clean, err = s.loadMeta(tx)
		return err
	})
	if err != nil {
		return err
	}
	if err := s.db.View(s.loadState); err != nil {
		return err
	}
	if clean {
		return nil
	}
	now := s.opts.Now()
	for _, h := range s.hosts { // the end of the last visit may be what was lost
		h.Rest(now.Add(max(h.Gap, s.opts.RestartDelay)))
		s.pending.changedHost(h)
	}
	for _, o := range s.all {
		s.turns.Update(&o.Origin)
	}
	return nil
}

// whole returns an error if the end of the file is missing.
func whole(tx *bbolt.Tx) error {
	info, err := os.Stat(tx.DB().Path())
	if err == nil && info.Size() < tx.Size() {
		err = fmt.Errorf("cut short: %d bytes of %d: restore the file from a backup", info.Size(), tx.Size())
	}
	return err
}

// loadMeta reads the bucket meta, and makes all buckets of a new file.
func (s *Store) loadMeta(tx *bbolt.Tx) (clean bool, err error) {
	meta := tx.Bucket([]byte(bucketMeta))
	if meta == nil {
		if first, _ := tx.Cursor().First(); first != nil {
			return false, fmt.Errorf("a bbolt file of something else (bucket %q): give another path", first)
		}
		for _, name := range []string{bucketMeta, bucketHosts, bucketOrigins, bucketURLs, bucketSeen, bucketNotes} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return false, err
			}
		}
		s.token = 1 << 40
		return true, writeMeta(tx, map[string][]byte{keyFormat: number(format), keyOpened: number(1)})
	}
	found, err := metaNumber(meta, keyFormat)
	switch {
	case err != nil:
		return false, err
	case found > format:
		return false, fmt.Errorf("format %d is newer than this program's, %d: update the program", found, format)
	}
	opened, err := metaNumber(meta, keyOpened)
	if err != nil {
		return false, err
	}
	s.token = (opened + 1) << 40
	if s.floor, err = loadFloor(meta); err != nil {
		return false, err
	}
	clean = meta.Get([]byte(keyClean)) != nil
	if floor := s.opts.Now().Add(s.opts.RestartDelay); !clean && floor.After(s.floor) {
		s.floor = floor
	}
	return clean, writeMeta(tx, map[string][]byte{
		keyClean: nil, keyOpened: number(opened + 1), keyFloor: appendTime(nil, s.floor),
	})
}

func loadFloor(meta *bbolt.Bucket) (floor time.Time, err error) {
	b := meta.Get([]byte(keyFloor))
	if b == nil {
		return floor, nil
	}
	r := reader{b: b}
	floor = r.time()
	return floor, r.end()
}

// loadState reads hosts and origins. URLs stay where they are.
func (s *Store) loadState(tx *bbolt.Tx) error {
	for _, name := range []string{bucketHosts, bucketOrigins, bucketURLs, bucketSeen, bucketNotes} {
		if tx.Bucket([]byte(name)) == nil {
			return fmt.Errorf("bucket %q is missing: restore the file from a backup", name)
		}
	}
	err := tx.Bucket([]byte(bucketHosts)).ForEach(func(key, value []byte) error {
		name, ok := recordName(key)
		clock, err := parseHost(value)
		if !ok || err != nil {
			return fmt.Errorf("host %q: %w", key, errDamaged)
		}
		h := &host{name: name}
		h.Clock = clock
		s.hosts[name] = h
		return nil
	})
	if err != nil {
		return err
	}
	return s.loadOrigins(tx.Bucket([]byte(bucketOrigins)))
}

func (s *Store) loadOrigins(bucket *bbolt.Bucket) error {
	var loaded []*origin
	err := bucket.ForEach(func(key, value []byte) error {
		text, ok := recordName(key)
		name, valid := parseOriginName(text)
		if !ok || !valid {
			return fmt.Errorf("origin %q: %w", key, errDamaged)
		}
		o := s.adopt(name, 0)
		if err := parseOrigin(value, o); err != nil {
			return fmt.Errorf("origin %q: %w", key, err)
		}
		loaded = append(loaded, o)
		return nil
	})
	if err != nil {
		return err
	}
	return s.enrol(loaded)
}

// enrol puts the origins in the order of their numbers, and adds them up.
func (s *Store) enrol(loaded []*origin) error {
	clear(s.all)
	for _, o := range loaded {
		i := int(o.number) - 1 // numbers are given from 1 on without a gap
		if i < 0 || i >= len(s.all) || s.all[i] != nil {
			return fmt.Errorf("origin %v: number %d: %w", o.name, o.number, errDamaged)
		}
		s.all[i] = o
		s.seen += o.seen
		s.parked += o.parked.n
		s.turns.Update(&o.Origin)
	}
	return nil
}

// markClean says that the file was closed in order.
func markClean(tx *bbolt.Tx) error {
	return writeMeta(tx, map[string][]byte{keyClean: {1}})
}

// writeMeta sets keys of the bucket meta; nil deletes.
func writeMeta(tx *bbolt.Tx, values map[string][]byte) error {
	meta := tx.Bucket([]byte(bucketMeta))
	for key, value := range values {
		var err error
		if value == nil {
			err = meta.Delete([]byte(key))
		} else {
			err = meta.Put([]byte(key), value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func number(n uint64) []byte { return binary.AppendUvarint(nil, n) }

func metaNumber(meta *bbolt.Bucket, key string) (uint64, error) {
	n, size := binary.Uvarint(meta.Get([]byte(key)))
	if size <= 0 {
		return 0, fmt.Errorf("%s: %w", key, errDamaged)
	}
	return n, nil
}
