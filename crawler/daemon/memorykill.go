package daemon

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/internal/memlimit"
)

// If the kernel kills a daemon for its memory, the restarted daemon would run the same
// projects and be killed again, so that no project makes progress. The daemon therefore
// keeps a note of its memory. A project that held most of it at two memory kills in a
// row comes up stopped. A process that ended otherwise, by SIGKILL, a power loss or a
// crash, leaves no sign of a memory kill, and stops no project.

const (
	memoryFile      = "memory.json"
	memoryNoteEvery = 2 * time.Second
	// fullShare is the share of the limit above which the memory kept at the end of a
	// process is the sign of a memory kill, where the kernel does not count them.
	fullShare = 0.9
	// killsBeforeStop is the number of memory kills in a row at which a project must
	// have held most of the memory to come up stopped.
	killsBeforeStop = 2
)

// A memoryNote is the daemon's record of its memory while it runs.
type memoryNote struct {
	At        time.Time `json:"at"`
	Ended     bool      `json:"ended"`              // the process ended in order
	LiveBytes int64     `json:"kept_bytes"`         // see memlimit.LiveBytes
	Limit     int64     `json:"limit_bytes"`        // 0: unknown
	OOMKills  int64     `json:"oom_kills"`          // of the control group; -1: unknown
	Largest   string    `json:"largest,omitempty"`  // the project that holds most of the memory
	Suspect   string    `json:"suspect,omitempty"`  // Largest at the last memory kills
	Kills     int       `json:"kills_in_a_row"`     // memory kills in a row at which Suspect held most
	Stopped   string    `json:"stopped,omitempty"`  // the project that came up stopped the last time
	Before    string    `json:"last_end,omitempty"` // how the process before this one ended
}

// memoryNow is the memory of the process at a moment.
type memoryNow struct {
	liveBytes, limit, oomKills int64
}

// readMemory returns the memory of this process.
func readMemory(limit memlimit.Limit) memoryNow {
	kills, ok := memlimit.OOMKills()
	if !ok {
		kills = -1
	}
	return memoryNow{memlimit.LiveBytes(), limit.Bytes, kills}
}

// wasMemoryKill reports whether the process that left the note ended by a memory kill,
// and by which sign.
func (n *memoryNote) wasMemoryKill(now memoryNow) (sign string, killed bool) {
	switch {
	case n == nil || n.Ended:
		return "", false
	case n.OOMKills >= 0 && now.oomKills > n.OOMKills:
		return "the kernel killed a process of the control group for its memory", true
	case n.Limit > 0 && float64(n.LiveBytes) > fullShare*float64(n.Limit):
		return fmt.Sprintf("it kept %s of %s of memory when it ended", approximate(n.LiveBytes), approximate(n.Limit)), true
	}
	return "", false
}

// next returns the note of the starting process, given the previous process's note
// (nil: none), and the project that must come up stopped; empty: none.
func (n *memoryNote) next(now memoryNow, at time.Time) (note memoryNote, stop string) {
	note = memoryNote{At: at, LiveBytes: now.liveBytes, Limit: now.limit, OOMKills: now.oomKills}
	sign, killed := n.wasMemoryKill(now)
	if !killed {
		return note, "" // the previous process ended otherwise: nothing is suspected any more
	}
	note.Before = sign
	if n.Largest == "" {
		return note, ""
	}
	note.Suspect, note.Kills = n.Largest, 1
	if n.Suspect == n.Largest {
		note.Kills += n.Kills
	}
	if note.Kills >= killsBeforeStop {
		note.Stopped, note.Suspect, note.Kills = n.Largest, "", 0
	}
	return note, note.Stopped
}

// A memoryWatch keeps the note of this process.
type memoryWatch struct {
	file string
	read func() memoryNow // the memory of this process
	log  *slog.Logger

	mu     sync.Mutex // guards what follows
	note   memoryNote
	failed bool // the last write failed, and the failure was logged
}

