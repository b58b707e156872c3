package projectcmd

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
)

const checkHelp = `Check project files, and the files that they name: seeds, keys and passwords. The command
sends no request, and opens no data directory.

For a valid file it prints what decorum crawl would do: seeds, scope, pace, limits and
output. For an invalid one it prints all errors at once, with file, line and column, as
decorum crawl and decorum serve do. A daemon refuses more: store.path, standard output,
and what --output-root, --files-root and --api-private-networks forbid.

--schema prints a JSON Schema of project files, by which editors complete, explain and
check them. YAML editors use it if the project file begins with the line

  # yaml-language-server: $schema=decorum.schema.json

Exit codes: 0 all files are valid, 2 a file is invalid or cannot be read.`

const checkExample = `  decorum check books.yaml
  decorum check projects/*.yaml
  decorum check --schema > decorum.schema.json`

// NewCheckCommand returns the command decorum check.
func NewCheckCommand(env *command.Env) *cobra.Command {
	printSchema := false
	c := &cobra.Command{Use: "check FILE…", Short: "Check project files", Long: checkHelp, Example: checkExample}
	c.Flags().BoolVar(&printSchema, "schema", false, "print the JSON Schema of project files")
	c.Args = func(c *cobra.Command, files []string) error {
		if printSchema == (len(files) > 0) {
			return usage.Errorf("name project files, or print the schema with --schema, as in decorum check "+
				"books.yaml; see %s --help", c.CommandPath())
		}
		return nil
	}
	c.RunE = func(_ *cobra.Command, files []string) error {
		if printSchema {
			_, err := env.Stdout.Write([]byte(project.JSONSchema))
			return err
		}
		return checkFiles(env, files)
	}
	return c
}

// checkFiles checks each file, prints what it would do or its errors, and returns an error without a
// message if one is invalid.
func checkFiles(env *command.Env, files []string) error {
	code := command.ExitDone
	for _, file := range files {
		summary, err := checkFile(env, file)
		if err != nil {
			code = max(code, env.PrintError(err))
			continue
		}
		if err := summary.PrintTo(env.Stdout); err != nil {
			return err
		}
	}
	if code == command.ExitDone {
		return nil
	}
	return &command.ExitError{Code: code}
}

