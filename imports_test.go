package decorum_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/decorum-crawler/decorum"

// allowedImports lists which packages of the module each package may import. The test fails for a
// package that is not listed.
var allowedImports = map[string][]string{
	".":                              {},
	"internal/backoff":               {},
	"internal/binaryrecord":          {},
	"internal/connlimit":             {},
	"internal/disk":                  {},
	"internal/doctest":               {},
	"internal/ed25519pem":            {},
	"internal/escapedhtml":           {},
	"internal/inputfile":             {"internal/disk"},
	"internal/jsonline":              {},
	"internal/jsonline/jsonlinetest": {},
	"internal/memlimit":              {},
	"internal/plaintext":             {},
	"internal/recent":                {},
	"internal/registrable":           {},
	"internal/testfile":              {},
	"internal/testlisten":            {},
	"internal/testwait":              {},
	"internal/timecmp":               {},
	"internal/usage":                 {},
	"internal/yamllimit":             {},
	"crawler/httpcache":              {},
	"robots":                         {".", "robots/internal/match", "robots/internal/syntax"},
	"politeness":                     {".", "internal/backoff", "internal/registrable", "internal/timecmp"},
	"robots/gate": {".", "crawler/httpcache", "internal/backoff", "internal/timecmp", "robots",
		"robots/aiuse", "storage"},
	"robots/aiuse": {".", "robots",
		"robots/internal/match", "robots/internal/syntax"},
	"robots/lint": {".", "robots",
		"robots/internal/match", "robots/internal/syntax"},
	"robots/internal/match":      {"robots/internal/syntax"},
	"robots/internal/syntax":     {"."},
	"robots/internal/robotstest": {"."},
	"storage":                    {"."},
	"storage/memory":             {".", "storage", "storage/internal/schedule"},
	"storage/storagetest":        {".", "internal/timecmp", "storage"},
	"storage/bolt": {".", "internal/binaryrecord", "internal/disk", "storage",
		"storage/internal/record", "storage/internal/schedule"},
	"storage/redis": {".", "storage", "storage/internal/record",
		"storage/internal/schedule", "storage/redis/coord", "storage/redis/internal/client",
		"storage/redis/internal/lua"},
	"storage/redis/coord": {"storage/redis/internal/client",
		"storage/redis/internal/lua"},
	"storage/redis/internal/client": {"storage", "storage/redis/internal/lua"},
	"storage/redis/internal/lua":    {},
	"storage/redis/redistest":       {},
	"storage/internal/schedule":     {"internal/timecmp", "storage"},
	"storage/internal/record":       {".", "internal/binaryrecord", "storage"},
	"storage/warc":                  {".", "internal/disk"},
	"storage/ledger": {".", "internal/disk", "internal/ed25519pem",
		"internal/jsonline", "internal/recent", "robots", "robots/aiuse", "robots/gate"},
	"frontier": {".", "crawler/httpcache", "internal/recent", "internal/registrable",
		"internal/timecmp", "storage"},
	"frontier/sitemap":         {"."},
	"crawler/extract":          {"."},
	"crawler/botauth":          {".", "internal/ed25519pem"},
	"crawler/botauth/authtest": {},
	"crawler/bodymem":          {".", "internal/memlimit"},
	"crawler": {".", "crawler/bodymem", "crawler/extract", "crawler/httpcache", "frontier",
		"frontier/sitemap", "internal/binaryrecord", "internal/recent", "internal/timecmp", "politeness", "robots",
		"robots/aiuse", "robots/gate", "storage", "storage/ledger", "storage/memory"},
	"crawler/forecast": {"internal/timecmp", "politeness"},
	"crawler/replay": {".", "storage", "storage/ledger", "storage/memory",
		"storage/warc", "crawler", "robots/gate"},
	"crawler/crawl": {".", "crawler", "crawler/httpfetch", "crawler/internal/httpheader",
		"crawler/internal/seedoutcome", "frontier",
		"politeness", "robots", "robots/gate", "storage", "storage/bolt", "storage/ledger", "storage/memory"},
	"crawler/collyfetch": {".", "crawler", "crawler/crawl", "crawler/httpfetch", "crawler/internal/httpheader",
		"frontier", "internal/recent", "politeness", "robots/gate", "storage"},
	"crawler/httpfetch": {".", "crawler", "crawler/bodymem", "crawler/botauth",
		"crawler/httpfetch/internal/http1", "crawler/httpfetch/internal/inflate", "crawler/internal/dialrules",
		"crawler/internal/httpheader", "internal/connlimit", "internal/memlimit", "internal/recent",
		"internal/registrable", "storage"},
	"crawler/httpfetch/internal/http1":   {},
	"crawler/httpfetch/internal/inflate": {},
	"crawler/internal/dialrules":         {"."},
	"crawler/internal/httpheader":        {},
	"crawler/internal/seedoutcome":       {".", "crawler", "internal/plaintext", "storage"},
	"crawler/internal/tickettest": {".", "crawler", "politeness", "robots",
		"robots/gate", "storage/memory"},
	"crawler/ftpfetch":         {".", "crawler/bodymem", "crawler"},
	"crawler/ftpfetch/ftptest": {},
	"crawler/crawltest":        {"."},
	"crawler/project": {".", "crawler", "crawler/botauth",
		"crawler/internal/dialrules", "crawler/internal/httpheader", "frontier", "internal/disk", "internal/inputfile",
		"internal/plaintext", "internal/usage", "internal/yamllimit", "politeness", "robots", "robots/aiuse",
		"robots/gate", "storage", "storage/ledger", "storage/redis", "storage/warc"},
	"crawler/daemon/internal/confine": {"crawler/daemon/internal/datadir", "internal/disk"},
	"crawler/daemon/internal/datadir": {".", "crawler/project", "internal/disk", "internal/inputfile",
		"internal/usage", "internal/yamllimit", "storage", "storage/bolt", "storage/ledger",
		"storage/redis", "storage/warc"},
	"crawler/daemon/internal/sinks": {".", "crawler", "crawler/daemon/internal/confine",
		"crawler/daemon/internal/datadir", "internal/disk", "internal/jsonline", "internal/plaintext", "internal/usage",
		"storage", "storage/bolt", "storage/ledger", "storage/warc", "robots/aiuse"},
	"crawler/daemon/internal/engine": {".", "crawler", "crawler/bodymem",
		"crawler/daemon/internal/confine", "crawler/daemon/internal/datadir", "crawler/daemon/internal/sinks",
		"crawler/ftpfetch", "crawler/httpfetch", "crawler/project", "frontier", "internal/inputfile",
		"internal/memlimit", "internal/plaintext", "internal/registrable", "internal/usage",
		"politeness", "robots/gate", "storage", "storage/bolt", "storage/ledger", "storage/memory", "storage/redis",
		"storage/redis/coord", "storage/warc"},
	"crawler/daemon/internal/inspect": {".", "crawler", "crawler/daemon/api",
		"crawler/daemon/internal/datadir", "crawler/daemon/internal/engine", "crawler/daemon/internal/sinks",
		"crawler/httpcache", "crawler/internal/dialrules", "crawler/project", "frontier", "internal/plaintext",
		"internal/timecmp", "robots", "robots/aiuse", "robots/gate", "storage", "storage/bolt", "storage/ledger"},
	"crawler/daemon/internal/supervisor": {".", "crawler", "crawler/botauth", "crawler/daemon/api",
		"crawler/daemon/internal/confine", "crawler/daemon/internal/datadir", "crawler/daemon/internal/engine",
		"crawler/daemon/internal/inspect", "crawler/daemon/internal/sinks", "crawler/daemon/metrics", "crawler/project",
		"frontier", "internal/disk", "internal/memlimit", "internal/plaintext", "internal/usage", "politeness",
		"storage", "storage/bolt"},
	"crawler/daemon/internal/supervisor/supervisortest": {"crawler/crawltest", "crawler/daemon/internal/daemontest",
		"crawler/daemon/internal/engine", "crawler/daemon/internal/supervisor"},
	"crawler/daemon/internal/server": {".", "crawler/daemon/api", "crawler/daemon/internal/datadir",
		"crawler/daemon/internal/supervisor", "crawler/daemon/page", "crawler/project", "internal/connlimit",
		"internal/disk", "internal/inputfile", "internal/plaintext", "internal/usage", "internal/yamllimit"},
	"crawler/daemon/internal/terminal": {},
	"crawler/daemon/internal/cli/command": {"crawler/daemon/internal/engine", "crawler/daemon/internal/terminal",
		"crawler/project", "internal/usage"},
	"crawler/daemon/internal/cli/reporttext": {"crawler/daemon/api", "crawler/daemon/internal/inspect", "frontier",
		"internal/plaintext", "robots"},
	"crawler/daemon/internal/cli/stoppedcrawl": {"crawler/daemon/api", "crawler/daemon/internal/cli/command",
		"crawler/daemon/internal/datadir", "crawler/daemon/internal/engine", "crawler/daemon/internal/inspect",
		"crawler/project", "frontier", "robots/gate", "storage", "storage/memory"},
	"crawler/daemon/internal/cli/crawlaccess": {"crawler/daemon/api", "crawler/daemon/internal/cli/command",
		"crawler/daemon/internal/cli/stoppedcrawl", "crawler/daemon/internal/datadir", "crawler/daemon/internal/engine",
		"internal/inputfile", "internal/plaintext", "internal/usage"},
	"crawler/daemon/internal/cli/robotstools": {".", "crawler", "crawler/daemon/internal/cli/command",
		"crawler/daemon/internal/cli/reporttext", "crawler/daemon/internal/engine", "crawler/daemon/internal/inspect",
		"crawler/daemon/internal/sinks", "crawler/project", "frontier/sitemap", "internal/jsonline",
		"internal/plaintext", "internal/usage", "robots", "robots/aiuse", "robots/gate", "robots/lint"},
	"crawler/daemon/internal/cli/inspectcmd": {".", "crawler/daemon/api", "crawler/daemon/internal/cli/command",
		"crawler/daemon/internal/cli/crawlaccess", "crawler/daemon/internal/cli/reporttext",
		"crawler/daemon/internal/cli/stoppedcrawl", "crawler/daemon/internal/datadir", "crawler/daemon/internal/engine",
		"crawler/daemon/internal/inspect", "crawler/daemon/internal/sinks", "crawler/project", "internal/inputfile",
		"internal/jsonline", "internal/plaintext", "internal/usage", "storage/ledger"},
	"crawler/daemon/internal/cli/transfer": {".", "crawler/daemon/api", "crawler/daemon/internal/cli/command",
		"crawler/daemon/internal/cli/crawlaccess", "crawler/daemon/internal/cli/reporttext",
		"crawler/daemon/internal/cli/stoppedcrawl", "crawler/daemon/internal/datadir", "crawler/daemon/internal/engine",
		"crawler/daemon/internal/inspect", "crawler/daemon/internal/terminal", "crawler/project", "frontier",
		"internal/jsonline", "internal/plaintext", "internal/usage", "storage", "storage/bolt"},
	"crawler/daemon/internal/cli/completion": {"crawler/daemon/api", "crawler/daemon/internal/cli/command",
		"crawler/daemon/internal/cli/crawlaccess", "crawler/daemon/internal/datadir"},
	"crawler/daemon/internal/cli/manpage": {},
	"crawler/daemon/internal/cli/projectcmd": {".", "crawler/daemon/internal/cli/command",
		"crawler/daemon/internal/cli/reporttext", "crawler/daemon/internal/datadir", "crawler/daemon/internal/engine",
		"crawler/project", "internal/inputfile", "internal/plaintext", "internal/usage"},
	"crawler/daemon/internal/cli/daemonctl": {"crawler/daemon/api", "crawler/daemon/internal/cli/command",
		"crawler/daemon/internal/cli/crawlaccess", "crawler/daemon/internal/cli/reporttext",
		"crawler/daemon/internal/inspect", "crawler/daemon/internal/server", "crawler/daemon/internal/supervisor",
		"crawler/daemon/internal/terminal", "crawler/project", "internal/plaintext", "internal/usage"},
	"crawler/daemon/internal/cli": {".", "crawler", "crawler/bodymem", "crawler/botauth", "crawler/crawltest",
		"crawler/daemon/api", "crawler/daemon/internal/cli/command", "crawler/daemon/internal/cli/completion",
		"crawler/daemon/internal/cli/daemonctl", "crawler/daemon/internal/cli/inspectcmd",
		"crawler/daemon/internal/cli/manpage", "crawler/daemon/internal/cli/projectcmd",
		"crawler/daemon/internal/cli/reporttext", "crawler/daemon/internal/cli/robotstools",
		"crawler/daemon/internal/cli/stoppedcrawl",
		"crawler/daemon/internal/cli/transfer", "crawler/daemon/internal/datadir", "crawler/daemon/internal/engine",
		"crawler/daemon/internal/inspect", "crawler/daemon/internal/server", "crawler/daemon/internal/sinks",
		"crawler/daemon/internal/supervisor", "crawler/daemon/internal/terminal", "crawler/forecast",
		"crawler/httpfetch", "crawler/internal/seedoutcome", "crawler/project", "crawler/replay", "frontier",
		"internal/jsonline", "internal/memlimit", "internal/plaintext", "internal/timecmp", "internal/usage",
		"politeness", "robots", "robots/aiuse", "robots/gate", "storage",
		"storage/bolt", "storage/ledger", "storage/memory"},
	"crawler/daemon/internal/daemontest": {".", "crawler/botauth", "crawler/crawltest", "crawler/daemon/api",
		"crawler/daemon/internal/datadir", "crawler/daemon/internal/sinks", "internal/testfile", "storage",
		"storage/redis/redistest"},
	"crawler/daemon": {"crawler", "crawler/daemon/internal/cli",
		"crawler/daemon/internal/cli/command", "crawler/httpfetch"},
	"crawler/daemon/page": {".", "robots", "crawler/daemon/api", "internal/escapedhtml"},
	"crawler/daemon/api": {"crawler/botauth", "frontier", "internal/connlimit", "internal/jsonline",
		"internal/recent", "robots", "robots/gate", "storage/ledger"},
	"crawler/daemon/metrics": {".", "politeness", "storage", "frontier", "crawler", "crawler/bodymem",
		"crawler/daemon/api", "crawler/httpfetch", "robots/gate"},
	"cmd/decorum": {"crawler/daemon"},
}

