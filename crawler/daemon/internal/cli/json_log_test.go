package cli

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/testfile"
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
		{"crawl, stopped", v.CrawlArgs("--max-pages=2", shop), command.ExitDone,
			map[string]any{"level": "INFO", "msg": "the run has ended", "limit": "limits.pages: 2",
				"continue_with": "decorum crawl --resume --data " + v.DataDir()}},
		{"crawl, interrupted", append([]string{"crawl", "--resume", "--data", v.DataDir(), "--max-time=1ns"}, shop),
			command.ExitStopped, map[string]any{"level": "INFO", "exit_code": 4.0}},
		{"crawl, resumed", v.CrawlArgs("--resume", "--max-pages=0", "--max-time=0s", "--log-level=error"),
			command.ExitDone, map[string]any{"level": "INFO", "msg": "the run has ended", "pages": 3.0, "errors": 0.0,
				"queued": 0.0, "parked": 1.0, "visited_hosts": 1.0}},
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
				err := json.Unmarshal([]byte(line), &last)
				if msg, _ := last["msg"].(string); err != nil || last["time"] == nil || msg == "" {
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

// The summary as a record says what the summary as text says: what was refused and why, and when the first
// revisit is due. No field has the name of a field of the API with another meaning.
func TestJSONSummary(t *testing.T) {
	v := daemontest.NewWebFixture(t, crawltest.Site{Host: "shop.example", Pages: map[string]crawltest.PageFunc{
		"/": crawltest.StaticPage(crawltest.HTML(`<a href="http://other.example/">other</a>`))}})
	file := testfile.Write(t, "p.yaml",
		"agent: {contact: 'mailto:a@b.example'}\nrevisit: {mode: interval, every: 1h}\n")
	begin := time.Now()
	r := runCommand(t, v.CrawlArgs("-c", file, "--log-format=json", "http://shop.example/")...)
	r.want(t, command.ExitDone)
	lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
	var summary struct {
		FailuresByClass map[string]int64 `json:"failures_by_class"`
		RefusedURLs     int64            `json:"refused_urls"`
		RefusedByReason map[string]int64 `json:"refused_by_reason"`
		FirstRevisit    time.Time        `json:"first_revisit"`
		Output          string           `json:"output"`
		LinesByStatus   map[string]int64 `json:"output_lines_by_status"`
	}
	var fields map[string]any
	last := []byte(lines[len(lines)-1])
	if err := errors.Join(json.Unmarshal(last, &summary), json.Unmarshal(last, &fields)); err != nil {
		t.Fatalf("%s: %v", last, err)
	}
	var byReason int64
	for _, n := range summary.RefusedByReason {
		byReason += n
	}
	if !strings.HasSuffix(summary.Output, datadir.OutputFile) || !maps.Equal(summary.LinesByStatus,
		map[string]int64{"2xx": 1}) {
		t.Errorf("the summary %s names other output", last)
	}
	if summary.FailuresByClass == nil || summary.RefusedURLs != 1 || byReason != 1 ||
		summary.FirstRevisit.Before(begin.Add(time.Hour/2)) {
		t.Errorf("the summary is %s", last)
	}
	for _, name := range []string{"failures", "refused", "out_of_scope"} {
		if fields[name] != nil {
			t.Errorf("the summary has %q, which means something else in the API", name)
		}
	}
}
