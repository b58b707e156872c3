package datadir

import (
	"path/filepath"
	"testing"
)

// IsOwnStateFile recognizes the files of the crawl's state, and the names that they have while they are
// replaced. Outputs may not use these.
func TestOutputsAreNoState(t *testing.T) {
	d := StateDir(filepath.Join(t.TempDir(), "data"))
	for name, owned := range map[string]bool{
		"crawl.yaml": true, "crawl.yaml.new": true, "lengths.json.new": true, "x/../lock": true,
		"ledger": true, "ledger/pages.jsonl": true, "pages.jsonl": false, "pages.new": false, "ledgers/a": false,
	} {
		if d.IsOwnStateFile(d.Path(name)) != owned {
			t.Errorf("%s is a file of the state: %v, want %v", name, !owned, owned)
		}
	}
}
