package redis

import (
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/decorum-crawler/decorum/storage"
)

// fields reads an answer that is a list, field by field. After an error it
// returns zeros.
type fields struct {
	rest []rueidis.RedisMessage
	err  error
}

func fieldsOf(m rueidis.RedisMessage) *fields {
	all, err := m.ToArray()
	f := &fields{rest: all}
	if err != nil {
		f.err = errAnswer
	}
	return f
}

func (f *fields) next() (m rueidis.RedisMessage, ok bool) {
	if len(f.rest) == 0 {
		f.err = errAnswer
		return m, false
	}
	m, f.rest = f.rest[0], f.rest[1:]
	return m, true
}

func (f *fields) string() string {
	m, ok := f.next()
	if !ok {
		return ""
	}
	v, err := m.ToString()
	if err != nil {
		f.err = errAnswer
	}
	return v
}

func (f *fields) int() int64 {
	m, ok := f.next()
	if !ok {
		return 0
	}
	v, err := m.AsInt64()
	if err != nil {
		f.err = errAnswer
	}
	return v
}

// list reads a field that is a list itself.
func (f *fields) list() []rueidis.RedisMessage {
	m, ok := f.next()
	if !ok {
		return nil
	}
	all, err := m.ToArray()
	if err != nil {
		f.err = errAnswer
	}
	return all
}

func (f *fields) uint64() uint64 {
	v, err := strconv.ParseUint(f.string(), 10, 64)
	if err != nil {
		f.err = errAnswer
	}
	return v
}

// host reads the clock of a host.
func (f *fields) host(c *clock, now int64) storage.Host {
	h := storage.Host{
		Due: c.in(f.int(), now), Gap: time.Duration(clampMicros(f.int())) * time.Microsecond,
		Slots: int(f.int()), Strikes: int(f.int()),
	}
	if memo := f.string(); memo != "" {
		h.Memo = []byte(memo)
	}
	return h
}
