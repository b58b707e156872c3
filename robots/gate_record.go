package robots

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/decorum-crawler/decorum"
)

// Notes is where a Gate keeps what it learns, by origin and key. Every
// storage.Store is one. Gates that share Notes share what they learn.
type Notes interface {
	// ReadNote returns what SetNote kept, nil if nothing.
	ReadNote(ctx context.Context, o decorum.Origin, key string) ([]byte, error)
	// SetNote keeps value; nil deletes. Calls take effect in their order.
	SetNote(ctx context.Context, o decorum.Origin, key string, value []byte) error
}

// Keys of notes: of an origin's record, of the list of the files that it had
// before, and, with a number after it, of each of these.
const (
	recordNoteKey = "robots"
	versionsKey   = "robots-versions"
	versionKey    = "robots-version-"
)

// key returns the key of a note of the Gate's. Yandex has keys of its own: an
// answer that means no restriction there closes the origin to others. So has each
// User-Agent, by a part of its SHA-256.
func (g *Gate) key(of string) string {
	of = g.anonymous(of)
	if g.cfg.UserAgent == "" {
		return of
	}
	sum := sha256.Sum256([]byte(g.cfg.UserAgent))
	return of + " " + hex.EncodeToString(sum[:8])
}

// anonymous is key for a Gate that does not know its User-Agent.
func (g *Gate) anonymous(of string) string {
	if g.cfg.Dialect == Yandex {
		return of + "-yandex"
	}
	return of
}

// An originRecord is all that counts of an origin's robots.txt (CACHE-09). It is
// tied to no agent (CACHE-03).
type originRecord struct {
	Last     *answer   `json:"last,omitempty"`
	Outage   *outage   `json:"outage,omitempty"`
	Hop      *hop      `json:"hop,omitempty"`
	Attempts int       `json:"attempts,omitempty"` // lookups that failed in a row
	Asked    time.Time `json:"asked"`              // when the last answer came, of any kind

	key string // of the note that it was read from
}

// An answer is the last one that was no server error. It outlives outages.
type answer struct {
	Status       int       `json:"status"` // of the last visit of the chain
	IsFile       bool      `json:"file,omitempty"`
	SHA256       string    `json:"sha256,omitempty"`
	Fetched      time.Time `json:"fetched"`
	First        time.Time `json:"first,omitzero"` // when the file came first; zero in old records
	Expires      time.Time `json:"expires"`
	ETag         string    `json:"etag,omitempty"`
	LastModified string    `json:"modified,omitempty"`
	At           string    `json:"at,omitempty"` // the URL that redirects led to; empty: there were none

	body []byte // if IsFile
}

// An outage is a row of server errors that has not ended.
type outage struct {
	Since time.Time `json:"since"`
	Retry time.Time `json:"retry"`          // when to ask again
	Why   string    `json:"why"`            // the last failure
	Over  bool      `json:"over,omitempty"` // it lasts too long to keep the origin closed (FETCH-13)
}

// A hop is where a redirect led that is still to be visited.
type hop struct {
	Target string    `json:"url"`
	Count  int       `json:"count"` // redirects so far
	Since  time.Time `json:"since"`

	url decorum.URL // Target, parsed
}

// settle ends the lookup with an answer.
func (r *originRecord) settle(now time.Time, a *answer) {
	*r = originRecord{Last: a, Asked: now, key: r.key}
}

// follow waits for the target of a redirect. If one was waited for already, it
// was not visited in time, and the lookup that began it failed.
func (r *originRecord) follow(now time.Time, to decorum.URL, count int) {
	if r.Hop != nil && r.Hop.Count >= count {
		r.Attempts++
	}
	r.Hop = &hop{Target: to.String(), Count: count, Since: now, url: to}
	r.Asked = now
}

// maxOutageGap is how long nobody may have asked for an outage to be still
// called continuous: two failures far apart do not make a month (FETCH-15).
const maxOutageGap = 7 * day

