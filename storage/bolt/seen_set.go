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

// The bucket prints holds the seen set. A value has some fingerprints of one origin, in order; its key
// has the highest fingerprint that belongs into the value. The last value of an origin has the highest
// possible fingerprint as its key. Every fingerprint thus belongs into exactly one value: the first
// one whose key is not lower, which Cursor.Seek finds.
const (
	fingerprintLen    = 8
	maxFingerprints   = 160 // most fingerprints of a value; a longer one is split
	splitFingerprints = 120 // fingerprints of each part of a split value but the last
	maxFingerprint    = urlFingerprint(math.MaxUint64)
)

// A seenSet has the fingerprints of all entries that were ever queued, in the journal and in the file.
// Its methods require engine.mu.
type seenSet struct {
	journal        *journal
	damageReporter *damageReporter
	count          int                      // fingerprints of all origins
	keyBuf         [4 + fingerprintLen]byte // buffer for a key
}

// has reports whether the seen set has a fingerprint. certain is false if the part of the file that
// could have it is damaged: then seen is true only if the readable rest has it. c is a cursor of the
// bucket prints.
func (s *seenSet) has(c *bbolt.Cursor, o *residentOrigin, p urlFingerprint) (seen, certain bool) {
	for _, changes := range o.pendingLayers() {
		if _, seen := changes.seenURLFingerprints.get(p); seen {
			return true, true
		}
	}
	return s.hasOnDisk(c, o.number, o.name, p)
}

// hasOnDisk is has for the bucket prints alone, which has the checkpointed fingerprints. number and
// name are those of the origin.
func (s *seenSet) hasOnDisk(
	c *bbolt.Cursor, number uint32, name decorum.Origin, p urlFingerprint,
) (seen, certain bool) {
	seen, damaged := hasFingerprintOnDisk(c, number, p, s.keyBuf[:])
	if damaged != nil {
		s.damageReporter.reportOnce("prints "+string(damaged),
			"a part of the seen set of %v: pages in it that are found again are visited again, "+
				"and unsafe requests that may be in it are not sent", name)
	}
	return seen, damaged == nil
}

// add adds a fingerprint, which the set must not have.
func (s *seenSet) add(o *residentOrigin, p urlFingerprint) {
	s.journal.addSeen(o, p)
	o.seenCount++
	s.count++
}

// addIfNew adds a fingerprint. It returns false if the set had it.
func (s *seenSet) addIfNew(c *bbolt.Cursor, o *residentOrigin, p urlFingerprint) bool {
	if seen, _ := s.has(c, o, p); seen {
		return false
	}
	s.add(o, p)
	return true
}

// hasFingerprintOnDisk reports whether the bucket prints has p for an origin. key is a buffer. If the
// value to which p belongs is damaged, hasFingerprintOnDisk searches its readable rest, and also
// returns the key of the value.
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

// salvageFingerprints returns the fingerprints in a damaged value, in order. Most of them may be
// correct.
func salvageFingerprints(checksummed []byte) []urlFingerprint {
	salvaged := make([]urlFingerprint, max(0, len(checksummed)-checksumLen)/fingerprintLen)
	for i := range salvaged {
		salvaged[i] = fingerprintAt(checksummed, i)
	}
	slices.Sort(salvaged)
	return slices.Compact(salvaged)
}

// fingerprintAt returns the i-th fingerprint in value.
func fingerprintAt(value []byte, i int) urlFingerprint {
	return urlFingerprint(binary.BigEndian.Uint64(value[i*fingerprintLen:]))
}

// searchFingerprint returns the index of the first of the n fingerprints in value that is not lower
// than p, or n.
func searchFingerprint(value []byte, n int, p urlFingerprint) int {
	return sort.Search(n, func(i int) bool { return fingerprintAt(value, i) >= p })
}

// addFingerprints adds fingerprints, which are in order, to the bucket prints. If a value is damaged,
// its readable rest goes into the new value, whose checksum is wrong on purpose: the lost fingerprints
// stay unknown, and an unsafe request must not be sent twice.
func addFingerprints(b checksummedBucket, origin uint32, added []urlFingerprint) error {
	var keyBuf [4 + fingerprintLen]byte
	for len(added) > 0 {
		// Find the value to which added[0] belongs; without one, begin the origin's last value.
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
		// Merge all fingerprints that belong into this value.
		n := sort.Search(len(added), func(i int) bool { return added[i] > last })
		if err := putSplitFingerprints(put, origin, last, mergeFingerprints(value, added[:n])); err != nil {
			return err
		}
		added = added[n:]
	}
	return nil
}

// putSplitFingerprints puts value, which has the fingerprints up to last, as one value or several.
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

// mergeFingerprints returns the fingerprints of value and added, both in order, each once.
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
