package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// hashOf returns the SHA-256 of a text, in hex.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// wantVersions expects the files of an origin, the newest first. Each is given by its text and the
// number of days after testStart on which it was first received.
func (s *gateTest) wantVersions(o decorum.Origin, want ...string) {
	s.t.Helper()
	versions, err := s.gate.FileVersions(s.t.Context(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, v := range versions {
		body, err := s.gate.FileBodyByHash(s.t.Context(), o, v.SHA256)
		if err != nil || hashOf(string(body)) != v.SHA256 || len(body) != v.Size {
			s.t.Errorf("version %+v has the body %q, %v", v, body, err)
		}
		got = append(got, fmt.Sprintf("%s %v", body, v.FirstSeen.Sub(testStart).Hours()/24))
	}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		s.t.Errorf("versions %q, want %q", got, want)
	}
}

// TestVersions lists the answer of each day, "" for a missing file, and the stored files after it.
func TestVersions(t *testing.T) {
	s := newGateTest(t, Config{UserAgent: "anybot/1"})
	page := robotstest.URL(t, "https://example.com/b")
	o := page.Origin()
	s.wantVersions(o)
	for day, tt := range []struct {
		text   string
		writes int
		want   []string
	}{
		{"A", 1, []string{"A 0"}},
		{"A", 1, []string{"A 0"}},
		{"B", 3, []string{"B 2", "A 0"}},
		{"B", 1, []string{"B 2", "A 0"}},
		{"", 3, []string{"B 2", "A 0"}}, // 404: the origin has no current file
		{"", 1, []string{"B 2", "A 0"}},
		{"A", 3, []string{"A 0", "B 2"}}, // an old file is back
		{"C", 3, []string{"C 7", "A 0", "B 2"}},
		{"B", 4, []string{"B 2", "C 7", "A 0"}},
	} {
		s.now = testStart.AddDate(0, 0, day)
		s.restart()
		before := s.notes.writes
		answer := respondWith(200, tt.text)
		if tt.text == "" {
			answer = respondWith(404)
		}
		s.fetchRobots(page, answer)
		if n := s.notes.writes - before; n != tt.writes {
			t.Errorf("day %d: %d notes are written, want %d", day, n, tt.writes)
		}
		s.wantVersions(o, tt.want...)
	}
	if body, err := s.gate.FileBodyByHash(t.Context(), o, ""); string(body) != "B" || err != nil {
		t.Errorf("the current file is %q, %v", body, err)
	}
	if body, err := s.gate.FileBodyByHash(t.Context(), o, hashOf("never")); body != nil || err != nil {
		t.Errorf("a file that never was is %q, %v", body, err)
	}
	// An outage does not change the stored files.
	s.now = s.now.AddDate(0, 0, 1)
	s.fetchRobots(page, failDownload)
	s.wantVersions(o, "B 2", "C 7", "A 0")
}

// TestVersionsAreBounded proves that the files that a server can make the Gate store are limited in
// number and bytes.
func TestVersionsAreBounded(t *testing.T) {
	page := robotstest.URL(t, "https://example.com/b")
	for _, tt := range []struct {
		name  string
		cfg   Config
		bytes int
		want  int
	}{
		{"files", Config{}, 100, 20},
		{"bytes", Config{}, 500 << 10, 1 + 4},
		{"settings", Config{MaxVersions: 3}, 100, 3},
		{"bytes by setting", Config{MaxArchiveBytes: 250}, 100, 1 + 2},
		{"none", Config{MaxVersions: -1}, 100, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newGateTest(t, tt.cfg)
			for day := range 50 {
				s.now = testStart.AddDate(0, 0, day)
				s.fetchRobots(page, respondWith(200, fmt.Sprintf("%*d", tt.bytes, day)))
			}
			versions, err := s.gate.FileVersions(t.Context(), page.Origin())
			if err != nil || len(versions) != tt.want {
				t.Fatalf("%d versions, %v; want %d", len(versions), err, tt.want)
			}
			for i, v := range versions {
				if want := testStart.AddDate(0, 0, 49-i); !v.FirstSeen.Equal(want) {
					t.Errorf("version %d was first received at %v, want %v", i, v.FirstSeen, want)
				}
				if body, err := s.gate.FileBodyByHash(t.Context(), page.Origin(), v.SHA256); len(body) != tt.bytes ||
					err != nil {
					t.Errorf("version %d has %d bytes, %v", i, len(body), err)
				}
			}
			stored := 0
			for _, note := range s.notes.notes {
				if note != nil {
					stored++
				}
			}
			if limit := 1 + tt.want; stored > limit { // the record, the list, and the old files
				t.Errorf("%d notes are kept, want %d", stored, limit)
			}
		})
	}
}

