package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// paramSite returns a site in which the parameters ref and sid do not change the page, id and page do,
// and view does in one directory.
func paramSite() crawltest.Site {
	param := func(path, name string) string {
		_, query, _ := strings.Cut(path, "?")
		for p := range strings.SplitSeq(query, "&") {
			if n, value, _ := strings.Cut(p, "="); n == name {
				return value
			}
		}
		return ""
	}
	var home strings.Builder
	for i := range 6 {
		for _, dir := range []string{"a", "b"} {
			fmt.Fprintf(&home, "<a href='/%s/item?id=%d&ref=%d'>x</a><a href='/%s/item?id=%d'>x</a><a "+
				"href='/%s/item?id=%d&view=%d'>x</a>",
				dir, i, i, dir, i, dir, i, i)
		}
		fmt.Fprintf(&home, "<a href='/c/list?sid=%d'>x</a>", i)
	}
	return crawltest.Site{Host: "noisy.example",
		Pages: map[string]crawltest.PageFunc{
			"/": crawltest.StaticPage(crawltest.HTML(home.String())),
			"/a/item": func(r crawltest.PageRequest) crawltest.Response {
				return crawltest.HTML("item a" + param(r.Path, "id"))
			},
			"/b/item": func(r crawltest.PageRequest) crawltest.Response {
				return crawltest.HTML("item b" + param(r.Path, "id") + param(r.Path, "view"))
			},
			"/c/list": func(r crawltest.PageRequest) crawltest.Response {
				return crawltest.HTML("<link rel=canonical href=/c/list>" + r.Path)
			},
		}}
}

func TestReportParams(t *testing.T) {
	v := daemontest.NewWebFixture(t, paramSite())
	runCommand(t, v.CrawlArgs("http://noisy.example/")...).want(t, command.ExitDone)
	r := runCommand(t, "report", "--params", "--data", v.DataDir(), "--format=json")
	r.want(t, command.ExitDone)
	got := decodeJSON[inspect.QueryParamReport](t, r.stdout)
	type row struct {
		path                       string
		same, other, without, with int
		line                       string
	}
	rows := map[string]row{}
	for _, s := range got.Suggestions {
		rows[s.Parameter+" "+s.PathPrefix] = row{s.PathPrefix, s.SameBodyPairs, s.DifferentBodyPairs,
			s.CanonicalsWithoutParam, s.CanonicalsWithParam, s.CleanParam}
	}
	for key, want := range map[string]row{
		// 6 pages in each of two directories, each compared with the page without the parameter.
		"ref /": {"/", 12, 0, 0, 0, "Clean-param: ref /"},
		// In /b each value gives another page.
		"view /a/": {"/a/", 6, 0, 0, 0, "Clean-param: view /a/"},
		// The bodies differ, but each page names the same canonical page: 5 pairs of 6 pages, and that
		// page with each of them.
		"sid /c/": {"/c/", 0, 11, 6, 0, ""},
	} {
		if rows[key] != want {
			t.Errorf("%s: %+v, want %+v", key, rows[key], want)
		}
	}
	if len(rows) != 3 || got.SampledOneIn != 1 {
		t.Errorf("suggestions %+v, one in %d", rows, got.SampledOneIn)
	}
	// 6 of the 18 pages of /a differ. In /b, pages with ref equal the page without it.
	if d := got.HostDuplicates; len(d) != 1 || d[0].PagesWithBody != 44 || d[0].DuplicateBodies != 18 ||
		d[0].CanonicalElsewhere != 6 {
		t.Errorf("duplicates %+v", d)
	}
	runCommand(t, "report", "--params", "--data", v.DataDir()).want(t, command.ExitDone, "Clean-param: view /a/",
		"noisy.example  18         6          44",
		"ref of noisy.example: http://noisy.example/", "from the 44 pages")
	runCommand(t, "report", "--params", "--data", v.DataDir(), "--host=other.example").want(t,
		command.ExitDone, "No page stays the same")
	if n := strings.Count(runCommand(t, "report", "--params", "--data", v.DataDir(), "--format=jsonl").stdout,
		"\n"); n != 3 {
		t.Errorf("%d lines, want 3", n)
	}
}

