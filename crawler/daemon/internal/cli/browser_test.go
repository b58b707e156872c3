package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/page"
)

// screenshotsEnv is the environment variable with the directory for screenshots of TestBrowser.
const screenshotsEnv = "DECORUM_SCREENSHOTS"

// chromiumPath returns the path of Chromium, or skips the test.
func chromiumPath(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "headless_shell", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("Chromium is not installed: on Debian, apt-get install chromium")
	return ""
}

// endlessSite returns a site without end: each page links to the next, and to a page that line 3 of
// robots.txt disallows.
func endlessSite(host string) crawltest.Site {
	return crawltest.Site{
		Host: host,
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
			Response: crawltest.Text("# " + host +
				"\nUser-agent: *\nDisallow: /private/\nDisallow: /priv\nAllow: /\n"),
			IsDisallowed: func(path string) bool { return strings.HasPrefix(path, "/priv") },
		}),
		Fallback: func(r crawltest.PageRequest) crawltest.Response {
			var n int
			if _, err := fmt.Sscanf(r.Path, "/%d", &n); err != nil {
				return crawltest.Status(http.StatusNotFound)
			}
			return crawltest.HTML(fmt.Sprintf(`<title>%d</title><a href="/%d">next</a><a href="/private/%d">closed</a>`,
				n, n+1, n))
		},
		Latency: crawltest.Latency{Base: 20 * time.Millisecond},
	}
}

// TestBrowser is an operator in a browser, at the widths of a desktop and of a phone: they log in,
// start a project, watch it run, have a disallowed URL explained, and brake a host. The server's log
// shows when the last request came.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("the browser is a separate process")
	}
	t.Parallel()
	path := chromiumPath(t)
	widths := []int{1280, 400}
	var sites []crawltest.Site
	for _, w := range widths {
		sites = append(sites, endlessSite(brakedHost(w)), endlessSite(otherHost(w)))
	}
	f := newCommandFixture(t, sites...)
	for _, w := range widths {
		f.PutProjectFile(projectOfWidth(w),
			f.ProjectYAML(fmt.Sprintf("http://%s/0, http://%s/0", brakedHost(w), otherHost(w)),
				"politeness: {delay: 50ms, adaptive: 0}", "scope: {max_depth: 100000}"))
	}
	f.Start(false)
	base := f.servePage(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.WSURLReadTimeout(time.Minute)) // it starts while other tests run
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	browsers, end := chromedp.NewExecAllocator(t.Context(), options...)
	defer end()
	for _, w := range widths {
		t.Run(fmt.Sprintf("at the width of %d", w), func(t *testing.T) {
			ctx, end := chromedp.NewContext(browsers, chromedp.WithErrorf(t.Logf))
			defer end()
			ctx, end = context.WithTimeout(ctx, 2*time.Minute)
			defer end()
			o := &browserUser{t: t, ctx: ctx, base: base, width: w, project: projectOfWidth(w)}
			o.runScenario(f)
		})
	}
	f.Stop()
	if r := f.Web.Judge(crawltest.JudgeOptions{MinDelay: 50 * time.Millisecond}); r.CountViolationsOfRule(
		crawltest.Disallowed) > 0 || r.CountViolationsOfRule(crawltest.ShortGap) > 0 {
		t.Errorf("the judge says:\n%s", r)
	}
}

// runScenario does all the steps of TestBrowser.
func (o *browserUser) runScenario(f *commandFixture) {
	o.recordConsoleErrors()
	o.logIn()
	o.startProject()
	o.browseProject()
	o.explainURL()
	o.brakeAndLift(f)
	o.visitOtherPages()
	for _, message := range o.consoleErrors() {
		o.t.Errorf("the console says: %s", message)
	}
}

// Each width has its own project and two hosts: one is braked, the other keeps being visited.
func brakedHost(width int) string { return projectOfWidth(width) + ".example" }
func otherHost(width int) string  { return projectOfWidth(width) + "-archive.example" }

func projectOfWidth(width int) string {
	if width > 1000 {
		return "books"
	}
	return "news"
}

const browserToken = "the token of the browser's test"

