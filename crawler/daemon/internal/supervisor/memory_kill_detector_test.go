package supervisor

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
)

// Each case is a sequence of processes: how each of them ended, and which project comes up stopped in
// the next one.
func TestMemoryKillRule(t *testing.T) {
	type end struct {
		largest  string // the dominant project when the process ended
		kept     int64  // live bytes then, of a limit of 1000
		oomKills int64  // the counter that the next process reads
		clean    bool
		stop     string // the project that must come up stopped; empty: none
	}
	for name, processEnds := range map[string][]end{
		"two kills that the kernel counted": {{"bad", 100, 1, false, ""}, {"bad", 100, 2, false, "bad"}},
		"two ends with a full heap":         {{"bad", 901, 0, false, ""}, {"bad", 950, 0, false, "bad"}},
		"one sign of each kind":             {{"bad", 100, 1, false, ""}, {"bad", 950, 1, false, "bad"}},
		"one kill":                          {{"bad", 950, 1, false, ""}},
		"SIGKILL, power loss, crash": {{"bad", 900, 0, false, ""}, {"bad", 900, 0, false, ""},
			{"bad", 900, 0, false, ""}},
		"another project each time": {{"a", 100, 1, false, ""},
			{"b", 100, 2, false, ""}, {"a", 100, 3, false, ""}},
		"the other one twice": {{"a", 100, 1, false, ""}, {"b", 100, 2, false, ""},
			{"b", 100, 3, false, "b"}},
		"a SIGKILL in between": {{"bad", 100, 1, false, ""}, {"bad", 100, 1, false, ""},
			{"bad", 100, 2, false, ""}},
		"an end in order in between": {{"bad", 100, 1, false, ""}, {"bad", 990, 2, true, ""},
			{"bad", 100, 3, false, ""}},
		"a kill with no largest project": {{"bad", 100, 1, false, ""}, {"", 100, 2, false, ""},
			{"bad", 100, 3, false, ""}},
		"started again after it was stopped": {{"bad", 100, 1, false, ""}, {"bad", 100, 2, false, "bad"},
			{"bad", 100, 3, false, ""}, {"bad", 100, 4, false, "bad"}},
		"no counter":                    {{"bad", 100, -1, false, ""}, {"bad", 100, -1, false, ""}},
		"a group that is created again": {{"bad", 100, 7, false, ""}, {"bad", 100, 0, false, ""}},
		"a counter that appears first":  {{"bad", 100, -1, false, ""}, {"bad", 100, 1, false, ""}},
	} {
		first := int64(0)
		if processEnds[0].oomKills < 0 {
			first = -1
		}
		note := (&memoryUsageRecord{EndedCleanly: true}).newRecord(memoryUsage{1, 1000, first}, time.Time{})
		for i, e := range processEnds {
			note.DominantProject, note.LiveBytes, note.EndedCleanly = e.largest, e.kept, e.clean
			note = note.newRecord(memoryUsage{1, 1000, e.oomKills}, time.Time{})
			if stop := note.StoppedProject; stop != e.stop {
				t.Errorf("%s: after end %d %q comes up stopped, want %q", name, i, stop, e.stop)
			}
		}
	}
}

func TestLargestProject(t *testing.T) {
	for _, tt := range []struct {
		held map[string]int64
		want string
	}{
		{nil, ""}, {map[string]int64{"a": 1}, "a"}, {map[string]int64{"a": 10, "b": 30, "c": 20}, "b"},
		{map[string]int64{"a": 30, "b": 29, "c": 28}, ""}, {map[string]int64{"b": 5, "a": 5}, "a"},
	} {
		if got := projectUsingHalfOfMemory(tt.held); got != tt.want {
			t.Errorf("largest of %v: %q, want %q", tt.held, got, tt.want)
		}
	}
}

