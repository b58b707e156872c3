package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/internal/testfile"
)

// TestFullOutput: no command ends well, nor with a verdict, when what it printed is
// lost. Each says so, once.
func TestFullOutput(t *testing.T) {
	v := NewCrawlFixture(t, ShopSite())
	runCommand(t, v.crawlArgs("--max-pages=1", "--warc="+filepath.Join(v.dir, "warc"), "http://shop.example/")...).want(t, ExitStopped)
	rules, otherRules := testfile.Write(t, "robots.txt", "User-agent: *\nDisalow: /\n"), testfile.Write(t, "other.txt", "User-agent: *\nDisallow: /\n")
	key := filepath.Join(v.dir, "bot.pem")
	for _, args := range [][]string{
		{"--help"},
		{"help", "crawl"},
		{"robots"},
		{"version"},
		{"completion", "zsh"},
		{"report", "--data", v.dataDir()},
		{"explain", "--data", v.dataDir(), "http://shop.example/"},
		{"replay", v.dataDir()},
		{"frontier", "stats", "--data", v.dataDir()},
		{"frontier", "list", "--data", v.dataDir()},
		{"frontier", "export", "--data", v.dataDir()},
		{"frontier", "compact", "--data", v.dataDir()},
		{"frontier", "add", "--data", v.dataDir(), "http://shop.example/b"},
		{"ledger", "verify", "--data", v.dataDir()},
		{"ledger", "show", "--data", v.dataDir()},
		{"robots", "check", "--agent=examplebot", "--file", otherRules, "https://example.com/"},
		{"robots", "batch", testfile.Write(t, "questions", `{"robots": ""}`)},
		{"robots", "lint", rules},
		{"robots", "diff", rules, otherRules},
		{"sitemap", testfile.Write(t, "map.txt", "https://example.com/1\n")},
		{"identity", "key", key},
		{"identity", "directory", key},
	} {
		code, stderr := runCommandInto(t, openDevFull(t), args...)
		if code != ExitFailed || strings.Count(stderr, "no space left on device") != 1 {
			t.Errorf("%s: exit code %d, want %d; it says %q", args, code, ExitFailed, stderr)
		}
	}
}

// openDevFull opens a file on a disk without room.
func openDevFull(t *testing.T) *os.File {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { full.Close() })
	return full
}
