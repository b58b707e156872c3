package bolt

import (
	"encoding/binary"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// steps bring a file of an older format to the next, index + 1 being the
// format. Each is done a portion at a time, each in a transaction, until there
// is nothing left to do: it may be broken off between them.
var steps = []func(*bbolt.Tx) (done bool, err error){
	migrate1,
	migrate2,
	migrate3,
}

// migrate brings the file to the current format. A portion is about so many bytes of
// values that get checksums.
func migrate(db *bbolt.DB, portion int) error {
	for done := false; !done; {
		err := db.Update(func(tx *bbolt.Tx) (err error) {
			done, err = migrateOn(tx, portion)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// migrateOn migrates the next portion, and reports whether the file has the current
// format.
func migrateOn(tx *bbolt.Tx, portion int) (done bool, err error) {
	meta := tx.Bucket([]byte(bucketMeta))
	from, err := formatOf(meta)
	switch {
	case err != nil:
		return false, err
	case from > format:
		return false, fmt.Errorf("format %d is newer than this program's, %d: update the program", from, format)
	case from == 0:
		return false, fmt.Errorf("format 0: %w", record.ErrDamaged)
	case from == format && meta.Get([]byte(keySealing)) != nil:
		return false, sealPortion(tx, portion)
	case from == format:
		return true, nil
	}
	if over, err := steps[from-1](tx); err != nil || !over {
		return false, err
	}
	if from+1 < 4 {
		return false, meta.Put([]byte(keyFormat), number(from+1))
	}
	return false, writeMeta(tx, map[string][]byte{keyFormat: number(from + 1)})
}

// In format 2 every URL is asked for by GET, and nothing is marked as sent. What
// is there stays as it is; a program that knows no other requests must not read
// what comes.
func migrate2(*bbolt.Tx) (done bool, err error) { return true, nil }

// In format 1 hosts and origins are found by their names, and the seen set has
// a key for each fingerprint.
const (
	bucketSeen1 = "seen"
	portion1    = 1 << 17 // fingerprints
)

func migrate1(tx *bbolt.Tx) (done bool, err error) {
	if tx.Bucket([]byte(bucketSeen1)) == nil {
		return true, nil
	}
	if tx.Bucket([]byte(bucketNames)) == nil {
		return false, renumber1(tx)
	}
	return packSeen1(tx)
}

// renumber1 gives hosts and origins their numbers for keys.
func renumber1(tx *bbolt.Tx) error {
	for _, name := range []string{bucketHosts, bucketOrigins, bucketURLs, bucketNotes} {
		if tx.Bucket([]byte(name)) == nil {
			return fmt.Errorf("bucket %q is missing: restore the file from a backup", name)
		}
	}
	var origins []*origin
	err := tx.Bucket([]byte(bucketOrigins)).ForEach(func(key, value []byte) error {
		o, err := parseOrigin1(key, value)
		origins = append(origins, o)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(origins, func(a, b *origin) int { return int(a.number) - int(b.number) })
	clocks := make(map[string][]byte)
	err = tx.Bucket([]byte(bucketHosts)).ForEach(func(key, value []byte) error {
		if len(key) == 0 || key[0] != '=' {
			return fmt.Errorf("host %q: %w", key, record.ErrDamaged)
		}
		clocks[string(key[1:])] = slices.Clone(value)
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
	for _, name := range buckets3() {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	for _, o := range origins {
		if err := putOrigin1(tx, o, clocks); err != nil {
			return err
		}
	}
	return nil
}

// parseOrigin1 reads an origin of format 1: its number, then as now.
func parseOrigin1(key, value []byte) (*origin, error) {
	r := record.Reader{B: key}
	equals := r.Byte()
	name, valid := record.ParseOrigin(string(r.B))
	r = record.Reader{B: value}
	o := &origin{name: name, number: uint32(r.Int())}
	o.state(&r)
	if err := r.End(); err != nil || !valid || equals != '=' || o.number == 0 {
		return nil, fmt.Errorf("origin %q: %w", key, record.ErrDamaged)
	}
	return o, nil
}

// putOrigin1 writes o as it is in format 2, with its host and the index of its
// resting pages. Origins come in order: the host has the number of its first one.
func putOrigin1(tx *bbolt.Tx, o *origin, clocks map[string][]byte) error {
	if origins := tx.Bucket([]byte(bucketOrigins)); origins.Get(numberKey(o.number)) != nil {
		return fmt.Errorf("origin %v: number %d: %w", o.name, o.number, record.ErrDamaged)
	}
	f := fold{changes: new(changes), number: o.number, born: true, name: o.name.String(), record: appendOrigin(nil, o)}
	f.host = &hostFold{o.number, o.name.Host(), clocks[o.name.Host()]}
	if first := tx.Bucket([]byte(bucketNames)).Get(hostKey(f.host.name)); first != nil {
		f.host.number = binary.BigEndian.Uint32(first)
	}
	if f.host.record == nil {
		f.host.record = record.AppendHost(nil, &schedule.Clock{})
	}
	from := slot{schedule.Resting, firstPlace}
	c := tx.Bucket([]byte(bucketURLs)).Cursor()
	for key, value := c.Seek(appendURLKey(nil, o.number, from)); key != nil; key, value = c.Next() {
		number, at, ok := parseURLKey(key)
		if !ok || number != o.number || at.lane != schedule.Resting {
			break
		}
		if e, err := record.ParseEntry(value, o.name); err == nil { // else Lease sets it aside
			f.rest(printOf(e.URL), at.place)
		}
	}
	w := write{folds: []fold{f}, plain: true}
	return w.apply(tx)
}

// packSeen1 packs some of the fingerprints.
func packSeen1(tx *bbolt.Tx) (done bool, err error) {
	seen, prints := tx.Bucket([]byte(bucketSeen1)), bucket{tx.Bucket([]byte(bucketPrints)), true}
	var keys [][]byte
	c := seen.Cursor()
	for key, _ := c.First(); key != nil && len(keys) < portion1; key, _ = c.Next() {
		if len(key) != 4+printLen {
			return false, fmt.Errorf("fingerprint %x: %w", key, record.ErrDamaged)
		}
		keys = append(keys, slices.Clone(key))
	}
	if len(keys) == 0 {
		return true, tx.DeleteBucket([]byte(bucketSeen1))
	}
	for rest := keys; len(rest) > 0; {
		number := binary.BigEndian.Uint32(rest[0])
		var own []print
		for len(rest) > 0 && binary.BigEndian.Uint32(rest[0]) == number {
			own = append(own, print(binary.BigEndian.Uint64(rest[0][4:])))
			rest = rest[1:]
		}
		if err := addPrints(prints, number, own); err != nil {
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
