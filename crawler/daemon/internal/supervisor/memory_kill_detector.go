package supervisor

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/internal/memlimit"
	"github.com/decorum-crawler/decorum/internal/plaintext"
)

// If the kernel kills a daemon for its memory, the restarted daemon would run the same
// projects and be killed again, so that no project makes progress. The daemon therefore
// records its memory usage in memory.json. A project that held most of the memory at two memory
// kills in a row comes up stopped. A process that ended otherwise, by SIGKILL, a power loss or a
// crash, leaves no evidence of a memory kill unless it used nearly all of its memory, and stops no project.

const (
	memoryRecordFile     = "memory.json"
	memoryRecordInterval = 2 * time.Second
	// memoryKillThreshold is the share of the memory limit: live memory above it at the end of a process
	// that did not end in order is evidence of a memory kill, even if the kernel has counted none.
	memoryKillThreshold = 0.9
	// maxMemoryKills is the number of memory kills in a row at which a project must have held most of
	// the memory to come up stopped.
	maxMemoryKills = 2
)

// A memoryUsageRecord is the content of memory.json, the daemon's record of its memory while it runs.
type memoryUsageRecord struct {
	RecordedAt   time.Time `json:"at"`
	EndedCleanly bool      `json:"ended"` // the process ended in order
	memoryUsage
	DominantProject      string `json:"largest,omitempty"`  // holds at least half of the memory of all projects
	SuspectProject       string `json:"suspect,omitempty"`  // DominantProject at the last memory kills
	ConsecutiveKills     int    `json:"kills_in_a_row"`     // memory kills in a row with this SuspectProject
	StoppedProject       string `json:"stopped,omitempty"`  // the project that must come up stopped; empty: none
	PreviousKillEvidence string `json:"last_end,omitempty"` // of a memory kill of the previous process; empty: none
}

// memoryUsage is the memory usage of the process at one moment.
type memoryUsage struct {
	LiveBytes  int64 `json:"kept_bytes"`  // see memlimit.LiveBytes
	LimitBytes int64 `json:"limit_bytes"` // 0: unknown
	OOMKills   int64 `json:"oom_kills"`   // in the control group so far; -1: unknown
}

// killEvidence returns the evidence that the process that wrote n ended by a memory kill, or "" if it
// ended otherwise. usage is that of the present process.
func (n *memoryUsageRecord) killEvidence(usage memoryUsage) string {
	switch {
	case n.EndedCleanly:
		return ""
	case n.OOMKills >= 0 && usage.OOMKills > n.OOMKills:
		return "the kernel killed a process of the control group for its memory"
	case n.LimitBytes > 0 && float64(n.LiveBytes) > memoryKillThreshold*float64(n.LimitBytes):
		return fmt.Sprintf("it used %s of %s of memory when it ended", plaintext.FormatBytes(n.LiveBytes),
			plaintext.FormatBytes(n.LimitBytes))
	}
	return ""
}

// newRecord returns the first record of the present process. n is the last record of the previous one.
func (n *memoryUsageRecord) newRecord(usage memoryUsage, at time.Time) memoryUsageRecord {
	record := memoryUsageRecord{RecordedAt: at, memoryUsage: usage, PreviousKillEvidence: n.killEvidence(usage)}
	if record.PreviousKillEvidence == "" || n.DominantProject == "" {
		return record // no memory kill, or no dominant project: clear the suspicion
	}
	record.SuspectProject, record.ConsecutiveKills = n.DominantProject, 1
	if n.SuspectProject == n.DominantProject {
		record.ConsecutiveKills += n.ConsecutiveKills
	}
	if record.ConsecutiveKills >= maxMemoryKills {
		record.StoppedProject, record.SuspectProject, record.ConsecutiveKills = n.DominantProject, "", 0
	}
	return record
}

// A memoryKillDetector keeps memory.json.
type memoryKillDetector struct {
	recordPath string
	readUsage  func() memoryUsage // measures this process
	log        *slog.Logger

	mu          sync.Mutex // guards record and writeFailed
	record      memoryUsageRecord
	writeFailed bool // the last write failed, and the failure was logged
}

// openMemoryKillDetector reads the record of the previous process, and writes the first record of this
// one. An unreadable record counts as that of a process that ended in order, so that it stops no
// project. A nil readUsage measures the memory of this process.
func openMemoryKillDetector(file string, readUsage func() memoryUsage, log *slog.Logger) *memoryKillDetector {
	if readUsage == nil {
		limit := memlimit.Get()
		readUsage = func() memoryUsage {
			kills, ok := memlimit.OOMKills()
			if !ok {
				kills = -1
			}
			return memoryUsage{memlimit.LiveBytes(), limit.Bytes, kills}
		}
	}
	w := &memoryKillDetector{recordPath: file, readUsage: readUsage, log: log}
	var previous memoryUsageRecord
	text, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(text, &previous) != nil {
		previous = memoryUsageRecord{EndedCleanly: true}
	}
	w.record = previous.newRecord(readUsage(), time.Now().UTC())
	w.writeRecordLocked()
	return w
}

