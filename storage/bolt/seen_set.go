package bolt

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"sort"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
)

// The bucket prints holds the seen set, packed: a value is fingerprints of one
// origin in order, and its key the highest that belongs there. The last value
// of an origin has the highest there can be, so that each fingerprint has its
// value: the one that a seek finds.
const (
	printLen        = 8
	maxFingerprints = 160 // fingerprints of a value; longer ones are cut
	printsCut       = 120 // into values of about this many
	lastPrint       = print(math.MaxUint64)
)

// hasPrint reports whether the bucket prints holds p. key is room for a key. If the
// value that would hold p is damaged, hasPrint searches the rest of it and also returns
// the value's key.
func hasPrint(c *bbolt.Cursor, origin uint32, p print, key []byte) (has bool, damaged []byte) {
	key = appendPrintKey(key[:0], origin, p)
	found, sealed := c.Seek(key)
	if len(found) != len(key) || !bytes.Equal(found[:4], key[:4]) {
		return false, nil
	}
	value, err := checkSum(found, sealed)
	if err != nil {
		return slices.Contains(printsLeft(sealed), p), found
	}
	n := len(value) / printLen
	at := printAt(value, n, p)
	return at < n && printOfValue(value, at) == p, nil
}

// printsLeft returns the fingerprints in a damaged value, in order: most of it may be
// right.
func printsLeft(sealed []byte) []print {
	left := make([]print, max(0, len(sealed)-sumLen)/printLen)
	for i := range left {
		left[i] = printOfValue(sealed, i)
	}
	slices.Sort(left)
	return slices.Compact(left)
}

func printOfValue(value []byte, i int) print {
	return print(binary.BigEndian.Uint64(value[i*printLen:]))
}

// printAt returns the index of the first of n fingerprints that is not below p.
func printAt(value []byte, n int, p print) int {
	return sort.Search(n, func(i int) bool { return printOfValue(value, i) >= p })
}

// addPrints adds fingerprints, which are in order, to the bucket prints. The rest of a
// damaged value goes into the new one, which stays damaged: the fingerprints that it
// lost are unknown, and a request that is not safe must not be sent twice.
func addPrints(b bucket, origin uint32, fresh []print) error {
	var keyBuf [4 + printLen]byte
	for len(fresh) > 0 {
		last, put := lastPrint, b.set
		key, value := b.Cursor().Seek(appendPrintKey(keyBuf[:0], origin, fresh[0]))
		if len(key) == 4+printLen && binary.BigEndian.Uint32(key) == origin {
			last = print(binary.BigEndian.Uint64(key[4:]))
			checked, err := b.check(key, value)
			if err != nil || len(checked)%printLen != 0 {
				checked, put = mergePrints(nil, printsLeft(value)), b.setDamaged
			}
			value = checked
		} else {
			value = nil
		}
		n := sort.Search(len(fresh), func(i int) bool { return fresh[i] > last })
		if err := putPrints(put, origin, last, mergePrints(value, fresh[:n])); err != nil {
			return err
		}
		fresh = fresh[n:]
	}
	return nil
}

// putPrints puts the fingerprints up to last, in one value or several.
func putPrints(put func(key, value []byte) error, origin uint32, last print, value []byte) error {
	for len(value) > maxFingerprints*printLen {
		cut := value[:printsCut*printLen]
		if err := put(appendPrintKey(nil, origin, printOfValue(cut, printsCut-1)), cut); err != nil {
			return err
		}
		value = value[printsCut*printLen:]
	}
	return put(appendPrintKey(nil, origin, last), value)
}

// mergePrints returns the fingerprints of both, once each.
func mergePrints(value []byte, fresh []print) []byte {
	merged := make([]byte, 0, len(value)+len(fresh)*printLen)
	for _, p := range fresh {
		n := len(value) / printLen
		at := printAt(value, n, p)
		merged = append(merged, value[:at*printLen]...)
		if value = value[at*printLen:]; at == n || printOfValue(value, 0) != p {
			merged = binary.BigEndian.AppendUint64(merged, uint64(p))
		}
	}
	return append(merged, value...)
}

// isSeen reports whether the seen set holds a fingerprint, and whether that is sure: it
// is unsure where the file is damaged.
func (s *Store) isSeen(c *bbolt.Cursor, o *origin, p print) (seen, sure bool) {
	for _, changes := range [...]*changes{o.fresh, o.folding} {
		if changes == nil {
			continue
		}
		if _, seen := changes.seen.get(p); seen {
			return true, true
		}
	}
	return s.isSeenOnDisk(c, o.number, o.name, p)
}

// isSeenOnDisk is isSeen for the folded part of the file. number is the origin's.
func (s *Store) isSeenOnDisk(c *bbolt.Cursor, number uint32, name decorum.Origin, p print) (seen, sure bool) {
	seen, damaged := hasPrint(c, number, p, s.key[:])
	if damaged != nil {
		s.reportOnce("prints "+string(damaged),
			"a part of the seen set of %v: pages in it that are found again are visited again, "+
				"and no unsafe request in it is sent", name)
	}
	return seen, damaged == nil
}
