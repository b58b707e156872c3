package bolt

import (
	"encoding/binary"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// migrations bring a file of an older format to the next, index + 1 being the
// format. Each is done a portion at a time, each in a transaction, until there
// is nothing left to do: it may be broken off between them.
var migrations = []func(*bbolt.Tx) (done bool, err error){
	migrateFormat1,
	migrateFormat2,
	beginMigrateFormat3,
}

// migrate brings the file to the current format. A portion is about so many bytes of
// values that get checksums.
func migrate(db *bbolt.DB, batchBytes int) error {
	for done := false; !done; {
		err := db.Update(func(tx *bbolt.Tx) (err error) {
			done, err = migrateBatch(tx, batchBytes)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// migrateBatch migrates the next portion, and reports whether the file has the current
// format.
func migrateBatch(tx *bbolt.Tx, batchBytes int) (done bool, err error) {
	meta := tx.Bucket([]byte(bucketMeta))
	from, err := readFormat(meta)
	switch {
	case err != nil:
		return false, err
	case from > formatVersion:
		return false, fmt.Errorf("format %d is newer than this program's, %d: update the program", from, formatVersion)
	case from == 0:
		return false, fmt.Errorf("format 0: %w", record.ErrDamaged)
	case from == formatVersion && meta.Get([]byte(keyMigrationProgress)) != nil:
		return false, migrateChecksumBatch(tx, batchBytes)
	case from == formatVersion:
		return true, nil
	}
	if done, err := migrations[from-1](tx); err != nil || !done {
		return false, err
	}
	if from+1 < 4 {
		return false, meta.Put([]byte(keyFormat), encodeUvarint(from+1))
	}
	return false, writeMeta(tx, map[string][]byte{keyFormat: encodeUvarint(from + 1)})
}

// In format 2 every URL is asked for by GET, and nothing is marked as sent. What
// is there stays as it is; a program that knows no other requests must not read
// what comes.
func migrateFormat2(*bbolt.Tx) (done bool, err error) { return true, nil }

// In format 1 hosts and origins are found by their names, and the seen set has
// a key for each fingerprint.
const (
	bucketFormat1Seen = "seen"
	format1Batch      = 1 << 17 // fingerprints
)

func migrateFormat1(tx *bbolt.Tx) (done bool, err error) {
	if tx.Bucket([]byte(bucketFormat1Seen)) == nil {
		return true, nil
	}
	if tx.Bucket([]byte(bucketNames)) == nil {
		return false, assignFormat1Numbers(tx)
	}
	return packFormat1Seen(tx)
}

// assignFormat1Numbers gives hosts and origins their numbers for keys.
func assignFormat1Numbers(tx *bbolt.Tx) error {
	for _, name := range []string{bucketHosts, bucketOrigins, bucketURLs, bucketNotes} {
		if tx.Bucket([]byte(name)) == nil {
			return fmt.Errorf("bucket %q is missing: restore the file from a backup", name)
		}
	}
	var origins []*loadedOrigin
	err := tx.Bucket([]byte(bucketOrigins)).ForEach(func(key, value []byte) error {
		o, err := parseFormat1Origin(key, value)
		origins = append(origins, o)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(origins, func(a, b *loadedOrigin) int { return int(a.number) - int(b.number) })
	hostRecords := make(map[string][]byte)
	err = tx.Bucket([]byte(bucketHosts)).ForEach(func(key, value []byte) error {
		if len(key) == 0 || key[0] != '=' {
			return fmt.Errorf("host %q: %w", key, record.ErrDamaged)
		}
		hostRecords[string(key[1:])] = slices.Clone(value)
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range []string{bucketHosts, bucketOrigins} {
		if err := tx.DeleteBucket([]byte(name)); err != nil {
			return err
		}
	}
	for _, name := range format3Buckets() {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	for _, o := range origins {
		if err := convertFormat1Origin(tx, o, hostRecords); err != nil {
			return err
		}
	}
	return nil
}

// parseFormat1Origin reads an origin of format 1: its number, then as now.
func parseFormat1Origin(key, value []byte) (*loadedOrigin, error) {
	r := record.Reader{B: key}
	prefix := r.Byte()
	name, valid := record.ParseOriginName(string(r.B))
	r = record.Reader{B: value}
	o := &loadedOrigin{name: name, number: uint32(r.Int())}
	o.parseState(&r)
	if err := r.CheckFullyRead(); err != nil || !valid || prefix != '=' || o.number == 0 {
		return nil, fmt.Errorf("origin %q: %w", key, record.ErrDamaged)
	}
	return o, nil
}

// convertFormat1Origin writes o as it is in format 2, with its host and the index of its
// resting pages. Origins come in order: the host has the number of its first one.
func convertFormat1Origin(tx *bbolt.Tx, o *loadedOrigin, hostRecords map[string][]byte) error {
	if origins := tx.Bucket([]byte(bucketOrigins)); origins.Get(numberKey(o.number)) != nil {
		return fmt.Errorf("origin %v: number %d: %w", o.name, o.number, record.ErrDamaged)
	}
	f := originCheckpoint{originChanges: new(originChanges), number: o.number, isNew: true, name: o.name.String(), record: appendOriginRecord(nil, o)}
	f.host = &checkpointedHost{o.number, o.name.Host(), hostRecords[o.name.Host()]}
	if first := tx.Bucket([]byte(bucketNames)).Get(hostNameKey(f.host.name)); first != nil {
		f.host.number = binary.BigEndian.Uint32(first)
	}
	if f.host.record == nil {
		f.host.record = record.AppendHostState(nil, &schedule.HostState{})
	}
	from := slot{schedule.AwaitingRevisit, firstPosition}
	c := tx.Bucket([]byte(bucketURLs)).Cursor()
	for key, value := c.Seek(appendURLKey(nil, o.number, from)); key != nil; key, value = c.Next() {
		number, at, ok := parseURLKey(key)
		if !ok || number != o.number || at.lane != schedule.AwaitingRevisit {
			break
		}
		if e, err := record.ParseEntry(value, o.name); err == nil { // else Lease sets it aside
			f.setURLRevisitPosition(fingerprintOfURL(e.URL), at.lanePosition)
		}
	}
	w := writeBatch{checkpoints: []originCheckpoint{f}, noChecksums: true}
	return w.apply(tx)
}

// packFormat1Seen packs some of the fingerprints.
func packFormat1Seen(tx *bbolt.Tx) (done bool, err error) {
	seen, fingerprints := tx.Bucket([]byte(bucketFormat1Seen)), checksummedBucket{tx.Bucket([]byte(bucketFingerprints)), true}
	var keys [][]byte
	c := seen.Cursor()
	for key, _ := c.First(); key != nil && len(keys) < format1Batch; key, _ = c.Next() {
		if len(key) != 4+fingerprintLen {
			return false, fmt.Errorf("fingerprint %x: %w", key, record.ErrDamaged)
		}
		keys = append(keys, slices.Clone(key))
	}
	if len(keys) == 0 {
		return true, tx.DeleteBucket([]byte(bucketFormat1Seen))
	}
	for remaining := keys; len(remaining) > 0; {
		number := binary.BigEndian.Uint32(remaining[0])
		var ofOrigin []fingerprint
		for len(remaining) > 0 && binary.BigEndian.Uint32(remaining[0]) == number {
			ofOrigin = append(ofOrigin, fingerprint(binary.BigEndian.Uint64(remaining[0][4:])))
			remaining = remaining[1:]
		}
		if err := addFingerprints(fingerprints, number, ofOrigin); err != nil {
			return false, err
		}
	}
	for _, key := range keys {
		if err := seen.Delete(key); err != nil {
			return false, err
		}
	}
	return false, nil
}