// fail ends the lookup with a server error, to be made again after wait.
func (r *originRecord) fail(now time.Time, why string, wait, limit time.Duration) {
	since := now
	if r.Outage != nil && now.Sub(r.Asked) <= maxOutageGap {
		since = r.Outage.Since
	}
	r.Outage = &outage{Since: since, Retry: now.Add(wait), Why: why, Over: now.Sub(since) > limit}
	r.Hop = nil
	r.Attempts++
	r.Asked = now
}

// A note is a version byte, a checksum of what follows it, the length of the
// header, the header in JSON, and the body as it came.
const (
	noteVersion = 1
	notePrefix  = 1 + crc32.Size
)

var errDamaged = errors.New("damaged robots note")

// encode returns the record as a note.
func (r *originRecord) encode() ([]byte, error) {
	header, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var body []byte
	if r.Last != nil {
		body = r.Last.body
	}
	note := make([]byte, notePrefix, notePrefix+binary.MaxVarintLen64+len(header)+len(body))
	note = binary.AppendUvarint(note, uint64(len(header)))
	note = append(note, header...)
	note = append(note, body...)
	note[0] = noteVersion
	binary.BigEndian.PutUint32(note[1:], crc32.ChecksumIEEE(note[notePrefix:]))
	return note, nil
}

// decodeOriginRecord reads a note.
func decodeOriginRecord(note []byte) (originRecord, error) {
	var r originRecord
	if len(note) < notePrefix || note[0] != noteVersion ||
		binary.BigEndian.Uint32(note[1:]) != crc32.ChecksumIEEE(note[notePrefix:]) {
		return originRecord{}, errDamaged
	}
	size, n := binary.Uvarint(note[notePrefix:])
	if n <= 0 || size > uint64(len(note)-notePrefix-n) {
		return originRecord{}, errDamaged
	}
	header := note[notePrefix+n:][:size]
	if err := json.Unmarshal(header, &r); err != nil {
		return originRecord{}, errDamaged
	}
	if r.Last != nil {
		r.Last.body = note[notePrefix+n+int(size):]
	}
	if r.Hop != nil {
		u, err := decorum.ParseURL(r.Hop.Target)
		if err != nil {
			return originRecord{}, errDamaged
		}
		r.Hop.url = u
	}
	return r, nil
}

// load reads the origin's record. A damaged one is as good as none: the file
// is fetched again, and until then nothing is allowed. Where there is none of the
// Gate's User-Agent, one counts that was kept before these were told apart.
func (g *Gate) load(ctx context.Context, o decorum.Origin) (originRecord, error) {
	key := g.key(recordNoteKey)
	note, err := g.note(ctx, o, key)
	if old := g.anonymous(recordNoteKey); note == nil && err == nil && old != key {
		key = old
		note, err = g.note(ctx, o, key)
	}
	if err != nil {
		return originRecord{}, err
	}
	r, err := decodeOriginRecord(note)
	if err != nil {
		return originRecord{}, nil
	}
	r.key = key
	return r, nil
}

// save writes the origin's record, in the place of the one that it was read from.
func (g *Gate) save(ctx context.Context, o decorum.Origin, r *originRecord) error {
	note, err := r.encode()
	if err != nil {
		return fmt.Errorf("robots: write note of %s: %w", o, err)
	}
	key := g.key(recordNoteKey)
	if err := g.setNote(ctx, o, key, note); err != nil || r.key == key || r.key == "" {
		return err
	}
	return g.setNote(ctx, o, r.key, nil)
}

// note reads a note.
func (g *Gate) note(ctx context.Context, o decorum.Origin, key string) ([]byte, error) {
	note, err := g.notes.ReadNote(ctx, o, key)
	if err != nil {
		return nil, fmt.Errorf("robots: read note of %s: %w", o, err)
	}
	return note, nil
}

// setNote writes a note; nil deletes it.
func (g *Gate) setNote(ctx context.Context, o decorum.Origin, key string, value []byte) error {
	if err := g.notes.SetNote(ctx, o, key, value); err != nil {
		return fmt.Errorf("robots: write note of %s: %w", o, err)
	}
	return nil
}
