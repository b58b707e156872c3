package bolt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
)

// maxLogFactor limits the log to this many times Options.MaxBufferedChanges: calls wait while it has as
// many changes. The log has every change, and until the end of a sweep it has those that the sweep carries
// over twice, while changes that replace each other are in memory once.
const maxLogFactor = 4

// changesPerLogPage is about how many changes are on a page of the log.
const changesPerLogPage = 16

// A journal holds the changes that are not in their final place in the file: those since the last
// write, and those in the log. It decides when they are written and checkpointed. Its methods require
// engine.mu; a batch that nextBatch returned does not change, and may be read without it.
type journal struct {
	opts     *Options
	damage   *damageReporter
	newHosts *admittedHostCounter // its new hosts are written with each batch

	// Changes since the last write.
	redoLog         redoLogBuffer
	unloggedOrigins []*residentOrigin // origins whose records have changed
	unloggedHosts   []*residentHost   // hosts whose records have changed

	// Writes.
	lastBatchNumber        uint64      // number of the last batch that nextBatch made
	batchToWrite           *writeBatch // the batch that is being written or failed to be written; or nil
	lastWrittenBatchNumber uint64      // number of the last batch that is in the file
	unchangedSinceWrite    bool        // nothing had changed at the last call of nextBatch

	// The log in the file.
	nextSegment           uint64 // number of the next segment
	loggedChangeCount     int    // changes in the log
	sweepEndSegment       uint64 // the current sweep checkpoints the whole log before this segment
	changesBeforeSweepEnd int    // changes in the log before sweepEndSegment

	// Changes by origin, until they are checkpointed.
	bufferedChangeCount int               // weighted changes in memory: see originChanges
	dirtyOrigins        []*residentOrigin // origins with changes, for the next sweep
	originsToCheckpoint []*residentOrigin // the rest of the current sweep, in the order of their numbers
	// minChangesToCheckpoint is the originChanges.changeCount below which the current sweep carries the
	// changes of an origin over.
	minChangesToCheckpoint int
}

// markChanged records that o changes, and returns its pending changes, to which the caller adds.
func (j *journal) markChanged(o *residentOrigin) *originChanges {
	if !o.hasUnloggedChanges {
		o.hasUnloggedChanges = true
		j.unloggedOrigins = append(j.unloggedOrigins, o)
	}
	if o.pendingChanges == nil {
		o.pendingChanges = &originChanges{weightedChangeCount: 1}
		j.bufferedChangeCount++
		j.dirtyOrigins = append(j.dirtyOrigins, o)
	}
	return o.pendingChanges
}

// markOriginAndHostChanged records that o and its host change.
func (j *journal) markOriginAndHostChanged(o *residentOrigin) {
	j.markChanged(o)
	if h := o.host; !h.hasUnloggedChanges {
		h.hasUnloggedChanges = true
		j.unloggedHosts = append(j.unloggedHosts, h)
	}
	o.host.uncheckpointed = true
}

// putURL records that a slot of o has value, an encoded entry with its checksum.
func (j *journal) putURL(o *residentOrigin, at laneSlot, value []byte) {
	c := j.markChanged(o)
	c.putURL(at, j.redoLog.putURL(o.number, at, value))
	j.bufferedChangeCount += changeWeight(value)
}

// deleteURL records that a slot of o is empty.
func (j *journal) deleteURL(o *residentOrigin, at laneSlot) {
	c := j.markChanged(o)
	j.redoLog.deleteURL(o.number, at)
	c.putURL(at, nil)
	j.bufferedChangeCount++
}

// addSeen records that the seen set holds a fingerprint of o.
func (j *journal) addSeen(o *residentOrigin, p urlFingerprint) {
	j.markChanged(o).addSeen(p)
	j.redoLog.addSeen(o.number, p)
}

// setRevisitPosition records where in the lane of revisits the page with the fingerprint is;
// noLanePosition deletes it from the index.
func (j *journal) setRevisitPosition(o *residentOrigin, p urlFingerprint, at urlQueuePosition) {
	j.redoLog.setURLRevisitPosition(o.number, p, at)
	j.markChanged(o).setURLRevisitPosition(p, at)
	j.bufferedChangeCount++
}

// setNote records a note of an origin; a nil value deletes it.
func (j *journal) setNote(o *residentOrigin, key string, value []byte) {
	j.markChanged(o).setNote(key, j.redoLog.setNote(o.number, key, value))
	j.bufferedChangeCount += changeWeight(value)
}

// admitHost records that a host was admitted, the n-th of its domain.
func (j *journal) admitHost(h storage.HostToAdmit, n int) {
	j.newHosts.add(h, n)
	j.bufferedChangeCount++
}

