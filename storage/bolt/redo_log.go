package bolt

import (
	"encoding/binary"

	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// Sizes of the pieces of the log, in bytes: the first of them is small, for a
// crawl that hardly does anything.
const (
	minSegmentBytes = 4 << 10
	maxSegmentBytes = 64 << 10
)

// What a change in the log is of. Each begins with the number of the origin, or host.
const (
	opPut3   = iota + 1 // of a URL, before format 4: slot, value without its checksum
	opDelete            // of a URL: slot
	opSee               // fingerprint
	opNote              // key, value
	opForget            // of a note: key
	opRest              // the index of resting pages: fingerprint, place
	opOrigin            // record
	opHost              // record
	opPut               // of a URL: slot, value with its checksum
)

// A redo is the changes since the last write, one after the other, as they go
// into the log: in pieces, none of which cuts a change in two. Values of
// changes that are kept in memory are parts of it.
type redo struct {
	pieces [][]byte // full
	last   []byte   // and the one that is being filled
	n      int      // changes
}

// begin appends the head of a change which will take at most room bytes more.
func (r *redo) begin(op byte, number uint32, maxLen int) {
	maxLen += 1 + binary.MaxVarintLen32
	if cap(r.last)-len(r.last) < maxLen {
		size := min(max(2*cap(r.last), minSegmentBytes), maxSegmentBytes)
		if len(r.last) > 0 {
			r.pieces = append(r.pieces, r.last)
		}
		r.last = make([]byte, 0, max(size, maxLen))
	}
	r.last = binary.AppendUvarint(append(r.last, op), uint64(number))
	r.n++
}

// value appends v with its length, and returns it as it is in the log.
func (r *redo) value(v []byte) []byte {
	r.last = binary.AppendUvarint(r.last, uint64(len(v)))
	at := len(r.last)
	r.last = append(r.last, v...)
	return r.last[at:len(r.last):len(r.last)]
}

const maxSlotLen = 1 + 2*binary.MaxVarintLen64

func (r *redo) slot(s slot) {
	r.last = append(r.last, byte(s.lane))
	r.place(s.place)
}

func (r *redo) place(p place) {
	r.last = binary.AppendVarint(r.last, p.at)
	r.last = binary.AppendVarint(r.last, p.seq)
}

func (r *redo) put(number uint32, s slot, value []byte) []byte {
	r.begin(opPut, number, maxSlotLen+binary.MaxVarintLen32+len(value))
	r.slot(s)
	return r.value(value)
}

func (r *redo) delete(number uint32, s slot) {
	r.begin(opDelete, number, maxSlotLen)
	r.slot(s)
}

func (r *redo) see(number uint32, p print) {
	r.begin(opSee, number, 8)
	r.last = binary.BigEndian.AppendUint64(r.last, uint64(p))
}

func (r *redo) rest(number uint32, p print, at place) {
	r.begin(opRest, number, 8+maxSlotLen)
	r.last = binary.BigEndian.AppendUint64(r.last, uint64(p))
	r.place(at)
}

// note sets a note; nil deletes.
func (r *redo) note(number uint32, key string, value []byte) []byte {
	if value == nil {
		r.begin(opForget, number, binary.MaxVarintLen32+len(key))
		r.value([]byte(key))
		return nil
	}
	r.begin(opNote, number, 2*binary.MaxVarintLen32+len(key)+len(value))
	r.value([]byte(key))
	return r.value(value)
}

func (r *redo) putRecord(op byte, number uint32, record []byte) {
	r.begin(op, number, binary.MaxVarintLen32+len(record))
	r.value(record)
}

// take returns the pieces, and begins anew. What room the last one has is used.
func (r *redo) take() [][]byte {
	pieces := r.pieces
	if len(r.last) > 0 {
		pieces = append(pieces, r.last[:len(r.last):len(r.last)])
	}
	r.pieces, r.last, r.n = nil, r.last[len(r.last):], 0
	return pieces
}

// A replay takes the changes of a log as they were made.
type replay interface {
	change(number uint32) *changes // of the origin
	origin(number uint32, record []byte) error
	host(number uint32, record []byte)
}

// readPiece reads a piece of the log, of which the changes take parts, and
// returns how many changes it is.
func readPiece(piece []byte, to replay) (n int, err error) {
	for r := (logReader{record.Reader{B: piece}}); len(r.B) > 0; n++ {
		op, number := r.Byte(), uint32(r.Int())
		switch op {
		case opPut:
			s := r.slot()
			to.change(number).put(s, r.Bytes())
		case opPut3:
			s := r.slot()
			to.change(number).put(s, withSum(appendURLKey(nil, number, s), r.Bytes()))
		case opDelete:
			to.change(number).put(r.slot(), nil)
		case opSee:
			to.change(number).see(print(r.Uint64()))
		case opNote:
			key := r.String()
			to.change(number).note(key, r.Bytes())
		case opForget:
			to.change(number).note(r.String(), nil)
		case opRest:
			p := print(r.Uint64())
			to.change(number).rest(p, r.place())
		case opOrigin:
			if err := to.origin(number, r.Bytes()); err != nil {
				return n, err
			}
		case opHost:
			to.host(number, r.Bytes())
		default:
			r.Fail()
		}
		if r.Err != nil {
			return n, r.Err
		}
	}
	return n, nil
}

// A logReader takes a piece of the log apart.
type logReader struct{ record.Reader }

func (r *logReader) slot() slot {
	lane := schedule.Lane(r.Byte())
	return slot{lane, r.place()}
}

func (r *logReader) place() place {
	at := r.Varint()
	return place{at, r.Varint()}
}
