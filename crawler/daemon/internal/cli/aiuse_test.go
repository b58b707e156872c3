package cli

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// The content of a page that no output may contain if the page may not be used.
const restrictedText = "the-precious-text"

// usageRulesSite returns a site that restricts the use of its pages in every way that decorum reads.
func usageRulesSite() crawltest.Site {
	page := func(head string, header ...string) crawltest.PageFunc {
		a := crawltest.HTML("<title>" + restrictedText + "</title>" + head + "<p>" + restrictedText + "</p>")
		for i := 0; i < len(header); i += 2 {
			a.Header.Set(header[i], header[i+1])
		}
		return crawltest.StaticPage(a)
	}
	index := crawltest.HTML("<a href=/usage>x</a><a href=/meta>x</a><a href=/tdm>x</a><a href=/noindex>x</a><a " +
		"href=/noarchive>x</a>" +
		"<a href=/line>x</a><a href=/papers/1>x</a>")
	return crawltest.Site{
		Host: "a.example",
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
			Response: crawltest.Text("User-agent: *\nContent-Signal: /line ai-input=no\nContent-Usage: /line " +
				"train-ai=n\n")}),
		Pages: map[string]crawltest.PageFunc{
			"/":          crawltest.StaticPage(index),
			"/usage":     page("", "Content-Usage", "train-ai=n, search=y"),
			"/meta":      page("<meta name=robots content=noai>"),
			"/tdm":       page("", "TDM-Reservation", "1", "TDM-Policy", "https://a.example/policy.json"),
			"/noindex":   page("", "X-Robots-Tag", "noindex"),
			"/noarchive": page("<meta name=robots content=noarchive>"),
			"/line":      page(""),
			"/papers/1":  page(""),
			"/.well-known/tdmrep.json": crawltest.StaticPage(crawltest.ResponseOfType("application/json",
				"[\n{\"location\": \"/papers/\", \"tdm-reservation\": 1}\n]")),
		},
	}
}