// isFull reports whether calls that change the store must wait: MaxBufferedChanges are in memory, or
// maxLogFactor times as many in the log.
func (j *journal) isFull() bool {
	maxChanges := j.opts.bufferedChangeLimit()
	return j.bufferedChangeCount >= maxChanges || j.loggedChangeCount >= maxLogFactor*maxChanges
}

// shouldWriteNow reports whether the next write should not wait for Options.FlushEvery:
// FlushAfterChanges are unwritten, or a checkpoint is urgent.
func (j *journal) shouldWriteNow() bool {
	return j.batchToWrite == nil && (j.redoLog.changeCount >= j.opts.FlushAfterChanges || j.isCheckpointUrgent())
}

// nextBatch returns the batch that the last write failed to write, or else a new one, or nil if there
// is nothing to write.
func (j *journal) nextBatch() *writeBatch {
	if j.batchToWrite == nil {
		j.batchToWrite = j.buildWriteBatch()
	}
	return j.batchToWrite
}

// isCheckpointUrgent reports whether the journal is three quarters full: then every batch has
// checkpoints.
func (j *journal) isCheckpointUrgent() bool {
	maxChanges := j.opts.bufferedChangeLimit()
	return j.bufferedChangeCount >= maxChanges*3/4 || j.loggedChangeCount >= maxLogFactor*maxChanges*3/4
}

// shouldCheckpointWhileBusy reports whether a batch with so many unwritten changes should have
// checkpoints, too: there are few unwritten changes, and an eighth of MaxBufferedChanges is in memory,
// with several changes for each origin, so that the checkpoints are worth their pages. Without it, a
// store that is never quite idle, such as a daemon's, would keep as many changes in memory as a fast
// crawl needs.
func (j *journal) shouldCheckpointWhileBusy(unwritten int) bool {
	const several = 4
	isWorthwhile := j.bufferedChangeCount >= max(j.opts.bufferedChangeLimit()/8, several*len(j.dirtyOrigins))
	return unwritten < j.opts.FlushAfterChanges/8 && (isWorthwhile || len(j.originsToCheckpoint) > 0)
}

// unwrittenChangeCount returns about how many changes are to be written.
func (j *journal) unwrittenChangeCount() int {
	return j.redoLog.changeCount + len(j.unloggedOrigins) + len(j.unloggedHosts) + len(j.newHosts.pending.hosts)
}

// buildWriteBatch returns the next batch, nil if there is nothing to write.
func (j *journal) buildWriteBatch() *writeBatch {
	// Without changes there is nothing to write but checkpoints: when the store was idle the last
	// time, too, or when they are urgent.
	unwritten := j.unwrittenChangeCount()
	idle := unwritten == 0
	if idle && (j.loggedChangeCount == 0 || !j.unchangedSinceWrite && !j.isCheckpointUrgent()) {
		j.unchangedSinceWrite = true
		return nil
	}
	j.unchangedSinceWrite = idle

	// The batch takes the whole log in memory: all calls since the batch before.
	j.lastBatchNumber++
	w := &writeBatch{number: j.lastBatchNumber, firstSegment: j.nextSegment, newHosts: j.newHosts.takePending()}
	j.addLogToBatch(w)

	// Checkpoints come after the log, so that they are the state of the same moment. The changes that
	// a sweep carries over come after that.
	urgent := j.isCheckpointUrgent()
	if idle && !urgent {
		// Nothing else is to be written: the rest of the sweep carries nothing over.
		j.minChangesToCheckpoint = 0
	}
	if idle || urgent || j.shouldCheckpointWhileBusy(unwritten) {
		j.addDirtyOriginsToBatch(w)
		j.addLogToBatch(w)
	}
	return w
}

// addLogToBatch adds the log in memory to w, with the present records of the changed origins and hosts.
func (j *journal) addLogToBatch(w *writeBatch) {
	j.appendChangedOriginsAndHosts()
	j.loggedChangeCount += j.redoLog.changeCount
	segments := j.redoLog.takeSegments()
	w.segments = append(w.segments, segments...)
	j.nextSegment += uint64(len(segments))
}

// appendChangedOriginsAndHosts appends the present records of the changed origins and hosts to the
// log.
func (j *journal) appendChangedOriginsAndHosts() {
	var buf []byte
	for _, o := range j.unloggedOrigins {
		o.hasUnloggedChanges = false
		buf = appendOriginRecord(buf[:0], o)
		j.redoLog.putRecord(opOrigin, o.number, buf)
	}
	for _, h := range j.unloggedHosts {
		h.hasUnloggedChanges = false
		buf = record.AppendHostState(buf[:0], &h.HostState)
		j.redoLog.putRecord(opHost, h.number, buf)
	}
	clear(j.unloggedOrigins) // so that the garbage collector can free them
	clear(j.unloggedHosts)
	j.unloggedOrigins, j.unloggedHosts = j.unloggedOrigins[:0], j.unloggedHosts[:0]
}

