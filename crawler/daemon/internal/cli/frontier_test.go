package cli

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/stoppedcrawl"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// runFrontier runs a frontier command on the crawl.
func runFrontier(t *testing.T, v *daemontest.WebFixture, args ...string) commandResult {
	t.Helper()
	return runCommand(t, slices.Concat([]string{"frontier"}, args, []string{"--data", v.DataDir()})...)
}

// runCommandWithStdin runs the command with the given standard input.
func runCommandWithStdin(t *testing.T, stdin string, args ...string) commandResult {
	t.Helper()
	return runCommandReading(t, strings.NewReader(stdin), nil, args...)
}

func runCommandReading(t *testing.T, stdin io.Reader, signals <-chan os.Signal, args ...string) commandResult {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &program{Env: command.Env{Stdout: terminal.NewStickyErrorWriter(&stdout),
		Stderr: terminal.NewStatusLineWriter(&stderr), Signals: signals}}
	root := a.newRootCommand()
	root.SetIn(stdin)
	root.SetArgs(args)
	code := command.PrintError(a.Stderr, root.Execute())
	return commandResult{code, stdout.String(), stderr.String()}
}

func TestFrontierStats(t *testing.T) {
	t.Parallel()
	v := crawlTown(t)
	r := runFrontier(t, v, "stats", "--format=json")
	r.want(t, command.ExitDone)
	got := decodeJSON[map[string]any](t, r.stdout)
	for _, f := range got["files"].([]any) {
		f := f.(map[string]any)
		info, err := os.Stat(filepath.Join(v.DataDir(), f["name"].(string)))
		if err != nil || f["bytes"].(float64) != float64(info.Size()) {
			t.Errorf("file %v, %v", f, err)
		}
	}
	if next, err := time.Parse(time.RFC3339Nano, got["next_due"].(string)); err != nil ||
		time.Until(next) < 30*time.Second || time.Until(next) > time.Minute {
		t.Errorf("next due at %v, %v; want the time of the next request for robots.txt, within a minute", next, err)
	}
	for _, field := range []string{"at", "files", "next_due"} {
		delete(got, field)
	}
	if diff := cmp.Diff(map[string]any{
		"host_count": 3.0, "origin_count": 3.0, "states": map[string]any{"done": 1.0, "held": 1.0, "set aside": 1.0},
		"queued": 2.0, "resting": 0.0, "parked": 1.0, "seen": 8.0, "set_aside": 1.0,
	}, got); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
	runFrontier(t, v, "stats").want(t, command.ExitDone,
		"queued       2, of them set aside: 1", "next due", "frontier.db")
	runFrontier(t, v, "stats", "--format=jsonl").want(t, command.ExitUsage, "is not one of table, json")

	runFrontier(t, v, "add", "http://shop.example/due").want(t, command.ExitDone, "1 new")
	due := decodeJSON[api.FrontierStats](t, runFrontier(t, v, "stats", "--format=json").stdout)
	if due.HostsByState[inspect.HostDue] != 1 || due.DueSince.IsZero() ||
		due.DueSince.After(due.At) || !due.NextDueAt.IsZero() {
		t.Errorf("with a host that is due: %+v", due)
	}
}

// Compacting makes the files smaller and does not change their content.
func TestFrontierCompact(t *testing.T) {
	t.Parallel()
	v := crawlTown(t)
	export := func() string {
		head, rest, _ := strings.Cut(runFrontier(t, v, "export").stdout, "\n") // the head has the time of the export
		if !strings.Contains(head, "export") {
			t.Errorf("the head is %q", head)
		}
		return rest
	}
	before := export()
	sizes := decodeJSON[api.FrontierStats](t, runFrontier(t, v, "stats", "--format=json").stdout).StoreFiles
	runFrontier(t, v, "compact").want(t, command.ExitDone, "frontier.db: ", ", was 16.0 MiB")
	for i, f := range decodeJSON[api.FrontierStats](t, runFrontier(t, v, "stats", "--format=json").stdout).StoreFiles {
		if f.Bytes >= sizes[i].Bytes || f.FreeBytes >= sizes[i].FreeBytes {
			t.Errorf("%s: %d bytes, %d of them free, before: %+v", f.Name, f.Bytes, f.FreeBytes, sizes[i])
		}
	}
	if diff := cmp.Diff(before, export()); diff != "" {
		t.Errorf("the state before (-) and after (+):\n%s", diff)
	}
	runCommand(t, "frontier", "compact", "--data", t.TempDir()).want(t, command.ExitUsage, "holds no crawl")

	// Without robots.db the command fails before it replaces frontier.db.
	store := filepath.Join(v.DataDir(), datadir.StoreFile)
	old, err := os.Stat(store)
	if err := errors.Join(err, os.Remove(filepath.Join(v.DataDir(), datadir.RobotsFile))); err != nil {
		t.Fatal(err)
	}
	runFrontier(t, v, "compact").want(t, command.ExitFailed, datadir.RobotsFile)
	if now, err := os.Stat(store); err != nil || !os.SameFile(old, now) {
		t.Errorf("frontier.db was replaced: %v", err)
	}
}

