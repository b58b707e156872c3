package client

import (
	"strconv"

	"github.com/redis/rueidis"
)

// A Reply is what a script returns, or an element of it.
type Reply = rueidis.RedisMessage

// A ReplyReader reads a reply that is a list, element by element. After an error it returns
// zeros.
type ReplyReader struct {
	remainingReplies []Reply
	err              error
}

// NewReplyReader returns a reader of m.
func NewReplyReader(m Reply) *ReplyReader {
	all, err := m.ToArray()
	f := &ReplyReader{remainingReplies: all}
	if err != nil {
		f.err = ErrBadReply
	}
	return f
}

// Err returns ErrBadReply if an element was not there, or of another kind.
func (f *ReplyReader) Err() error { return f.err }

// ReadElement returns the next element, and false if there is none.
func (f *ReplyReader) ReadElement() (m Reply, ok bool) {
	if len(f.remainingReplies) == 0 {
		f.err = ErrBadReply
		return m, false
	}
	m, f.remainingReplies = f.remainingReplies[0], f.remainingReplies[1:]
	return m, true
}

// readElementAs reads an element of a kind.
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

// ReadList reads an element that is a list itself.
func (f *ReplyReader) ReadList() []Reply { return readElementAs(f, (*Reply).ToArray) }

// ReadStrings reads an element that is a list of strings.
func (f *ReplyReader) ReadStrings() []string { return readElementAs(f, (*Reply).AsStrSlice) }

// ReadUint64 reads a number that is too large for a script, and so a string to it.
func (f *ReplyReader) ReadUint64() uint64 {
	v, err := strconv.ParseUint(f.ReadString(), 10, 64)
	if err != nil {
		f.err = ErrBadReply
	}
	return v
}
