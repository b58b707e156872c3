package gate

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
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// Keys of notes: of an origin's record, of the list of the files that it had
// before, and, with a number after it, of each of these.
const (
	recordNoteKey        = "robots"
	versionListNoteKey   = "robots-versions"
	versionNoteKeyPrefix = "robots-version-"
)

// A recordStore keeps what a Gate knows of each origin's robots.txt in notes: the record of the last
// answers, and the files that the origin had before. It has no lock of
// its own.
type recordStore struct {
	notes           storage.Notes
	dialect         robots.Dialect
	userAgent       string // of the requests; empty: not known
	maxVersions     int    // files of an origin, the present one included
	maxArchiveBytes int    // bytes of the files that an origin had before
}

// noteKeyForAgent returns the key of a note of the Gate's. Yandex has keys of its own: an
// answer that means no restriction there closes the origin to others. So has each
// User-Agent, by a part of its SHA-256.
func (s *recordStore) noteKeyForAgent(name string) string {
	name = s.agentlessNoteKey(name)
	if s.userAgent == "" {
		return name
	}
	sum := sha256.Sum256([]byte(s.userAgent))
	return name + " " + hex.EncodeToString(sum[:8])
}

// agentlessNoteKey is key for a Gate that does not know its User-Agent.
func (s *recordStore) agentlessNoteKey(name string) string {
	if s.dialect == robots.Yandex {
		return name + "-yandex"
	}
	return name
}

// An originRecord is all that counts of an origin's robots.txt (CACHE-09). It is
// tied to no agent (CACHE-03).
type originRecord struct {
	LastResponse        *storedResponse  `json:"last,omitempty"`
	Outage              *outage          `json:"outage,omitempty"`
	PendingRedirect     *pendingRedirect `json:"hop,omitempty"`
	ConsecutiveFailures int              `json:"attempts,omitempty"` // lookups that failed in a row
	LastAttempt         time.Time        `json:"asked"`              // when the last answer came, of any kind

	noteKey string // of the note that it was read from
}

// A storedResponse is the last one that was no server error. It outlives outages.
type storedResponse struct {
	Status       int       `json:"status"` // of the last visit of the chain
	IsRobotsFile bool      `json:"file,omitempty"`
	SHA256       string    `json:"sha256,omitempty"`
	FetchedAt    time.Time `json:"fetched"`
	FirstSeen    time.Time `json:"first,omitzero"` // when the file came first; zero in old records
	ExpiresAt    time.Time `json:"expires"`
	ETag         string    `json:"etag,omitempty"`
	LastModified string    `json:"modified,omitempty"`
	RedirectedTo string    `json:"at,omitempty"` // the URL that redirects led to; empty: there were none

	body []byte // if IsRobotsFile
}

// An outage is a row of server errors that has not ended.
type outage struct {
	Since     time.Time `json:"since"`
	RetryAt   time.Time `json:"retry"`          // when to ask again
	Reason    string    `json:"why"`            // the last failure
	PastLimit bool      `json:"over,omitempty"` // it lasts too long to keep the origin closed (FETCH-13)
}

// A pendingRedirect is where a redirect led that is still to be visited.
type pendingRedirect struct {
	Target string    `json:"url"`
	Count  int       `json:"count"` // redirects so far
	Since  time.Time `json:"since"`

	parsedTarget decorum.URL // Target, parsed
}

// recordResponse ends the lookup with an answer.
func (r *originRecord) recordResponse(now time.Time, a *storedResponse) {
	*r = originRecord{LastResponse: a, LastAttempt: now, noteKey: r.noteKey}
}

// recordRedirect waits for the target of a redirect. If one was waited for already, it
// was not visited in time, and the lookup that began it failed.
func (r *originRecord) recordRedirect(now time.Time, to decorum.URL, count int) {
	if r.PendingRedirect != nil && r.PendingRedirect.Count >= count {
		r.ConsecutiveFailures++
	}
	r.PendingRedirect = &pendingRedirect{Target: to.String(), Count: count, Since: now, parsedTarget: to}
	r.LastAttempt = now
}

// maxOutageGap is how long nobody may have asked for an outage to be still
// called continuous: two failures far apart do not make a month (FETCH-15).
const maxOutageGap = 7 * day

