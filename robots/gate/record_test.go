package gate

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"reflect"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

func TestRecordRoundTrip(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 5, time.UTC)
	u := robotstest.URL(t, "https://b.test/r.txt?x=%22")
	for name, r := range map[string]originRecord{
		"nothing": {},
		"no file": {LastResponse: &storedResponse{Status: 404, FetchedAt: now, ExpiresAt: now.Add(day)},
			LastAttempt: now},
		"all": {
			LastResponse: &storedResponse{Status: 200, IsRobotsFile: true, SHA256: "ab",
				FetchedAt: now, ExpiresAt: now.Add(day),
				ETag: `W/"é"`, LastModified: "x", body: []byte("\x00\xff\nUser-agent: *")},
			Outage: &outage{Since: now, RetryAt: now.Add(time.Hour),
				Reason: "robots.txt: status 500", PastLimit: true},
			PendingRedirect:     &pendingRedirect{Target: u.String(), Count: 3, Since: now, parsedTarget: u},
			ConsecutiveFailures: 7, LastAttempt: now,
		},
	} {
		note, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeOriginRecord(note)
		if r.LastResponse != nil && len(got.LastResponse.body) == 0 {
			got.LastResponse.body = nil
		}
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%s: %+v became %+v, %v", name, r, got, err)
		}
	}
}

// withChecksum returns a note with a valid version and checksum, so that the fuzzer gets past them.
func withChecksum(rest []byte) []byte {
	note := binary.BigEndian.AppendUint32([]byte{noteFormatVersion}, crc32.ChecksumIEEE(rest))
	return append(note, rest...)
}

// FuzzRecord proves that reading an arbitrary note at most returns an error, and that a Gate that has
// read it does not clear pages without rules.
func FuzzRecord(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x02{}"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01{}"))
	f.Add([]byte(`)` + `{"hop":{"url":"https://b.test/","count":1}}`))
	f.Add(
		[]byte(
			"\x5f" + `{"last":{"status":200,"file":true,"expires":"2027-01-01T00:00:00Z"},"asked":"2026-03-01T12:00:00Z"}User-agent: *`))
	s := newGateTest(f, Config{})
	page := robotstest.URL(f, "https://example.com/b")
	c := s.wantRobotsFetch(page)
	s.recordFetch(c, respondWith(200, someRules)(c.URL()))
	f.Add(s.notes.notes[noteID{page.Origin(), "robots"}][notePrefixBytes:])
	f.Fuzz(func(t *testing.T, rest []byte) {
		note := withChecksum(rest)
		r, err := decodeOriginRecord(note)
		if err != nil {
			r = originRecord{}
		} else if again, err := r.encode(); err != nil {
			t.Errorf("%q is read but not written: %v", note, err)
		} else if _, err := decodeOriginRecord(again); err != nil {
			t.Errorf("%q is written as %q, which cannot be read", note, again)
		}
		s := newGateTest(t, Config{})
		s.notes.notes[noteID{page.Origin(), "robots"}] = bytes.Clone(note)
		c, err := s.check(page)
		if err == nil && !c.IsForRobots() && r.LastResponse == nil && (r.Outage == nil || !r.Outage.PastLimit) {
			t.Errorf("%q lets a page pass", note)
		}
	})
}