// After two memory kills in a row, the daemon brings up the project that held most of the memory as
// stopped, says why, and runs the other projects. An operator can start the project again. The test
// sets the memory.
func TestServeStopsAProjectAfterMemoryKills(t *testing.T) {
	f := newDaemonFixture(t, daemontest.ChainSite("bad.example", 3), daemontest.ChainSite("good.example", 3))
	var log bytes.Buffer
	f.Log = slog.NewTextHandler(&log, nil)
	f.readUsage = func() memoryUsage { return memoryUsage{LiveBytes: 1, LimitBytes: 1000, OOMKills: 0} }
	f.PutProjectFile("bad", f.ProjectYAML("http://bad.example/"))
	f.PutProjectFile("good", f.ProjectYAML("http://good.example/"))
	f.start(true)
	f.WaitForState("bad", api.StateDone)
	f.WaitForState("good", api.StateDone)
	f.Stop()
	// Leave the files of a killed daemon: bad holds most of the memory, and the record says that it did
	// so at an earlier kill.
	left := `{"ended": false, "kept_bytes": 950, "limit_bytes": 1000, "largest": "bad", "suspect": "bad", "kills_in_a_row": 1}`
	if err := os.WriteFile(filepath.Join(f.WebFixture.DataDir(), memoryRecordFile), []byte(left), 0o600); err != nil {
		t.Fatal(err)
	}
	f.start(true)
	p := f.WaitForState("bad", api.StateStopped)
	for _, want := range []string{"held most of the daemon's memory at 2 memory kills in a row",
		"950 B of 1000 B", "start it again"} {
		if !strings.Contains(p.StateReason, want) {
			t.Errorf("why: %s, want %q in it", p.StateReason, want)
		}
	}
	f.WaitForState("good", api.StateDone)
	f.Stop()
	if n := strings.Count(log.String(), "the project comes up stopped"); n != 1 {
		t.Errorf("%d lines say that the project comes up stopped, want 1: %s", n, log.String())
	}
	f.start(true) // it stays stopped until an operator starts it
	if p := f.WaitForState("bad", api.StateStopped); p.StateReason == "" {
		t.Error("after another start the reason for the stop is lost")
	}
	f.DoActions("bad", api.ActionStart)
	if p := f.WaitForState("bad", api.StateDone); p.StateReason != "" {
		t.Errorf("it runs again, and still has a reason for the stop: %s", p.StateReason)
	}
}

// A daemon that was killed without evidence of a memory kill brings all projects up as they were,
// whatever the earlier record says.
func TestServeStopsNoProjectAfterOtherKills(t *testing.T) {
	for name, left := range map[string]string{
		"SIGKILL":   `{"kept_bytes": 500, "limit_bytes": 1000, "largest": "bad", "suspect": "bad", "kills_in_a_row": 1}`,
		"in order":  `{"ended": true, "kept_bytes": 990, "limit_bytes": 1000, "largest": "bad", "suspect": "bad", "kills_in_a_row": 1}`,
		"garbage":   "\x00\x00\x00",
		"no limit":  `{"kept_bytes": 990, "largest": "bad", "suspect": "bad", "kills_in_a_row": 1, "oom_kills": -1}`,
		"cut short": `{"kept_bytes": 990, "limit_b`,
	} {
		file := filepath.Join(t.TempDir(), memoryRecordFile)
		if err := os.WriteFile(file, []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		w := openMemoryKillDetector(file, func() memoryUsage { return memoryUsage{1, 1000, 0} },
			slog.New(slog.DiscardHandler))
		if stop := w.record.StoppedProject; stop != "" || w.record.SuspectProject != "" {
			t.Errorf("%s: %q comes up stopped, %q is suspected", name, stop, w.record.SuspectProject)
		}
	}
}

// A running daemon records its live memory and the project that holds most of it.
func TestServeNotesItsMemory(t *testing.T) {
	f := newDaemonFixture(t, daemontest.ChainSite("slow.example", 1))
	f.readUsage = func() memoryUsage { return memoryUsage{LiveBytes: 700, LimitBytes: 1000, OOMKills: 3} }
	f.start(true)
	now := time.Now()
	f.Supervisor.memoryKillDetector.recordUsageIfDue(now.Add(time.Hour), map[string]int64{"big": 10, "small": 1})
	text, err := os.ReadFile(filepath.Join(f.WebFixture.DataDir(), memoryRecordFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"kept_bytes": 700`, `"limit_bytes": 1000`, `"oom_kills": 3`,
		`"largest": "big"`, `"ended": false`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the record lacks %s: %s", want, text)
		}
	}
	f.Stop()
	if text, _ := os.ReadFile(filepath.Join(f.WebFixture.DataDir(), memoryRecordFile)); !strings.Contains(string(text),
		`"ended": true`) {
		t.Errorf("after an end in order: %s", text)
	}
}
