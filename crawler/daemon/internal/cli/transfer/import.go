package transfer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

const frontierImportHelp = `Take over a crawl that decorum frontier export wrote, from standard input: URLs that
are queued, put off, resting and parked, what was seen, the clocks of hosts, robots.txt
files, cookies. So a crawl moves from files into Redis, or back, or to another machine,
and goes on there with decorum crawl --resume: no page is visited twice, and hosts rest
as they would have.

Without -c the crawl goes into files in --data, with the project that is in the export.
With -c it goes where the store of that project file says: into Redis, if it has
store.redis. Stop the crawl before it is exported, and leave the old one alone then:
both would visit the same hosts. Its output stays where it is.

The store must be empty. An import that was broken off says where; repeat it with the
whole export, and what is there already is passed by. Until it is whole the crawl
cannot be started. An export that was cut short is found out, and so is a store that
holds anything else in the end. To import once more what is imported changes nothing.`

const frontierImportExample = `  decorum frontier export --data decorum-data | decorum frontier import -c redis.yaml --data moved
  zstd -dc crawl.jsonl.zst | decorum frontier import --data decorum-data`

// An importOptions is where an import goes.
type importOptions struct {
	env               *command.Env
	configFile        string
	projectFieldFlags []*pflag.Flag
}

func NewImportCommand(env *command.Env) *cobra.Command {
	q := importOptions{env: env}
	c := &cobra.Command{
		Use: "import [-c project.yaml]", Short: "Take over a crawl that was exported", Long: frontierImportHelp,
		Example: frontierImportExample, Args: command.ArgsOrUsageError(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return q.importFrontier(c.Context(), c.InOrStdin()) },
	}
	q.projectFieldFlags = project.AddFieldFlags(c.Flags(), "data")
	c.Flags().StringVarP(&q.configFile, "config", "c", "", "read the project file `FILE`; without it, the project is the one of the export")
	return c
}

// loadProject returns the project that the crawl is to have.
func (q *importOptions) loadProject(head *exportHeader) (p project.Project, err error) {
	var d *project.File
	if q.configFile != "" {
		d, err = project.ReadFile(q.configFile)
	} else if d, err = project.ParseFile("the project of the export", []byte(head.ProjectYAML)); err == nil {
		d.Store = project.Default().Store // where the old one was
	}
	if err == nil {
		err = project.ApplyFieldFlags(d, q.projectFieldFlags)
	}
	if err == nil {
		err = d.Check()
	}
	if err != nil {
		return p, err
	}
	return d.Project, nil
}

func (q *importOptions) importFrontier(ctx context.Context, in io.Reader) error {
	ctx, stop := q.env.WithSignalCancel(ctx)
	defer stop()
	err := q.importExportedCrawl(ctx, in)
	if errors.Is(context.Cause(ctx), engine.ErrInterrupted) {
		err = &command.ExitError{Code: command.ExitStopped, Err: cmp.Or(err, engine.ErrInterrupted)}
	}
	return err
}

// importExportedCrawl imports what it reads.
func (q *importOptions) importExportedCrawl(ctx context.Context, in io.Reader) error {
	next, stop := iter.Pull2(readInBackground(ctx, 0, exportLines(in)))
	defer stop()
	first, err, _ := next()
	if err != nil {
		return err
	}
	head, err := parseExportHeader(first)
	if err != nil {
		return err
	}
	p, err := q.loadProject(head)
	if err != nil {
		return err
	}
	m := &importer{stdout: q.env.Stdout, stderr: q.env.Stderr, lineNumber: 1}
	m.marker.ExportHeaderSHA256 = fmt.Sprintf("%x", sha256.Sum256([]byte(first)))
	return m.withStores(p, q.env.BoltOptions(p, nil), func() error { return m.importLines(ctx, next) })
}

