package bolt

import (
	"encoding/binary"

	"github.com/decorum-crawler/decorum/internal/binaryrecord"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// Sizes of the segments of the log, in bytes. The first one is small, for a crawl with few changes;
// each further one is twice as long, up to maxSegmentBytes.
const (
	minSegmentBytes = 4 << 10
	maxSegmentBytes = 64 << 10
)

// Kinds of changes in the log. Each is followed by the number of its origin or host, and then by the
// fields named here.
const (
	opPutFormat3 = iota + 1 // of a URL, in format 3: slot, value without its checksum
	opDelete                // of a URL: slot
	opAddSeen               // of the seen set: fingerprint
	opSetNote               // of a note: key, value
	opDeleteNote            // of a note: key
	opSetRevisit            // of the index of revisits: fingerprint, position
	opOrigin                // of an origin: record
	opHost                  // of a host: record
	opPut                   // of a URL: slot, value with its checksum
)

// A redoLogBuffer holds the changes since the last write, encoded as in the log, in segments. No change
// is split between two segments. The values of pending changes are slices of the segments, so the
// bytes of a segment never move.
type redoLogBuffer struct {
	segments       [][]byte // full segments
	currentSegment []byte   // the segment that is being filled
	changeCount    int      // changes in all of them
}

// appendChangeHeader appends the kind and number of a change, whose fields take at most maxLen bytes.
// It begins a new segment if the current one is too short for the change.
func (r *redoLogBuffer) appendChangeHeader(op byte, number uint32, maxLen int) {
	maxLen += 1 + binary.MaxVarintLen32
	if cap(r.currentSegment)-len(r.currentSegment) < maxLen {
		size := min(max(2*cap(r.currentSegment), minSegmentBytes), maxSegmentBytes)
		if len(r.currentSegment) > 0 {
			r.segments = append(r.segments, r.currentSegment)
		}
		r.currentSegment = make([]byte, 0, max(size, maxLen))
	}
	r.currentSegment = binary.AppendUvarint(append(r.currentSegment, op), uint64(number))
	r.changeCount++
}

// appendLengthPrefixed appends v after its length, and returns the copy of v in the segment.
func (r *redoLogBuffer) appendLengthPrefixed(v []byte) []byte {
	r.currentSegment = binary.AppendUvarint(r.currentSegment, uint64(len(v)))
	at := len(r.currentSegment)
	r.currentSegment = append(r.currentSegment, v...)
	return r.currentSegment[at:len(r.currentSegment):len(r.currentSegment)]
}

const maxSlotLen = 1 + 2*binary.MaxVarintLen64

func (r *redoLogBuffer) appendLaneSlot(s laneSlot) {
	r.currentSegment = append(r.currentSegment, byte(s.lane))
	r.appendPositionInLane(s.urlQueuePosition)
}

func (r *redoLogBuffer) appendPositionInLane(p urlQueuePosition) {
	r.currentSegment = binary.AppendVarint(r.currentSegment, p.sortKey)
	r.currentSegment = binary.AppendVarint(r.currentSegment, p.seq)
}

func (r *redoLogBuffer) putURL(number uint32, s laneSlot, value []byte) []byte {
	r.appendChangeHeader(opPut, number, maxSlotLen+binary.MaxVarintLen32+len(value))
	r.appendLaneSlot(s)
	return r.appendLengthPrefixed(value)
}

func (r *redoLogBuffer) deleteURL(number uint32, s laneSlot) {
	r.appendChangeHeader(opDelete, number, maxSlotLen)
	r.appendLaneSlot(s)
}

func (r *redoLogBuffer) addSeen(number uint32, p urlFingerprint) {
	r.appendChangeHeader(opAddSeen, number, 8)
	r.currentSegment = binary.BigEndian.AppendUint64(r.currentSegment, uint64(p))
}

func (r *redoLogBuffer) setURLRevisitPosition(number uint32, p urlFingerprint, at urlQueuePosition) {
	r.appendChangeHeader(opSetRevisit, number, 8+maxSlotLen)
	r.currentSegment = binary.BigEndian.AppendUint64(r.currentSegment, uint64(p))
	r.appendPositionInLane(at)
}

// setNote appends the change of a note, and returns the copy of value in the segment. A nil value
// deletes the note.
func (r *redoLogBuffer) setNote(number uint32, key string, value []byte) []byte {
	if value == nil {
		r.appendChangeHeader(opDeleteNote, number, binary.MaxVarintLen32+len(key))
		r.appendLengthPrefixed([]byte(key))
		return nil
	}
	r.appendChangeHeader(opSetNote, number, 2*binary.MaxVarintLen32+len(key)+len(value))
	r.appendLengthPrefixed([]byte(key))
	return r.appendLengthPrefixed(value)
}

func (r *redoLogBuffer) putRecord(op byte, number uint32, record []byte) {
	r.appendChangeHeader(op, number, binary.MaxVarintLen32+len(record))
	r.appendLengthPrefixed(record)
}

// takeSegments returns all segments and empties the buffer. Later changes use the free end of the last
// segment.
func (r *redoLogBuffer) takeSegments() [][]byte {
	segments := r.segments
	if len(r.currentSegment) > 0 {
		segments = append(segments, r.currentSegment[:len(r.currentSegment):len(r.currentSegment)])
	}
	r.segments, r.currentSegment, r.changeCount = nil, r.currentSegment[len(r.currentSegment):], 0
	return segments
}

// replaySegment adds the changes of a segment of the log to a state, and returns their number. The
// changes keep slices of the segment.
func replaySegment(segment []byte, to *replayedLogState) (n int, err error) {
	for r := (redoLogSegmentReader{binaryrecord.Reader{RemainingData: segment}}); len(r.RemainingData) > 0; n++ {
		op, number := r.Byte(), uint32(r.Int())
		// opHost has the number of a host: it must not create an origin, and so does not call changes.
		changes := func() *originChanges { return to.getOrCreateOrigin(number).pendingChanges }
		switch op {
		case opPut:
			s := r.readSlot()
			changes().putURL(s, r.Bytes())
		case opPutFormat3:
			s := r.readSlot()
			changes().putURL(s, withChecksum(appendURLKey(nil, number, s), r.Bytes()))
		case opDelete:
			changes().putURL(r.readSlot(), nil)
		case opAddSeen:
			changes().addSeen(urlFingerprint(r.Uint64()))
		case opSetNote:
			key := r.String()
			changes().setNote(key, r.Bytes())
		case opDeleteNote:
			changes().setNote(r.String(), nil)
		case opSetRevisit:
			p := urlFingerprint(r.Uint64())
			changes().setURLRevisitPosition(p, r.readLanePosition())
		case opOrigin:
			if err := to.setOrigin(number, r.Bytes()); err != nil {
				return n, err
			}
		case opHost:
			to.hostRecords[number] = r.Bytes()
		default:
			r.MarkDamaged()
		}
		if r.Err != nil {
			return n, r.Err
		}
	}
	return n, nil
}

// A redoLogSegmentReader decodes a segment of the log.
type redoLogSegmentReader struct{ binaryrecord.Reader }

func (r *redoLogSegmentReader) readSlot() laneSlot {
	lane := schedule.LaneID(r.Byte())
	return laneSlot{lane, r.readLanePosition()}
}

func (r *redoLogSegmentReader) readLanePosition() urlQueuePosition {
	at := r.Varint()
	return urlQueuePosition{at, r.Varint()}
}
