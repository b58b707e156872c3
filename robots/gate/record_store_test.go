package gate

import (
	"bytes"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// TestRecordStore proves that records of two User-Agents are separate, that a record with an old key,
// without User-Agent, moves to the key of the agent that saves it, and that the number of old files is
// limited.
func TestRecordStore(t *testing.T) {
	u, err := decorum.ParseURL("http://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	o, notes := u.Origin(), memory.New(memory.Config{})
	old := recordStore{notes: notes, dialect: robots.Google, maxVersions: 3, maxArchiveBytes: 100}
	one, other := old, old
	one.userAgent, other.userAgent = "one/1.0", "other/1.0"
	file := func(body string) *storedResponse {
		return &storedResponse{SHA256: body, body: []byte(body), FetchedAt: time.Unix(1e9, 0), IsRobotsFile: true}
	}

	// All agents read a record without an agent, until one of them saves its own in its place.
	if err := old.saveRecord(t.Context(), o, &originRecord{LastResponse: file("old")}); err != nil {
		t.Fatal(err)
	}
	r, err := one.loadRecord(t.Context(), o)
	if err != nil || r.LastResponse == nil || !bytes.Equal(r.LastResponse.body, []byte("old")) {
		t.Fatalf("one/1.0 reads %+v, %v; want the old record", r.LastResponse, err)
	}
	if err := one.saveRecord(t.Context(), o, &r); err != nil {
		t.Fatal(err)
	}
	if r, err := other.loadRecord(t.Context(), o); err != nil || r.LastResponse != nil {
		t.Errorf("other/1.0 reads %+v, %v; want nothing", r.LastResponse, err)
	}

	// Of five files, the current one and two older ones are kept, the newest first.
	last := file("1")
	for _, body := range []string{"2", "3", "4", "5"} {
		next := file(body)
		if err := one.archiveVersionIfReplaced(t.Context(), o, last, next); err != nil {
			t.Fatal(err)
		}
		last = next
	}
	kept, err := one.archivedVersions(t.Context(), o)
	if err != nil || len(kept) != 2 || kept[0].SHA256 != "4" || kept[1].SHA256 != "3" {
		t.Errorf("kept are %+v, %v; want 4 and 3", kept, err)
	}
	if kept, err := other.archivedVersions(t.Context(), o); err != nil || len(kept) != 0 {
		t.Errorf("other/1.0 has %+v, %v; want none", kept, err)
	}
}