// checkFile checks a project file as decorum crawl does before it opens the data directory, and returns
// what the crawl would do.
func checkFile(env *command.Env, file string) (*reporttext.Builder, error) {
	d, err := project.ReadUnchecked(file)
	if err != nil {
		return nil, err
	}
	handler, unreadable := engine.CheckHandler(env.Handlers, d.Handler), d.UnreadableSeedFiles()
	p, err := d.Resolve(handler)
	if err != nil {
		_, err = d.Resolve(append(unreadable, handler)...) // the same errors, and those of seed files
		return nil, err
	}
	errs := checkNamedFiles(&p)
	var seeds seedSummary
	if len(unreadable) == 0 {
		seeds, err = readSeeds(&p)
		errs = append(errs, err)
	}
	for i, err := range errs {
		if err != nil {
			errs[i] = fmt.Errorf("%s: %w", file, err)
		}
	}
	for _, problem := range unreadable {
		errs = append(errs, d.FieldError(*problem))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return summarize(file, &p, seeds), nil
}

// checkNamedFiles returns the errors, nil ones among them, of the files that p names, except seed files:
// keys, passwords, certificates and the outputs. One is for a project that --resume could not read.
func checkNamedFiles(p *project.Project) []error {
	_, keysErr := p.Agent.Signature.ReadKeys(os.Open)
	_, ledgerKeyErr := engine.NewSinksConfig(p, nil)
	_, redisErr := datadir.RedisOptions(&p.Store.Redis, os.Open)
	_, encodeErr := datadir.EncodeProject(*p)
	errs := []error{keysErr, redisErr, ledgerKeyErr, encodeErr}
	if p.Fetch.CAFile != "" {
		if err := inputfile.AddCertificates(os.Open, p.Fetch.CAFile, x509.NewCertPool()); err != nil {
			errs = append(errs, usage.Errorf("fetch.ca_file: %w", err))
		}
	}
	for _, output := range []struct{ field, path string }{
		{"output.jsonl", p.Output.JSONL}, {"output.warc", p.Output.WARCDir},
	} {
		if output.path != "" && datadir.StateDir(p.Store.Path).IsOwnStateFile(output.path) {
			errs = append(errs, usage.Errorf("%s: %s is a file of the crawl's own state; name another",
				output.field, output.path))
		}
	}
	return errs
}

// maxListedSeeds is how many seeds the summary shows.
const maxListedSeeds = 3

// A seedSummary is what the summary says of the seeds.
type seedSummary struct {
	count, origins int
	first          []string // at most maxListedSeeds
	zeroDelayHost  string   // the first host for which Project.ZeroDelayCheck warns; "": none
	forbiddenHost  string   // the first host for which Project.ForbiddenHostCheck warns; "": none
}

// readSeeds reads all seeds of p.
func readSeeds(p *project.Project) (s seedSummary, err error) {
	seen, hasZeroDelay, isForbidden := map[decorum.Origin]bool{}, p.ZeroDelayCheck(time.Now()), p.ForbiddenHostCheck()
	for u, err := range p.AllSeeds(os.Open) {
		if err != nil {
			return s, err
		}
		s.count++
		seen[u.Origin()] = true
		if s.zeroDelayHost == "" && hasZeroDelay(u.Origin()) {
			s.zeroDelayHost = u.Origin().Host()
		}
		if s.forbiddenHost == "" && isForbidden(u.Origin()) {
			s.forbiddenHost = u.Origin().Host()
		}
		if len(s.first) < maxListedSeeds {
			s.first = append(s.first, plaintext.TruncateURL(u.String()))
		}
	}
	if s.origins = len(seen); s.count == 0 {
		return s, usage.Errorf("nothing to crawl: the seed files contain no URL")
	}
	return s, nil
}

// summarize returns what decorum crawl would do with p.
func summarize(file string, p *project.Project, seeds seedSummary) *reporttext.Builder {
	b := &reporttext.Builder{}
	b.WriteLine("%s: valid", plaintext.ReplaceControlChars(file))
	b.WriteTable(func(row func(...any)) {
		row("  agent", p.UserAgent())
		if p.Handler != "" {
			row("  handler", p.Handler)
		}
		row("  seeds", seedsText(seeds))
		row("  scope", scopeText(&p.Scope))
		row("  pace", paceText(&p.Politeness))
		row("  limits", limitsText(&p.Limits))
		row("  output", outputText(p))
	})
	b.WriteLineIf(seeds.zeroDelayHost != "", "  warning: politeness.delay is 0: requests to %s follow each other "+
		"without a fixed pause", seeds.zeroDelayHost)
	b.WriteLineIf(seeds.forbiddenHost != "", "  warning: %s is on this machine or a private network: no visit "+
		"may connect to it unless fetch.allow_private is true", seeds.forbiddenHost)
	return b
}

// counted returns n and the noun, in the plural unless n is 1.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// seedsText returns the row "seeds".
func seedsText(s seedSummary) string {
	text := strings.Join(s.first, ", ")
	if s.count > len(s.first) {
		text += ", …"
	}
	if s.count == 1 {
		return text
	}
	return fmt.Sprintf("%d on %s: %s", s.count, counted(s.origins, "origin"), text)
}

// scopeText returns the row "scope".
func scopeText(s *project.ScopeSettings) string {
	reach := map[string]string{"path": "the directories of the seeds",
		"origin": "the origins of the seeds", "host": "the hosts of the seeds",
		"domain": "the domains of the seeds", "any": "every host"}[s.ScopeMode]
	parts := []string{reach, fmt.Sprintf("%s deep", counted(s.MaxDepth, "link"))}
	if s.MaxDepth == 0 {
		parts[1] = "the seeds only"
	}
	if n := len(s.Include); n > 0 {
		parts = append(parts, counted(n, "pattern")+" to include")
	}
	if n := len(s.Exclude); n > 0 {
		parts = append(parts, counted(n, "pattern")+" to exclude")
	}
	if n := s.MaxPagesPerHost; n > 0 {
		parts = append(parts, counted(n, "page")+" a host")
	}
	return strings.Join(parts, ", ")
}

// paceText returns the row "pace".
func paceText(s *project.PolitenessSettings) string {
	text := fmt.Sprintf("%v between two visits to a host, or longer if robots.txt asks for it", s.Delay)
	if s.Concurrency > 1 {
		text += fmt.Sprintf(", %d visits at a time", s.Concurrency)
	}
	if s.Window.Hours != "" {
		text += ", at " + strings.TrimSpace(s.Window.Hours+" "+s.Window.Zone)
	}
	if n := len(s.Hosts); n > 0 {
		text += "; overrides for " + counted(n, "host")
	}
	return text
}

// limitsText returns the row "limits".
func limitsText(s *project.LimitSettings) string {
	var parts []string
	if s.Pages > 0 {
		parts = append(parts, counted(s.Pages, "page"))
	}
	if s.Bytes > 0 {
		parts = append(parts, fmt.Sprintf("%v of bodies", s.Bytes))
	}
	if s.Duration > 0 {
		parts = append(parts, s.Duration.String())
	}
	if s.RequestsPerSecond > 0 {
		parts = append(parts, fmt.Sprintf("%v requests a second", s.RequestsPerSecond))
	}
	if s.BytesPerSecond > 0 {
		parts = append(parts, fmt.Sprintf("%v a second", s.BytesPerSecond))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// outputText returns the row "output": the files that the crawl writes for readers.
func outputText(p *project.Project) string {
	dir := datadir.StateDir(p.Store.Path)
	texts := []string{p.Output.JSONL}
	switch p.Output.JSONL {
	case "":
		texts[0] = dir.Path(datadir.OutputFile)
	case "-":
		texts[0] = "standard output"
	}
	if p.Output.WARCDir != "" {
		texts = append(texts, "WARC files in "+p.Output.WARCDir)
	}
	if p.Output.WriteBodies {
		texts = append(texts, "bodies in "+dir.Path(datadir.BodiesDir))
	}
	if p.Output.WriteLedger {
		texts = append(texts, "ledger in "+dir.Path(datadir.LedgerDir))
	}
	return plaintext.ReplaceControlChars(filepath.ToSlash(strings.Join(texts, ", ")))
}
