package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

var errDamaged = errors.New("damaged record")

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

// appendEntry appends e but for its origin, which its key tells.
func appendEntry(b []byte, e *storage.Entry) []byte {
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
	b = appendString(b, e.URL.Path())
	if flags&hasReferrer != 0 {
		b = appendString(b, referrer)
	}
	if flags&hasFor != 0 {
		b = appendString(b, e.For.String())
	}
	if flags&hasContext != 0 {
		b = appendString(b, string(e.Context))
	}
	if flags&hasAttempt != 0 {
		b = binary.AppendUvarint(b, uint64(e.Attempt))
	}
	if flags&hasFound != 0 {
		b = appendString(b, e.Found.Path())
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
		b = appendString(b, e.Request.Method)
		b = appendString(b, string(e.Request.Body))
	}
	return b
}

func appendPage(b []byte, p *storage.Page) []byte {
	b = appendTime(b, p.Visited)
	b = binary.AppendUvarint(b, uint64(p.Status))
	b = appendString(b, p.ETag)
	b = appendString(b, p.LastModified)
	b = binary.BigEndian.AppendUint64(b, p.Hash)
	b = binary.AppendUvarint(b, uint64(p.Visits))
	b = binary.AppendUvarint(b, uint64(p.Changes))
	b = binary.AppendVarint(b, int64(p.Span))
	b = appendTime(b, p.Listed)
	return binary.AppendUvarint(b, uint64(p.Missing))
}