// Of a daemon's project, only its own file is compacted; the daemon's directory has the robots.txt files
// of all projects. The daemon continues with both.
func TestFrontierCompactOfDaemon(t *testing.T) {
	t.Parallel()
	f := newCommandFixture(t, daemontest.ShopSite())
	f.PutProjectFile("shop", f.ProjectYAML("http://shop.example/"))
	f.Start(true)
	f.WaitForState("shop", api.StateDone)
	data := f.WebFixture.DataDir()
	runCommand(t, "frontier", "compact", "--data", data).want(t, command.ExitFailed, "in use by process")
	f.Stop()
	for dir, files := range map[string]string{
		filepath.Join(data, datadir.ProjectsDir, "shop"): datadir.StoreFile,
		data: datadir.RobotsFile,
	} {
		r := runCommand(t, "frontier", "compact", "--data", dir)
		r.want(t, command.ExitDone)
		if !strings.HasPrefix(r.stdout, files+": ") || strings.Count(r.stdout, "\n") != 1 {
			t.Errorf("%s: %q, want a line of %s", dir, r.stdout, files)
		}
	}
	f.Start(false)
	f.WaitForState("shop", api.StateDone)
	if n := len(f.Web.Log()); n != len(daemontest.ShopURLs)+1 {
		t.Errorf("%d requests, want one of each page and of robots.txt", n)
	}
}

func TestFrontierList(t *testing.T) {
	t.Parallel()
	v := crawlTown(t)
	for _, tt := range []struct {
		args []string
		want []string // of each line: state, URL, how why begins
	}{
		{nil, []string{"parked http://shop.example/till disallow: /till of http://shop.example/robots.txt (line 3)",
			"queued http://broken.example/ its origin is held until", "queued http://slow.example/ "}},
		{[]string{"--state=parked"}, []string{"parked http://shop.example/till disallow"}},
		{[]string{"--state=resting"}, nil},
		{[]string{"--host=slow.example"}, []string{"queued http://slow.example/ "}},
		{[]string{"--origin=http://slow.example"}, []string{"queued http://slow.example/ "}},
		{[]string{"--origin=https://slow.example"}, nil},
	} {
		r := runFrontier(t, v, append([]string{"list"}, tt.args...)...)
		r.want(t, command.ExitDone)
		var got []string
		for line := range strings.Lines(r.stdout) {
			cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			if len(cells) != 4 {
				t.Fatalf("%d cells in %q", len(cells), line)
			}
			got = append(got, cells[0]+" "+cells[2]+" "+cells[3])
		}
		slices.Sort(got)
		if !slices.EqualFunc(got, tt.want, strings.HasPrefix) {
			t.Errorf("%v: %q, want %q", tt.args, got, tt.want)
		}
	}
	if r := runFrontier(t, v, "list", "--limit=2"); strings.Count(r.stdout, "\n") != 2 {
		t.Errorf("--limit=2 lists %q", r.stdout)
	}
	r := runFrontier(t, v, "list", "--format=jsonl", "--host=shop.example")
	if diff := cmp.Diff(map[string]any{
		"url": "http://shop.example/till", "state": "parked", "source": "link", "class": 2.0, "depth": 1.0,
		"referrer": "http://shop.example/", "why": "disallow: /till of http://shop.example/robots.txt (line 3)",
	}, withoutField(decodeJSON[map[string]any](t, r.stdout), "rank")); diff != "" {
		t.Errorf("line (-want +got):\n%s", diff)
	}
	runFrontier(t, v, "list", "--state=lost").want(t, command.ExitUsage,
		`--state: "lost" is not one of queued, resting, parked`)
	runFrontier(t, v, "list", "--origin=shop.example").want(t, command.ExitUsage, "is not an origin")
}

