package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/binaryrecord"
	"github.com/decorum-crawler/decorum/storage"
)

// Flags in the first byte of an entry: which fields are set.
const (
	hasReferrer        = 1 << iota // the referrer is a whole URL, or a path if sameOriginReferrer
	sameOriginReferrer             // the referrer has the origin of the entry
	hasRobotsFor
	hasContext
	hasFailedAttempts
	hasUncleanedURL
	useUncleanedURL
	hasMoreFlags // a second byte of flags follows the fields of this one
)

// Flags in the second byte.
const (
	hasRank = 1 << iota
	hasVisitHistorySummary
	hasRedirects
	isHTTPSUpgradeTried
	hasRequest // since format 3 of package bolt
	isSent
	hasSeedOrigin // an empty origin means that of the entry
	hasFreshness  // FreshFor, FreshBy and VariantKey of the VisitHistorySummary
)

// Flags in the third byte, which no flag announces: a record either ends after the fields of the second
// byte, or continues with the third.
const hasEncodedBodyLen = 1 // of the VisitHistorySummary

// AppendEntry appends e to b, without the origin of its URL, which the engine has in the key.
func AppendEntry(b []byte, e *storage.Entry) []byte {
	// Flags. A referrer of the same origin is shortened to its path.
	base := e.URL.Origin().String()
	referrer, flags, more := e.Referrer, entryFlags(e), moreEntryFlags(e)
	if referrer != "" {
		flags |= hasReferrer
		if path, sameOrigin := strings.CutPrefix(referrer, base); sameOrigin {
			referrer = path
			flags |= sameOriginReferrer
		}
	}
	flags |= flagIf(more != 0, hasMoreFlags)

	// The fields that are always there, and then those with a flag, in the order of the flags.
	b = append(b, flags, byte(e.Source), byte(e.PriorityClass))
	b = binary.AppendUvarint(b, uint64(e.Depth))
	b = binaryrecord.AppendString(b, e.URL.PathAndQuery())
	if flags&hasReferrer != 0 {
		b = binaryrecord.AppendString(b, referrer)
	}
	if flags&hasRobotsFor != 0 {
		b = binaryrecord.AppendString(b, e.RobotsFor.String())
	}
	if flags&hasContext != 0 {
		b = binaryrecord.AppendString(b, string(e.CallbackData))
	}
	if flags&hasFailedAttempts != 0 {
		b = binary.AppendUvarint(b, uint64(e.FailedAttempts))
	}
	if flags&hasUncleanedURL != 0 {
		b = binaryrecord.AppendString(b, e.UncleanedURL.PathAndQuery())
	}
	if flags&hasMoreFlags != 0 {
		b = appendEntryOptionalFields(b, e, more)
	}
	return b
}

// appendEntryOptionalFields appends the second byte of flags, more, and the fields of its flags, and then
// the third byte with its field, if e has it.
func appendEntryOptionalFields(b []byte, e *storage.Entry, more byte) []byte {
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
		b = binaryrecord.AppendString(b, e.Request.Method)
		b = binaryrecord.AppendString(b, string(e.Request.Body))
	}
	switch e.SeedOrigin {
	case decorum.Origin{}:
	case e.URL.Origin():
		b = binaryrecord.AppendString(b, "")
	default:
		b = binaryrecord.AppendString(b, e.SeedOrigin.String())
	}
	if more&hasFreshness != 0 {
		b = binary.AppendVarint(b, int64(e.VisitHistorySummary.FreshFor))
		b = binaryrecord.AppendString(b, e.VisitHistorySummary.FreshBy)
		b = binaryrecord.AppendString(b, e.VisitHistorySummary.VariantKey)
	}
	if p := e.VisitHistorySummary; p != nil && p.EncodedBodyLen > 0 {
		b = append(b, hasEncodedBodyLen)
		b = binary.AppendUvarint(b, uint64(p.EncodedBodyLen))
	}
	return b
}

