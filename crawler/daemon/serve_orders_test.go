package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// Where nothing can be written any more a project can still be stopped; that it may
// not survive the daemon is said.
func TestServeStopsWhatItCannotKeep(t *testing.T) {
	f := farmOf(t, chain("a.example", 1000))
	f.put("a", f.file("http://a.example/0", "politeness: {delay: 20ms, adaptive: 0}", "scope: {max_depth: 2000}"))
	f.start(true)
	f.becomes("a", api.Running)
	inTheWay := filepath.Join(f.visit.data(), wishesFile+".new")
	if err := os.Mkdir(inTheWay, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := f.Do(t.Context(), "a", api.Pause); err == nil || !strings.Contains(err.Error(), "may not survive") {
		t.Errorf("paused: %v", err)
	}
	f.becomes("a", api.Paused)
	if err := f.Do(t.Context(), "a", api.Resume); err == nil {
		t.Error("it goes on, and would not after a restart")
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	if err := f.Do(t.Context(), "a", api.Pause); err != nil { // again: now it can be kept
		t.Error(err)
	}
	if w := f.wishes.of("a"); w.State != api.Paused {
		t.Errorf("kept is %q", w.State)
	}
}
