package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// TestHostHealth crawls a host of failing pages with the back-off of a project file. report and
// explain show the back-off, the failed pages and the learned pace.
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
	r := runCommand(t, "report", "--data", v.DataDir(), "--format=json")
	host := decodeJSON[api.CrawlReport](t, r.stdout).Hosts[0]
	if host.LearnedDelay <= 0 || host.LearnedDelay > api.Milliseconds(200*time.Millisecond) ||
		len(host.FailedPages) != 3 || !strings.HasPrefix(host.BackoffReason, "back-off, step 1: ") {
		t.Errorf("%+v", host)
	}
}
