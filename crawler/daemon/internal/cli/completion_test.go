package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
)

// completions returns what a shell offers for the last of args.
func completions(t *testing.T, args ...string) []string {
	t.Helper()
	r := runCommand(t, append([]string{"__completeNoDesc"}, args...)...)
	lines := strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
	if r.code != command.ExitDone || !strings.HasPrefix(lines[len(lines)-1], ":") {
		t.Fatalf("decorum __complete %q: exit code %d\n%s%s", args, r.code, r.stdout, r.stderr)
	}
	return lines[:len(lines)-1]
}

// TestCompletionOfWords checks that shells offer the words that flags take, and that the flags accept them.
func TestCompletionOfWords(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"crawl --scope ", "path origin host domain any"},
		{"crawl --dialect ", "google yandex google-oss"},
		{"crawl --progress ", "auto plain none"},
		{"crawl --log-level ", "debug info warn error"},
		{"serve --log-format ", "text json"},
		{"robots check --dialect ", "google yandex google-oss"},
		{"robots lint --dialect ", "google yandex"},
		{"robots lint --level ", "hint warning error"},
		{"robots lint --format ", "text json"},
		{"report --format ", "table json jsonl"},
		{"frontier list --state ", "queued resting parked"},
		{"explain ", ""},
	} {
		args := strings.Split(tt.line, " ")
		if got := strings.Join(completions(t, args...), " "); got != tt.want {
			t.Errorf("%s: offers %q, want %q", tt.line, got, tt.want)
		}
	}
	// A value that is offered is valid: the error of a value that is not names the others.
	for line, want := range map[string]string{
		"crawl --contact mailto:a@b.example --scope x http://a.example/":   "is not one of path, origin, host, domain, any",
		"crawl --contact mailto:a@b.example --dialect x http://a.example/": "is not one of google, yandex, google-oss",
		"demo --progress x":       "auto, plain, none",
		"demo --log-level x":      "debug, info, warn, error",
		"frontier list --state x": "queued, resting, parked",
	} {
		if r := runCommand(t, strings.Split(line, " ")...); !strings.Contains(r.stderr, want) {
			t.Errorf("%s: %q does not say %q", line, r.stderr, want)
		}
	}
}

// TestCompletionOfHosts checks that shells offer the hosts of a crawl at rest, and the projects of a daemon.
func TestCompletionOfHosts(t *testing.T) {
	page := map[string]crawltest.PageFunc{"/": crawltest.StaticPage(crawltest.HTML("a page"))}
	v := daemontest.NewWebFixture(t, crawltest.Site{Host: "town.example", Pages: page},
		crawltest.Site{Host: "tower.example", Pages: page}, crawltest.Site{Host: "village.example", Pages: page})
	runCommand(t, v.CrawlArgs("http://town.example/", "http://tower.example/", "http://village.example/")...).want(t,
		command.ExitDone)
	// A process that holds the lock does not hinder a completion, which therefore hinders no crawl.
	lock, err := datadir.StateDir(v.DataDir()).Lock()
	if err != nil {
		t.Fatal(err)
	}
	readStore := func() []byte {
		text, err := os.ReadFile(filepath.Join(v.DataDir(), datadir.StoreFile))
		if err != nil {
			t.Error(err)
		}
		return text
	}
	before := readStore()
	for _, args := range [][]string{
		{"report", "--data", v.DataDir(), "--host", "to"}, {"frontier", "list", "--data=" + v.DataDir(), "--host=to"},
		{"brake", "--data", v.DataDir(), "to"},
	} {
		if got := completions(t, args...); !slices.Equal(got, []string{"tower.example", "town.example"}) {
			t.Errorf("%q offers %q", args, got)
		}
	}
	if !bytes.Equal(readStore(), before) {
		t.Error("the completion has changed the file of the crawl")
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	daemonDir := t.TempDir()
	for _, name := range []string{"books", "news"} {
		if err := os.MkdirAll(filepath.Join(daemonDir, datadir.ProjectsDir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got := completions(t, "report", "--data", daemonDir, "--project", ""); !slices.Equal(got,
		[]string{"books", "news"}) {
		t.Errorf("the projects offered are %q", got)
	}
	if got := completions(t, "brake", "--data", v.DataDir(), "town.example", ""); len(got) > 0 {
		t.Errorf("brake takes one host, and %q are offered for a second", got)
	}
	if got := completions(t, "report", "--data", t.TempDir(), "--host", ""); !slices.Equal(got, []string{}) {
		t.Errorf("a directory without a crawl offers %q", got)
	}
}
