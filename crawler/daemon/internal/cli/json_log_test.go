package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
)

// With --log-format json every line of standard error is a record in JSON, whatever the log level and
// wherever the command ends. Its last record says why it ended.
func TestJSONLog(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	projects := filepath.Join(v.Dir, "projects")
	if err := os.Mkdir(projects, 0o700); err != nil {
		t.Fatal(err)
	}
	terminate := make(chan os.Signal, 1)
	terminate <- syscall.SIGTERM
	const shop = "http://shop.example/"
	for _, tt := range []struct {
		name string
		args []string
		code int
		want map[string]any // fields of the last record
	}{
		{"crawl, stopped", v.CrawlArgs("--max-pages=2", shop), command.ExitStopped,
			map[string]any{"level": "INFO", "exit_code": 4.0}},
		{"crawl, resumed", v.CrawlArgs("--resume", "--max-pages=0", "--log-level=error"), command.ExitDone,
			map[string]any{"level": "INFO", "msg": "the run has ended", "pages": 3.0, "errors": 0.0, "queued": 0.0,
				"parked": 1.0, "visited_hosts": 1.0}},
		{"dry run", v.CrawlArgs("--dry-run", "--output=-", shop), command.ExitDone, nil},
		{"daemon", []string{"serve", "--listen=127.0.0.1:0", "--data", filepath.Join(v.Dir, "daemon"), "--projects",
			projects}, command.ExitStopped, map[string]any{"level": "INFO", "exit_code": 4.0}},
		{"sitemap that cannot be read", []string{"sitemap", v.Dir}, command.ExitFailed,
			map[string]any{"level": "WARN"}},
		{"unknown flag", []string{"crawl", "--polite"}, command.ExitUsage,
			map[string]any{"level": "ERROR", "exit_code": 2.0,
				"msg": "unknown flag: --polite; see decorum crawl --help"}},
		{"empty flag", []string{"crawl", "--data="}, command.ExitUsage, map[string]any{"exit_code": 2.0}},
		{"no contact", []string{"crawl", shop}, command.ExitUsage, map[string]any{"exit_code": 2.0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var signals chan os.Signal
			if tt.name == "daemon" {
				signals = terminate
			}
			r := runCommandWithSignals(t, signals, append(tt.args, "--log-format", "json")...)
			r.want(t, tt.code)
			var last map[string]any
			for line := range strings.Lines(r.stderr) {
				last = nil
				if err := json.Unmarshal([]byte(line), &last); err != nil || last["time"] == nil || last["msg"] == "" {
					t.Errorf("%q is no record: %v", line, err)
				}
			}
			for field, want := range tt.want {
				if last[field] != want {
					t.Errorf("the last record %v has %s %v, want %v", last, field, last[field], want)
				}
			}
		})
	}
}