// TestReportParamsOfSessions: a parameter that is named like a session ID is suggested without a line if
// pages differ by it, because they may differ only by the IDs in their links.
func TestReportParamsOfSessions(t *testing.T) {
	v := daemontest.NewWebFixture(t, crawltest.Site{Host: "a.example",
		Fallback: func(r crawltest.PageRequest) crawltest.Response {
			return crawltest.HTML("<a href='/p?sid=1'>1</a><a href='/p?sid=2'>2</a><a href='/p?page=3'>3</a>" +
				"<a href='/p?page=4'>4</a><a href='/p?sessionid=7c0d1e9f52a34b68'>5</a>" + r.Path)
		}})
	runCommand(t, v.CrawlArgs("http://a.example/")...).want(t, command.ExitDone, "pages: 6 (")
	r := runCommand(t, "report", "--params", "--data", v.DataDir(), "--format=json")
	got := decodeJSON[inspect.QueryParamReport](t, r.stdout)
	if len(got.Suggestions) != 1 {
		t.Fatalf("suggestions %+v, want one", got.Suggestions)
	}
	if s := got.Suggestions[0]; s.Parameter != "sid" || !s.MayBeSessionID || s.CleanParam != "" {
		t.Errorf("suggestion %+v", s)
	}
	runCommand(t, "report", "--params", "--data", v.DataDir()).want(t, command.ExitDone,
		"sid of a.example: http://a.example/p?sid=2 and http://a.example/p?sid=1; it is named like a session ID")
}

// TestReportParamsOfSortLinksAndFeeds: the log names the limits of sort links and feeds, and report --params
// what they cost and a setting that leaves them out.
func TestReportParamsOfSortLinksAndFeeds(t *testing.T) {
	t.Parallel()
	skipIfShort(t)
	for _, tt := range []struct {
		host   string
		limits string // of the first crawl
		want   inspect.URLKindCost
		log    string
	}{
		{"autoindex.test", "discover: {max_sort_links: 8}", inspect.URLKindCost{Kind: "sort_links", Requests: 8,
			DuplicateBodies: 4,
			Example:         "http://autoindex.test/?C=N;O=D",
			Setting:         `scope: {exclude: ['^https?://autoindex\.test(:\d+)?/[^?]*\?((C=D|C=M|C=N|C=S|O=A|O=D)([&;]|$))+$']}`},
			`why="more than 8 links of the host that sort a list"`},
		{"blog.test", "discover: {max_feeds: 0}", inspect.URLKindCost{Kind: "feeds", Requests: 82,
			Example: "http://blog.test/comments/feed/",
			Setting: `scope: {exclude: ['^https?://blog\.test(:\d+)?/.+/feed/$']}`}, "pages: 163 ("},
	} {
		t.Run(tt.host, func(t *testing.T) {
			report := func(settings, log string) []inspect.URLKindCost {
				sites := crawltest.ApplicationSites()
				i := slices.IndexFunc(sites, func(s crawltest.ApplicationSite) bool { return s.Site.Host == tt.host })
				sites[i].Site.Latency = crawltest.Latency{}
				v := daemontest.NewWebFixture(t, sites[i].Site)
				file := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\nseeds: ['http://"+
					tt.host+"/']\n"+settings+"\n")
				runCommand(t, v.CrawlArgs("-c", file)...).want(t, command.ExitDone, log)
				r := runCommand(t, "report", "--params", "--data", v.DataDir(), "--format=json")
				r.want(t, command.ExitDone)
				text := runCommand(t, "report", "--params", "--data", v.DataDir())
				costs := decodeJSON[inspect.QueryParamReport](t, r.stdout).URLKindCosts
				for _, c := range costs {
					text.want(t, command.ExitDone, string(c.Kind)+" of "+c.Host+": such as "+c.Example,
						"to leave them out: "+c.Setting)
				}
				return costs
			}
			tt.want.Host = tt.host
			got := report(tt.limits, tt.log)
			if len(got) != 1 {
				t.Fatalf("costs %+v, want %+v", got, tt.want)
			}
			if d := cmp.Diff(tt.want, got[0], cmpopts.IgnoreUnexported(inspect.URLKindCost{})); d != "" {
				t.Errorf("costs differ (-want +got):\n%s", d)
			}
			if got := report(tt.want.Setting, "exclude"); len(got) != 0 {
				t.Errorf("with the setting there are costs %+v", got)
			}
		})
	}
}

