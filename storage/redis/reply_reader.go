package redis

import (
	"strconv"

	"github.com/redis/rueidis"
)

// ReplyReader reads an answer that is a list, field by field. After an error it
// returns zeros.
type ReplyReader struct {
	remainingReplies []rueidis.RedisMessage
	err              error
}

func NewReplyReader(m rueidis.RedisMessage) *ReplyReader {
	all, err := m.ToArray()
	f := &ReplyReader{remainingReplies: all}
	if err != nil {
		f.err = ErrBadReply
	}
	return f
}

// Err returns ErrBadReply if a field was not there, or of another kind.
func (f *ReplyReader) Err() error { return f.err }

func (f *ReplyReader) ReadElement() (m rueidis.RedisMessage, ok bool) {
	if len(f.remainingReplies) == 0 {
		f.err = ErrBadReply
		return m, false
	}
	m, f.remainingReplies = f.remainingReplies[0], f.remainingReplies[1:]
	return m, true
}

func (f *ReplyReader) ReadString() string {
	m, ok := f.ReadElement()
	if !ok {
		return ""
	}
	v, err := m.ToString()
	if err != nil {
		f.err = ErrBadReply
	}
	return v
}

func (f *ReplyReader) ReadInt() int64 {
	m, ok := f.ReadElement()
	if !ok {
		return 0
	}
	v, err := m.AsInt64()
	if err != nil {
		f.err = ErrBadReply
	}
	return v
}

// ReadList reads a field that is a list itself.
func (f *ReplyReader) ReadList() []rueidis.RedisMessage {
	m, ok := f.ReadElement()
	if !ok {
		return nil
	}
	all, err := m.ToArray()
	if err != nil {
		f.err = ErrBadReply
	}
	return all
}

func (f *ReplyReader) ReadUint64() uint64 {
	v, err := strconv.ParseUint(f.ReadString(), 10, 64)
	if err != nil {
		f.err = ErrBadReply
	}
	return v
}
