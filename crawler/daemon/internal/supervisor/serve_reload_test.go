package supervisor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
)

// projectFileEdits is the number of edits of the project file in TestServeReloadsUnderLoad.
const projectFileEdits = 100

// The file of a project is edited all the time while the project crawls, and is invalid every other time.
// The daemon reports each invalid edit with its reason. The crawl continues, visits every page once, and
// breaks no rule of the server.
func TestServeReloadsUnderLoad(t *testing.T) {
	t.Parallel()
	const delay = 10 * time.Millisecond
	web := daemontest.KillTestWeb(delay, 150, nil)
	f := newDaemonFixtureOn(t, web)
	nonsense := []struct{ line, says string }{
		{"limits: {workers: none}", `limits.workers: "…" is not a whole number`},
		{"seeds: [", "p.yaml:"},
		{"project: other", `project: "…" is not the name of its file: expected p`},
		{"store: {path: /elsewhere}", `store.path: "…" cannot be set in a daemon`},
		{"handler: books", `handler: "…" names Go callbacks`},
		{"output: {jsonl: '-'}", `output.jsonl: "…" cannot be used in a daemon`},
		{"seed_files: [nowhere.txt]", "cannot read the seeds: open " +
			filepath.Join(f.ProjectFilesPath(), "nowhere.txt")},
		{"politness: {delay: 1s}", "unknown field"},
	}
	file := func(more string) string {
		return fmt.Sprintf("agent: {product: decorum, contact: 'mailto:bot@example.com'}\nseeds: [%s]\n"+
			"fetch: {allow_private: true, connect_to: ['::%s']}\nscope: {max_depth: 500}\n"+
			"discover: {sitemap_xml: false}\n%s\n",
			strings.Join(web.CrawlSettings.Seeds, ", "), f.Addr, more)
	}
	f.PutProjectFile("p", file("politeness: {delay: 10ms, adaptive: 0}"))
	f.start(true)
	ctx, stopEvents := context.WithCancel(t.Context())
	events, err := f.SubscribeEvents(ctx, "p")
	if err != nil {
		t.Fatal(err)
	}
	refusals := make(chan int, 1)
	go func() {
		n := 0
		for e := range events {
			if e.Type == "file" && e.Message != "changed" {
				n++
			}
		}
		refusals <- n
	}()
	var followed, during int
	for i := range projectFileEdits {
		seen := len(f.Web.Log())
		daemontest.WaitUntil(t, "the crawl continues between edits", func() bool {
			return len(f.Web.Log()) > seen || f.GetProject("p").State == api.StateDone
		})
		if f.GetProject("p").State == api.StateRunning {
			during++
		}
		if i%2 == 0 {
			f.PutProjectFile("p", file(fmt.Sprintf("politeness: {delay: 10ms, adaptive: 0, concurrency: 1}\nlimits: "+
				"{workers: %d}", 4+i)))
			if r := f.ReloadAndFind("p"); r.Outcome == "changed" {
				followed++
			} else if r.Error != "" {
				t.Errorf("edit %d: %+v", i, r)
			}
			if p := f.GetProject("p"); p.FileError != "" {
				t.Errorf("edit %d: a good file has the fault %q", i, p.FileError)
			}
			continue
		}
		bad := nonsense[i/2%len(nonsense)]
		f.PutProjectFile("p", file("# edit "+fmt.Sprint(i)+"\n"+bad.line))
		f.ReloadAndFind("p")
		if p := f.GetProject("p"); !strings.Contains(p.FileError, bad.says) || p.State == api.StateFailed {
			t.Errorf("edit %d: %s: %q does not say %q", i, p.State, p.FileError, bad.says)
		}
	}
	if during < projectFileEdits*3/4 {
		t.Errorf("%d of %d edits were made during the crawl, want most", during, projectFileEdits)
	}
	f.PutProjectFile("p", file("politeness: {delay: 10ms, adaptive: 0}"))
	f.ReloadAndFind("p")
	p := f.WaitForState("p", api.StateDone)
	stopEvents()
	if n := <-refusals; n != projectFileEdits/2 {
		t.Errorf("%d events report an invalid file, want %d", n, projectFileEdits/2)
	}
	f.Stop()
	got := slices.Compact(daemontest.SortedURLs(daemontest.ReadRecords(t,
		filepath.Join(f.WebFixture.DataDir(), datadir.ProjectsDir, "p", datadir.OutputFile))))
	if diff := cmp.Diff(web.ReachablePages(), got); diff != "" {
		t.Errorf("pages that should be in the output (-), and that are (+):\n%s", diff)
	}
	if r := web.Judge(crawltest.JudgeOptions{MinDelay: delay, RequiredProductToken: "decorum"}); !r.OK() {
		t.Errorf("the judge says:\n%s", r)
	}
	if p.LargestDelayShortfall != 0 {
		t.Errorf("a rest fell %v short", time.Duration(p.LargestDelayShortfall))
	}
	t.Logf("%d edits, %d of them during the crawl, %d followed; %d pages", projectFileEdits,
		during, followed, p.Stats.Pages)
}

// Two projects together visit a host at the pace of the slower one. When one has ended, the other
// continues at its own pace.
func TestServeTwoProjectsOnOneHost(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, tt := range []struct {
		name       string
		slow, fast time.Duration
	}{
		{"different delays", 60 * time.Millisecond, 20 * time.Millisecond},
		{"equal delays", 40 * time.Millisecond, 40 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newDaemonFixture(t, daemontest.ChainSite("a.example", 60))
			f.PutProjectFile("slow", f.ProjectYAML("http://a.example/0", fmt.Sprintf("politeness: {delay: %v, "+
				"adaptive: 0}\nscope: {max_depth: 20}", tt.slow)))
			f.PutProjectFile("fast", strings.Replace(f.ProjectYAML("http://a.example/0",
				fmt.Sprintf("politeness: {delay: %v, adaptive: 0}\nscope: {max_depth: 200}", tt.fast)),
				"product: decorum", "product: fastbot", 1))
			f.start(false)
			f.DoActions("slow", api.ActionStart)
			daemontest.WaitUntil(t, "the slow one visits the host", func() bool { return len(f.Web.Log()) > 1 })
			f.DoActions("fast", api.ActionStart)
			f.WaitForState("slow", api.StateDone)
			f.WaitForState("fast", api.StateDone)
			f.Stop()
			log := f.Web.Log()
			r := f.Web.Judge(crawltest.JudgeOptions{MinDelay: tt.fast, AllowRevisits: true})
			if !r.OK() {
				t.Errorf("the judge says:\n%s", r)
			}
			last := slices.IndexFunc(log, func(x crawltest.Exchange) bool {
				return strings.HasPrefix(x.UserAgent, "decorum/") && strings.HasSuffix(x.URL, "/20")
			})
			both := 0
			for i := range log[1 : last+1] {
				gap := log[i+1].Start.Sub(log[i].End)
				if gap < tt.slow-time.Millisecond { // the clocks of server and crawler are not read at the same time
					t.Errorf("%v after %s of %s came %s of %s", gap, log[i].URL, log[i].UserAgent,
						log[i+1].URL, log[i+1].UserAgent)
				}
				if log[i].UserAgent != log[i+1].UserAgent {
					both++
				}
			}
			if last < 0 || both < 10 {
				t.Errorf("of %d requests, the hosts' turns changed %d times only", last, both)
			}
			t.Logf("%d requests, %d while both crawled, %d changes of turn", len(log), last+1, both)
		})
	}
}