// parseExportHeader reads the first line.
func parseExportHeader(line string) (*exportHeader, error) {
	head, err := decodeExportLine[exportHeader](line)
	switch {
	case line == "":
		return nil, usage.Errorf("there is nothing to import on standard input: expected what decorum frontier export writes")
	case err != nil || head.Type != "export":
		return nil, usage.Errorf("what is on standard input was not written by decorum frontier export")
	case head.FormatVersion != exportFormat:
		return nil, usage.Errorf("the export is of format %d, and this version of decorum reads %d", head.FormatVersion, exportFormat)
	}
	return head, nil
}

// withStores opens the stores of the project, which must be empty or hold a part of this
// export, for as long as do works with them.
func (m *importer) withStores(p project.Project, opts bolt.Options, do func() error) (err error) {
	dir := datadir.StateDir(p.Store.Path)
	lock, err := dir.Lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	hasCrawl, err := dir.HasCrawl()
	if err != nil {
		return err
	}
	if !hasCrawl { // a directory that holds a crawl holds its project
		if err := dir.SaveProject(p, false); err != nil {
			return err
		}
	}
	if m.stores, err = datadir.OpenStoresAllowingPartialImport(p, opts); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.stores.Close()) }()
	m.saveProject = func() error { return dir.SaveProject(p, false) }
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}

// importLines imports all lines.
func (m *importer) importLines(ctx context.Context, next func() (string, error, bool)) error {
	isComplete, err := m.beginOrResumeImport(ctx)
	if err != nil {
		return err
	}
	if isComplete {
		_, err := fmt.Fprintln(m.stdout, "this export was imported before; nothing is changed")
		return err
	}
	for {
		line, err, more := next()
		if more && err == nil {
			m.lineNumber++
			err = m.importLine(ctx, line)
		}
		if !more && err == nil {
			err = m.verifyAndFinishImport(ctx)
		}
		if err != nil {
			m.stderr.DrawStatusLine("")
			ofOrigin := inspect.PrefixIfSet(", of ", m.currentOrigin.String())
			return fmt.Errorf("the import was broken off at line %d%s, and can be repeated: %w", m.lineNumber, ofOrigin, err)
		}
		if !more {
			m.stderr.DrawStatusLine("")
			return m.printSummary()
		}
	}
}

// verifyStoreCounts compares what the store holds in the end with what was read.
func (m *importer) verifyStoreCounts(ctx context.Context) error {
	c, err := m.stores.Frontier.Counts(ctx)
	if err != nil {
		return err
	}
	got := [...]int{c.QueuedURLs + c.LeasedURLs, c.AwaitingRevisit, c.ParkedURLs, c.SeenURLs}
	want := [...]int{m.urlsByState[storage.StateQueued], m.urlsByState[storage.StateAwaitingRevisit], m.urlsByState[storage.StateParked], m.readTotals.SeenURLs}
	if got != want {
		return fmt.Errorf("the store holds %v URLs (queued, resting, parked, seen), and the export has %v: "+
			"somebody else works on it, or the lines are in another order; begin again with an empty store", got, want)
	}
	return nil
}

// String says how many of each there are.
func (l exportTotals) String() string {
	return fmt.Sprintf("%d origins, %d URLs, %d seen, %d notes", l.Origins, l.URLs, l.SeenURLs, l.Notes)
}

// printSummary says what was imported.
func (m *importer) printSummary() error {
	_, err := fmt.Fprintf(m.stdout, "imported: %v; queued: %d, resting: %d, parked: %d\n", m.readTotals,
		m.urlsByState[storage.StateQueued], m.urlsByState[storage.StateAwaitingRevisit], m.urlsByState[storage.StateParked])
	return err
}

// showProgress tells how far the import has come, if it takes long.
func (m *importer) showProgress(now time.Time) {
	interval, show := terminal.PrintInterval, func(line string) { fmt.Fprintln(m.stderr, line) }
	if m.stderr.IsTerminal() {
		interval, show = terminal.DrawInterval, m.stderr.DrawStatusLine
	}
	if m.lastProgress.IsZero() {
		m.lastProgress = now
	}
	if now.Sub(m.lastProgress) >= interval {
		m.lastProgress = now
		show(fmt.Sprintf("line %d: %v so far", m.lineNumber, m.readTotals))
	}
}