// appendVisitHistorySummary appends the fields of p, except those that have flags of their own.
func appendVisitHistorySummary(b []byte, p *storage.VisitHistorySummary) []byte {
	b = binaryrecord.AppendTime(b, p.VisitedAt)
	b = binary.AppendUvarint(b, uint64(p.Status))
	b = binaryrecord.AppendString(b, p.ETag)
	b = binaryrecord.AppendString(b, p.LastModified)
	b = binary.BigEndian.AppendUint64(b, p.BodyHash)
	b = binary.AppendUvarint(b, uint64(p.ComparedVisits))
	b = binary.AppendUvarint(b, uint64(p.ChangedVisits))
	b = binary.AppendVarint(b, int64(p.TotalComparedInterval))
	b = binaryrecord.AppendTime(b, p.SitemapLastmod)
	return binary.AppendUvarint(b, uint64(p.ConsecutiveMissing))
}

// readVisitHistorySummary reads what appendVisitHistorySummary wrote.
func readVisitHistorySummary(r *binaryrecord.Reader) *storage.VisitHistorySummary {
	return &storage.VisitHistorySummary{
		VisitedAt: r.Time(), Status: r.Int(), ETag: r.String(), LastModified: r.String(), BodyHash: r.Uint64(),
		ComparedVisits: r.Int(), ChangedVisits: r.Int(), TotalComparedInterval: time.Duration(r.Varint()),
		SitemapLastmod: r.Time(), ConsecutiveMissing: r.Int(),
	}
}

// entryFlags returns the flags of the first byte, without those of the referrer and hasMoreFlags.
func entryFlags(e *storage.Entry) byte {
	return flagIf(!e.RobotsFor.IsZero(), hasRobotsFor) | flagIf(len(e.CallbackData) > 0, hasContext) |
		flagIf(e.FailedAttempts > 0, hasFailedAttempts) | flagIf(!e.UncleanedURL.IsZero(), hasUncleanedURL) |
		flagIf(e.UseUncleanedURL, useUncleanedURL)
}

// moreEntryFlags returns the flags of the second byte.
func moreEntryFlags(e *storage.Entry) byte {
	return flagIf(e.PriorityRank > 0, hasRank) | flagIf(e.VisitHistorySummary != nil, hasVisitHistorySummary) |
		flagIf(e.Redirects > 0, hasRedirects) | flagIf(e.HTTPSUpgradeTried, isHTTPSUpgradeTried) |
		flagIf(e.Request != nil, hasRequest) | flagIf(e.Sent, isSent) |
		flagIf(!e.SeedOrigin.IsZero(), hasSeedOrigin) | flagIf(hasFreshnessFields(e.VisitHistorySummary), hasFreshness)
}

// hasFreshnessFields reports whether p has a field of hasFreshness.
func hasFreshnessFields(p *storage.VisitHistorySummary) bool {
	return p != nil && (p.FreshFor != 0 || p.FreshBy != "" || p.VariantKey != "")
}

// flagIf returns flag if set is true, and 0 otherwise.
func flagIf(set bool, flag byte) byte {
	if set {
		return flag
	}
	return 0
}

// ParseEntry decodes what AppendEntry wrote for a URL of origin o. It returns an error that wraps
// binaryrecord.ErrDamaged if b is damaged, and one of Entry.Validate if the entry is invalid.
func ParseEntry(b []byte, o decorum.Origin) (storage.Entry, error) {
	r := &binaryrecord.Reader{RemainingData: b}
	flags := r.Byte()
	// The fields are read in the order of AppendEntry; r remembers the first error.
	e := storage.Entry{Source: storage.Source(r.Byte()), PriorityClass: storage.PriorityClass(r.Byte()), Depth: r.Int()}
	path := r.String()
	if flags&hasReferrer != 0 {
		e.Referrer = r.String()
	}
	if flags&sameOriginReferrer != 0 {
		e.Referrer = o.String() + e.Referrer
	}
	if flags&hasRobotsFor != 0 {
		e.RobotsFor = ReadOrigin(r)
	}
	if flags&hasContext != 0 {
		e.CallbackData = []byte(r.String())
	}
	if flags&hasFailedAttempts != 0 {
		e.FailedAttempts = r.Int()
	}
	if flags&hasUncleanedURL != 0 {
		e.UncleanedURL = readURL(r, o)
	}
	e.UseUncleanedURL = flags&useUncleanedURL != 0
	if flags&hasMoreFlags != 0 {
		readEntryOptionalFields(r, &e, o)
	}
	// All bytes must have been read, and the URL must have the origin of the key.
	u, err := decorum.ParseURL(o.String() + path)
	if err != nil || r.Err != nil || len(r.RemainingData) > 0 || u.Origin() != o {
		return storage.Entry{}, fmt.Errorf("URL %q of %v: %w", path, o, binaryrecord.ErrDamaged)
	}
	e.URL = u
	return e, e.Validate()
}