// without returns m without a field that the test ignores.
func withoutField(m map[string]any, field string) map[string]any {
	delete(m, field)
	return m
}

// The resumed crawl visits exactly the added URLs.
func TestFrontierAdd(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	file := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\ndiscover: {canonical: false}\n")
	runCommand(t, v.CrawlArgs("-c", file, "http://shop.example/b", "--max-depth=1")...).want(t, command.ExitDone)
	runFrontier(t, v, "add", "http://shop.example/", "http://shop.example/b",
		"http://elsewhere.example/").want(t, command.ExitDone,
		"1 new, 1 known already, 1 refused",
		"1 refused: another host than the seeds', such as http://elsewhere.example/")
	runFrontier(t, v, "add", "shop.example").want(t, command.ExitUsage,
		`"shop.example" is not a URL that a crawl can visit`)
	runFrontier(t, v, "add").want(t, command.ExitUsage, "URL is missing, as in decorum frontier add https://")

	lines := "# a list\n\nhttp://shop.example/old # moved\n{\"url\":\"http://shop.example/a\",\"why\":\"a # in " +
		"it\"}\n" +
		"{\"url\":\"http://shop.example/deep\",\"depth\":2}\nnothing\n{broken\nhttp://shop.example/" +
		strings.Repeat("x", 3000) + "\nhttp://shop.example/till"
	r := runCommandWithStdin(t, lines, "frontier", "add", "-", "--data", v.DataDir(), "--format=json")
	r.want(t, command.ExitFailed, "2 lines were not URLs")
	got := decodeJSON[api.AddURLsResult](t, r.stdout)
	long := "http://shop.example/" + strings.Repeat("x", 3000)
	want := api.AddURLsResult{Added: 2, Duplicates: 1, Refused: 2, InvalidLines: 2, Refusals: []api.RefusalSummary{
		{URLCount: 1, RefusedBy: "scope", Rule: "deeper than 1 links", Example: "http://shop.example/deep"},
		{URLCount: 1, RefusedBy: "scope", Rule: "longer than 2048 bytes", Example: long},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("intake (-want +got):\n%s", diff)
	}
	before := len(v.Web.Log())
	runCommand(t, "crawl", "--resume", "--data", v.DataDir(), "--progress=none").want(t, command.ExitDone)
	var requested []string
	for _, x := range v.Web.Log()[before:] {
		requested = append(requested, x.URL)
	}
	slices.Sort(requested)
	for _, u := range []string{"http://shop.example/", "http://shop.example/old"} {
		if !slices.Contains(requested, u) {
			t.Errorf("%s was added and not visited; only %q", u, requested)
		}
	}
	if slices.Contains(requested, "http://shop.example/till") {
		t.Error("a URL that robots.txt disallows was visited")
	}
}

// Long lists of URLs are added batch by batch.
func TestFrontierAddMany(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	runCommand(t, v.CrawlArgs("http://shop.example/", "--max-time=1ns")...).want(t, command.ExitStopped)
	before := strings.Count(runFrontier(t, v, "list").stdout, "\n")
	var lines strings.Builder
	const many = 2*engine.SeedBatchSize + 500
	for i := range many {
		lines.WriteString("http://shop.example/list/" + strings.Repeat("0", i%7) + "/" + string(rune('a'+i%26)) + "?" +
			time.Duration(i).String() + "\n")
	}
	for _, want := range []api.AddURLsResult{{Added: many}, {Duplicates: many}} {
		r := runCommandWithStdin(t, lines.String(), "frontier", "add", "-", "--data", v.DataDir(), "--format=json")
		r.want(t, command.ExitDone)
		if got := decodeJSON[api.AddURLsResult](t, r.stdout); got.Added != want.Added ||
			got.Duplicates != want.Duplicates {
			t.Errorf("%d added and %d known, want %d and %d", got.Added, got.Duplicates, want.Added, want.Duplicates)
		}
	}
	if got := strings.Count(runFrontier(t, v, "list").stdout, "\n"); got != before+many {
		t.Errorf("%d are queued, want %d", got, before+many)
	}
	for line := range strings.Lines(runFrontier(t, v, "export").stdout) {
		const maxFingerprints = 1024
		if l := decodeJSON[seenLine](t, line); len(l.Fingerprints) > 8*maxFingerprints {
			t.Errorf("%d fingerprints on a line, the most is %d", len(l.Fingerprints)/8, maxFingerprints)
		}
	}
}

// A signal ends an add whose input does not end, and the URLs added so far stay.
func TestFrontierAddStops(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	runCommand(t, v.CrawlArgs("http://shop.example/", "--max-pages=1")...).want(t, command.ExitDone)
	typed, keyboard := io.Pipe()
	signals := make(chan os.Signal, 1)
	go func() {
		for i := range engine.SeedBatchSize + 10 { // a batch, and some more
			fmt.Fprintf(keyboard, "http://shop.example/typed/%d\n", i)
		}
		for range 2 * engine.SeedBatchSize { // all before these have left the channel
			fmt.Fprintln(keyboard, "# nothing")
		}
		signals <- os.Interrupt
	}()
	runCommandReading(t, typed, signals, "frontier", "add", "-", "--data", v.DataDir()).want(t, command.ExitStopped,
		" new, 0 known already", "interrupted")
	if got := strings.Count(runFrontier(t, v, "list").stdout, "/typed/"); got != engine.SeedBatchSize+10 {
		t.Errorf("%d were added, want %d", got, engine.SeedBatchSize+10)
	}
}

// An export has everything in the stores: the test reads it line by line, and compares it with them.
func TestFrontierExport(t *testing.T) {
	t.Parallel()
	v := crawlTown(t)
	addUnusualItems(t, v)
	r := runFrontier(t, v, "export")
	r.want(t, command.ExitDone)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	first := decodeJSON[headerLine](t, lines[0])
	text, err := os.ReadFile(filepath.Join(v.DataDir(), datadir.ProjectFile))
	if err != nil || first.Type != "export" || first.FormatVersion != 1 || first.ProjectYAML != string(text) {
		t.Errorf("first line %+v, %v", first, err)
	}
	env := &command.Env{Stderr: terminal.NewStatusLineWriter(new(bytes.Buffer))}
	k, err := stoppedcrawl.Open(env, v.DataDir())
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	want, got := storeItems(t, k), exportItems(t, lines[1:len(lines)-1])
	for kind := range want {
		if len(want[kind]) == 0 {
			t.Errorf("the crawl has no %s: the test does not cover them", kind)
		}
		slices.Sort(want[kind])
		slices.Sort(got[kind])
		if diff := cmp.Diff(want[kind], got[kind]); diff != "" {
			t.Errorf("%s (-kept +exported):\n%s", kind, diff)
		}
	}
	end := totalsLine{"end", len(got["origin"]), len(got["url"]), len(got["seen"]), len(got["note"])}
	if last := decodeJSON[totalsLine](t, lines[len(lines)-1]); last != end {
		t.Errorf("last line %+v, want %+v", last, end)
	}
}

// addUnusualItems adds kinds of items to the store that a crawl of the test web does not create.
func addUnusualItems(t *testing.T, v *daemontest.WebFixture) {
	t.Helper()
	s, err := bolt.Open(filepath.Join(v.DataDir(), datadir.StoreFile), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetNote(t.Context(), decorum.Origin{}, "own", []byte("note")); err != nil {
		t.Fatal(err)
	}
	u, err := decorum.ParseURL("http://odd.example/?a=1")
	if err != nil {
		t.Fatal(err)
	}
	found, err := u.Resolve("/?a=1&sid=2")
	if err != nil {
		t.Fatal(err)
	}
	e := storage.Entry{
		URL: u, Source: storage.SourceFeed, PriorityClass: storage.ClassLate, PriorityRank: 9, Depth: 3,
		Referrer: "http://a.example/", FailedAttempts: 2, Redirects: 4, SeedOrigin: found.Origin(),
		CallbackData: []byte{0, 255}, UncleanedURL: found, UseUncleanedURL: true, HTTPSUpgradeTried: true,
		Request: &storage.NonGETRequest{Method: "POST", Body: []byte("a\xff")}, Sent: true,
		VisitHistorySummary: &storage.VisitHistorySummary{VisitedAt: time.Unix(1, 2).UTC(), Status: 200,
			ETag: "\"\xff\"", LastModified: "x", BodyHash: 1 << 63,
			ComparedVisits: 3, ChangedVisits: 2, TotalComparedInterval: time.Hour,
			SitemapLastmod: time.Unix(3, 4).UTC(), ConsecutiveMissing: 1,
			FreshFor: time.Hour + 1, FreshBy: "Expires", VariantKey: "cookie:0123456789abcdef", EncodedBodyLen: 5},
	}
	if _, err := s.Add(t.Context(), []storage.Entry{e}, 0); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	leases, _, err := s.Lease(t.Context(), now, time.Minute, 1)
	if err != nil || len(leases) != 1 || leases[0].URL != u {
		t.Fatalf("leased %v, %v", leases, err)
	}
	ack := storage.Ack{Lease: leases[0], Outcome: storage.RevisitAt, NotBefore: now.Add(time.Hour),
		HostState: &storage.HostState{
			Due: now.Add(time.Minute), LostVisitDelay: time.Second, Slots: 2, ConsecutiveFailures: 3,
			EncodedStats: []byte("\xffmemo")}}
	if err := s.Ack(t.Context(), []storage.Ack{ack}); err != nil {
		t.Fatal(err)
	}
	redirect := storage.Entry{URL: u, Source: storage.SourcePrerequisite, RobotsFor: u.Origin(),
		PriorityClass: storage.ClassFirst}
	if _, err := s.Add(t.Context(), []storage.Entry{redirect, redirect}, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// itemsByKind holds the items of a crawl by their kind, each as text.
type itemsByKind map[string][]string

func (k itemsByKind) add(kind string, v any) {
	text, _ := json.Marshal(v)
	k[kind] = append(k[kind], string(text))
}

// An origin or URL in the store, in a form that can be compared.
type (
	comparableOrigin struct {
		Origin              string
		HeldUntil           int64
		Suspended           bool
		Due                 int64
		Delay               time.Duration
		Slots               int
		ConsecutiveFailures int
		Stats               []byte
	}
	comparableURL struct {
		State, URL, Source, Referrer, SeedOrigin, RobotsFor, Original string
		Class                                                         uint8
		Rank                                                          uint16
		Depth, FailedAttempts, Redirects                              int
		Context                                                       []byte
		UseOriginal, HTTPSUpgraded, Sent                              bool
		Method, Body                                                  string
		NotBefore                                                     int64
		Page                                                          *storage.VisitHistorySummary
		ETag                                                          []byte
	}
)

// The lines of an export, as the help of decorum frontier export names them.
type (
	headerLine struct {
		Type          string `json:"type"`
		FormatVersion int    `json:"format"`
		ProjectYAML   string `json:"project"`
	}
	originLine struct {
		Origin    string    `json:"origin"`
		HeldUntil time.Time `json:"hold"`
		Suspended bool      `json:"dormant"`
		Host      struct {
			Due                 time.Time     `json:"due"`
			Delay               time.Duration `json:"gap_ns"`
			Slots               int           `json:"slots"`
			ConsecutiveFailures int           `json:"strikes"`
			EncodedStats        []byte        `json:"memo"`
		} `json:"host"`
	}
	seenLine struct {
		Origin       string `json:"origin"`
		Fingerprints []byte `json:"fingerprints"`
	}
	noteLine struct {
		Type      string `json:"type"`
		StoreName string `json:"store"`
		Origin    string `json:"origin"`
		Key       string `json:"key"`
		Value     []byte `json:"value"`
	}
	totalsLine struct {
		Type     string `json:"type"`
		Origins  int    `json:"origins"`
		URLs     int    `json:"urls"`
		SeenURLs int    `json:"seen"`
		Notes    int    `json:"notes"`
	}
)

// storeItems returns the items in the stores of a crawl.
func storeItems(t *testing.T, k *stoppedcrawl.Crawl) itemsByKind {
	t.Helper()
	ks := itemsByKind{}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	origins := func(s storage.OriginLister) (list []decorum.Origin) {
		must(s.OriginNames(t.Context(), func(o decorum.Origin) bool {
			list = append(list, o)
			return true
		}))
		return list
	}
	for _, o := range origins(k.FrontierStore) {
		i, _, err := k.FrontierStore.Origin(t.Context(), o)
		must(err)
		ks.add("origin", comparableOrigin{o.String(), i.HeldUntil.UnixNano(), i.Suspended, i.HostState.Due.UnixNano(),
			i.HostState.LostVisitDelay, i.HostState.Slots, i.HostState.ConsecutiveFailures, i.HostState.EncodedStats})
		for state, name := range inspect.StateNames {
			must(k.FrontierStore.OriginURLsInState(t.Context(), o, storage.EntryState(state),
				func(e storage.Entry, at time.Time) bool {
					u := comparableURL{name, e.URL.String(), e.Source.String(), e.Referrer,
						e.SeedOrigin.String(), e.RobotsFor.String(), e.UncleanedURL.String(),
						uint8(e.PriorityClass), e.PriorityRank, e.Depth, e.FailedAttempts, e.Redirects, e.CallbackData,
						e.UseUncleanedURL, e.HTTPSUpgradeTried, e.Sent, "", "", at.UnixNano(),
						e.VisitHistorySummary, nil}
					if e.Request != nil {
						u.Method, u.Body = e.Request.Method, string(e.Request.Body)
					}
					if e.VisitHistorySummary != nil {
						u.ETag = []byte(e.VisitHistorySummary.ETag)
					}
					ks.add("url", u)
					return true
				}))
		}
		must(k.FrontierStore.SeenURLFingerprints(t.Context(), o, func(f uint64) bool {
			ks.add("seen", []any{o.String(), f})
			return true
		}))
	}
	for name, s := range map[string]storage.NoteStore{"frontier": k.FrontierStore, "robots": k.RobotsStore} {
		for _, o := range append(origins(s), decorum.Origin{}) {
			must(s.OriginNotes(t.Context(), o, func(key string, value []byte) bool {
				if key == datadir.ImportNoteKey && o.IsZero() {
					return true // of how it came there
				}
				ks.add("note", noteLine{"note", name, o.String(), key, value})
				return true
			}))
		}
	}
	return ks
}

// exportItems returns the items in the lines of an export.
func exportItems(t *testing.T, lines []string) itemsByKind {
	t.Helper()
	ks := itemsByKind{}
	for _, line := range lines {
		switch kind := decodeJSON[struct{ Type string }](t, line).Type; kind {
		case "origin":
			l := decodeJSON[originLine](t, line)
			ks.add(kind, comparableOrigin{l.Origin, l.HeldUntil.UnixNano(), l.Suspended, l.Host.Due.UnixNano(),
				l.Host.Delay, l.Host.Slots, l.Host.ConsecutiveFailures, l.Host.EncodedStats})
		case "url":
			l := decodeJSON[api.FrontierURL](t, line)
			u := comparableURL{l.State, l.URL, l.Source, l.Referrer, l.SeedOrigin, l.RobotsFor, l.UncleanedURL,
				l.PriorityClass, l.PriorityRank, l.Depth, l.FailedAttempts, l.Redirects,
				l.CallbackData, l.UseUncleanedURL, l.HTTPSUpgradeTried, l.Sent, l.Method, string(l.RequestBody),
				l.NotBefore.UnixNano(), nil, nil}
			if p := l.VisitHistorySummary; p != nil {
				hash, err := strconv.ParseUint(p.BodyHash, 16, 64)
				if err != nil {
					t.Fatal(err)
				}
				u.Page = &storage.VisitHistorySummary{VisitedAt: p.VisitedAt, Status: p.Status, ETag: string(p.ETag),
					LastModified: string(p.LastModified),
					BodyHash:     hash, ComparedVisits: p.ComparedVisits, ChangedVisits: p.ChangedVisits,
					TotalComparedInterval: time.Duration(p.TotalComparedInterval), SitemapLastmod: p.SitemapLastmod,
					ConsecutiveMissing: p.ConsecutiveMissing,
					FreshFor:           time.Duration(p.FreshFor), FreshBy: p.FreshBy, VariantKey: p.VariantKey,
					EncodedBodyLen: p.EncodedBodyLen}
				u.ETag = p.ETag
			}
			ks.add(kind, u)
		case "seen":
			l := decodeJSON[seenLine](t, line)
			for f := l.Fingerprints; len(f) > 0; f = f[8:] {
				ks.add(kind, []any{l.Origin, binary.BigEndian.Uint64(f)})
			}
		default:
			ks.add(kind, decodeJSON[noteLine](t, line))
		}
	}
	return ks
}