// addDirtyOriginsToBatch adds checkpoints of the next origins of the sweep to w: their present state,
// whose changes are all in the log or in w. A sweep visits every origin that has changes when it starts,
// in the order of the file, and checkpoints it or carries its changes over. Its last batch deletes the
// log from before the sweep.
func (j *journal) addDirtyOriginsToBatch(w *writeBatch) {
	if len(j.originsToCheckpoint) == 0 {
		j.beginSweep()
	}
	// Visit origins until the transaction changes about maxCheckpointPages pages.
	pages, carried := 0, 0
	for len(j.originsToCheckpoint) > 0 && pages+carried/changesPerLogPage < j.opts.maxCheckpointPages {
		o := j.originsToCheckpoint[0]
		if n := o.pendingChanges.changeCount(); n < j.minChangesToCheckpoint {
			j.carryOver(o)
			carried += n
			j.originsToCheckpoint = j.originsToCheckpoint[1:]
			continue
		}
		// An origin with more fingerprints than that is checkpointed alone, in several batches.
		if o.pendingChanges.seenURLFingerprints.len() > j.opts.maxCheckpointPages {
			if pages == 0 {
				w.originCheckpoints = append(w.originCheckpoints, takeSeenForCheckpoint(o, j.opts.maxCheckpointPages))
			}
			return
		}
		f := takeChangesForCheckpoint(o)
		j.originsToCheckpoint = j.originsToCheckpoint[1:]
		pages += f.estimateDBPages()
		w.originCheckpoints = append(w.originCheckpoints, f)
	}
	// The sweep has ended: everything in the log from before it is checkpointed or in the log again.
	if len(j.originsToCheckpoint) == 0 {
		j.originsToCheckpoint = nil
		w.trimBeforeSegment, w.trimmedChangeCount = j.sweepEndSegment, j.changesBeforeSweepEnd
	}
}

// beginSweep begins a sweep over all origins with changes; what is in the log so far can be deleted at
// its end. If checkpoints are urgent, the sweep checkpoints the origins with the most changes, until
// half of all changes are checkpointed, and carries the others over. Otherwise it checkpoints all.
func (j *journal) beginSweep() {
	j.originsToCheckpoint, j.dirtyOrigins = j.dirtyOrigins, nil
	slices.SortFunc(j.originsToCheckpoint, func(a, b *residentOrigin) int {
		return cmp.Compare(a.number, b.number)
	})
	j.sweepEndSegment, j.changesBeforeSweepEnd = j.nextSegment, j.loggedChangeCount
	j.minChangesToCheckpoint = 0
	if j.isCheckpointUrgent() {
		j.minChangesToCheckpoint = minChangesOfHalf(j.originsToCheckpoint)
	}
}

// minChangesOfHalf returns the highest number, up to 64, for which the origins with at least as many
// changes have half of all changes.
func minChangesOfHalf(origins []*residentOrigin) int {
	// Count the changes by the number of changes of their origin.
	var changes [64 + 1]int
	total := 0
	for _, o := range origins {
		n := o.pendingChanges.changeCount()
		changes[min(n, len(changes)-1)] += n
		total += n
	}
	n := len(changes) - 1
	for sum := changes[n]; n > 0 && 2*sum < total; sum += changes[n] {
		n--
	}
	return n
}

// carryOver makes the pending changes of o again: they are in the log behind the part that is deleted
// at the end of the sweep, and the next sweep visits o. A checkpoint of one change rewrites as many
// pages, scattered over the file, as a checkpoint of several. An origin with few changes is therefore
// better checkpointed later, with more; the log, meanwhile, is short and written in order.
func (j *journal) carryOver(o *residentOrigin) {
	// Forget them, and mark o and its host, whose records are in the deleted part, too.
	old := o.pendingChanges
	o.pendingChanges = nil
	j.bufferedChangeCount -= old.weightedChangeCount
	j.markChanged(o)
	if o.host.uncheckpointed {
		j.markOriginAndHostChanged(o)
	}
	// Make them again.
	for change := range old.urls.all {
		if change.value == nil {
			j.deleteURL(o, change.laneSlot)
		} else {
			j.putURL(o, change.laneSlot, change.value)
		}
	}
	for p := range old.seenURLFingerprints.all {
		j.addSeen(o, p)
	}
	for p, at := range old.revisitPositions {
		j.setRevisitPosition(o, p, at)
	}
	for key, value := range old.notes {
		j.setNote(o, key, value)
	}
}

