// Package record is how the engines that keep URLs and hosts as bytes write them:
// compact, and so that what is not set takes no room. What is in files and servers
// was written so: a field that is added needs a flag of its own, and is last.
package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// ErrDamaged says that a record makes no sense.
var ErrDamaged = errors.New("damaged record")

// An entry begins with a byte that tells what of it is set.
const (
	hasReferrer  = 1 << iota // a whole URL, or a path if nearReferrer
	nearReferrer             // the referrer is of the same origin
	hasFor
	hasContext
	hasAttempt
	hasFound
	asFound
	hasMore // a byte follows that says what
)

// More of what is set.
const (
	hasRank = 1 << iota
	hasPage
	hasRedirects
	isFolded
	hasRequest // since format 3
	isSent
)

// AppendEntry appends e but for its origin, which its key tells.
func AppendEntry(b []byte, e *storage.Entry) []byte {
	base := e.URL.Origin().String()
	referrer, flags := e.Referrer, flagsOf(e)
	if referrer != "" {
		flags |= hasReferrer
		if path, near := strings.CutPrefix(referrer, base); near {
			referrer = path
			flags |= nearReferrer
		}
	}
	b = append(b, flags, byte(e.Source), byte(e.Class))
	b = binary.AppendUvarint(b, uint64(e.Depth))
	b = AppendString(b, e.URL.PathAndQuery())
	if flags&hasReferrer != 0 {
		b = AppendString(b, referrer)
	}
	if flags&hasFor != 0 {
		b = AppendString(b, e.For.String())
	}
	if flags&hasContext != 0 {
		b = AppendString(b, string(e.Context))
	}
	if flags&hasAttempt != 0 {
		b = binary.AppendUvarint(b, uint64(e.Attempt))
	}
	if flags&hasFound != 0 {
		b = AppendString(b, e.Found.PathAndQuery())
	}
	if flags&hasMore != 0 {
		b = appendMore(b, e)
	}
	return b
}

func appendMore(b []byte, e *storage.Entry) []byte {
	var more byte
	if e.Rank > 0 {
		more |= hasRank
	}
	if e.Page != nil {
		more |= hasPage
	}
	if e.Redirects > 0 {
		more |= hasRedirects
	}
	if e.Folded {
		more |= isFolded
	}
	if e.Request != nil {
		more |= hasRequest
	}
	if e.Sent {
		more |= isSent
	}
	b = append(b, more)
	if e.Rank > 0 {
		b = binary.AppendUvarint(b, uint64(e.Rank))
	}
	if e.Page != nil {
		b = appendPage(b, e.Page)
	}
	if e.Redirects > 0 {
		b = binary.AppendUvarint(b, uint64(e.Redirects))
	}
	if e.Request != nil {
		b = AppendString(b, e.Request.Method)
		b = AppendString(b, string(e.Request.Body))
	}
	return b
}

func appendPage(b []byte, p *storage.Page) []byte {
	b = AppendTime(b, p.Visited)
	b = binary.AppendUvarint(b, uint64(p.Status))
	b = AppendString(b, p.ETag)
	b = AppendString(b, p.LastModified)
	b = binary.BigEndian.AppendUint64(b, p.Hash)
	b = binary.AppendUvarint(b, uint64(p.Visits))
	b = binary.AppendUvarint(b, uint64(p.Changes))
	b = binary.AppendVarint(b, int64(p.Span))
	b = AppendTime(b, p.Listed)
	return binary.AppendUvarint(b, uint64(p.Missing))
}

func (r *Reader) page() *storage.Page {
	return &storage.Page{
		Visited: r.Time(), Status: r.Int(), ETag: r.String(), LastModified: r.String(), Hash: r.Uint64(),
		Visits: r.Int(), Changes: r.Int(), Span: time.Duration(r.Varint()), Listed: r.Time(), Missing: r.Int(),
	}
}

// flagsOf returns what of e is set, the referrer apart.
func flagsOf(e *storage.Entry) (flags byte) {
	if !e.For.IsZero() {
		flags |= hasFor
	}
	if len(e.Context) > 0 {
		flags |= hasContext
	}
	if e.Attempt > 0 {
		flags |= hasAttempt
	}
	if !e.Found.IsZero() {
		flags |= hasFound
	}
	if e.AsFound {
		flags |= asFound
	}
	if e.Rank > 0 || e.Page != nil || e.Redirects > 0 || e.Folded || e.Request != nil || e.Sent {
		flags |= hasMore
	}
	return flags
}

// ParseEntry reads what AppendEntry wrote for a URL of origin o.
func ParseEntry(b []byte, o decorum.Origin) (storage.Entry, error) {
	r := Reader{B: b}
	flags := r.Byte()
	e := storage.Entry{Source: storage.Source(r.Byte()), Class: storage.Class(r.Byte()), Depth: r.Int()}
	path := r.String()
	if flags&hasReferrer != 0 {
		e.Referrer = r.String()
	}
	if flags&nearReferrer != 0 {
		e.Referrer = o.String() + e.Referrer
	}
	if flags&hasFor != 0 {
		e.For = r.Origin()
	}
	if flags&hasContext != 0 {
		e.Context = []byte(r.String())
	}
	if flags&hasAttempt != 0 {
		e.Attempt = r.Int()
	}
	if flags&hasFound != 0 {
		e.Found = r.URL(o)
	}
	e.AsFound = flags&asFound != 0
	if flags&hasMore != 0 {
		r.more(&e)
	}
	u, err := decorum.ParseURL(o.String() + path)
	if err != nil || r.Err != nil || len(r.B) > 0 || u.Origin() != o {
		return storage.Entry{}, fmt.Errorf("URL %q of %v: %w", path, o, ErrDamaged)
	}
	e.URL = u
	return e, e.Check()
}