// filesContaining returns the files below dir that contain text.
func filesContaining(t *testing.T, dir, text string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if strings.Contains(string(b), text) {
			files = append(files, filepath.Base(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A crawl with a purpose obeys the site's rules for that purpose: those of robots.txt and
// tdmrep.json before the visit, those of header and page after it. Its records give the reason, and
// none of its files has the content of a withheld page.
func TestAIUse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		purpose  string
		files    int    // requests for tdmrep.json
		parked   string // URLs that are not visited
		withheld string // URLs that are visited and not used
	}{
		{"", 0, "", ""},
		{"search", 0, "", "/noindex"},
		{"archive", 0, "", "/noarchive"},
		{"ai-input", 1, "/line /papers/1", "/meta /tdm"},
		{"ai-train", 1, "/line /papers/1", "/meta /tdm /usage"},
	} {
		t.Run("for "+tt.purpose, func(t *testing.T) {
			v := daemontest.NewWebFixture(t, usageRulesSite())
			config := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\noutput: {bodies: "+
				"true}\nrobots: {purpose: ["+tt.purpose+"]}\n")
			runCommand(t, v.CrawlArgs("-c", config, "--warc", filepath.Join(v.Dir, "warc"),
				"http://a.example/")...).want(t, command.ExitDone)
			parked := []string{"/", "/line", "/meta", "/noarchive", "/noindex", "/papers/1", "/tdm", "/usage"}
			var withheld []string
			for _, r := range daemontest.ReadRecords(t, filepath.Join(v.DataDir(), datadir.OutputFile)) {
				path := strings.TrimPrefix(r.URL, "http://a.example")
				parked = slices.DeleteFunc(parked, func(p string) bool { return p == path })
				refused := r.AIUseSignals != nil && r.AIUseSignals.UsageConflict != nil
				if refused {
					withheld = append(withheld, path)
				}
				if whole := r.Bytes > 0 && r.SHA256 != "" && (r.Title == restrictedText || path == "/") &&
					r.Error == ""; whole == refused {
					t.Errorf("refused %t: %+v", refused, r)
				}
				if refused && !strings.Contains(r.Error, "not to be used for "+tt.purpose) {
					t.Errorf("%s: error %q", path, r.Error)
				}
			}
			slices.Sort(withheld)
			if got := strings.Join(parked, " "); got != tt.parked {
				t.Errorf("not visited: %q, want %q", got, tt.parked)
			}
			if got := strings.Join(withheld, " "); got != tt.withheld {
				t.Errorf("not used: %q, want %q", got, tt.withheld)
			}
			files := 0
			for _, x := range v.Web.Log() {
				if strings.HasSuffix(x.URL, "tdmrep.json") {
					files++
				}
			}
			if files != tt.files {
				t.Errorf("tdmrep.json was requested %d times, want %d", files, tt.files)
			}
			bodies, pages := filesContaining(t, filepath.Join(v.DataDir(), "bodies"), restrictedText),
				strings.Fields(tt.parked+" "+tt.withheld)
			checkArchivedPages(t, filepath.Join(v.Dir, "warc"), pages)
			if used := 7 - len(pages); len(bodies) > used || used > 0 && len(bodies) == 0 {
				t.Errorf("%d bodies, of %d pages that may be used", len(bodies), used)
			}
		})
	}
}

// checkArchivedPages checks that the WARC files hold the content of all pages except the withheld
// ones, and the headers of the withheld ones.
func checkArchivedPages(t *testing.T, dir string, withheld []string) {
	t.Helper()
	for _, r := range readArchive(t, dir) {
		path := strings.TrimPrefix(r.Get("WARC-Target-URI"), "http://a.example")
		if r.Get("WARC-Type") != "response" || path == "/" || strings.Contains(path, ".") {
			continue
		}
		content := strings.Contains(r.block, restrictedText)
		if slices.Contains(withheld, path) == content {
			t.Errorf("%s: content %t in the archive", path, content)
		}
		if !content && (r.Get("WARC-Truncated") == "" || !strings.HasSuffix(r.block, "\r\n\r\n") ||
			!strings.HasPrefix(r.block, "HTTP/1.1 200")) {
			t.Errorf("%s: %+v", path, r)
		}
	}
}

// explain names the rule that withholds a page, and report counts withheld pages.
func TestAIUseIsExplained(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, usageRulesSite())
	config := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\nrobots: {purpose: [ai-train]}\n")
	runCommand(t, v.CrawlArgs("-c", config, "http://a.example/")...).want(t, command.ExitDone,
		"blocked by robots.txt: 2", "not used: 3 pages whose site does not permit ai-train", "tdmrep.json: 1")
	runCommand(t, "report", "--data", v.DataDir()).want(t, command.ExitDone, "AI use",
		"3 pages whose site does not permit", "1 URLs parked by tdmrep.json",
		"http://a.example/.well-known/tdmrep.json", "tdm-reservation: 1", "content-usage: train-ai=n")
	runCommand(t, "explain", "--data", v.DataDir(), "http://a.example/papers/1").want(t, command.ExitDone,
		"disallowed: tdm-reservation: 1 (line 2, group tdmrep.json)",
		"asks tdm-reservation: tdm: disallow (tdmrep.json, line 2)")
	runCommand(t, "explain", "--data", v.DataDir(), "http://a.example/line").want(t, command.ExitDone,
		"disallowed: content-usage: train-ai=n (line 3, group *)", "asks content-signal: ai-input: disallow (line 2)")
	runCommand(t, "frontier", "list", "--state", "parked", "--data", v.DataDir()).want(t, command.ExitDone,
		"/papers/1", "tdm-reservation: 1")
	// Without the purpose all pages are visited.
	plain := testfile.Write(t, "plain.yaml", "agent: {contact: 'mailto:a@b.example'}\nseeds: ['http://a.example/']\n")
	runCommand(t, v.CrawlArgs("-c", plain, "--resume")...).want(t, command.ExitDone, "pages: 2 (", "left: 0 queued")
}

// A purpose is wrong usage where it would have no effect.
func TestPurposeNeedsMeta(t *testing.T) {
	v := daemontest.NewWebFixture(t, usageRulesSite())
	config := testfile.Write(t, "p.yaml",
		"agent: {contact: 'mailto:a@b.example'}\nrobots: {purpose: [ai-train], meta: false}\n")
	runCommand(t, v.CrawlArgs("-c", config, "http://a.example/")...).want(t, command.ExitUsage,
		"robots.meta: false ignores")
}

// Callbacks are not called for a page that may not be used, and its links are not followed.
func TestAIUseOfCallbacks(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, usageRulesSite())
	project := testfile.Write(t, "p.yaml",
		"agent: {contact: 'mailto:a@b.example'}\nhandler: read\nrobots: {purpose: [ai-train]}\n")
	var mu sync.Mutex
	var read []string
	note := func(r *colly.Response) {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(string(r.Body), restrictedText) {
			read = append(read, r.Request.URL.Path)
		}
	}
	var stderr bytes.Buffer
	a := &program{Env: command.Env{Stdout: terminal.NewStickyErrorWriter(&bytes.Buffer{}),
		Stderr: terminal.NewStatusLineWriter(&stderr),
		Dependencies: engine.Dependencies{Handlers: collyfetch.NamedCallbacks{"read": func(c *collyfetch.Collector) {
			c.OnResponse(note)
			c.OnScraped(note)
			c.OnHTML("a", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
		}}}}}
	code := a.main(v.CrawlArgs("-c", project, "http://a.example/"))
	slices.Sort(read)
	if read = slices.Compact(read); code != command.ExitDone ||
		!slices.Equal(read, []string{"/noarchive", "/noindex"}) {
		t.Errorf("exit code %d; callbacks have read %q\n%s", code, read, &stderr)
	}
}
