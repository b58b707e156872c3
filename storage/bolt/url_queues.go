package bolt

import (
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// batchSize is how many URLs or origins a call reads before it releases engine.mu.
const batchSize = 256

// A urlQueues puts URLs into the lanes of origins and finds them there: in the journal, in the file
// and in the heads in memory. It updates the counts of the origins; its callers update the schedule.
// Its methods require engine.mu.
type urlQueues struct {
	journal        *journal
	damageReporter *damageReporter
	heads          *headCache
	index          *originCache    // for the number of origins that share heads
	parkedCount    int             // parked URLs of all origins
	keyBuf         [urlKeyLen]byte // buffer for a key
	entryBuf       []byte          // buffer for an encoded entry: see encode
}

// prefetchCount returns how many URLs of a lane are read at a time.
func (q *urlQueues) prefetchCount() int { return q.heads.prefetchCount(len(q.index.origins)) }

// put puts e into a lane of o, behind the URLs with the same sort key, or before them in a LIFO lane.
func (q *urlQueues) put(o *residentOrigin, id schedule.LaneID, at int64, e *storage.Entry) {
	o.lastSeq++
	p := urlQueuePosition{sortKey: at, seq: o.lastSeq}
	if id.IsLIFO() {
		p.seq = -o.lastSeq
	}
	q.journal.putURL(o, laneSlot{id, p}, q.encode(o, laneSlot{id, p}, e))
	// Count it. A parked URL is in no queue.
	switch id {
	case parkedLane:
		o.parkedCount++
		q.parkedCount++
		return
	case schedule.AwaitingRevisit:
		q.journal.setRevisitPosition(o, requestFingerprintOf(e), p)
	}
	l := o.getOrCreateLane(id)
	q.heads.insert(l, p, q.entryBuf, q.prefetchCount())
	o.AddURLs(id, 1)
}

// putByState puts a URL of an import into the lane of its state.
func (q *urlQueues) putByState(o *residentOrigin, k *storage.StoredEntry) {
	switch {
	case k.State == storage.StateAwaitingRevisit:
		q.put(o, schedule.AwaitingRevisit, schedule.Nanos(k.NotBefore), &k.Entry)
	case k.State == storage.StateParked:
		q.put(o, parkedLane, 0, &k.Entry)
	case k.NotBefore.IsZero():
		q.put(o, schedule.LaneOf(&k.Entry), schedule.RankOf(&k.Entry), &k.Entry)
	default:
		q.put(o, schedule.LaneOf(&k.Entry).DelayedLane(), schedule.Nanos(k.NotBefore), &k.Entry)
	}
}

// removeParked removes a parked URL from its slot.
func (q *urlQueues) removeParked(o *residentOrigin, at laneSlot) {
	q.journal.deleteURL(o, at)
	o.parkedCount--
	q.parkedCount--
}

// encode returns the record of an entry of o for a slot, with its checksum. The result is valid until
// the next call.
func (q *urlQueues) encode(o *residentOrigin, at laneSlot, e *storage.Entry) []byte {
	q.entryBuf = appendChecksum(record.AppendEntry(q.entryBuf[:0], e), appendURLKey(q.keyBuf[:0], o.number, at))
	return q.entryBuf
}

// quarantine moves a damaged record to damagedLane, and reports it.
func (q *urlQueues) quarantine(o *residentOrigin, at laneSlot, value []byte, cause error) {
	q.journal.deleteURL(o, at)
	o.lastSeq++
	target := laneSlot{damagedLane, urlQueuePosition{seq: o.lastSeq}}
	q.journal.putURL(o, target, withChecksum(appendURLKey(q.keyBuf[:0], o.number, target), value))
	q.damageReporter.reportQuarantinedURL(cause)
}

// loadHead reads the head of a lane. If the lane has fewer URLs than it counts, loadHead reports that
// and corrects the count.
func (q *urlQueues) loadHead(tx *bbolt.Tx, o *residentOrigin, l *laneQueue) {
	items, _ := q.listUnleased(tx, o, laneSlot{l.id, l.lowerBound}, q.prefetchCount())
	q.heads.set(o, l, items)
	if l.isHeadLoaded() {
		return
	}
	q.damageReporter.onDamaged(q.damageReporter.errorf("queue of %v: %d URLs are counted, %d found",
		o.name, l.count, len(l.headURLs)))
	o.AddURLs(l.id, len(l.headURLs)-l.count)
	l.count = len(l.headURLs)
	q.journal.markChanged(o)
}

// listUnleased returns the first URLs of a lane from a position on, without leased ones: at most max,
// fewer if they are long. more reports whether others may follow.
func (q *urlQueues) listUnleased(
	tx *bbolt.Tx, o *residentOrigin, from laneSlot, max int,
) (items []storedURL, more bool) {
	weight := 0
	q.forEachSlot(tx, o, from, func(c slotChange) bool {
		if !slices.Contains(o.leasedSlots, c.laneSlot) {
			items = append(items, storedURL{c.urlQueuePosition, slices.Clone(c.value)})
			weight += changeWeight(c.value)
		}
		more = len(items) == max || isHeadTooHeavy(items, weight, max)
		return !more
	})
	return items, more
}

// forEachSlot calls yield with each URL in a lane of o from a position on, until yield returns false.
// A value is valid during the call of yield.
func (q *urlQueues) forEachSlot(tx *bbolt.Tx, o *residentOrigin, from laneSlot, yield func(slotChange) bool) {
	// Merge the pending changes, the newest first, with the file.
	var sources []laneSlotCursor
	for _, c := range o.pendingLayers() {
		if c.urls.len() > 0 {
			sources = append(sources, c.urls.cursorFrom(slotChange{laneSlot: from}))
		}
	}
	cursor := tx.Bucket([]byte(bucketURLs)).Cursor()
	file := &urlBucketSlotCursor{cursor: cursor, originNumber: o.number, lane: byte(from.lane)}
	file.key, file.value = file.cursor.Seek(appendURLKey(q.keyBuf[:0], o.number, from))
	sources = append(sources, file)
	for {
		first, ok := nextMergedSlot(sources, from)
		// A nil value is a deletion.
		if !ok || first.value != nil && !yield(first) {
			return
		}
	}
}

// get returns the value in a slot, nil if the slot is empty. It is valid during the transaction.
func (q *urlQueues) get(tx *bbolt.Tx, o *residentOrigin, at laneSlot) []byte {
	for _, c := range o.pendingLayers() {
		if found, ok := c.urls.get(slotChange{laneSlot: at}); ok {
			return found.value
		}
	}
	return tx.Bucket([]byte(bucketURLs)).Get(appendURLKey(q.keyBuf[:0], o.number, at))
}

// unparkBatch calls shouldUnpark with the next batchSize parked URLs of o from *from on, and queues
// those for which it returns true. It moves *from behind the batch. more reports whether URLs with a
// sequence number up to end may follow.
func (q *urlQueues) unparkBatch(
	tx *bbolt.Tx, o *residentOrigin, from *laneSlot, end int64, shouldUnpark func(storage.Entry) bool,
) (unparked int, more bool) {
	items, more := q.listUnleased(tx, o, *from, batchSize)
	for _, i := range items {
		if i.seq > end {
			return unparked, false
		}
		at := laneSlot{parkedLane, i.urlQueuePosition}
		from.urlQueuePosition = urlQueuePosition{i.sortKey, i.seq + 1}
		e, err := parseEntry(i.value, o.number, o.name, at)
		if err != nil {
			// A damaged record does not count as a parked URL.
			q.removeParked(o, at)
			q.quarantine(o, at, i.value, err)
			continue
		}
		if shouldUnpark(e) {
			q.removeParked(o, at)
			q.put(o, schedule.LaneOf(&e), schedule.RankOf(&e), &e)
			unparked++
		}
	}
	return unparked, more
}

// rescheduleIfModified makes a page due at now if the page awaits its revisit and was modified after
// its last visit. It reports whether it changed the page.
func (q *urlQueues) rescheduleIfModified(tx *bbolt.Tx, o *residentOrigin,
	g storage.SitemapLastmod, now time.Time) bool {
	// Find the page through the index of revisits.
	p := fingerprintOfURL(g.URL)
	at, ok := q.findRevisitSlot(tx, o, p)
	if !ok || slices.Contains(o.leasedSlots, at) {
		return false
	}
	value := q.get(tx, o, at)
	e, err := parseEntry(value, o.number, o.name, at)
	if err != nil || e.URL != g.URL || !schedule.NoteLastmod(&e, g.Modified) {
		return false // a damaged record is reported by Lease
	}

	// Move it to its new position in the lane; the head of the lane may have had it.
	q.journal.deleteURL(o, at)
	l := o.getOrCreateLane(schedule.AwaitingRevisit)
	q.heads.clear(l)
	l.count--
	q.put(o, schedule.AwaitingRevisit, min(at.sortKey, schedule.Nanos(now)), &e)
	return true
}

// findRevisitSlot returns the slot of the page with a fingerprint, if it awaits its revisit.
func (q *urlQueues) findRevisitSlot(tx *bbolt.Tx, o *residentOrigin, p urlFingerprint) (at laneSlot, ok bool) {
	for _, c := range o.pendingLayers() {
		if pos, known := c.revisitPositions[p]; known {
			return laneSlot{schedule.AwaitingRevisit, pos}, pos != noLanePosition
		}
	}
	key, err := newChecksummedBucket(tx, bucketRevisits).get(appendFingerprintKey(nil, o.number, p))
	if err != nil {
		q.damageReporter.reportOnce(fmt.Sprintf("resting %d %d", o.number, p),
			"the time of a revisit of %v: a sitemap's date cannot bring it forward", o.name)
		return at, false
	}
	_, at, ok = parseURLKey(key)
	return at, ok
}

// parseEntry decodes the record in a slot of an origin. It returns an error if the record is damaged.
func parseEntry(checksummed []byte, number uint32, name decorum.Origin, at laneSlot) (storage.Entry, error) {
	var key [urlKeyLen]byte
	value, err := verifyAndTrimChecksum(appendURLKey(key[:0], number, at), checksummed)
	if err != nil {
		return storage.Entry{}, fmt.Errorf("a URL of %v: %w", name, err)
	}
	return record.ParseEntry(value, name)
}

// A laneSlotCursor yields slots in order.
type laneSlotCursor interface {
	peek() (slotChange, bool)
	advance()
}

// A urlBucketSlotCursor yields the slots of one lane of an origin in the bucket urls.
type urlBucketSlotCursor struct {
	cursor       *bbolt.Cursor
	originNumber uint32
	lane         byte
	key, value   []byte
}

func (f *urlBucketSlotCursor) peek() (slotChange, bool) {
	number, s, ok := parseURLKey(f.key)
	if !ok || number != f.originNumber || byte(s.lane) != f.lane {
		return slotChange{}, false
	}
	return slotChange{s, f.value}, true
}

func (f *urlBucketSlotCursor) advance() { f.key, f.value = f.cursor.Next() }

// nextMergedSlot returns the first slot of a lane in the sources, and advances them behind it. If
// several sources have the slot, the first of them has its value.
func nextMergedSlot(sources []laneSlotCursor, from laneSlot) (first slotChange, ok bool) {
	for _, s := range sources {
		if c, hasNext := s.peek(); hasNext && c.lane == from.lane && (!ok || c.compare(first) < 0) {
			first, ok = c, true
		}
	}
	for _, s := range sources {
		if c, hasNext := s.peek(); ok && hasNext && c.compare(first) == 0 {
			s.advance()
		}
	}
	return first, ok
}
