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

// The keys of the notes of an origin. recordStore.noteKeyForAgent completes them.
const (
	recordNoteKey        = "robots"          // an originRecord
	versionListNoteKey   = "robots-versions" // the list of archivedVersions, in JSON
	versionNoteKeyPrefix = "robots-version-" // followed by a slot: the bytes of an archivedVersion
)

// A recordStore stores what a Gate knows about the robots.txt of each origin as notes: a record of the
// last answers, and the earlier files. It has no lock; callers that write hold the originEntry.mu of
// the origin.
type recordStore struct {
	notes           storage.Notes
	dialect         robots.Dialect
	userAgent       string // see Config.UserAgent; empty: unknown
	maxVersions     int    // see Config.MaxVersions
	maxArchiveBytes int    // see Config.MaxArchiveBytes
}

// noteKeyForAgent returns the key of the note called name. The Yandex dialect has separate keys,
// because some answers that restrict nothing there postpone the origin in other dialects. Each
// User-Agent also has separate keys, which contain the first 8 bytes of its SHA-256.
func (s *recordStore) noteKeyForAgent(name string) string {
	name = s.agentlessNoteKey(name)
	if s.userAgent == "" {
		return name
	}
	sum := sha256.Sum256([]byte(s.userAgent))
	return name + " " + hex.EncodeToString(sum[:8])
}

// agentlessNoteKey is noteKeyForAgent for a Gate without a User-Agent.
func (s *recordStore) agentlessNoteKey(name string) string {
	if s.dialect == robots.Yandex {
		return name + "-yandex"
	}
	return name
}

// An originRecord is what a Gate stores about the robots.txt of an origin (CACHE-09). It contains the
// file itself, not the rules of one agent, so that Gates for several agents can share it (CACHE-03);
// its key depends on the User-Agent (see noteKeyForAgent).
type originRecord struct {
	LastResponse        *storedResponse  `json:"last,omitempty"`
	Outage              *outage          `json:"outage,omitempty"`
	PendingRedirect     *pendingRedirect `json:"hop,omitempty"`
	ConsecutiveFailures int              `json:"attempts,omitempty"` // failed fetches in a row
	LastAttempt         time.Time        `json:"asked"`              // when the last answer arrived, of any kind

	noteKey string // the key of the note from which the record was read; empty: it is new
}

// A storedResponse is the last response that was not a server error. An outage does not remove it.
type storedResponse struct {
	Status       int       `json:"status"`           // after all redirects; 0: the request failed (Yandex)
	IsRobotsFile bool      `json:"file,omitempty"`   // there is a file; otherwise everything is allowed
	SHA256       string    `json:"sha256,omitempty"` // of body, in hex
	FetchedAt    time.Time `json:"fetched"`
	FirstSeen    time.Time `json:"first,omitzero"` // when the file was first received; zero in old records
	ExpiresAt    time.Time `json:"expires"`
	ETag         string    `json:"etag,omitempty"`
	LastModified string    `json:"modified,omitempty"`
	RedirectedTo string    `json:"at,omitempty"` // the URL after redirects; empty without redirects

	body []byte // the file, if IsRobotsFile: see parsableBody
}

// An outage is a series of server errors that continues.
type outage struct {
	Since     time.Time `json:"since"`
	RetryAt   time.Time `json:"retry"`              // when to try again
	Reason    string    `json:"why"`                // the last failure
	Answered  bool      `json:"answered,omitempty"` // the server has answered
	PastLimit bool      `json:"over,omitempty"`     // it has lasted too long to postpone the origin further (FETCH-13)
}

// A pendingRedirect is a redirect whose target has not been visited yet.
type pendingRedirect struct {
	Target string    `json:"url"`
	Count  int       `json:"count"` // redirects since the robots.txt, including this one
	Since  time.Time `json:"since"` // when the redirect was received

	parsedTarget decorum.URL // Target, parsed
}

// recordResponse ends the fetch with a final response and removes redirect, outage and failures.
func (r *originRecord) recordResponse(now time.Time, a *storedResponse) {
	*r = originRecord{LastResponse: a, LastAttempt: now, noteKey: r.noteKey}
}

// recordRedirect makes the record wait for the target of a redirect, the count-th one of this fetch.
// If the record already waits for as many redirects, an earlier fetch did not visit its target in
// time, and counts as failed.
func (r *originRecord) recordRedirect(now time.Time, to decorum.URL, count int) {
	if r.PendingRedirect != nil && r.PendingRedirect.Count >= count {
		r.ConsecutiveFailures++
	}
	r.PendingRedirect = &pendingRedirect{Target: to.String(), Count: count, Since: now, parsedTarget: to}
	r.LastAttempt = now
}

// maxOutageGap is the longest time between two failures of one outage. Failures further apart do not
// prove that the server was unreachable in between (FETCH-15).
const maxOutageGap = 7 * day

// recordFailure ends the fetch with a server error. The next attempt is due after wait. limit is the
// duration after which the outage is past its limit.
func (r *originRecord) recordFailure(now time.Time, f *fetchFailure, wait, limit time.Duration) {
	since := now
	answered := f.answered || r.PendingRedirect != nil || r.Outage != nil && r.Outage.Answered
	if r.Outage != nil && now.Sub(r.LastAttempt) <= maxOutageGap {
		since = r.Outage.Since
	}
	r.Outage = &outage{Since: since, RetryAt: now.Add(wait), Reason: f.reason, Answered: answered,
		PastLimit: now.Sub(since) > limit}
	r.PendingRedirect = nil
	r.ConsecutiveFailures++
	r.LastAttempt = now
}

// A record note consists of a version byte, a checksum of the bytes after it, the length of the
// header (a varint), the header in JSON, and the body of the file.
const (
	noteFormatVersion = 1
	notePrefixBytes   = 1 + crc32.Size
)

// errDamagedNote is the error of decodeOriginRecord for all damage. loadRecord does not return it.
var errDamagedNote = errors.New("damaged robots note")

// encode returns the record as a note, in the format above.
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

// decodeOriginRecord decodes a note that encode returned. The body of the record shares its memory.
func decodeOriginRecord(note []byte) (originRecord, error) {
	var r originRecord
	// Check version and checksum before anything is parsed.
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

// loadRecord reads the record of the origin. A missing or damaged record counts as an empty one: the
// Gate then fetches the robots.txt again, and allows nothing until then. Without a record for the
// User-Agent of the Gate, loadRecord reads one from before keys contained the User-Agent.
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

// saveRecord writes the record of the origin. If it was read from a note with another key, saveRecord
// deletes that note.
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

// readNote reads the note with the key, nil if it does not exist. Its error names the origin.
func (s *recordStore) readNote(ctx context.Context, o decorum.Origin, key string) ([]byte, error) {
	note, err := s.notes.ReadNote(ctx, o, key)
	if err != nil {
		return nil, fmt.Errorf("robots: read note of %s: %w", o, err)
	}
	return note, nil
}

// writeNote writes the note with the key; nil deletes it. Its error names the origin.
func (s *recordStore) writeNote(ctx context.Context, o decorum.Origin, key string, value []byte) error {
	if err := s.notes.SetNote(ctx, o, key, value); err != nil {
		return fmt.Errorf("robots: write note of %s: %w", o, err)
	}
	return nil
}