// openMemoryWatch reads the note of the previous process, writes that of this one, and
// returns the project that must come up stopped; empty: none. It treats an unreadable
// note as empty: it stops no project for it.
func openMemoryWatch(
	file string, read func() memoryNow, log *slog.Logger,
) (w *memoryWatch, stop string) {
	w = &memoryWatch{file: file, read: read, log: log}
	var last *memoryNote
	if text, err := os.ReadFile(file); err == nil {
		last = &memoryNote{}
		if err := json.Unmarshal(text, last); err != nil {
			last = nil
		}
	}
	w.note, stop = last.next(read(), time.Now().UTC())
	w.write()
	return w, stop
}

// update records the present memory. held is about how much each project holds.
func (w *memoryWatch) update(now time.Time, held map[string]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.note.At) < memoryNoteEvery {
		return
	}
	m := w.read()
	w.note.At, w.note.LiveBytes, w.note.Limit = now.UTC(), m.liveBytes, m.limit
	w.note.OOMKills = m.oomKills // this process survived: the kernel killed another
	w.note.Largest = largestOf(held)
	w.write()
}

// end records that the process ends in order.
func (w *memoryWatch) end() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note.Ended = true
	w.write()
}

// write replaces the note in the file. It does not sync: a power loss, after which the
// note may be missing, is not a memory kill. It requires mu.
func (w *memoryWatch) write() {
	text, err := json.MarshalIndent(&w.note, "", "  ")
	if err == nil {
		err = os.WriteFile(w.file+".new", append(text, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(w.file+".new", w.file)
	}
	if err != nil && !w.failed {
		w.log.Warn("cannot note the memory of the daemon; after a memory kill no project is stopped", "error", err)
	}
	w.failed = err != nil
}

// largestOf returns the project that holds at least half of the memory of all projects;
// empty: none does.
func largestOf(held map[string]int64) (largest string) {
	all := int64(0)
	for name, n := range held {
		all += n
		if n > held[largest] || n == held[largest] && name < largest {
			largest = name
		}
	}
	if largest == "" || 2*held[largest] < all {
		return ""
	}
	return largest
}

// The memory of a project is estimated from the parts that grow: its hosts, the URLs
// under way with their bodies, and the unwritten changes of its store.
const (
	hostBytes  = 1 << 10
	visitBytes = 256 << 10
)

// held returns the estimated memory of the project; 0 if the project is not open.
func (r *runner) held() int64 {
	switch state, _ := r.currentState(); state {
	case api.StateStopped, api.StateFailed:
		return 0
	}
	c := r.vault.latest().counts
	return int64(c.Hosts)*hostBytes + int64(c.Leased)*visitBytes
}

// noteMemory records the daemon's memory and the project that holds most of it.
func (s *supervisor) noteMemory(now time.Time) {
	held := map[string]int64{}
	for _, r := range s.all() {
		if n := r.held(); n > 0 {
			held[r.name] = n
		}
	}
	s.memoryWatch.update(now, held)
}

// watchMemory starts to record the daemon's memory. A project that held most of it when
// earlier daemons were killed comes up stopped.
func (s *supervisor) watchMemory() error {
	read := s.app.memory
	if read == nil {
		limit := memlimit.Get()
		read = func() memoryNow { return readMemory(limit) }
	}
	var stop string
	s.memoryWatch, stop = openMemoryWatch(s.data.path(memoryFile), read, s.app.log)
	if stop == "" {
		return nil
	}
	return s.stopForMemory(stop)
}

// stopForMemory makes a project come up stopped for good, with the reason.
func (s *supervisor) stopForMemory(project string) error {
	if s.wishes.of(project).State != api.StateRunning {
		return nil // an operator has stopped or paused it
	}
	why := fmt.Sprintf("it held most of the daemon's memory at %d memory kills in a row (the last time, %s): "+
		"lower its scope.max_hosts, scope.max_hosts_per_domain or limits.workers, or give the daemon more memory, "+
		"and start it again", killsBeforeStop, s.memoryWatch.note.Before)
	if err := s.wishes.wantNow(project, wish{State: api.StateStopped, Why: why}); err != nil {
		return err
	}
	s.app.log.Error("the project comes up stopped", "project", project, "why", why)
	return nil
}
