package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/stoppedcrawl"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// sortedStoreItems returns everything in the stores of a data directory, sorted.
func sortedStoreItems(t *testing.T, dir string) itemsByKind {
	t.Helper()
	env := &command.Env{Stderr: terminal.NewStatusLineWriter(new(bytes.Buffer))}
	k, err := stoppedcrawl.Open(env, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	items := storeItems(t, k)
	for kind := range items {
		slices.Sort(items[kind])
	}
	return items
}

// An exportedCrawl is a crawl of the test web, and its export.
type exportedCrawl struct {
	*daemontest.WebFixture
	text  string
	lines []string // of text, with their ends
	items itemsByKind
}

func TestFrontierImport(t *testing.T) {
	t.Parallel()
	v := crawlTown(t)
	addUnusualItems(t, v)
	r := runFrontier(t, v, "export")
	r.want(t, command.ExitDone)
	x := &exportedCrawl{v, r.stdout, strings.SplitAfter(strings.TrimSuffix(r.stdout, "\n"), "\n"),
		sortedStoreItems(t, v.DataDir())}
	t.Run("whole", x.testWhole)
	t.Run("broken off", x.testBrokenOff)
	t.Run("out of order", x.testOutOfOrder)
	t.Run("stopped", x.testStopped)
}

// An imported crawl equals the exported one, and a second import changes nothing.
func (x *exportedCrawl) testWhole(t *testing.T) {
	moved := filepath.Join(t.TempDir(), "moved")
	runCommandWithStdin(t, x.text, "frontier", "import", "--data", moved).want(t, command.ExitDone,
		"imported: 4 origins, 6 URLs, 9 seen, ", "queued: 4, resting: 1, parked: 1")
	if diff := cmp.Diff(x.items, sortedStoreItems(t, moved)); diff != "" {
		t.Errorf("before (-) and after (+):\n%s", diff)
	}
	runCommandWithStdin(t, x.text, "frontier", "import", "--data", moved).want(t, command.ExitDone,
		"imported before; nothing changes")
	if diff := cmp.Diff(x.items, sortedStoreItems(t, moved)); diff != "" {
		t.Errorf("the second time:\n%s", diff)
	}
	again := runCommand(t, "frontier", "export", "--data", moved)
	again.want(t, command.ExitDone)
	if _, after, _ := strings.Cut(again.stdout, "\n"); strings.Contains(after, `"key":"import"`) {
		t.Error("the note of the import is exported")
	}
	runCommandWithStdin(t, again.stdout, "frontier", "import", "--data", x.DataDir()).want(t, command.ExitUsage,
		"the store already holds a crawl")
	runCommandWithStdin(t, again.stdout, "frontier", "import", "--data", moved).want(t, command.ExitUsage,
		"the store already holds a crawl")
}

// An import detects an export that is truncated anywhere. No crawl starts from the partial import, and
// an import of the whole export completes it.
func (x *exportedCrawl) testBrokenOff(t *testing.T) {
	lines, end := x.lines, len(x.lines)-1
	half := strings.Join(lines[:len(lines)/2], "")
	for name, tt := range map[string]struct{ text, why string }{
		"between lines": {half, "the export is truncated: its last line"},
		"within a line": {half + lines[len(lines)/2][:20],
			fmt.Sprintf("stopped at line %d, of http://", len(lines)/2+1)},
		"before the last": {strings.Join(lines[:end], ""), "its last line, of type end, is missing"},
		"a line is missing": {strings.Join(slices.Delete(slices.Clone(lines), end/2, end/2+1), ""),
			"lines are missing or repeated"},
		"a line twice": {strings.Join(slices.Insert(slices.Clone(lines), end/2, lines[end/2]), ""),
			"lines are missing or repeated"},
		"more at the end":  {x.text + lines[1], "more lines follow the line of type end"},
		"an unknown line":  {half + `{"type":"spell"}`, `the line has type "spell"`},
		"an unknown field": {half + `{"type":"url","url":"http://a.example/","state":"queued","source":"link","spell":1}`, `unknown field "spell"`},
		"another spelling": {half + `{"type":"url","url":"HTTP://a.example/","state":"queued","source":"link"}`,
			"is not how decorum writes a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			moved := filepath.Join(t.TempDir(), "moved")
			runCommandWithStdin(t, tt.text, "frontier", "import", "--data", moved).want(t,
				command.ExitFailed, "can be repeated", tt.why)
			runCommand(t, "crawl", "--resume", "--data", moved).want(t, command.ExitUsage,
				"only a part of this crawl was imported")
			runCommand(t, "frontier", "export", "--data", moved).want(t, command.ExitUsage,
				"only a part of this crawl was imported")
			runCommandWithStdin(t, strings.Replace(x.text, `"at":"`, `"at":"1`, 1), "frontier", "import", "--data",
				moved).want(t, command.ExitUsage)
			runCommandWithStdin(t, x.text, "frontier", "import", "--data", moved).want(t, command.ExitDone)
			if diff := cmp.Diff(x.items, sortedStoreItems(t, moved)); diff != "" {
				t.Errorf("before (-) and after (+):\n%s", diff)
			}
		})
	}
}