// readEntryOptionalFields reads what appendEntryOptionalFields wrote for a URL of origin o.
func readEntryOptionalFields(r *binaryrecord.Reader, e *storage.Entry, o decorum.Origin) {
	more := r.Byte()
	if more&hasRank != 0 {
		e.PriorityRank = uint16(r.Int())
	}
	if more&hasVisitHistorySummary != 0 {
		e.VisitHistorySummary = readVisitHistorySummary(r)
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
	if more&hasSeedOrigin != 0 {
		if e.SeedOrigin = ReadOrigin(r); e.SeedOrigin.IsZero() {
			e.SeedOrigin = o
		}
	}
	if p := e.VisitHistorySummary; more&hasFreshness != 0 && p != nil {
		p.FreshFor, p.FreshBy, p.VariantKey = time.Duration(r.Varint()), r.String(), r.String()
	} else if more&hasFreshness != 0 {
		r.MarkDamaged()
	}
	if len(r.RemainingData) == 0 {
		return
	}
	// An unknown flag may change what the entry means: the record counts as damaged, and is not visited.
	if r.Byte() != hasEncodedBodyLen || e.VisitHistorySummary == nil {
		r.MarkDamaged()
		return
	}
	e.VisitHistorySummary.EncodedBodyLen = r.Int64()
}

// AppendHostState appends c to b. EncodedStats is last and has no length.
func AppendHostState(b []byte, c *storage.HostState) []byte {
	b = binaryrecord.AppendTime(b, c.Due)
	b = binary.AppendVarint(b, int64(c.LostVisitDelay))
	b = binary.AppendVarint(b, int64(c.Slots))
	b = binary.AppendVarint(b, int64(c.ConsecutiveFailures))
	return append(b, c.EncodedStats...)
}

// ParseHostState decodes what AppendHostState wrote.
func ParseHostState(b []byte) (c storage.HostState, err error) {
	r := &binaryrecord.Reader{RemainingData: b}
	c.Due = r.Time()
	c.LostVisitDelay = time.Duration(r.Varint())
	c.Slots = int(r.Varint())
	c.ConsecutiveFailures = int(r.Varint())
	c.EncodedStats = append([]byte(nil), r.RemainingData...) // nil if empty
	return c, r.Err
}

// ReadOrigin reads the name of an origin. It marks r as damaged if the name is invalid.
func ReadOrigin(r *binaryrecord.Reader) decorum.Origin {
	o, err := ParseOriginName(r.String())
	if err != nil {
		r.MarkDamaged()
	}
	return o
}

// readURL reads the path and query of a URL of origin o. It marks r as damaged if they are invalid.
func readURL(r *binaryrecord.Reader, o decorum.Origin) decorum.URL {
	u, err := decorum.ParseURL(o.String() + r.String())
	if err != nil || u.Origin() != o {
		r.MarkDamaged()
		return decorum.URL{}
	}
	return u
}

// ParseOriginName returns the origin whose String is s, the zero Origin for the empty string. It returns
// binaryrecord.ErrDamaged if s is not the name of an origin.
func ParseOriginName(s string) (decorum.Origin, error) {
	if s == "" {
		return decorum.Origin{}, nil
	}
	u, err := decorum.ParseURL(s + "/")
	if err != nil || u.Origin().String() != s {
		return u.Origin(), binaryrecord.ErrDamaged
	}
	return u.Origin(), nil
}
