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
	fingerprintLen    = 8
	maxFingerprints   = 160 // fingerprints of a value; longer ones are cut
	splitFingerprints = 120 // into values of about this many
	maxFingerprint    = urlFingerprint(math.MaxUint64)
)

// A seenSet is the fingerprints of all entries that were ever queued: those that the journal
// holds, and those of the file. It requires the lock of the store.
type seenSet struct {
	journal        *journal
	damageReporter *damageReporter
	count          int                      // fingerprints
	keyBuf         [4 + fingerprintLen]byte // room for a key
}

// has reports whether the seen set holds a fingerprint, and whether that is sure: it
// is unsure where the file is damaged.
func (s *seenSet) has(c *bbolt.Cursor, o *residentOrigin, p urlFingerprint) (seen, certain bool) {
	for _, changes := range o.pendingLayers() {
		if _, seen := changes.seenURLFingerprints.get(p); seen {
			return true, true
		}
	}
	return s.hasOnDisk(c, o.number, o.name, p)
}

// hasOnDisk is has for the checkpointed part of the file. number is the origin's.
func (s *seenSet) hasOnDisk(
	c *bbolt.Cursor, number uint32, name decorum.Origin, p urlFingerprint,
) (seen, certain bool) {
	seen, damaged := hasFingerprintOnDisk(c, number, p, s.keyBuf[:])
	if damaged != nil {
		s.damageReporter.reportOnce("prints "+string(damaged),
			"a part of the seen set of %v: pages in it that are found again are visited again, "+
				"and no unsafe request in it is sent", name)
	}
	return seen, damaged == nil
}

// add puts a fingerprint into the set, which must not hold it.
func (s *seenSet) add(o *residentOrigin, p urlFingerprint) {
	s.journal.addSeen(o, p)
	o.seenCount++
	s.count++
}

// addIfNew puts a fingerprint into the set; false if it was there.
func (s *seenSet) addIfNew(c *bbolt.Cursor, o *residentOrigin, p urlFingerprint) bool {
	if seen, _ := s.has(c, o, p); seen {
		return false
	}
	s.add(o, p)
	return true
}

// hasFingerprintOnDisk reports whether the bucket prints holds p. key is room for a key. If the
// value that would hold p is damaged, hasFingerprintOnDisk searches the rest of it and also returns
// the value's key.
func hasFingerprintOnDisk(c *bbolt.Cursor, origin uint32, p urlFingerprint, key []byte) (has bool, damaged []byte) {
	key = appendFingerprintKey(key[:0], origin, p)
	found, checksummed := c.Seek(key)
	if len(found) != len(key) || !bytes.Equal(found[:4], key[:4]) {
		return false, nil
	}
	value, err := verifyAndTrimChecksum(found, checksummed)
	if err != nil {
		return slices.Contains(salvageFingerprints(checksummed), p), found
	}
	n := len(value) / fingerprintLen
	at := searchFingerprint(value, n, p)
	return at < n && fingerprintAt(value, at) == p, nil
}

// salvageFingerprints returns the fingerprints in a damaged value, in order: most of it may be
// right.
func salvageFingerprints(checksummed []byte) []urlFingerprint {
	salvaged := make([]urlFingerprint, max(0, len(checksummed)-checksumLen)/fingerprintLen)
	for i := range salvaged {
		salvaged[i] = fingerprintAt(checksummed, i)
	}
	slices.Sort(salvaged)
	return slices.Compact(salvaged)
}

func fingerprintAt(value []byte, i int) urlFingerprint {
	return urlFingerprint(binary.BigEndian.Uint64(value[i*fingerprintLen:]))
}

// searchFingerprint returns the index of the first of n fingerprints that is not below p.
func searchFingerprint(value []byte, n int, p urlFingerprint) int {
	return sort.Search(n, func(i int) bool { return fingerprintAt(value, i) >= p })
}

// addFingerprints adds fingerprints, which are in order, to the bucket prints. The rest of a
// damaged value goes into the new one, which stays damaged: the fingerprints that it
// lost are unknown, and a request that is not safe must not be sent twice.
func addFingerprints(b checksummedBucket, origin uint32, added []urlFingerprint) error {
	var keyBuf [4 + fingerprintLen]byte
	for len(added) > 0 {
		last, put := maxFingerprint, b.setOrDelete
		key, value := b.Cursor().Seek(appendFingerprintKey(keyBuf[:0], origin, added[0]))
		if len(key) == 4+fingerprintLen && binary.BigEndian.Uint32(key) == origin {
			last = urlFingerprint(binary.BigEndian.Uint64(key[4:]))
			checked, err := verifyAndTrimChecksum(key, value)
			if err != nil || len(checked)%fingerprintLen != 0 {
				checked, put = mergeFingerprints(nil, salvageFingerprints(value)), b.setWithWrongChecksum
			}
			value = checked
		} else {
			value = nil
		}
		n := sort.Search(len(added), func(i int) bool { return added[i] > last })
		if err := putSplitFingerprints(put, origin, last, mergeFingerprints(value, added[:n])); err != nil {
			return err
		}
		added = added[n:]
	}
	return nil
}

// putSplitFingerprints puts the fingerprints up to last, in one value or several.
func putSplitFingerprints(put func(key, value []byte) error, origin uint32, last urlFingerprint, value []byte) error {
	for len(value) > maxFingerprints*fingerprintLen {
		cut := value[:splitFingerprints*fingerprintLen]
		if err := put(appendFingerprintKey(nil, origin, fingerprintAt(cut, splitFingerprints-1)), cut); err != nil {
			return err
		}
		value = value[splitFingerprints*fingerprintLen:]
	}
	return put(appendFingerprintKey(nil, origin, last), value)
}

// mergeFingerprints returns the fingerprints of both, once each.
func mergeFingerprints(value []byte, added []urlFingerprint) []byte {
	merged := make([]byte, 0, len(value)+len(added)*fingerprintLen)
	for _, p := range added {
		n := len(value) / fingerprintLen
		at := searchFingerprint(value, n, p)
		merged = append(merged, value[:at*fingerprintLen]...)
		if value = value[at*fingerprintLen:]; at == n || fingerprintAt(value, 0) != p {
			merged = binary.BigEndian.AppendUint64(merged, uint64(p))
		}
	}
	return append(merged, value...)
}