// An import detects URLs that come after their fingerprints: the store would take them for known.
func (x *exportedCrawl) testOutOfOrder(t *testing.T) {
	lines := slices.Clone(x.lines)
	isSeen := func(line string) bool { return strings.Contains(line, `"type":"seen"`) }
	slices.SortStableFunc(lines[1:len(lines)-1], func(a, b string) int {
		switch {
		case isSeen(a) == isSeen(b):
			return 0
		case isSeen(a):
			return -1
		}
		return 1
	})
	moved := filepath.Join(t.TempDir(), "moved")
	runCommandWithStdin(t, strings.Join(lines, ""), "frontier", "import", "--data", moved).want(t, command.ExitFailed,
		"begin again with an empty store")
	runCommand(t, "crawl", "--resume", "--data", moved).want(t, command.ExitUsage,
		"only a part of this crawl was imported")
}

// A signal ends an import whose input does not end.
func (x *exportedCrawl) testStopped(t *testing.T) {
	in, out := io.Pipe()
	signals := make(chan os.Signal, 1)
	go func() {
		io.WriteString(out, x.lines[0]+strings.Repeat(x.lines[1], 1<<18/len(x.lines[1]))) // more than is read ahead
		signals <- os.Interrupt
	}()
	moved := filepath.Join(t.TempDir(), "moved")
	runCommandReading(t, in, signals, "frontier", "import", "--data", moved).want(t, command.ExitStopped,
		"stopped at line", "can be repeated", "interrupted")
	runCommandWithStdin(t, x.text, "frontier", "import", "--data", moved).want(t, command.ExitDone, "imported: ")
}

func TestFrontierImportRefuses(t *testing.T) {
	t.Parallel()
	for text, why := range map[string]string{
		"":                                 "standard input is empty",
		"http://a.example/\n":              "not the output of decorum frontier export",
		`{"type":"url"}`:                   "not the output of decorum frontier export",
		`{"type":"export","format":2}`:     "the export has format 2",
		`{"type":"export","format":1}`:     "agent.contact",
		strings.Repeat("x", 25<<20) + "\n": "too long",
		`{"type":"export","format":1,"project":"a:\n` + strings.Repeat(`- [\n`, 10_000) +
			`"}`: "nested more than 32 deep",
	} {
		dir := filepath.Join(t.TempDir(), "data")
		if r := runCommandWithStdin(t, text, "frontier", "import", "--data", dir); r.code == command.ExitDone ||
			!strings.Contains(r.stderr, why) {
			t.Errorf("%.40s: exit %d, %s; want %q", text, r.code, r.stderr, why)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%.40s: a directory was made", text)
		}
	}
}