// recordUsageIfDue records the present memory usage, unless the last record is younger than
// memoryRecordInterval. bytesByProject is the estimated memory of each project.
func (w *memoryKillDetector) recordUsageIfDue(now time.Time, bytesByProject map[string]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.record.RecordedAt) < memoryRecordInterval {
		return
	}
	// Kills that OOMKills counts by now hit other processes of the control group: this one is alive.
	w.record.RecordedAt, w.record.memoryUsage = now.UTC(), w.readUsage()
	w.record.DominantProject = projectUsingHalfOfMemory(bytesByProject)
	w.writeRecordLocked()
}

// recordCleanEnd records that the process ends in order.
func (w *memoryKillDetector) recordCleanEnd() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.record.EndedCleanly = true
	w.writeRecordLocked()
}

// writeRecordLocked replaces the record in the file. It does not sync, because the record may be lost
// in a power loss, which is not a memory kill. The caller holds w.mu, or is the only user of w.
func (w *memoryKillDetector) writeRecordLocked() {
	text, err := json.MarshalIndent(&w.record, "", "  ")
	if err == nil {
		err = os.WriteFile(w.recordPath+".new", append(text, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(w.recordPath+".new", w.recordPath)
	}
	if err != nil && !w.writeFailed {
		w.log.Warn("cannot record the daemon's memory usage; after a memory kill no project is stopped", "error", err)
	}
	w.writeFailed = err != nil
}

// projectUsingHalfOfMemory returns the project that holds at least half of the memory of all projects,
// or "" if no project does. Of two equal ones it returns the first by name.
func projectUsingHalfOfMemory(bytesByProject map[string]int64) (largest string) {
	total := int64(0)
	for name, n := range bytesByProject {
		total += n
		if n > bytesByProject[largest] || n == bytesByProject[largest] && name < largest {
			largest = name
		}
	}
	if largest == "" || 2*bytesByProject[largest] < total {
		return ""
	}
	return largest
}

// The memory of a project is estimated from the parts that grow: its queued hosts, and its leased URLs
// with their bodies.
const (
	estimatedHostBytes  = 1 << 10
	estimatedVisitBytes = 256 << 10
)

// estimatedMemory returns the estimated memory of the project in bytes, or 0 if the project is stopped
// or has failed.
func (r *projectRunner) estimatedMemory() int64 {
	if state, _ := r.state.current(); state == api.StateStopped || state == api.StateFailed {
		return 0
	}
	c := r.storeHandle.lastKnownStats().counts
	return int64(c.QueuedHosts)*estimatedHostBytes + int64(c.LeasedURLs)*estimatedVisitBytes
}

// recordMemory records the daemon's memory usage and the project that holds most of the memory.
func (s *Supervisor) recordMemory(now time.Time) {
	bytesByProject := map[string]int64{}
	for _, r := range s.runners.all() {
		if n := r.estimatedMemory(); n > 0 {
			bytesByProject[r.name] = n
		}
	}
	s.memoryKillDetector.recordUsageIfDue(now, bytesByProject)
}

// markStoppedAfterMemoryKills sets the desired state of record.StoppedProject to stopped, with the
// reason, if that project should run. An operator can start it again. The caller is the only user of w.
func (w *memoryKillDetector) markStoppedAfterMemoryKills(stateStore *daemonStateStore) error {
	project := w.record.StoppedProject
	if project == "" || stateStore.desiredState(project).State != api.StateRunning {
		return nil // an operator has stopped or paused it
	}
	reason := fmt.Sprintf("it held most of the daemon's memory at %d memory kills in a row (the last time, %s): "+
		"lower its scope.max_hosts, scope.max_hosts_per_domain or limits.workers, or give the daemon more memory, "+
		"and start it again", maxMemoryKills, w.record.PreviousKillEvidence)
	stopped := desiredState{State: api.StateStopped, Reason: reason}
	if err := stateStore.updateEvenIfFull(func(t *savedDaemonState) {
		t.DesiredStates[project] = stopped
	}); err != nil {
		return err
	}
	w.log.Error("the project comes up stopped", "project", project, "why", reason)
	return nil
}
