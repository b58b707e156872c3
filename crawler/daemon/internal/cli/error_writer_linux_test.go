package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// TestFullOutput checks that a command whose output is lost reports neither success nor the result of
// a check, and prints the write error once.
func TestFullOutput(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	runCommand(t, v.CrawlArgs("--max-pages=1", "--warc="+filepath.Join(v.Dir, "warc"),
		"http://shop.example/")...).want(t, command.ExitDone)
	rules, otherRules := testfile.Write(t, "robots.txt", "User-agent: *\nDisalow: /\n"),
		testfile.Write(t, "other.txt", "User-agent: *\nDisallow: /\n")
	key := filepath.Join(v.Dir, "bot.pem")
	for _, args := range [][]string{
		{"--help"},
		{"help", "crawl"},
		{"robots"},
		{"version"},
		{"completion", "zsh"},
		{"report", "--data", v.DataDir()},
		{"explain", "--data", v.DataDir(), "http://shop.example/"},
		{"replay", v.DataDir()},
		{"frontier", "stats", "--data", v.DataDir()},
		{"frontier", "list", "--data", v.DataDir()},
		{"frontier", "export", "--data", v.DataDir()},
		{"frontier", "compact", "--data", v.DataDir()},
		{"frontier", "add", "--data", v.DataDir(), "http://shop.example/b"},
		{"ledger", "verify", "--data", v.DataDir()},
		{"ledger", "show", "--data", v.DataDir()},
		{"robots", "check", "--agent=examplebot", "--file", otherRules, "https://example.com/"},
		{"robots", "batch", testfile.Write(t, "questions", `{"robots": ""}`)},
		{"robots", "lint", rules},
		{"robots", "diff", rules, otherRules},
		{"sitemap", testfile.Write(t, "map.txt", "https://example.com/1\n")},
		{"identity", "key", key},
		{"identity", "directory", key},
	} {
		code, stderr := runCommandInto(t, openDevFull(t), args...)
		if code != command.ExitFailed || strings.Count(stderr, "no space left on device") != 1 {
			t.Errorf("%s: exit code %d, want %d; it says %q", args, code, command.ExitFailed, stderr)
		}
	}
}

// openDevFull opens /dev/full, a file on a disk without space.
func openDevFull(t *testing.T) *os.File {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { full.Close() })
	return full
}
