package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
)

// writeFile writes a file of a test, and the directories above it.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPathsOfAProjectFile: a crawl finds the inputs of a project file beside it and writes outputs below
// the data directory, from every working directory. Flags are relative to the working directory.
func TestPathsOfAProjectFile(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	work := t.TempDir()
	t.Chdir(work)
	project := filepath.Join(v.Dir, "conf", "shop.yaml")
	writeFile(t, project, "scope: {max_depth: 0}\nseed_files: [lists/seeds.txt]\n"+
		"output: {jsonl: lines.jsonl, warc: archive}\n")
	writeFile(t, filepath.Join(v.Dir, "conf", "lists", "seeds.txt"), "http://shop.example/a\n")
	crawl := func(more ...string) commandResult { return runCommand(t, v.CrawlArgs(append(more, "-c", project)...)...) }

	// The second crawl moves the lines of the first aside, as they are in the data directory.
	for _, flags := range [][]string{nil, {"--fresh"}} {
		crawl(flags...).want(t, command.ExitDone, "pages: 1 (")
		if rs := daemontest.ReadRecords(t, filepath.Join(v.DataDir(), "lines.jsonl")); len(rs) != 1 {
			t.Errorf("%d records in the data directory, want 1", len(rs))
		}
	}
	if aside, _ := filepath.Glob(filepath.Join(v.DataDir(), "before-*", "lines.jsonl")); len(aside) != 1 {
		t.Errorf("moved aside: %q, want one file", aside)
	}
	if warc, _ := filepath.Glob(filepath.Join(v.DataDir(), "archive", "*.warc.gz")); len(warc) == 0 {
		t.Error("no WARC file in the data directory")
	}
	crawl("--fresh", "--output", "here.jsonl", "--warc", "w").want(t, command.ExitDone)
	entries, err := os.ReadDir(work)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"here.jsonl", "w"}, names); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// TestFormerPlaces: a crawl does not start while a file is where earlier versions of decorum looked for
// it: relative to the working directory.
func TestFormerPlaces(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	work := t.TempDir()
	t.Chdir(work)
	project := filepath.Join(v.Dir, "conf", "shop.yaml")
	writeFile(t, project, "seed_files: [seeds.txt]\noutput: {jsonl: lines.jsonl, warc: archive}\n")
	writeFile(t, filepath.Join(v.Dir, "conf", "seeds.txt"), "http://shop.example/a\n")
	for _, name := range []string{"seeds.txt", "lines.jsonl", "archive/a.warc.gz"} {
		writeFile(t, name, "")
	}
	runCommand(t, v.CrawlArgs("-c", project)...).want(t, command.ExitUsage, "3 errors:\n",
		project+`:1:14: seed_files[0]: "seeds.txt" means `+filepath.Join(v.Dir, "conf", "seeds.txt")+", but "+
			filepath.Join(work, "seeds.txt")+" exists, where earlier versions of decorum looked: move it",
		project+`:2:17: output.jsonl: "lines.jsonl" means `+filepath.Join(v.DataDir(), "lines.jsonl")+", but "+
			filepath.Join(work, "lines.jsonl")+" exists",
		project+`:2:36: output.warc: "archive" means `+filepath.Join(v.DataDir(), "archive")+", but "+
			filepath.Join(work, "archive")+" exists")
	if log := v.Web.Log(); len(log) > 0 {
		t.Errorf("%d requests were sent", len(log))
	}
	// The operator moves the files, or keeps them elsewhere by an absolute path.
	if err := os.RemoveAll(filepath.Join(work, "archive")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, project, "scope: {max_depth: 0}\nseed_files: ["+filepath.Join(v.Dir, "conf", "seeds.txt")+"]\n"+
		"output: {jsonl: "+filepath.Join(work, "lines.jsonl")+", warc: archive}\n")
	runCommand(t, v.CrawlArgs("-c", project)...).want(t, command.ExitDone, "pages: 1 (")
}
