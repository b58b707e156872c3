package cli

import (
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// TestHostHealth crawls a host of failing pages with the back-off of a project file. report and
// explain show the back-off, the failed pages and the learned pace, also after the crawl has moved
// to Redis and back.
func TestHostHealth(t *testing.T) {
	t.Parallel()
	site := crawltest.Site{Host: "ill.example", Pages: map[string]crawltest.PageFunc{
		"/": crawltest.StaticPage(crawltest.HTML(
			"<a href=/busy>b</a><a href=/1>1</a><a href=/2>2</a><a href=/3>3</a>")),
		"/busy": func(r crawltest.PageRequest) crawltest.Response {
			if r.NthForURL == 1 {
				return crawltest.Status(http.StatusTooManyRequests)
			}
			return crawltest.HTML("")
		}},
		Fallback: crawltest.StaticPage(crawltest.Status(http.StatusInternalServerError))}
	v := daemontest.NewWebFixture(t, site)
	file := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\npoliteness: "+
		"{backoff: {initial: 30ms, factor: 1, max: 30ms}, max_learned_delay: 200ms}\n")
	runCommand(t, v.CrawlArgs("-c", file, "http://ill.example/")...).want(t, command.ExitDone)
	report := runCommand(t, "report", "--data", v.DataDir(), "--host=ill.example")
	report.want(t, command.ExitDone, "status 500, http://ill.example/3", "learned ",
		"rest         back-off, step 1: 3 different pages in a row failed, the last with status 500")
	runCommand(t, "explain", "--data", v.DataDir(), "http://ill.example/1").want(t, command.ExitDone,
		"learned ", "back-off, step 1: 3 different pages")
	host := reportedHost(t, v.DataDir())
	if host.LearnedDelay <= 0 || host.LearnedDelay > api.Milliseconds(200*time.Millisecond) ||
		len(host.FailedPages) != 3 || !strings.HasPrefix(host.BackoffReason, "back-off, step 1: ") {
		t.Errorf("%+v", host)
	}
	if testing.Short() {
		return // the rest needs Redis servers
	}
	redis := testfile.Write(t, "redis.yaml", "agent: {contact: 'mailto:bot@example.com'}\n"+
		"seeds: ['http://ill.example/']\n"+daemontest.RedisField(redistest.StartClusterForTest(t, 3, 1), ""))
	from := v.DataDir()
	for _, to := range []struct {
		name   string
		config []string
	}{{"redis", []string{"-c", redis}}, {"files", nil}} {
		export := runCommand(t, "frontier", "export", "--data", from)
		export.want(t, command.ExitDone)
		from = filepath.Join(v.Dir, to.name)
		runCommandWithStdin(t, export.stdout, append([]string{"frontier", "import", "--data", from}, to.config...)...).
			want(t, command.ExitDone)
		if moved := reportedHost(t, from); !reflect.DeepEqual(moved, host) {
			t.Errorf("after the move to %s: %+v, before %+v", to.name, moved, host)
		}
	}
}

// reportedHost returns the health of the only host in a data directory, as it is reported.
func reportedHost(t *testing.T, dataDir string) api.Host {
	t.Helper()
	r := runCommand(t, "report", "--data", dataDir, "--format=json")
	r.want(t, command.ExitDone)
	h := decodeJSON[api.CrawlReport](t, r.stdout).Hosts[0]
	return api.Host{Host: h.Host, LearnedDelay: h.LearnedDelay, BackoffReason: h.BackoffReason,
		FailedPages: h.FailedPages, ConsecutiveFailures: h.ConsecutiveFailures}
}
