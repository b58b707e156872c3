package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"sort"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage/internal/record"
)

// The bucket prints holds the seen set, packed: a value is fingerprints of one
// origin in order, and its key the highest that belongs there. The last value
// of an origin has the highest there can be, so that each fingerprint has its
// value: the one that a seek finds.
const (
	printLen   = 8
	printsMost = 160 // fingerprints of a value; longer ones are cut
	printsCut  = 120 // into values of about this many
	lastPrint  = print(math.MaxUint64)
)

// hasPrint reports whether the bucket prints holds p. key is room for a key.
func hasPrint(c *bbolt.Cursor, origin uint32, p print, key []byte) bool {
	key = appendPrintKey(key[:0], origin, p)
	found, value := c.Seek(key)
	if len(found) != len(key) || !bytes.Equal(found[:4], key[:4]) {
		return false
	}
	n := len(value) / printLen
	at := printAt(value, n, p)
	return at < n && printOfValue(value, at) == p
}

func printOfValue(value []byte, i int) print {
	return print(binary.BigEndian.Uint64(value[i*printLen:]))
}

// printAt returns the index of the first of n fingerprints that is not below p.
func printAt(value []byte, n int, p print) int {
	return sort.Search(n, func(i int) bool { return printOfValue(value, i) >= p })
}

// addPrints adds fingerprints, which are in order, to the bucket prints.
func addPrints(b *bbolt.Bucket, origin uint32, fresh []print) error {
	var room [4 + printLen]byte
	for len(fresh) > 0 {
		last := lastPrint
		key, value := b.Cursor().Seek(appendPrintKey(room[:0], origin, fresh[0]))
		if len(key) == 4+printLen && binary.BigEndian.Uint32(key) == origin {
			last = print(binary.BigEndian.Uint64(key[4:]))
		} else {
			value = nil
		}
		if len(value)%printLen != 0 {
			return fmt.Errorf("fingerprints of origin %d: %w", origin, record.ErrDamaged)
		}
		n := sort.Search(len(fresh), func(i int) bool { return fresh[i] > last })
		if err := putPrints(b, origin, last, mergePrints(value, fresh[:n])); err != nil {
			return err
		}
		fresh = fresh[n:]
	}
	return nil
}

// putPrints puts the fingerprints up to last, in one value or several.
func putPrints(b *bbolt.Bucket, origin uint32, last print, value []byte) error {
	for len(value) > printsMost*printLen {
		cut := value[:printsCut*printLen]
		if err := b.Put(appendPrintKey(nil, origin, printOfValue(cut, printsCut-1)), cut); err != nil {
			return err
		}
		value = value[printsCut*printLen:]
	}
	return b.Put(appendPrintKey(nil, origin, last), value)
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

// isSeen reports whether the seen set holds a fingerprint.
func (s *Store) isSeen(c *bbolt.Cursor, o *origin, p print) bool {
	for _, changes := range [...]*changes{o.fresh, o.folding} {
		if changes == nil {
			continue
		}
		if _, seen := changes.seen.get(p); seen {
			return true
		}
	}
	return hasPrint(c, o.number, p, s.key[:])
}
