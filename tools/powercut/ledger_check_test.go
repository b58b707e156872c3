package powercut

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// unsyncedRecordWindow is how old a request may be, when its process ends, whose record need not
// be on the disk yet.
const unsyncedRecordWindow = 2 * time.Second

// checkLedger checks that a ledger is right, and that each request that the server saw
// is in it, but for those of the last moment before a process was killed or failed.
func (m *machine) checkLedger() {
	m.t.Helper()
	if r := m.runCommand(0, "ledger", "verify", "--data", m.dataDir()); r.exitCode != 0 {
		m.t.Errorf("ledger verify: exit code %d:\n%s%s", r.exitCode, r.stdout, r.stderr)
	}
	m.checkLedgerRecords()
}

func (m *machine) checkLedgerRecords() {
	m.t.Helper()
	r := m.runCommand(0, "ledger", "show", "--format", "jsonl", "--data", m.dataDir())
	recorded := map[string]int{}
	for line := range bytes.Lines([]byte(r.stdout)) {
		var record struct{ Request struct{ URL string } }
		if err := json.Unmarshal(line, &record); err != nil {
			m.t.Fatalf("ledger show: %v: %.80q", err, line)
		}
		recorded[record.Request.URL]++
	}
	requested := map[string]int{}
	for _, x := range m.web.Log() {
		requested[x.URL]++
		if m.isJustBeforeFailure(x.Start) {
			recorded[x.URL]++ // or not: it need not be
		}
	}
	var missing []string
	for url, n := range requested {
		if n > recorded[url] {
			missing = append(missing, url)
		}
	}
	if len(missing) > 0 {
		m.t.Errorf("%d requests are not in the ledger: %s", len(missing), strings.Join(missing, " "))
	}
}

// isJustBeforeFailure reports whether a process was killed, or failed, soon after a moment.
func (m *machine) isJustBeforeFailure(at time.Time) bool {
	for _, k := range m.failureTimes {
		if !at.After(k) && k.Sub(at) < unsyncedRecordWindow {
			return true
		}
	}
	return false
}
