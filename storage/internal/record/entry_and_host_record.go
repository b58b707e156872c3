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
	hasReferrer        = 1 << iota // a whole URL, or a path if sameOriginReferrer
	sameOriginReferrer             // the referrer is of the same origin
	hasRobotsFor
	hasContext
	hasFailedAttempts
	hasUncleanedURL
	useUncleanedURL
	hasMoreFlags // a byte follows that says what
)

// More of what is set.
const (
	hasRank = 1 << iota
	hasVisitHistorySummary
	hasRedirects
	isHTTPSUpgradeTried
	hasRequest // since format 3
	isSent
)

// AppendEntry appends e but for its origin, which its key tells.
func AppendEntry(b []byte, e *storage.Entry) []byte {
	base := e.URL.Origin().String()
	referrer, flags := e.Referrer, entryFlags(e)
	if referrer != "" {
		flags |= hasReferrer
		if path, sameOrigin := strings.CutPrefix(referrer, base); sameOrigin {
			referrer = path
			flags |= sameOriginReferrer
		}
	}
	b = append(b, flags, byte(e.Source), byte(e.PriorityClass))
	b = binary.AppendUvarint(b, uint64(e.Depth))
	b = AppendString(b, e.URL.PathAndQuery())
	if flags&hasReferrer != 0 {
		b = AppendString(b, referrer)
	}
	if flags&hasRobotsFor != 0 {
		b = AppendString(b, e.RobotsFor.String())
	}
	if flags&hasContext != 0 {
		b = AppendString(b, string(e.CallbackData))
	}
	if flags&hasFailedAttempts != 0 {
		b = binary.AppendUvarint(b, uint64(e.FailedAttempts))
	}
	if flags&hasUncleanedURL != 0 {
		b = AppendString(b, e.UncleanedURL.PathAndQuery())
	}
	if flags&hasMoreFlags != 0 {
		b = appendEntryOptionalFields(b, e)
	}
	return b
}