// allowedThirdParty lists which packages may import which packages from outside the module and the
// standard library. Every package may import golang.org/x. The list keeps the root package, robots
// and sitemap light to import.
var allowedThirdParty = map[string][]string{
	"internal/doctest":    {"github.com/google/go-cmp"},
	"internal/yamllimit":  {"github.com/goccy/go-yaml"},
	"storage/bolt":        {"go.etcd.io/bbolt", "go.etcd.io/bbolt/errors"},
	"storage/storagetest": {"github.com/google/go-cmp"},
	"storage/warc":        {"github.com/klauspost/compress/gzip"},
	"storage/ledger":      {"github.com/klauspost/compress/zstd"},
	"crawler/bodymem":     {"github.com/klauspost/compress/s2"},
	"crawler/collyfetch":  {"github.com/gocolly/colly/v2", "github.com/gocolly/colly/v2/queue"},
	"crawler/httpfetch": {"github.com/andybalholm/brotli", "github.com/klauspost/compress/flate",
		"github.com/klauspost/compress/gzip", "github.com/klauspost/compress/zlib",
		"github.com/klauspost/compress/zstd"},
	"crawler/ftpfetch":         {"github.com/jlaffaye/ftp"},
	"crawler/ftpfetch/ftptest": {"goftp.io/server/v2"},
	"crawler/daemon/api":       {"github.com/aymanbagabas/go-udiff/lcs"},
	"crawler/daemon/metrics":   {"github.com/prometheus/client_golang/"},
	"crawler/project": {"github.com/goccy/go-yaml", "github.com/goccy/go-yaml/ast",
		"github.com/goccy/go-yaml/parser", "github.com/goccy/go-yaml/token", "github.com/spf13/pflag"},
	"crawler/daemon/internal/datadir":         {"github.com/goccy/go-yaml"},
	"crawler/daemon/internal/supervisor":      {"github.com/fsnotify/fsnotify", "github.com/spf13/pflag"},
	"crawler/daemon/internal/server":          {"github.com/goccy/go-yaml", "github.com/spf13/pflag"},
	"crawler/daemon/internal/cli/command":     {"github.com/spf13/cobra", "github.com/spf13/pflag"},
	"crawler/daemon/internal/cli/robotstools": {"github.com/spf13/cobra", "github.com/spf13/pflag"},
	"crawler/daemon/internal/cli/inspectcmd":  {"github.com/spf13/cobra"},
	"crawler/daemon/internal/cli/transfer":    {"github.com/spf13/cobra", "github.com/spf13/pflag"},
	"crawler/daemon/internal/cli/crawlaccess": {"github.com/spf13/cobra", "github.com/spf13/pflag"},
	"crawler/daemon/internal/cli/daemonctl":   {"github.com/spf13/cobra"},
	"crawler/daemon/internal/cli/manpage":     {"github.com/spf13/cobra", "github.com/spf13/pflag"},
	"crawler/daemon/internal/cli/completion":  {"github.com/spf13/cobra", "github.com/spf13/pflag"},
	"crawler/daemon/internal/cli/projectcmd":  {"github.com/spf13/cobra"},
	"crawler/daemon/internal/cli":             {"github.com/spf13/cobra", "github.com/spf13/pflag"},
	"storage/redis/internal/client":           {"github.com/redis/rueidis"},
}