// servePage serves the daemon's API and web page on loopback, and returns the address.
func (f *commandFixture) servePage(t *testing.T) string {
	t.Helper()
	audit, err := api.OpenAuditLog(filepath.Join(f.Dir, "audit.jsonl"), api.AuditRotationLimits{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := api.NewServer(f.Supervisor, api.ServerConfig{AuditLog: audit, PageHandler: page.New(f.Supervisor, audit),
		APIKeys: []api.APIKey{api.APIKeyFromToken("browser", api.RoleOperate, browserToken)}})
	ctx, cancel := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() {
		if err := server.Serve(ctx, l); err != nil {
			t.Errorf("the server ended: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); served.Wait(); audit.Close() })
	return "http://" + l.Addr().String()
}

// A browserUser drives a browser.
type browserUser struct {
	t             *testing.T
	ctx           context.Context
	base, project string
	width         int
	mu            sync.Mutex
	consoleErrs   []string // by the console, that should not be
}

// recordConsoleErrors records the errors in the browser's console.
func (o *browserUser) recordConsoleErrors() {
	chromedp.ListenTarget(o.ctx, func(event any) {
		message := ""
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			message = e.ExceptionDetails.Error()
		case *cdplog.EventEntryAdded:
			if e.Entry.Level == cdplog.LevelError {
				message = e.Entry.Text + " " + e.Entry.URL
			}
		}
		if message != "" {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.consoleErrs = append(o.consoleErrs, message)
		}
	})
	o.run(cdplog.Enable(), runtime.Enable(), chromedp.EmulateViewport(int64(o.width), 900))
}

func (o *browserUser) consoleErrors() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string{}, o.consoleErrs...)
}

func (o *browserUser) run(actions ...chromedp.Action) {
	o.t.Helper()
	if err := chromedp.Run(o.ctx, actions...); err != nil {
		o.t.Fatal(err)
	}
}

// runNavigating runs actions that may make the browser leave the page before they return. It ignores
// the error of chromedp about that: the wait that follows shows whether the actions worked.
func (o *browserUser) runNavigating(actions ...chromedp.Action) {
	o.t.Helper()
	if err := chromedp.Run(o.ctx, actions...); err != nil && !strings.Contains(err.Error(), "navigated or closed") {
		o.t.Fatal(err)
	}
}

// waitFor waits until a page is loaded and a JavaScript expression is true. chromedp.Poll would
// violate the page's content security policy.
func (o *browserUser) waitFor(expression string) {
	o.t.Helper()
	for begin := time.Now(); time.Since(begin) < 30*time.Second; {
		var so bool
		o.runNavigating(chromedp.Evaluate(`document.readyState == "complete" && Boolean(`+expression+`)`, &so))
		if so {
			return
		}
		o.run(chromedp.Sleep(20 * time.Millisecond))
	}
	o.t.Fatalf("after 30 s at %s, still not true: %s", evaluate[string](o, "location.href"), expression)
}

// evaluate evaluates a JavaScript expression.
func evaluate[T any](o *browserUser, expression string) (v T) {
	o.t.Helper()
	o.run(chromedp.Evaluate(expression, &v))
	return v
}

// typeText types text into a field, in place of its content.
func (o *browserUser) typeText(field, text string) {
	o.t.Helper()
	o.run(chromedp.Evaluate(fmt.Sprintf("document.querySelector(%q).value = ''", field), nil))
	o.runNavigating(chromedp.SendKeys(field, text, chromedp.ByQuery)) // the last key may be Enter
}

// navigate opens a page.
func (o *browserUser) navigate(path string) {
	o.t.Helper()
	o.run(chromedp.Navigate(o.base + path))
}

// captureScreenshot checks that no part of the page is wider than the window, and saves a screenshot
// if screenshotsEnv is set.
func (o *browserUser) captureScreenshot(name string) {
	o.t.Helper()
	if wide := evaluate[int](o, "document.documentElement.scrollWidth"); wide > o.width {
		o.t.Errorf("%s is %d wide in a window of %d", name, wide, o.width)
	}
	dir := os.Getenv(screenshotsEnv)
	if dir == "" {
		return
	}
	var picture []byte
	o.run(chromedp.FullScreenshot(&picture, 100))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.png", name, o.width)), picture, 0o644); err != nil {
		o.t.Fatal(err)
	}
}

func (o *browserUser) logIn() {
	o.navigate("/brakes")
	o.waitFor(`location.pathname == "/login"`)
	o.captureScreenshot("login")
	o.typeText("[name=token]", "wrong\r")
	o.waitFor(`document.querySelector("[role=alert]")`)
	o.typeText("[name=token]", browserToken+"\r")
	o.waitFor(`location.pathname == "/brakes"`)
}

// startProject starts the project from the list of projects, and waits for progress. Only the form
// reloads the page.
func (o *browserUser) startProject() {
	o.navigate("/")
	card := fmt.Sprintf(`[...document.querySelectorAll(".card")].find((c) => c.querySelector("h2").innerText == %q)`,
		o.project)
	o.waitFor(card + `.innerText.includes("stopped")`)
	o.run(chromedp.Evaluate(card+`.querySelector("button[formaction$='/start']").click()`, nil))
	o.waitFor(`document.querySelector(".flash")`)
	o.run(chromedp.Evaluate("window.loadedOnce = true", nil))
	pages := card + `.querySelector(".numbers dd").innerText`
	o.waitFor(fmt.Sprintf(`%s.innerText.includes("running") && Number(%s) > 3`, card, pages))
	before := evaluate[string](o, pages)
	o.waitFor(fmt.Sprintf("Number(%s) > Number(%q)", pages, before))
	o.waitFor(`document.querySelectorAll("#log li .what").length > 3`)
	if !evaluate[bool](o, "window.loadedOnce") {
		o.t.Error("the page was reloaded to show what has changed")
	}
	if worst := evaluate[string](o, `document.querySelector(".compliance dd").innerText`); worst != "0 ms" {
		o.t.Errorf("the largest shortfall is printed as %q", worst)
	}
	o.captureScreenshot("projects")
}

// browseProject opens the project's views with the keyboard.
func (o *browserUser) browseProject() {
	o.navigate("/projects/" + o.project)
	o.waitFor(`document.querySelectorAll(".hosts tbody tr").length == 2`)
	o.captureScreenshot("project")
	o.checkValuesStayTogether("project")
	o.run(chromedp.KeyEvent("?"))
	o.waitFor(`document.getElementById("keys").open`)
	o.run(chromedp.KeyEvent("\x1b"))
	o.waitFor(`!document.getElementById("keys").open`)
	o.run(chromedp.KeyEvent("/"))
	o.waitFor(`document.activeElement.matches("[data-search]")`)
	o.typeText("[data-search]", brakedHost(o.width)+"\r") // and not the / that chromedp types besides pressing the key
	o.waitFor(
		fmt.Sprintf(`location.search.includes("q=%s") && document.querySelectorAll(".hosts tbody tr").length == 1`,
			brakedHost(o.width)))
	o.run(chromedp.KeyEvent("j"))
	o.waitFor(fmt.Sprintf(`document.activeElement.innerText == %q`, brakedHost(o.width)))
	o.runNavigating(chromedp.KeyEvent("\r"))
	o.waitFor(`location.pathname.includes("/hosts/")`)
}

// explainURL enters a URL that robots.txt disallows. The page marks the line that decides and shows
// it, and also the line that lost.
func (o *browserUser) explainURL() {
	o.typeText("[data-explain]", "http://"+brakedHost(o.width)+"/private/1#x\r")
	o.waitFor(`document.querySelector(".verdict.bad")`)
	for selector, want := range map[string]string{".robots .decides code": "Disallow: /private/",
		".robots .loses code": "Disallow: /priv", ".robots .decides .number": "3", ".verdict mark": "/private/"} {
		if got := evaluate[string](o, fmt.Sprintf(`document.querySelector(%q)?.innerText ?? "nothing"`,
			selector)); got != want {
			o.t.Errorf("%s is %q, want %q", selector, got, want)
		}
	}
	if !evaluate[bool](
		o, `(() => { const box = document.querySelector("#robots").getBoundingClientRect(), line = document.querySelector(".decides").getBoundingClientRect();
		return line.top >= box.top && line.bottom <= box.bottom })()`) {
		o.t.Error("the deciding line is not visible")
	}
	o.captureScreenshot("host")
	for _, scheme := range []string{"dark", "light"} {
		o.run(emulation.SetEmulatedMedia().WithFeatures(
			[]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
		if scheme == "dark" {
			o.captureScreenshot("host-dark")
		}
	}
}

// brakeAndLift brakes the host while it is being crawled, and lifts the brake.
func (o *browserUser) brakeAndLift(f *commandFixture) {
	to := func(host string, after time.Time) (n int) {
		for _, x := range f.Web.Log() {
			if strings.HasPrefix(x.URL, "http://"+host+"/") && x.Start.After(after) {
				n++
			}
		}
		return n
	}
	begun := time.Now()
	daemontest.WaitUntil(o.t, "the host is crawled", func() bool { return to(brakedHost(o.width), begun) > 3 })
	o.typeText("#brake [name=reason]", "the owner has asked")
	pressed := time.Now()
	o.run(chromedp.Click("#brake button.danger", chromedp.ByQuery))
	o.waitFor(`document.querySelector("#brake").innerText.includes("is stopped")`)
	shown := time.Now()
	// The other host is visited 20 times a second: the brake has held for a while
	// when it has been visited 30 times more.
	daemontest.WaitUntil(o.t, "the other host is visited", func() bool { return to(otherHost(o.width), shown) >= 30 })
	if n := to(brakedHost(o.width), shown); n > 0 {
		o.t.Errorf("%d requests came after the brake", n)
	}
	if n := to(brakedHost(o.width), pressed.Add(time.Second)); n > 0 {
		o.t.Errorf("%d requests came more than a second after the button was pressed", n)
	}
	o.t.Logf("the page showed the brake %v after the click; %d requests came meanwhile",
		shown.Sub(pressed).Round(time.Millisecond), to(brakedHost(o.width), pressed))
	o.captureScreenshot("braked")
	hostPage := evaluate[string](o, "location.pathname")
	o.navigate("/brakes")
	o.captureScreenshot("brakes-on")
	o.checkValuesStayTogether("brakes-on")
	o.navigate(hostPage)
	o.typeText("#brake [name=reason]", "all is well\r")
	o.waitFor(`document.querySelector("#brake").innerText.includes("Put the brake on")`)
	lifted := time.Now()
	daemontest.WaitUntil(o.t, "the host is visited again", func() bool { return to(brakedHost(o.width), lifted) > 0 })
}

// visitOtherPages opens the other pages and checks that they are not too wide.
func (o *browserUser) visitOtherPages() {
	for name, path := range map[string]string{"blocked": "/projects/" + o.project + "/blocked",
		"file": "/projects/" + o.project + "/file",
		"urls": "/projects/" + o.project + "/urls", "new": "/new", "brakes": "/brakes",
		"audit": "/audit", "bot": "/bot"} {
		o.navigate(path)
		o.captureScreenshot(name)
		o.checkValuesStayTogether(name)
	}
	o.navigate("/new")
	if height := evaluate[float64](o, `document.querySelector("textarea").getBoundingClientRect().top -
		document.querySelector("label:has(textarea)").getBoundingClientRect().top`); height > 30 {
		o.t.Errorf("the label of the project file is %v px high, more than a line", height)
	}
	o.navigate("/audit")
	at := evaluate[string](o, `document.querySelector("tbody td").innerText`)
	if !regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\s+(now|.* ago)$`).MatchString(at) {
		o.t.Errorf("the audit shows the time %q; want the exact time, and how long ago it was", at)
	}
	if text := evaluate[string](o, "document.body.innerText"); !strings.Contains(text, "the owner has asked") ||
		!strings.Contains(text, "browser") {
		o.t.Errorf("the audit log lacks the caller or the reason of the brake: %s", text)
	}
}

// checkValuesStayTogether checks the cells of the page's tables: the parts of a value are next to each
// other, and where rows are cards, a value ends at the right edge.
func (o *browserUser) checkValuesStayTogether(page string) {
	o.t.Helper()
	const spreadCells = `[...document.querySelectorAll(".cards td[data-label]:not(.url)")].filter((cell) => {
		const range = document.createRange();
		range.selectNodeContents(cell);
		const parts = [...range.getClientRects()].filter((r) => r.width > 0).sort((a, b) => a.left - b.left);
		const edge = (box) => box.right - parseFloat(getComputedStyle(cell).paddingRight);
		return parts.some((r, i) => i > 0 && Math.abs(r.bottom - parts[i - 1].bottom) < 8 && r.left - parts[i - 1].right > 12) ||
			getComputedStyle(cell).textAlign == "right" && parts.length > 0 &&
				edge(cell.getBoundingClientRect()) - Math.max(...parts.map((r) => r.right)) > 12;
	}).map((cell) => cell.dataset.label + ": " + cell.innerText)`
	if spread := evaluate[[]string](o, spreadCells); len(spread) > 0 {
		o.t.Errorf("%s: these values are spread over their row: %q", page, spread)
	}
}