// TestVersionsAfterCrash keeps the first of the notes that a change writes, for each possible number.
// The next fetch restores what a crash has lost, and FileBodyByHash never returns the bytes of another
// file.
func TestVersionsAfterCrash(t *testing.T) {
	page := robotstest.URL(t, "https://example.com/b")
	for writes := range 5 {
		s := newGateTest(t, Config{})
		for day, text := range []string{"A", "B", "C"} {
			s.now = testStart.AddDate(0, 0, day)
			s.fetchRobots(page, respondWith(200, text))
		}
		s.now = testStart.AddDate(0, 0, 3)
		c := s.wantRobotsFetch(page)
		lossyCopy := &lossyNotes{memoryNotes: s.notes, writesLeft: writes}
		s.gate.records.notes = lossyCopy
		s.recordFetch(c, respondWith(200, "A")(c.URL())) // the process does not notice the loss
		s.restart()
		s.gate.records.notes = s.notes
		if c, err := s.check(page); err == nil && c.IsForRobots() {
			s.recordFetch(c, respondWith(200, "A")(c.URL()))
		}
		versions, err := s.gate.FileVersions(t.Context(), page.Origin())
		if err != nil || len(versions) != 3 {
			t.Fatalf("after %d writes: %+v, %v", writes, versions, err)
		}
		for i, text := range []string{"A", "C", "B"} {
			body, err := s.gate.FileBodyByHash(t.Context(), page.Origin(), hashOf(text))
			if versions[i].SHA256 != hashOf(text) || err != nil || string(body) != text {
				t.Errorf("after %d writes: version %d is %+v, of %s there is %q, %v", writes, i,
					versions[i], text, body, err)
			}
		}
	}
}

// A lossyNotes simulates a crash: it loses all writes but the first writesLeft.
type lossyNotes struct {
	*memoryNotes
	writesLeft int
}

func (l *lossyNotes) SetNote(ctx context.Context, o decorum.Origin, key string, value []byte) error {
	if l.writesLeft--; l.writesLeft < 0 {
		return nil
	}
	return l.memoryNotes.SetNote(ctx, o, key, value)
}

// TestExpiresAt tests ExpiresAt and LastFetchSummary, which report on a file without applying its rules.
func TestExpiresAt(t *testing.T) {
	s := newGateTest(t, Config{MaxTTL: 2 * time.Hour})
	page := robotstest.URL(t, "https://example.com/b")
	for _, when := range []string{"in mind", "restarted"} {
		if when == "in mind" {
			if at, err := s.gate.ExpiresAt(t.Context(), page.Origin()); !at.IsZero() || err != nil {
				t.Errorf("an unknown origin expires at %v, %v", at, err)
			}
			s.fetchRobots(page, respondWith(200, someRules))
		} else {
			s.restart()
		}
		at, err := s.gate.ExpiresAt(t.Context(), page.Origin())
		if !at.Equal(testStart.Add(2*time.Hour)) || err != nil {
			t.Errorf("%s: expires at %v, %v", when, at, err)
		}
		known, err := s.gate.LastFetchSummary(t.Context(), page.Origin())
		if want := (FetchSummary{hashOf(someRules), testStart, OutcomeRules, true}); known != want || err != nil {
			t.Errorf("%s: known %+v, %v", when, known, err)
		}
	}
}
