package client

import (
	"strconv"

	"github.com/redis/rueidis"
)

// A Reply is the reply of a script, or an element of that.
type Reply = rueidis.RedisMessage

// A ReplyReader reads a reply that is a list, element by element. A read that fails returns a zero
// value; call Err after the last read.
type ReplyReader struct {
	remainingReplies []Reply
	err              error
}

// NewReplyReader returns a reader of the list m. If m is not a list, Err returns ErrBadReply.
func NewReplyReader(m Reply) *ReplyReader {
	all, err := m.ToArray()
	f := &ReplyReader{remainingReplies: all}
	if err != nil {
		f.err = ErrBadReply
	}
	return f
}

// Err returns ErrBadReply if an element was missing or had another type, and nil otherwise.
func (f *ReplyReader) Err() error { return f.err }

// ReadElement returns the next element, or false at the end of the list.
func (f *ReplyReader) ReadElement() (m Reply, ok bool) {
	if len(f.remainingReplies) == 0 {
		f.err = ErrBadReply
		return m, false
	}
	m, f.remainingReplies = f.remainingReplies[0], f.remainingReplies[1:]
	return m, true
}

// readElementAs reads the next element and converts it.
func readElementAs[T any](f *ReplyReader, convert func(*Reply) (T, error)) (v T) {
	m, ok := f.ReadElement()
	if !ok {
		return v
	}
	v, err := convert(&m)
	if err != nil {
		f.err = ErrBadReply
	}
	return v
}

// ReadString reads a string.
func (f *ReplyReader) ReadString() string { return readElementAs(f, (*Reply).ToString) }

// ReadInt reads a whole number.
func (f *ReplyReader) ReadInt() int64 { return readElementAs(f, (*Reply).AsInt64) }

// ReadList reads an element that is a list.
func (f *ReplyReader) ReadList() []Reply { return readElementAs(f, (*Reply).ToArray) }

// ReadStrings reads an element that is a list of strings.
func (f *ReplyReader) ReadStrings() []string { return readElementAs(f, (*Reply).AsStrSlice) }

// ReadUint64 reads a string that holds an unsigned integer: Lua's numbers hold 53 bits only.
func (f *ReplyReader) ReadUint64() uint64 {
	v, err := strconv.ParseUint(f.ReadString(), 10, 64)
	if err != nil {
		f.err = ErrBadReply
	}
	return v
}
