package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
)

// writeFile writes a file of a test, and the directories above it.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPathsOfAProjectFile: a crawl finds the inputs of a project file beside it and writes outputs below
// the data directory, from every working directory. Flags are relative to the working directory.
func TestPathsOfAProjectFile(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	work := t.TempDir()
	t.Chdir(work)
	project := filepath.Join(v.Dir, "conf", "shop.yaml")
	writeFile(t, project, "scope: {max_depth: 0}\nseed_files: [lists/seeds.txt]\n"+
		"output: {jsonl: lines.jsonl, warc: archive}\n")
	writeFile(t, filepath.Join(v.Dir, "conf", "lists", "seeds.txt"), "http://shop.example/a\n")
	crawl := func(more ...string) commandResult {
		return runCommand(t, v.CrawlArgs(append(more, "-c", project)...)...)
	}

	// The second crawl moves the lines of the first aside, as they are in the data directory.
	for _, flags := range [][]string{nil, {"--fresh"}} {
		crawl(flags...).want(t, command.ExitDone, "pages: 1 (")
		if rs := daemontest.ReadRecords(t, filepath.Join(v.DataDir(), "lines.jsonl")); len(rs) != 1 {
			t.Errorf("%d records in the data directory, want 1", len(rs))
		}
	}
	if aside, _ := filepath.Glob(filepath.Join(v.DataDir(), "before-*", "lines.jsonl")); len(aside) != 1 {
		t.Errorf("moved aside: %q, want one file", aside)
	}
	if warc, _ := filepath.Glob(filepath.Join(v.DataDir(), "archive", "*.warc.gz")); len(warc) == 0 {
		t.Error("no WARC file in the data directory")
	}
	crawl("--fresh", "--output", "here.jsonl", "--warc", "w").want(t, command.ExitDone)
	entries, err := os.ReadDir(work)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"here.jsonl", "w"}, names); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// TestMissingOutputDirectories: a crawl creates the directories of its lines, in the data directory for a project
// file, and in the working directory for a flag. --fresh writes over no lines there.
func TestMissingOutputDirectories(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	t.Chdir(t.TempDir())
	project := filepath.Join(v.Dir, "shop.yaml")
	writeFile(t, project, "scope: {max_depth: 0}\nseeds: [http://shop.example/a]\noutput: {jsonl: out/new/a.jsonl, "+
		"mode: 0644}\n")
	runCommand(t, v.CrawlArgs("-c", project)...).want(t, command.ExitDone, "pages: 1 (")
	inDataDir := filepath.Join(v.DataDir(), "out", "new", "a.jsonl")
	runCommand(t, v.CrawlArgs("-c", project, "--fresh", "--output=here/b.jsonl")...).want(t, command.ExitDone,
		"pages: 1 (")
	for _, file := range []string{inDataDir, filepath.Join("here", "b.jsonl")} {
		if rs := daemontest.ReadRecords(t, file); len(rs) != 1 {
			t.Errorf("%d records in %s, want 1", len(rs), file)
		}
		if info, err := os.Stat(filepath.Dir(file)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("the directory of %s: %v, %v; want one that may be read like its files", file, info.Mode(), err)
		}
	}
	runCommand(t, v.CrawlArgs("-c", project, "--fresh")...).want(t, command.ExitUsage,
		inDataDir+" exists, and a new crawl does not write over it")
}

// TestFormerPlaces: a crawl does not start while a file is where earlier versions of decorum looked for
// it: relative to the working directory.
func TestFormerPlaces(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	work := t.TempDir()
	t.Chdir(work)
	project := filepath.Join(v.Dir, "conf", "shop.yaml")
	writeFile(t, project, "seed_files: [seeds.txt]\noutput: {jsonl: lines.jsonl, warc: archive}\n")
	writeFile(t, filepath.Join(v.Dir, "conf", "seeds.txt"), "http://shop.example/a\n")
	for _, name := range []string{"seeds.txt", "lines.jsonl", "archive/a.warc.gz"} {
		writeFile(t, name, "")
	}
	runCommand(t, v.CrawlArgs("-c", project)...).want(t, command.ExitUsage, "3 errors:\n",
		project+`:1:14: seed_files[0]: "seeds.txt" means `+filepath.Join(v.Dir, "conf", "seeds.txt")+", but "+
			filepath.Join(work, "seeds.txt")+" exists, where earlier versions of decorum looked: move it",
		project+`:2:17: output.jsonl: "lines.jsonl" means `+filepath.Join(v.DataDir(), "lines.jsonl")+", but "+
			filepath.Join(work, "lines.jsonl")+" exists",
		project+`:2:36: output.warc: "archive" means `+filepath.Join(v.DataDir(), "archive")+", but "+
			filepath.Join(work, "archive")+" exists")
	if log := v.Web.Log(); len(log) > 0 {
		t.Errorf("%d requests were sent", len(log))
	}
	// The operator moves the files, or keeps them elsewhere by an absolute path.
	if err := os.RemoveAll(filepath.Join(work, "archive")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, project, "scope: {max_depth: 0}\nseed_files: ["+filepath.Join(v.Dir, "conf", "seeds.txt")+"]\n"+
		"output: {jsonl: "+filepath.Join(work, "lines.jsonl")+", warc: archive}\n")
	runCommand(t, v.CrawlArgs("-c", project)...).want(t, command.ExitDone, "pages: 1 (")
}