// recordFailure ends the lookup with a server error, to be made again after wait.
func (r *originRecord) recordFailure(now time.Time, reason string, wait, limit time.Duration) {
	since := now
	if r.Outage != nil && now.Sub(r.LastAttempt) <= maxOutageGap {
		since = r.Outage.Since
	}
	r.Outage = &outage{Since: since, RetryAt: now.Add(wait), Reason: reason, PastLimit: now.Sub(since) > limit}
	r.PendingRedirect = nil
	r.ConsecutiveFailures++
	r.LastAttempt = now
}

// A note is a version byte, a checksum of what follows it, the length of the
// header, the header in JSON, and the body as it came.
const (
	noteFormatVersion = 1
	notePrefixBytes   = 1 + crc32.Size
)

var errDamagedNote = errors.New("damaged robots note")

// encode returns the record as a note.
func (r *originRecord) encode() ([]byte, error) {
	header, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var body []byte
	if r.LastResponse != nil {
		body = r.LastResponse.body
	}
	note := make([]byte, notePrefixBytes, notePrefixBytes+binary.MaxVarintLen64+len(header)+len(body))
	note = binary.AppendUvarint(note, uint64(len(header)))
	note = append(note, header...)
	note = append(note, body...)
	note[0] = noteFormatVersion
	binary.BigEndian.PutUint32(note[1:], crc32.ChecksumIEEE(note[notePrefixBytes:]))
	return note, nil
}

// decodeOriginRecord reads a note.
func decodeOriginRecord(note []byte) (originRecord, error) {
	var r originRecord
	if len(note) < notePrefixBytes || note[0] != noteFormatVersion ||
		binary.BigEndian.Uint32(note[1:]) != crc32.ChecksumIEEE(note[notePrefixBytes:]) {
		return originRecord{}, errDamagedNote
	}
	size, n := binary.Uvarint(note[notePrefixBytes:])
	if n <= 0 || size > uint64(len(note)-notePrefixBytes-n) {
		return originRecord{}, errDamagedNote
	}
	header := note[notePrefixBytes+n:][:size]
	if err := json.Unmarshal(header, &r); err != nil {
		return originRecord{}, errDamagedNote
	}
	if r.LastResponse != nil {
		r.LastResponse.body = note[notePrefixBytes+n+int(size):]
	}
	if r.PendingRedirect != nil {
		u, err := decorum.ParseURL(r.PendingRedirect.Target)
		if err != nil {
			return originRecord{}, errDamagedNote
		}
		r.PendingRedirect.parsedTarget = u
	}
	return r, nil
}

// loadRecord reads the origin's record. A damaged one is as good as none: the file
// is fetched again, and until then nothing is allowed. Where there is none of the
// Gate's User-Agent, one counts that was kept before these were told apart.
func (s *recordStore) loadRecord(ctx context.Context, o decorum.Origin) (originRecord, error) {
	key := s.noteKeyForAgent(recordNoteKey)
	note, err := s.readNote(ctx, o, key)
	if oldKey := s.agentlessNoteKey(recordNoteKey); note == nil && err == nil && oldKey != key {
		key = oldKey
		note, err = s.readNote(ctx, o, key)
	}
	if err != nil {
		return originRecord{}, err
	}
	r, err := decodeOriginRecord(note)
	if err != nil {
		return originRecord{}, nil
	}
	r.noteKey = key
	return r, nil
}

// saveRecord writes the origin's record, in the place of the one that it was read from.
func (s *recordStore) saveRecord(ctx context.Context, o decorum.Origin, r *originRecord) error {
	note, err := r.encode()
	if err != nil {
		return fmt.Errorf("robots: write note of %s: %w", o, err)
	}
	key := s.noteKeyForAgent(recordNoteKey)
	if err := s.writeNote(ctx, o, key, note); err != nil || r.noteKey == key || r.noteKey == "" {
		return err
	}
	return s.writeNote(ctx, o, r.noteKey, nil)
}

// readNote reads a note.
func (s *recordStore) readNote(ctx context.Context, o decorum.Origin, key string) ([]byte, error) {
	note, err := s.notes.ReadNote(ctx, o, key)
	if err != nil {
		return nil, fmt.Errorf("robots: read note of %s: %w", o, err)
	}
	return note, nil
}

// writeNote writes a note; nil deletes it.
func (s *recordStore) writeNote(ctx context.Context, o decorum.Origin, key string, value []byte) error {
	if err := s.notes.SetNote(ctx, o, key, value); err != nil {
		return fmt.Errorf("robots: write note of %s: %w", o, err)
	}
	return nil
}