// report --params skips lines that it cannot read, and counts a revisited page once, with its latest
// body.
func TestReportParamsOfOddOutput(t *testing.T) {
	t.Parallel()
	line := func(url, hash string) string {
		return fmt.Sprintf(`{"url":%q,"status":200,"bytes":1,"sha256":%q}`+"\n", url, hash)
	}
	name := testfile.Write(t, "pages.jsonl",
		"{\n"+line("no URL", "aa")+line("http://a.test/?x=1", "old")+line("http://a.test/", "aa")+
			line("http://a.test/?x=1", "aa")+line("http://a.test/?x=1", "aa")+line("http://a.test/?x", "aa")+
			`{"url":"http://a.test/?x=2","status":404,"bytes":1,"sha256":"aa"}`+"\n"+
			strings.Repeat("y", plaintext.MaxLineBytes+1)+"\n"+line("http://a.test/?x=3", "bb")+`{"url":"http://a.te`)
	s, err := inspect.AnalyzeParams(t.Context(), name, "")
	if err != nil {
		t.Fatal(err)
	}
	// Compared with the page without x: x=1 and x are the same, x=3 differs. Likewise compared with x=1.
	r := s.Report()
	if len(r.Suggestions) != 1 || r.PagesWithBody != 4 {
		t.Fatalf("%+v", r)
	}
	if m := r.Suggestions[0]; m.SameBodyPairs != 3 || m.DifferentBodyPairs != 2 || m.CleanParam != "" {
		t.Errorf("%+v", m)
	}
}

// TestReportParamsIsBounded checks that of many URLs only a sample is compared, but each sampled URL
// with all URLs that it must be compared with.
func TestReportParamsIsBounded(t *testing.T) {
	skipIfShort(t)
	name := filepath.Join(t.TempDir(), "pages.jsonl")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	const pages = 100_000 // as many as the analysis samples
	w := bufio.NewWriter(f)
	for i := range pages {
		fmt.Fprintf(w, `{"url":"http://a.test/p?id=%d","status":200,"bytes":1,"sha256":"%x"}`+"\n", i, i)
		fmt.Fprintf(w, `{"url":"http://a.test/p?id=%d&ref=%d","status":200,"bytes":1,"sha256":"%x"}`+"\n", i, i, i)
	}
	for i := range pages { // visited again
		fmt.Fprintf(w, `{"url":"http://a.test/p?id=%d","status":200,"bytes":1,"sha256":"%x","source":"revisit"}`+"\n",
			i, i)
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s, err := inspect.AnalyzeParams(t.Context(), name, "")
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("the analysis holds %d MiB", grown>>20)
	}
	r := s.Report()
	if len(r.Suggestions) != 1 || r.Suggestions[0].Parameter != "ref" || r.SampledOneIn < 2 {
		t.Fatalf("%+v", r)
	}
	if r.PagesWithBody != 2*pages || r.HostDuplicates[0].PagesWithBody != 2*pages {
		t.Errorf("%d pages, %d of the host, want %d", r.PagesWithBody, r.HostDuplicates[0].PagesWithBody, 2*pages)
	}
	if m := r.Suggestions[0]; m.SameBodyPairs < pages/r.SampledOneIn/2 || m.DifferentBodyPairs != 0 {
		t.Errorf("%+v", m)
	}
	if d := r.HostDuplicates[0].DuplicateBodies; d < pages*9/10 || d > pages*11/10 {
		t.Errorf("%d duplicates, want about %d", d, pages)
	}
}