// maxFileLines limits the length of each Go file, in lines.
const maxFileLines = 600

func TestImportsAndFiles(t *testing.T) {
	docs := map[string]int{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && p != "."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(p, ".go"):
			return nil
		}
		return checkFile(t, filepath.ToSlash(p), docs)
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg, n := range docs {
		if n != 1 {
			t.Errorf("package %s has %d package comments, want 1", pkg, n)
		}
	}
}

// forbiddenDeps lists which packages of the module a package must not link, directly or through
// other packages: a program without callbacks links no colly, which only collyfetch imports, and
// checking a project file needs no fetcher.
var forbiddenDeps = map[string][]string{
	"cmd/decorum":           {"crawler/collyfetch"},
	"crawler/crawl":         {"crawler/collyfetch", "crawler/daemon"},
	"examples/mirror":       {"crawler/collyfetch"},
	"examples/robotsimpact": {"crawler", "frontier", "politeness", "storage"},
	"crawler/httpfetch":     {"crawler/collyfetch"},
	"crawler/project":       {"crawler/collyfetch", "crawler/ftpfetch", "crawler/httpfetch"},
}

func TestForbiddenDeps(t *testing.T) {
	for pkg, forbidden := range forbiddenDeps {
		deps := []string{pkg}
		for i := 0; i < len(deps); i++ {
			for _, next := range importsInModule(t, deps[i]) {
				if !slices.Contains(deps, next) {
					deps = append(deps, next)
				}
			}
		}
		for _, dep := range forbidden {
			if slices.Contains(deps, dep) {
				t.Errorf("package %s links %s", pkg, dep)
			}
		}
	}
}