// TestInit: decorum init writes a file that decorum check and its JSON Schema accept when the contact and
// the seeds are filled in, and with which no crawl starts before. It overwrites nothing.
func TestInit(t *testing.T) {
	t.Chdir(t.TempDir())
	runCommand(t, "init").want(t, command.ExitDone, "wrote project.yaml; ", "decorum check project.yaml")
	runCommand(t, "init", "books.yaml").want(t, command.ExitDone, "decorum crawl -c books.yaml")
	text, err := os.ReadFile("books.yaml")
	if err != nil || !bytes.Contains(text, []byte("decorum check books.yaml")) {
		t.Errorf("%v\n%s", err, text)
	}
	for _, args := range [][]string{{"check", "books.yaml"}, {"crawl", "-c", "books.yaml"}} {
		runCommand(t, args...).want(t, command.ExitUsage, "2 errors:\n",
			"\nbooks.yaml:15:12: agent.contact: contact is required", "\nbooks.yaml:17:8: seeds: nothing to crawl")
	}
	filledIn := strings.NewReplacer("contact: ''", "contact: mailto:bot@example.com",
		"seeds: []", "seeds: [https://shop.example/]").Replace(string(text))
	writeFile(t, "filled-in.yaml", filledIn)
	runCommand(t, "check", "filled-in.yaml").want(t, command.ExitDone, "filled-in.yaml: valid\n",
		"seeds   https://shop.example/\n")

	// An existing file keeps its text, also if it is empty or a link without a target.
	writeFile(t, "empty.yaml", "")
	if err := os.Symlink("missing.yaml", "link.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"books.yaml", "empty.yaml", "link.yaml"} {
		runCommand(t, "init", name).want(t, command.ExitUsage, name+" already exists: name another file")
	}
	if again, err := os.ReadFile("books.yaml"); err != nil || !bytes.Equal(again, text) {
		t.Errorf("the file is changed: %v", err)
	}
	if _, err := os.Stat("missing.yaml"); err == nil {
		t.Error("the target of the link is written")
	}
	runCommand(t, "init", "missing/books.yaml").want(t, command.ExitUsage, "cannot write the project file")

	schema := runCommand(t, "check", "--schema")
	schema.want(t, command.ExitDone)
	asJSON, err := yaml.YAMLToJSON([]byte(filledIn))
	if err != nil {
		t.Fatal(err)
	}
	if err := validateByJSONSchema(t, schema.stdout, string(asJSON)); err != nil {
		t.Error(err)
	}
}

