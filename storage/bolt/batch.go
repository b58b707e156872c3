package bolt

import (
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

// The buckets of the file.
const (
	bucketMeta    = "meta"
	bucketHosts   = "hosts"
	bucketOrigins = "origins"
	bucketURLs    = "urls"
	bucketSeen    = "seen"
	bucketNotes   = "notes"
)

// originSize is how many changes it counts that an origin is the first time in
// a batch. Its keys are on pages of their own, which a write must take up: a
// thousand URLs of one origin need few, of a thousand origins thousands.
const originSize = 4

// A batch is changes that are not in the file yet. It is written whole or not
// at all.
type batch struct {
	number uint64
	size   int               // changes, about
	urls   map[urlKey][]byte // nil deletes
	seen   map[seenKey]struct{}
	notes  map[noteKey][]byte // nil deletes
	// Of hosts and origins the batch knows which have changed; seal adds what
	// they are by then.
	hosts   map[*host]struct{}
	origins map[*origin]struct{}
	records map[string]map[string][]byte // by bucket and key
}

func newBatch(number uint64) *batch {
	return &batch{
		number:  number,
		urls:    make(map[urlKey][]byte),
		seen:    make(map[seenKey]struct{}),
		notes:   make(map[noteKey][]byte),
		hosts:   make(map[*host]struct{}),
		origins: make(map[*origin]struct{}),
	}
}

// deleteURL takes a URL out of the file, or sees to it that it never gets there.
func (b *batch) deleteURL(k urlKey) {
	if _, ok := b.urls[k]; ok {
		delete(b.urls, k)
		return
	}
	b.urls[k] = nil
	b.size++
}

func (b *batch) putURL(k urlKey, value []byte) {
	b.urls[k] = value
	b.size++
}

func (b *batch) changedHost(h *host) {
	before := len(b.hosts)
	b.hosts[h] = struct{}{}
	b.size += len(b.hosts) - before
}

func (b *batch) changedOrigin(o *origin) {
	before := len(b.origins)
	b.origins[o] = struct{}{}
	b.size += originSize * (len(b.origins) - before)
}

// seal takes down what the hosts and origins are now.
func (b *batch) seal() {
	hosts := make(map[string][]byte, len(b.hosts))
	for h := range b.hosts {
		hosts[h.name] = appendHost(nil, &h.Clock)
	}
	origins := make(map[string][]byte, len(b.origins))
	for o := range b.origins {
		origins[o.name.String()] = appendOrigin(nil, o)
	}
	b.records = map[string]map[string][]byte{bucketHosts: hosts, bucketOrigins: origins}
}

// write writes the batch, in the order of keys: neighbours share a page.
func (b *batch) write(tx *bbolt.Tx) error {
	for _, bucket := range []string{bucketHosts, bucketOrigins} {
		for _, key := range slices.Sorted(maps.Keys(b.records[bucket])) {
			if err := tx.Bucket([]byte(bucket)).Put(recordKey(key), b.records[bucket][key]); err != nil {
				return err
			}
		}
	}
	if err := writeSorted(tx.Bucket([]byte(bucketURLs)), b.urls); err != nil {
		return err
	}
	if err := writeSorted(tx.Bucket([]byte(bucketNotes)), b.notes); err != nil {
		return err
	}
	seen := tx.Bucket([]byte(bucketSeen))
	for _, k := range slices.SortedFunc(maps.Keys(b.seen), seenKey.compare) {
		if err := seen.Put(k.appendTo(nil), nil); err != nil {
			return err
		}
	}
	return nil
}

// A fileKey is a key of which a batch has many.
type fileKey[K any] interface {
	comparable
	compare(K) int
	appendTo([]byte) []byte
}

func writeSorted[K fileKey[K]](bucket *bbolt.Bucket, changes map[K][]byte) error {
	for _, k := range slices.SortedFunc(maps.Keys(changes), K.compare) {
		var err error
		if v := changes[k]; v == nil {
			err = bucket.Delete(k.appendTo(nil))
		} else {
			err = bucket.Put(k.appendTo(nil), v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recordKey returns the key of a host or origin. bbolt refuses an empty one,
// and the zero Origin has no name.
func recordKey(name string) []byte { return []byte("=" + name) }

func recordName(key []byte) (string, bool) {
	if len(key) == 0 || key[0] != '=' {
		return "", false
	}
	return string(key[1:]), true
}