// takeChangesForCheckpoint returns the checkpoint of all pending changes of o, which become its
// checkpointingChanges.
func takeChangesForCheckpoint(o *residentOrigin) originCheckpoint {
	f := originCheckpoint{
		originChanges: o.pendingChanges, origin: o, isNew: o.isNew, record: appendOriginRecord(nil, o),
	}
	o.pendingChanges, o.checkpointingChanges, o.isNew = nil, o.pendingChanges, false
	if h := o.host; h.uncheckpointed || f.isNew {
		h.uncheckpointed = false
		f.hostRecord = record.AppendHostState(nil, &h.HostState)
	}
	return f
}

// takeSeenForCheckpoint returns a checkpoint of the first n fingerprints of o alone, ahead of its other
// changes: each of them could change a page of its own. Until the sweep ends they are also in the log,
// with their URLs.
func takeSeenForCheckpoint(o *residentOrigin, n int) originCheckpoint {
	taken := &originChanges{seenURLFingerprints: o.pendingChanges.seenURLFingerprints.takeFirstN(n)}
	f := originCheckpoint{originChanges: taken, origin: o}
	o.checkpointingChanges = f.originChanges
	return f
}

// markBatchWritten records that w is in the file, and calls checkpointed with each origin that w has
// checkpointed.
func (j *journal) markBatchWritten(w *writeBatch, checkpointed func(*residentOrigin)) {
	for _, f := range w.originCheckpoints {
		j.bufferedChangeCount -= f.weightedChangeCount
		f.origin.checkpointingChanges = nil
		checkpointed(f.origin)
	}
	j.bufferedChangeCount -= len(w.newHosts.hosts)
	j.newHosts.beingWritten = unwrittenNewHosts{}
	j.loggedChangeCount -= w.trimmedChangeCount
	j.batchToWrite, j.lastWrittenBatchNumber = nil, w.number
}

// replay reads the log of the file back into memory: its changes are pending again, as they were
// before the process ended. Some may have been checkpointed before; to checkpoint them again changes
// nothing. The caller must call adoptReplayed with each origin of the result.
func (j *journal) replay(tx *bbolt.Tx) (*replayedLogState, error) {
	log := &replayedLogState{make(map[uint32]*residentOrigin), make(map[uint32][]byte), make(map[uint32]bool)}
	err := tx.Bucket([]byte(bucketLog)).ForEach(func(key, segment []byte) error {
		if len(key) != 8 {
			return j.damage.errorf("log: key %x", key)
		}
		j.nextSegment = binary.BigEndian.Uint64(key) + 1
		segment, err := verifyAndTrimChecksum(key, segment)
		if err != nil {
			return j.damage.errorf("log: segment %x: %v", key, err)
		}
		// The changes keep parts of the segment beyond the transaction, so it is copied.
		n, err := replaySegment(bytes.Clone(segment), log)
		j.loggedChangeCount += n
		if err != nil {
			return j.damage.errorf("log: segment %x: %v", key, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(log.originsWithoutRecord) > 0 {
		return nil, j.damage.errorf("log: %d origins have changes but no record", len(log.originsWithoutRecord))
	}
	return log, nil
}

// adoptReplayed adds an origin that replay returned, with its pending changes, to the journal.
func (j *journal) adoptReplayed(o *residentOrigin) {
	j.bufferedChangeCount += o.pendingChanges.weightedChangeCount
	j.dirtyOrigins = append(j.dirtyOrigins, o)
}

// A replayedLogState is the result of reading the log: the origins with their changes, and the last
// records of origins and hosts.
type replayedLogState struct {
	origins              map[uint32]*residentOrigin // by number
	hostRecords          map[uint32][]byte          // encoded storage.HostState, by number
	originsWithoutRecord map[uint32]bool            // origins whose record has not been read so far
}

func (r *replayedLogState) getOrCreateOrigin(number uint32) *residentOrigin {
	o := r.origins[number]
	if o == nil {
		o = &residentOrigin{number: number, pendingChanges: &originChanges{weightedChangeCount: 1}, isNew: true}
		r.origins[number], r.originsWithoutRecord[number] = o, true
	}
	return o
}

func (r *replayedLogState) setOrigin(number uint32, value []byte) error {
	o := r.getOrCreateOrigin(number)
	delete(r.originsWithoutRecord, number)
	return parseOriginRecord(value, o)
}
