package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFullOutput: no command ends well, nor with a verdict, when what it printed is
// lost. Each says so, once.
func TestFullOutput(t *testing.T) {
	v := visitTo(t, shop())
	call(t, v.args("--max-pages=1", "--warc="+filepath.Join(v.dir, "warc"), "http://shop.example/")...).want(t, ExitStopped)
	rules, other := write(t, "robots.txt", "User-agent: *\nDisalow: /\n"), write(t, "other.txt", "User-agent: *\nDisallow: /\n")
	key := filepath.Join(v.dir, "bot.pem")
	for _, args := range [][]string{
		{"--help"},
		{"help", "crawl"},
		{"robots"},
		{"version"},
		{"completion", "zsh"},
		{"report", "--data", v.data()},
		{"explain", "--data", v.data(), "http://shop.example/"},
		{"replay", v.data()},
		{"frontier", "stats", "--data", v.data()},
		{"frontier", "list", "--data", v.data()},
		{"frontier", "export", "--data", v.data()},
		{"frontier", "compact", "--data", v.data()},
		{"frontier", "add", "--data", v.data(), "http://shop.example/b"},
		{"ledger", "verify", "--data", v.data()},
		{"ledger", "show", "--data", v.data()},
		{"robots", "check", "--agent=examplebot", "--file", other, "https://example.com/"},
		{"robots", "batch", write(t, "questions", `{"robots": ""}`)},
		{"robots", "lint", rules},
		{"robots", "diff", rules, other},
		{"sitemap", write(t, "map.txt", "https://example.com/1\n")},
		{"identity", "key", key},
		{"identity", "directory", key},
	} {
		code, said := callInto(t, openFull(t), args...)
		if code != ExitFailed || strings.Count(said, "no space left on device") != 1 {
			t.Errorf("%s: exit code %d, want %d; it says %q", args, code, ExitFailed, said)
		}
	}
}

// openFull opens a file on a disk without room.
func openFull(t *testing.T) *os.File {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { full.Close() })
	return full
}
