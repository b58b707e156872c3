package redis

import (
	"strconv"

	"github.com/redis/rueidis"
)

// replyListReader reads an answer that is a list, field by field. After an error it
// returns zeros.
type replyListReader struct {
	remainingReplies []rueidis.RedisMessage
	err              error
}

func newReplyListReader(m rueidis.RedisMessage) *replyListReader {
	all, err := m.ToArray()
	f := &replyListReader{remainingReplies: all}
	if err != nil {
		f.err = errBadReply
	}
	return f
}

// Err returns errBadReply if a field was not there, or of another kind.
func (f *replyListReader) Err() error { return f.err }

func (f *replyListReader) readElement() (m rueidis.RedisMessage, ok bool) {
	if len(f.remainingReplies) == 0 {
		f.err = errBadReply
		return m, false
	}
	m, f.remainingReplies = f.remainingReplies[0], f.remainingReplies[1:]
	return m, true
}

func (f *replyListReader) readString() string {
	m, ok := f.readElement()
	if !ok {
		return ""
	}
	v, err := m.ToString()
	if err != nil {
		f.err = errBadReply
	}
	return v
}

func (f *replyListReader) readInt() int64 {
	m, ok := f.readElement()
	if !ok {
		return 0
	}
	v, err := m.AsInt64()
	if err != nil {
		f.err = errBadReply
	}
	return v
}

// readList reads a field that is a list itself.
func (f *replyListReader) readList() []rueidis.RedisMessage {
	m, ok := f.readElement()
	if !ok {
		return nil
	}
	all, err := m.ToArray()
	if err != nil {
		f.err = errBadReply
	}
	return all
}

func (f *replyListReader) readUint64() uint64 {
	v, err := strconv.ParseUint(f.readString(), 10, 64)
	if err != nil {
		f.err = errBadReply
	}
	return v
}
