package bolt

import (
	"fmt"

	"go.etcd.io/bbolt"
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
		totals, err := s.index.load(tx, log)
		s.seen.count, s.queues.parkedCount = totals.seenCount, totals.parkedCount
		return err
	})
}