func (r *reader) page() *storage.Page {
	return &storage.Page{
		Visited: r.time(), Status: r.int(), ETag: r.string(), LastModified: r.string(), Hash: r.uint64(),
		Visits: r.int(), Changes: r.int(), Span: time.Duration(r.varint()), Listed: r.time(), Missing: r.int(),
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

// parseEntry reads what appendEntry wrote for a URL of origin o.
func parseEntry(b []byte, o decorum.Origin) (storage.Entry, error) {
	r := reader{b: b}
	flags := r.byte()
	e := storage.Entry{Source: storage.Source(r.byte()), Class: storage.Class(r.byte()), Depth: r.int()}
	path := r.string()
	if flags&hasReferrer != 0 {
		e.Referrer = r.string()
	}
	if flags&nearReferrer != 0 {
		e.Referrer = o.String() + e.Referrer
	}
	if flags&hasFor != 0 {
		e.For = r.origin()
	}
	if flags&hasContext != 0 {
		e.Context = []byte(r.string())
	}
	if flags&hasAttempt != 0 {
		e.Attempt = r.int()
	}
	if flags&hasFound != 0 {
		e.Found = r.url(o)
	}
	e.AsFound = flags&asFound != 0
	if flags&hasMore != 0 {
		r.more(&e)
	}
	u, err := decorum.ParseURL(o.String() + path)
	if err != nil || r.err != nil || len(r.b) > 0 || u.Origin() != o {
		return storage.Entry{}, fmt.Errorf("URL %q of %v: %w", path, o, errDamaged)
	}
	e.URL = u
	return e, e.Check()
}

// more reads what appendMore wrote.
func (r *reader) more(e *storage.Entry) {
	more := r.byte()
	if more&hasRank != 0 {
		e.Rank = uint16(r.int())
	}
	if more&hasPage != 0 {
		e.Page = r.page()
	}
	if more&hasRedirects != 0 {
		e.Redirects = r.int()
	}
	if more&hasRequest != 0 {
		e.Request = &storage.Request{Method: r.string()}
		if body := r.string(); body != "" {
			e.Request.Body = []byte(body)
		}
	}
	e.Folded, e.Sent = more&isFolded != 0, more&isSent != 0
}

func appendHost(b []byte, c *schedule.Clock) []byte {
	b = appendTime(b, c.Due)
	b = binary.AppendVarint(b, int64(c.Gap))
	b = binary.AppendVarint(b, int64(c.Slots))
	b = binary.AppendVarint(b, int64(c.Strikes))
	return append(b, c.Memo...)
}

func parseHost(b []byte) (c schedule.Clock, err error) {
	r := reader{b: b}
	c.Due = r.time()
	c.Gap = time.Duration(r.varint())
	c.Slots = int(r.varint())
	c.Strikes = int(r.varint())
	c.Memo = append([]byte(nil), r.b...) // nil if there is none
	return c, r.err
}

// What else an origin may be.
const (
	isDormant = 1 << iota
	isRevisited
)

func appendOrigin(b []byte, o *origin) []byte {
	b = appendString(b, o.name.String())
	b = binary.AppendUvarint(b, uint64(o.seq))
	b = appendTime(b, o.Hold)
	b = append(b, 0)
	if o.Dormant {
		b[len(b)-1] |= isDormant
	}
	if o.turns.Revisited {
		b[len(b)-1] |= isRevisited
	}
	b = binary.AppendUvarint(b, uint64(o.seen))
	b = binary.AppendUvarint(b, uint64(o.parked))
	for i := range o.lanes {
		l := &o.lanes[i]
		if n, first := o.stored(l); n > 0 {
			b = append(b, byte(l.lane))
			b = binary.AppendUvarint(b, uint64(n))
			b = binary.AppendVarint(b, first)
		}
	}
	return b
}

func parseOrigin(b []byte, o *origin) error {
	r := reader{b: b}
	o.name = r.origin()
	r.state(o)
	return r.end()
}

// state reads what the record of an origin says beside its name.
func (r *reader) state(o *origin) {
	o.queue = queue{}
	o.seq = int64(r.int())
	o.Hold = r.time()
	flags := r.byte()
	o.Dormant, o.turns.Revisited = flags&isDormant != 0, flags&isRevisited != 0
	o.seen = r.int()
	o.parked = r.int()
	for r.err == nil && len(r.b) > 0 {
		id := schedule.Lane(r.byte())
		if id >= schedule.Lanes || len(o.lanes) > 0 && id <= o.lanes[len(o.lanes)-1].lane {
			r.fail()
			return
		}
		l := o.lane(id)
		l.n, l.first = r.int(), r.varint()
		l.low = firstPlace
		o.count(id, l.n)
	}
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendTime(b []byte, t time.Time) []byte {
	b = binary.AppendVarint(b, t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

// A reader takes a record apart. After an error it returns zeros.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail() { r.b, r.err = nil, errDamaged }

// end returns an error unless the record was read whole and no further.
func (r *reader) end() error {
	if len(r.b) > 0 {
		r.fail()
	}
	return r.err
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// int reads a count. None fills 48 bits, nor do some of them added up fill 63.
func (r *reader) int() int {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v >= 1<<48 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return int(v)
}

func (r *reader) uint64() uint64 {
	if len(r.b) < 8 {
		r.fail()
		return 0
	}
	v := binary.BigEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

func (r *reader) string() string {
	n := r.int()
	if n > len(r.b) {
		r.fail()
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *reader) time() time.Time {
	sec, nsec := r.varint(), r.int()
	return time.Unix(sec, int64(nsec)).UTC()
}

func (r *reader) origin() decorum.Origin {
	o, ok := parseOriginName(r.string())
	if !ok {
		r.fail()
	}
	return o
}

// url reads the path of a URL of origin o.
func (r *reader) url(o decorum.Origin) decorum.URL {
	u, err := decorum.ParseURL(o.String() + r.string())
	if err != nil || u.Origin() != o {
		r.fail()
		return decorum.URL{}
	}
	return u
}

// parseOriginName returns the origin whose String is s. None is "".
func parseOriginName(s string) (decorum.Origin, bool) {
	if s == "" {
		return decorum.Origin{}, true
	}
	u, err := decorum.ParseURL(s + "/")
	if err != nil {
		return decorum.Origin{}, false
	}
	return u.Origin(), u.Origin().String() == s
}
