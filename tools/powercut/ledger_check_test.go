package powercut

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// unsyncedRecordWindow is the age up to which a request's record may be missing from the disk when
// its process ends.
const unsyncedRecordWindow = 2 * time.Second

// checkLedger checks that the ledger verifies and that it has all requests: see checkLedgerRecords.
func (m *machine) checkLedger() {
	m.t.Helper()
	if r := m.runCommand(0, "ledger", "verify", "--data", m.dataDir()); r.exitCode != 0 {
		m.t.Errorf("ledger verify: exit code %d:\n%s%s", r.exitCode, r.stdout, r.stderr)
	}
	m.checkLedgerRecords()
}

// checkLedgerRecords checks that the ledger has each request that the server saw, except for those
// just before a process was killed or failed.
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
			recorded[x.URL]++ // count the record even if it is missing
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

// isJustBeforeFailure reports whether a process was killed or failed within unsyncedRecordWindow
// after at.
func (m *machine) isJustBeforeFailure(at time.Time) bool {
	for _, k := range m.failureTimes {
		if !at.After(k) && k.Sub(at) < unsyncedRecordWindow {
			return true
		}
	}
	return false
}