// more reads what appendMore wrote.
func (r *Reader) more(e *storage.Entry) {
	more := r.Byte()
	if more&hasRank != 0 {
		e.Rank = uint16(r.Int())
	}
	if more&hasPage != 0 {
		e.Page = r.page()
	}
	if more&hasRedirects != 0 {
		e.Redirects = r.Int()
	}
	if more&hasRequest != 0 {
		e.Request = &storage.Request{Method: r.String()}
		if body := r.Bytes(); len(body) > 0 {
			e.Request.Body = bytes.Clone(body)
		}
	}
	e.Folded, e.Sent = more&isFolded != 0, more&isSent != 0
}

// AppendHost appends the clock of a host.
func AppendHost(b []byte, c *schedule.Clock) []byte {
	b = AppendTime(b, c.Due)
	b = binary.AppendVarint(b, int64(c.Gap))
	b = binary.AppendVarint(b, int64(c.Slots))
	b = binary.AppendVarint(b, int64(c.Strikes))
	return append(b, c.Memo...)
}

// ParseHost reads what AppendHost wrote.
func ParseHost(b []byte) (c schedule.Clock, err error) {
	r := Reader{B: b}
	c.Due = r.Time()
	c.Gap = time.Duration(r.Varint())
	c.Slots = int(r.Varint())
	c.Strikes = int(r.Varint())
	c.Memo = append([]byte(nil), r.B...) // nil if there is none
	return c, r.Err
}

// AppendString appends s and how long it is.
func AppendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// AppendTime appends t to the nanosecond, in any year.
func AppendTime(b []byte, t time.Time) []byte {
	b = binary.AppendVarint(b, t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

// A Reader takes a record apart. After an error it returns zeros.
type Reader struct {
	B   []byte // what is left
	Err error  // ErrDamaged, once something made no sense
}

// Fail says that the record makes no sense.
func (r *Reader) Fail() { r.B, r.Err = nil, ErrDamaged }

// End returns an error unless the record was read whole and no further.
func (r *Reader) End() error {
	if len(r.B) > 0 {
		r.Fail()
	}
	return r.Err
}

// Byte reads a byte.
func (r *Reader) Byte() byte {
	if len(r.B) == 0 {
		r.Fail()
		return 0
	}
	c := r.B[0]
	r.B = r.B[1:]
	return c
}

// Varint reads a number that may be negative.
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.B)
	if n <= 0 {
		r.Fail()
		return 0
	}
	r.B = r.B[n:]
	return v
}

// Int reads a count. None fills 48 bits, nor do some of them added up fill 63.
func (r *Reader) Int() int {
	v, n := binary.Uvarint(r.B)
	if n <= 0 || v >= 1<<48 {
		r.Fail()
		return 0
	}
	r.B = r.B[n:]
	return int(v)
}

// Uint64 reads a number of eight bytes.
func (r *Reader) Uint64() uint64 {
	if len(r.B) < 8 {
		r.Fail()
		return 0
	}
	v := binary.BigEndian.Uint64(r.B)
	r.B = r.B[8:]
	return v
}

// String reads what AppendString wrote.
func (r *Reader) String() string { return string(r.Bytes()) }

// Bytes returns what AppendString wrote, a part of the record. It is not nil.
func (r *Reader) Bytes() []byte {
	n := r.Int()
	if n > len(r.B) {
		r.Fail()
		return []byte{}
	}
	b := r.B[:n:n]
	r.B = r.B[n:]
	return b
}

// Time reads what AppendTime wrote, in UTC.
func (r *Reader) Time() time.Time {
	sec, nsec := r.Varint(), r.Int()
	return time.Unix(sec, int64(nsec)).UTC()
}

// Origin reads the name of an origin.
func (r *Reader) Origin() decorum.Origin {
	o, ok := ParseOrigin(r.String())
	if !ok {
		r.Fail()
	}
	return o
}

// URL reads the path of a URL of origin o.
func (r *Reader) URL(o decorum.Origin) decorum.URL {
	u, err := decorum.ParseURL(o.String() + r.String())
	if err != nil || u.Origin() != o {
		r.Fail()
		return decorum.URL{}
	}
	return u
}

// ParseOrigin returns the origin whose String is s. None is "".
func ParseOrigin(s string) (decorum.Origin, bool) {
	if s == "" {
		return decorum.Origin{}, true
	}
	u, err := decorum.ParseURL(s + "/")
	if err != nil {
		return decorum.Origin{}, false
	}
	return u.Origin(), u.Origin().String() == s
}
