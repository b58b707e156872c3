package lua

import (
	"crypto/sha1"
	"fmt"
	"strings"
	"testing"
)

// Each file is either shared by all scripts or the end of exactly one, and the SHA-1 of a script is
// that of its whole text, as the server computes it.
func TestScriptsHoldTheirFiles(t *testing.T) {
	shared := ""
	for _, name := range []string{"common", "lanes", "schedule", "seen_set"} {
		text, err := files.ReadFile(name + ".lua")
		if err != nil {
			t.Fatal(err)
		}
		shared += string(text)
	}
	all := []*Script{Add, Lease, RecordLeaseTTL, Ack, Summary, ConfirmDue, RenewLease, MarkSent,
		ReturnLeases, Hold, SetNote,
		AwaitingRevisit, Reschedule, ReadParked, Unpark, HasSeen, ListSeen, OriginInfo,
		ListQueues, QueueRecords, Import,
		SetSharedValue, GetSharedValues, Heartbeat, AdmitHosts, HostCount}
	ends := map[string]int{}
	for _, s := range all {
		end, ok := strings.CutPrefix(s.Text, shared)
		if !ok {
			t.Errorf("a script does not begin with the shared files: %.80q", s.Text)
		}
		if want := fmt.Sprintf("%x", sha1.Sum([]byte(s.Text))); s.SHA1 != want {
			t.Errorf("SHA-1 %s, want %s", s.SHA1, want)
		}
		ends[end]++
	}
	entries, err := files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if n := ends[string(text)]; n != 1 && !strings.Contains(shared, string(text)) {
			t.Errorf("%s ends %d scripts, want 1", e.Name(), n)
		}
	}
}