// validateByJSONSchema validates a JSON document by a JSON Schema.
func validateByJSONSchema(t *testing.T, schema, document string) error {
	t.Helper()
	var values [2]any
	for i, text := range []string{schema, document} {
		var err error
		if values[i], err = jsonschema.UnmarshalJSON(strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("project.json", values[0]); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("project.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(values[1])
}

// TestCheck: decorum check prints what a valid file would do, and all errors of invalid ones, as decorum
// crawl does, without a request and without a data directory.
func TestCheck(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	t.Chdir(v.Dir)
	const contact = "agent: {product: examplebot, version: '1', contact: 'mailto:bot@example.com'}\n"
	writeFile(t, "conf/good.yaml", contact+"seeds: [http://shop.example/, http://b.example/]\nseed_files: [more.txt]\n"+
		"scope: {within: domain, max_depth: 1, include: [a], exclude: [b, c], max_pages_per_host: 5}\n"+
		"politeness: {delay: 2s, concurrency: 3, window: {hours: '22:00-06:00', zone: Europe/Prague}, "+
		"hosts: {a.example: {delay: 9s}}}\n"+
		"limits: {pages: 1, bytes: 1GiB, duration: 24h, requests_per_second: 2, bytes_per_second: 1MiB}\n"+
		"output: {warc: archive, bodies: true}\n")
	writeFile(t, "conf/more.txt", "http://shop.example/a\nhttp://shop.example/b\n")
	writeFile(t, "conf/bad.yaml", "agent: {product: my bot}\nseed: [http://shop.example/]\nlimits: {pages: -1}\n")
	writeFile(t, "conf/named.yaml", contact+"seed_files: [none.txt]\n"+
		"output: {ledger_key: key.pem, jsonl: frontier.db, warc: ledger}\nfetch: {ca_file: none.pem}\n")

	runCommand(t, "check", "conf/good.yaml").want(t, command.ExitDone, `conf/good.yaml: valid
  agent   examplebot/1 (+mailto:bot@example.com)
  seeds   4 on 2 origins: http://shop.example/, http://b.example/, http://shop.example/a, …
  scope   the domains of the seeds, 1 link deep, 1 pattern to include, 2 patterns to exclude, 5 pages a host
  pace    2s between two visits to a host, or longer if robots.txt asks for it, 3 visits at a time, at 22:00-06:00 `+
		`Europe/Prague; overrides for 1 host
  limits  1 page, 1GiB of bodies, 24h, 2 requests a second, 1MiB a second
  output  decorum-data/pages.jsonl, WARC files in decorum-data/archive, bodies in decorum-data/bodies, `+
		`ledger in decorum-data/ledger
`)
	bad := []string{"4 errors:\nconf/bad.yaml:1:1: agent.contact: contact is required",
		"\nconf/bad.yaml:1:18: agent.product: \"my bot\" is not a product token",
		"\nconf/bad.yaml:2:1: unknown field seed; did you mean seeds?\n",
		"\nconf/bad.yaml:3:17: limits.pages: -1 is out of range"}
	runCommand(t, "crawl", "-c", "conf/bad.yaml").want(t, command.ExitUsage, bad...)
	// URLs of the command line come before the seeds of the file. The second seed of the file is invalid.
	writeFile(t, "conf/seeds.yaml", contact+"seeds: [http://shop.example/, [x]]\n")
	runCommand(t, "crawl", "-c", "conf/seeds.yaml", "http://b.example/").want(t, command.ExitUsage,
		"decorum: conf/seeds.yaml:2:31: seeds[1]: expected a single value, found a list")
	both := runCommand(t, "check", "conf/bad.yaml", "conf/good.yaml", "conf/none.yaml")
	both.want(t, command.ExitUsage, append(bad, "cannot read the project file: open conf/none.yaml")...)
	both.want(t, command.ExitUsage, "conf/good.yaml: valid\n")
	runCommand(t, "check", "conf/named.yaml").want(t, command.ExitUsage,
		"conf/named.yaml:2:14: seed_files[0]: cannot read the seeds of \"conf/none.txt\": no such file or directory",
		"conf/named.yaml: output.ledger_key: ",
		"conf/named.yaml: fetch.ca_file: ",
		"conf/named.yaml: output.jsonl: decorum-data/frontier.db is a file of the crawl's own state",
		"conf/named.yaml: output.warc: decorum-data/ledger is a file of the crawl's own state")
	// A delay of 0 is allowed, with a warning.
	writeFile(t, "conf/fast.yaml", contact+"seeds: [http://127.0.0.1/, http://shop.example/]\npoliteness: {delay: 0s}\n")
	const noPause = "politeness.delay is 0: requests to shop.example follow each other without a fixed pause"
	runCommand(t, "check", "conf/fast.yaml").want(t, command.ExitDone, "\n  warning: "+noPause+"\n",
		"\n  warning: 127.0.0.1 is on this machine or a private network: no visit may connect to it unless "+
			"fetch.allow_private is true\n")
	// Missing files of seeds are listed with other errors.
	writeFile(t, "conf/two.yaml", contact+"seed_files: [none.txt, more.txt, gone.txt]\nlimits: {pages: -1}\n")
	runCommand(t, "check", "conf/two.yaml").want(t, command.ExitUsage, "decorum: 3 errors:\nconf/two.yaml:2:14: ",
		"conf/two.yaml:2:34: seed_files[2]: cannot read the seeds of \"conf/gone.txt\": ",
		"conf/two.yaml:3:17: limits.pages: -1 is out of range")
	runCommand(t, "check").want(t, command.ExitUsage, "name project files, or print the schema with --schema")
	if _, err := os.Stat("decorum-data"); err == nil {
		t.Error("decorum check makes a data directory")
	}
	if log := v.Web.Log(); len(log) > 0 {
		t.Errorf("%d requests were sent", len(log))
	}
}