func appendEntryOptionalFields(b []byte, e *storage.Entry) []byte {
	var more byte
	if e.PriorityRank > 0 {
		more |= hasRank
	}
	if e.VisitHistorySummary != nil {
		more |= hasVisitHistorySummary
	}
	if e.Redirects > 0 {
		more |= hasRedirects
	}
	if e.HTTPSUpgradeTried {
		more |= isHTTPSUpgradeTried
	}
	if e.Request != nil {
		more |= hasRequest
	}
	if e.Sent {
		more |= isSent
	}
	b = append(b, more)
	if e.PriorityRank > 0 {
		b = binary.AppendUvarint(b, uint64(e.PriorityRank))
	}
	if e.VisitHistorySummary != nil {
		b = appendVisitHistorySummary(b, e.VisitHistorySummary)
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

func appendVisitHistorySummary(b []byte, p *storage.VisitHistorySummary) []byte {
	b = AppendTime(b, p.VisitedAt)
	b = binary.AppendUvarint(b, uint64(p.Status))
	b = AppendString(b, p.ETag)
	b = AppendString(b, p.LastModified)
	b = binary.BigEndian.AppendUint64(b, p.BodyHash)
	b = binary.AppendUvarint(b, uint64(p.ComparedVisits))
	b = binary.AppendUvarint(b, uint64(p.ChangedVisits))
	b = binary.AppendVarint(b, int64(p.TotalComparedInterval))
	b = AppendTime(b, p.SitemapLastmod)
	return binary.AppendUvarint(b, uint64(p.ConsecutiveMissing))
}

func (r *FieldReader) visitHistorySummary() *storage.VisitHistorySummary {
	return &storage.VisitHistorySummary{
		VisitedAt: r.Time(), Status: r.Int(), ETag: r.String(), LastModified: r.String(), BodyHash: r.Uint64(),
		ComparedVisits: r.Int(), ChangedVisits: r.Int(), TotalComparedInterval: time.Duration(r.Varint()), SitemapLastmod: r.Time(), ConsecutiveMissing: r.Int(),
	}
}

// entryFlags returns what of e is set, the referrer apart.
func entryFlags(e *storage.Entry) (flags byte) {
	if !e.RobotsFor.IsZero() {
		flags |= hasRobotsFor
	}
	if len(e.CallbackData) > 0 {
		flags |= hasContext
	}
	if e.FailedAttempts > 0 {
		flags |= hasFailedAttempts
	}
	if !e.UncleanedURL.IsZero() {
		flags |= hasUncleanedURL
	}
	if e.UseUncleanedURL {
		flags |= useUncleanedURL
	}
	if e.PriorityRank > 0 || e.VisitHistorySummary != nil || e.Redirects > 0 || e.HTTPSUpgradeTried || e.Request != nil || e.Sent {
		flags |= hasMoreFlags
	}
	return flags
}

// ParseEntry reads what AppendEntry wrote for a URL of origin o.
func ParseEntry(b []byte, o decorum.Origin) (storage.Entry, error) {
	r := FieldReader{RemainingData: b}
	flags := r.Byte()
	e := storage.Entry{Source: storage.Source(r.Byte()), PriorityClass: storage.PriorityClass(r.Byte()), Depth: r.Int()}
	path := r.String()
	if flags&hasReferrer != 0 {
		e.Referrer = r.String()
	}
	if flags&sameOriginReferrer != 0 {
		e.Referrer = o.String() + e.Referrer
	}
	if flags&hasRobotsFor != 0 {
		e.RobotsFor = r.Origin()
	}
	if flags&hasContext != 0 {
		e.CallbackData = []byte(r.String())
	}
	if flags&hasFailedAttempts != 0 {
		e.FailedAttempts = r.Int()
	}
	if flags&hasUncleanedURL != 0 {
		e.UncleanedURL = r.URL(o)
	}
	e.UseUncleanedURL = flags&useUncleanedURL != 0
	if flags&hasMoreFlags != 0 {
		r.parseEntryOptionalFields(&e)
	}
	u, err := decorum.ParseURL(o.String() + path)
	if err != nil || r.Err != nil || len(r.RemainingData) > 0 || u.Origin() != o {
		return storage.Entry{}, fmt.Errorf("URL %q of %v: %w", path, o, ErrDamaged)
	}
	e.URL = u
	return e, e.Validate()
}

// parseEntryOptionalFields reads what appendEntryOptionalFields wrote.
func (r *FieldReader) parseEntryOptionalFields(e *storage.Entry) {
	more := r.Byte()
	if more&hasRank != 0 {
		e.PriorityRank = uint16(r.Int())
	}
	if more&hasVisitHistorySummary != 0 {
		e.VisitHistorySummary = r.visitHistorySummary()
	}
	if more&hasRedirects != 0 {
		e.Redirects = r.Int()
	}
	if more&hasRequest != 0 {
		e.Request = &storage.NonGETRequest{Method: r.String()}
		if body := r.Bytes(); len(body) > 0 {
			e.Request.Body = bytes.Clone(body)
		}
	}
	e.HTTPSUpgradeTried, e.Sent = more&isHTTPSUpgradeTried != 0, more&isSent != 0
}

// AppendHostState appends the clock of a host.
func AppendHostState(b []byte, c *schedule.HostState) []byte {
	b = AppendTime(b, c.Due)
	b = binary.AppendVarint(b, int64(c.LostVisitDelay))
	b = binary.AppendVarint(b, int64(c.Slots))
	b = binary.AppendVarint(b, int64(c.ConsecutiveFailures))
	return append(b, c.EncodedStats...)
}

// ParseHostState reads what AppendHostState wrote.
func ParseHostState(b []byte) (c schedule.HostState, err error) {
	r := FieldReader{RemainingData: b}
	c.Due = r.Time()
	c.LostVisitDelay = time.Duration(r.Varint())
	c.Slots = int(r.Varint())
	c.ConsecutiveFailures = int(r.Varint())
	c.EncodedStats = append([]byte(nil), r.RemainingData...) // nil if there is none
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

// A FieldReader takes a record apart. After an error it returns zeros.
type FieldReader struct {
	RemainingData []byte // what is left
	Err           error  // ErrDamaged, once something made no sense
}

// MarkDamaged says that the record makes no sense.
func (r *FieldReader) MarkDamaged() { r.RemainingData, r.Err = nil, ErrDamaged }

// CheckFullyRead returns an error unless the record was read whole and no further.
func (r *FieldReader) CheckFullyRead() error {
	if len(r.RemainingData) > 0 {
		r.MarkDamaged()
	}
	return r.Err
}

// Byte reads a byte.
func (r *FieldReader) Byte() byte {
	if len(r.RemainingData) == 0 {
		r.MarkDamaged()
		return 0
	}
	c := r.RemainingData[0]
	r.RemainingData = r.RemainingData[1:]
	return c
}

// Varint reads a number that may be negative.
func (r *FieldReader) Varint() int64 {
	v, n := binary.Varint(r.RemainingData)
	if n <= 0 {
		r.MarkDamaged()
		return 0
	}
	r.RemainingData = r.RemainingData[n:]
	return v
}

// Int reads a count. None fills 48 bits, nor do some of them added up fill 63.
func (r *FieldReader) Int() int {
	v, n := binary.Uvarint(r.RemainingData)
	if n <= 0 || v >= 1<<48 {
		r.MarkDamaged()
		return 0
	}
	r.RemainingData = r.RemainingData[n:]
	return int(v)
}

// Uint64 reads a number of eight bytes.
func (r *FieldReader) Uint64() uint64 {
	if len(r.RemainingData) < 8 {
		r.MarkDamaged()
		return 0
	}
	v := binary.BigEndian.Uint64(r.RemainingData)
	r.RemainingData = r.RemainingData[8:]
	return v
}

// String reads what AppendString wrote.
func (r *FieldReader) String() string { return string(r.Bytes()) }

// Bytes returns what AppendString wrote, a part of the record. It is not nil.
func (r *FieldReader) Bytes() []byte {
	n := r.Int()
	if n > len(r.RemainingData) {
		r.MarkDamaged()
		return []byte{}
	}
	b := r.RemainingData[:n:n]
	r.RemainingData = r.RemainingData[n:]
	return b
}

// Time reads what AppendTime wrote, in UTC.
func (r *FieldReader) Time() time.Time {
	sec, nsec := r.Varint(), r.Int()
	return time.Unix(sec, int64(nsec)).UTC()
}

// Origin reads the name of an origin.
func (r *FieldReader) Origin() decorum.Origin {
	o, ok := ParseOriginName(r.String())
	if !ok {
		r.MarkDamaged()
	}
	return o
}

// URL reads the path of a URL of origin o.
func (r *FieldReader) URL(o decorum.Origin) decorum.URL {
	u, err := decorum.ParseURL(o.String() + r.String())
	if err != nil || u.Origin() != o {
		r.MarkDamaged()
		return decorum.URL{}
	}
	return u
}

// ParseOriginName returns the origin whose String is s. None is "".
func ParseOriginName(s string) (decorum.Origin, bool) {
	if s == "" {
		return decorum.Origin{}, true
	}
	u, err := decorum.ParseURL(s + "/")
	if err != nil {
		return decorum.Origin{}, false
	}
	return u.Origin(), u.Origin().String() == s
}
