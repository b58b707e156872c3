package bolt

import (
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
	if err := s.file.prepare(); err != nil {
		return err
	}
	if err := s.file.db.Update(s.loadMetaAndMarkOpen); err != nil {
		return err
	}
	return s.file.db.View(func(tx *bbolt.Tx) error {
		for _, name := range allBuckets() {
			if tx.Bucket([]byte(name)) == nil {
				return fmt.Errorf("bucket %q is missing: restore the file from a backup", name)
			}
		}
		if err := s.outputFiles.load(tx); err != nil {
			return s.damage.errorf("lengths of files: %v", err)
		}
		log, err := s.journal.replay(tx)
		if err != nil {
			return err
		}
		// In order: a host that is not in the file has the number of its first origin.
		for _, number := range slices.Sorted(maps.Keys(log.origins)) {
			if err := s.restoreOriginFromLog(tx, log.origins[number], log); err != nil {
				return err
			}
		}
		return s.loadRemainingOrigins(tx)
	})
}

// loadRemainingOrigins adds up the origins in the file that are not in memory, and
// takes those into it that are in play, or into the schedule as idle.
func (s *Store) loadRemainingOrigins(tx *bbolt.Tx) error {
	names := openChecksummedBucket(tx, bucketNames)
	return tx.Bucket([]byte(bucketOrigins)).ForEach(func(key, _ []byte) error {
		o, err := s.readOrigin(tx, key)
		if err != nil {
			return err
		}
		s.lastOriginNumber = max(s.lastOriginNumber, o.number)
		if s.originsByNumber[o.number] != nil {
			return nil // the log knows it better
		}
		s.seenCount += o.seenCount
		s.parkedCount += o.parkedCount
		if o.isEmpty() {
			return nil
		}
		namedNumber, err := names.get(originNameKey(o.name.String()))
		if err != nil || len(namedNumber) != 4 || binary.BigEndian.Uint32(namedNumber) != o.number {
			return s.damage.errorf("origin %v is not to be found by its name", o.name)
		}
		if err := s.loadHostAndAttachOrigin(tx, o); err != nil {
			return err
		}
		s.schedule.UpdateOrigin(&o.Origin)
		if len(s.hosts) > s.opts.hostLimit() {
			s.evictHostIfClean(o.host)
		}
		return nil
	})
}

// restoreOriginFromLog takes an origin out of the log into memory.
func (s *Store) restoreOriginFromLog(tx *bbolt.Tx, o *loadedOrigin, log *replayedLogState) error {
	if s.origins[o.name] != nil {
		return s.damage.errorf("log: %v has two numbers", o.name)
	}
	if err := s.loadHostAndAttachOrigin(tx, o); err != nil {
		return err
	}
	if value := log.hostRecords[o.host.number]; value != nil && !o.host.uncheckpointed {
		state, err := record.ParseHostState(value)
		if err != nil {
			return s.damage.errorf("log: host %q: %v", o.host.name, err)
		}
		o.host.uncheckpointed = true
		s.restoreHostState(o.host, state)
	}
	s.lastOriginNumber = max(s.lastOriginNumber, o.number)
	s.seenCount += o.seenCount
	s.parkedCount += o.parkedCount
	s.journal.adoptReplayed(o)
	s.schedule.UpdateOrigin(&o.Origin)
	return nil
}
