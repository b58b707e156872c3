package supervisor

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
)

// The outputs of a project are in its own directory or outside of the daemon's. A project file that comes
// by the API therefore cannot make the daemon append lines to robots.db.
func TestServeKeepsOutputsOutOfItsState(t *testing.T) {
	f := newDaemonFixture(t, daemontest.ShopSite())
	elsewhere := t.TempDir()
	f.apiRules.OutputRoot = elsewhere
	f.start(false)
	for _, tt := range []struct {
		field, place string
		fits         bool
	}{
		{"jsonl", "lines/pages.jsonl", true},
		{"jsonl", filepath.Join(elsewhere, "pages.jsonl"), true},
		{"warc", "archive", true},
		{"warc", elsewhere, true},
		{"jsonl", datadir.StoreFile, false},
		{"jsonl", "./" + datadir.ProjectFile, false},
		{"jsonl", "../../robots.db", false},
		{"jsonl", "../other/frontier.db", false},
		{"jsonl", filepath.Join(f.WebFixture.DataDir(), datadir.DaemonStateFile), false},
		{"jsonl", filepath.Join(f.ProjectFilesPath(), "other.yaml"), false},
		{"warc", "../other", false},
		{"warc", f.WebFixture.DataDir(), false},
	} {
		_, err := f.PutProject(t.Context(), "p",
			[]byte(f.ProjectYAML("http://shop.example/", fmt.Sprintf("output: {%s: %q}", tt.field, tt.place))))
		if tt.fits && err != nil || !tt.fits && (err == nil || !strings.Contains(err.Error(), "output."+tt.field)) {
			t.Errorf("%s: %s: %v", tt.field, tt.place, err)
		}
	}
}