// importsInModule returns the packages of the module that the files of pkg, except its tests, import.
func importsInModule(t *testing.T, pkg string) (imports []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("package %s: %d files, %v", pkg, len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			if rel, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), modulePath+"/"); ok {
				imports = append(imports, rel)
			}
		}
	}
	return imports
}

func checkFile(t *testing.T, file string, docs map[string]int) error {
	src, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if n := bytes.Count(src, []byte("\n")); n > maxFileLines {
		t.Errorf("%s has %d lines, more than %d", file, n, maxFileLines)
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ParseComments)
	if err != nil {
		return err
	}
	checkNoInit(t, file, f)
	pkg := path.Dir(file)
	if strings.HasSuffix(file, "_test.go") {
		return nil
	}
	docs[pkg] += 0
	if f.Doc != nil {
		docs[pkg]++
	}
	if !mayImportAll(pkg) {
		checkImports(t, file, pkg, f)
	}
	return nil
}

// mayImportAll reports whether the package is a program that may import every package of the module.
func mayImportAll(pkg string) bool {
	return pkg == "bench" || strings.HasPrefix(pkg, "bench/") || strings.HasPrefix(pkg, "examples/") ||
		strings.HasPrefix(pkg, "tools/")
}

func checkNoInit(t *testing.T, file string, f *ast.File) {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			t.Errorf("%s has an init function: pass values in", file)
		}
	}
}

func checkImports(t *testing.T, file, pkg string, f *ast.File) {
	allowed, ok := allowedImports[pkg]
	if !ok {
		t.Errorf("%s: package %s is not in allowedImports", file, pkg)
	}
	for _, spec := range f.Imports {
		to := strings.Trim(spec.Path.Value, `"`)
		rel, inModule := strings.CutPrefix(to, modulePath)
		switch {
		case inModule:
			rel = strings.TrimPrefix(rel, "/")
			if rel == "" {
				rel = "."
			}
			if !slices.Contains(allowed, rel) {
				t.Errorf("%s: package %s must not import %s", file, pkg, rel)
			}
		case !strings.Contains(strings.Split(to, "/")[0], "."), strings.HasPrefix(to, "golang.org/x/"):
		case !slices.ContainsFunc(allowedThirdParty[pkg], func(p string) bool { return strings.HasPrefix(to, p) }):
			t.Errorf("%s: package %s must not import %s", file, pkg, to)
		}
	}
}