// A crawl moves from files to Redis and back, and finishes there: each page is visited once, and hosts
// get their full delay across the moves.
func TestMoveToRedisAndBack(t *testing.T) {
	if testing.Short() {
		t.Skip("long: it runs in real time")
	}
	t.Parallel()
	const delay = 400 * time.Millisecond
	c := redistest.StartClusterForTest(t, 3, 1)
	web := fleetWeb(10, 4)
	project := fmt.Sprintf("agent: {contact: 'mailto:bot@example.com'}\nseeds: ['%s']\nscope: {max_depth: "+
		"1000}\npoliteness: {delay: %v, adaptive: 0}\n"+
		"fetch: {allow_private: true, connect_to: ['::%s']}\n", strings.Join(web.CrawlSettings.Seeds, "', '"), delay,
		daemontest.StartWeb(t, web).Addr)
	inFiles, redis := testfile.Write(t, "files.yaml", project),
		testfile.Write(t, "redis.yaml", project+daemontest.RedisField(c, ""))
	dirs := make([]string, 3)
	for i := range dirs {
		dirs[i] = filepath.Join(t.TempDir(), "data")
	}
	move := func(from, to string, config ...string) {
		t.Helper()
		export := runCommand(t, "frontier", "export", "--data", from)
		export.want(t, command.ExitDone)
		runCommandWithStdin(t, export.stdout,
			append([]string{"frontier", "import", "--data", to}, config...)...).want(t, command.ExitDone)
		checkSameHostClocks(t, from, to)
	}
	runCommand(t, "crawl", "-c", inFiles, "--data", dirs[0], "--max-pages=12",
		"--progress=none").want(t, command.ExitDone)
	move(dirs[0], dirs[1], "-c", redis)
	runCommand(t, "crawl", "--resume", "--data", dirs[1], "--max-pages=12",
		"--progress=none").want(t, command.ExitDone)
	move(dirs[1], dirs[2])
	runCommand(t, "crawl", "--resume", "--data", dirs[2], "--max-pages=0", "--progress=none").want(t, command.ExitDone)

	var got []string
	for _, dir := range dirs {
		rs := daemontest.ReadRecords(t, filepath.Join(dir, datadir.OutputFile))
		if len(rs) < 10 {
			t.Errorf("%d pages before a move or after the last: the test has lost its point", len(rs))
		}
		got = append(got, daemontest.SortedURLs(rs)...)
	}
	slices.Sort(got)
	if diff := cmp.Diff(web.ReachablePages(), got); diff != "" {
		t.Errorf("pages there are (-) and visited ones (+):\n%s", diff)
	}
	if r := web.Judge(crawltest.JudgeOptions{MinDelay: delay, RequiredProductToken: "decorum"}); !r.OK() {
		t.Error(r)
	}
}

// checkSameHostClocks checks that the hosts of a crawl are due at the same times before and after a
// move, to within a moment, because Redis uses the clock of its server. The judge of the web checks
// the actual delays.
func checkSameHostClocks(t *testing.T, from, to string) {
	t.Helper()
	clocks := func(dir string) map[string]storage.HostState {
		k, err := stoppedcrawl.Open(&command.Env{Stderr: terminal.NewStatusLineWriter(new(bytes.Buffer))}, dir)
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		all := map[string]storage.HostState{}
		if err := k.FrontierStore.Origins(t.Context(), func(o storage.OriginInfo) bool {
			all[o.Origin.String()] = o.HostState
			return true
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	before, after := clocks(from), clocks(to)
	for o, b := range before {
		a := after[o]
		if off := a.Due.Sub(b.Due).Abs(); off > time.Minute {
			t.Errorf("%s was due at %v, and is at %v", o, b.Due, a.Due)
		}
		a.Due = b.Due
		if diff := cmp.Diff(b, a); diff != "" {
			t.Errorf("the clock of %s before (-) and after (+):\n%s", o, diff)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d origins, want %d", len(after), len(before))
	}
}
