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

const frontierImportHelp = `Import a crawl from standard input that decorum frontier export wrote: its queued,
resting and parked URLs, the URLs it has seen, the timing of its hosts, robots.txt files
and cookies. This moves a crawl from files into Redis, back into files, or to another
machine. decorum crawl --resume continues it there: no page is visited twice, and each
host gets its full delay.

Without -c the command imports into files in --data, with the project in the export.
With -c it imports into the store of that project file: into Redis if the file has
store.redis. Stop the crawl before you export it, and do not start the old one again:
both would visit the same hosts. The output files of the crawl are not moved.

The store must be empty. An interrupted import prints the line it has reached: repeat
it with the whole export, and it skips what is already there. The crawl cannot start
until the import is complete. The command detects a truncated export, and a store that
holds other URLs in the end. Importing the same export again changes nothing.`

const frontierImportExample = `  decorum frontier export --data decorum-data | decorum frontier import -c redis.yaml --data moved
  zstd -dc crawl.jsonl.zst | decorum frontier import --data decorum-data`

// An importOptions holds the flags of decorum frontier import.
type importOptions struct {
	env               *command.Env
	configFile        string        // project file; empty: the project in the export
	projectFieldFlags []*pflag.Flag // flags that set fields of the project: --data
}

// NewImportCommand returns the command decorum frontier import.
func NewImportCommand(env *command.Env) *cobra.Command {
	q := importOptions{env: env}
	c := &cobra.Command{
		Use: "import [-c project.yaml]", Short: "Import an exported crawl", Long: frontierImportHelp,
		Example: frontierImportExample, Args: command.ArgsOrUsageError(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return q.importFrontier(c.Context(), c.InOrStdin()) },
	}
	q.projectFieldFlags = project.AddFieldFlags(c.Flags(), "data")
	c.Flags().StringVarP(&q.configFile, "config", "c", "",
		"read the project file `FILE` (default: the project in the export)")
	return c
}

// loadProject returns the project of the imported crawl: that of the project file or of the export,
// overridden by the flags.
func (q *importOptions) loadProject(head *exportHeader) (p project.Project, err error) {
	var d *project.File
	if q.configFile != "" {
		d, err = project.ReadUnchecked(q.configFile)
	} else if d, err = project.ParseFile("the project in the export", []byte(head.ProjectYAML)); err == nil {
		d.Store = project.Default().Store // the export has the place of the old crawl
	}
	if err == nil {
		err = project.ApplyFieldFlags(d, q.projectFieldFlags)
	}
	if err != nil {
		return p, err
	}
	return d.Resolve()
}

// importFrontier imports the export in until a signal arrives.
func (q *importOptions) importFrontier(ctx context.Context, in io.Reader) error {
	ctx, stop := q.env.WithSignalCancel(ctx)
	defer stop()
	err := q.importExportedCrawl(ctx, in)
	if errors.Is(context.Cause(ctx), engine.ErrInterrupted) {
		err = &command.ExitError{Code: command.ExitStopped, Err: cmp.Or(err, engine.ErrInterrupted)}
	}
	return err
}

// importExportedCrawl imports the export in into the store of its project.
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
	// The hash of the first line, which has the time of the export, identifies the export when an
	// interrupted import is repeated.
	m := &importer{stdout: q.env.Stdout, stderr: q.env.Stderr, lineNumber: 1}
	m.marker.ExportHeaderSHA256 = fmt.Sprintf("%x", sha256.Sum256([]byte(first)))
	return m.withStores(p, q.env.BoltOptions(p, nil), func() error { return m.importLines(ctx, next) })
}

// parseExportHeader decodes the first line of an export, and checks the version of its format.
func parseExportHeader(line string) (*exportHeader, error) {
	head, err := decodeExportLine[exportHeader](line)
	switch {
	case line == "":
		return nil, usage.Errorf("standard input is empty: expected the output of decorum frontier export")
	case err != nil || head.Type != "export":
		return nil, usage.Errorf("standard input is not the output of decorum frontier export")
	case head.FormatVersion != exportFormat:
		return nil, usage.Errorf("the export has format %d, but this version of decorum reads only %d",
			head.FormatVersion, exportFormat)
	}
	return head, nil
}

// withStores opens the stores of the project p, calls do and closes them. They may hold a part of an
// import. It locks the data directory meanwhile.
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
	if !hasCrawl { // a directory with a crawl must always have its project
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

// importLines imports the lines that next returns, checks that they are complete and prints a
// summary. It does nothing if the store already holds this export.
func (m *importer) importLines(ctx context.Context, next func() (string, error, bool)) error {
	isComplete, err := m.beginOrResumeImport(ctx)
	if err != nil {
		return err
	}
	if isComplete {
		_, err := fmt.Fprintln(m.stdout, "this export was imported before; nothing changes")
		return err
	}
	for {
		line, err, more := next()
		if more && err == nil {
			m.lineNumber++
			err = m.importLine(ctx, line)
		}
		if !more && err == nil { // the input has ended
			err = m.verifyAndFinishImport(ctx)
		}
		if err != nil {
			m.stderr.DrawStatusLine("")
			ofOrigin := inspect.PrefixIfSet(", of ", m.currentOrigin.String())
			return fmt.Errorf("the import stopped at line %d%s, and can be repeated: %w", m.lineNumber, ofOrigin, err)
		}
		if !more {
			m.stderr.DrawStatusLine("")
			return m.printSummary()
		}
	}
}

// verifyStoreCounts returns an error unless the store holds as many URLs as the export: queued,
// resting, parked and seen.
func (m *importer) verifyStoreCounts(ctx context.Context) error {
	c, err := m.stores.Frontier.Counts(ctx)
	if err != nil {
		return err
	}
	got := [...]int{c.QueuedURLs + c.LeasedURLs, c.AwaitingRevisit, c.ParkedURLs, c.SeenURLs}
	want := [...]int{m.urlsByState[storage.StateQueued], m.urlsByState[storage.StateAwaitingRevisit],
		m.urlsByState[storage.StateParked], m.readTotals.SeenURLs}
	if got != want {
		return fmt.Errorf("the store holds %v URLs (queued, resting, parked, seen), but the export has %v: "+
			"another process is using the store, or the lines are in another order; begin again with an empty store",
			got, want)
	}
	return nil
}

// String returns the number of lines of each type, for people.
func (l exportTotals) String() string {
	return fmt.Sprintf("%d origins, %d URLs, %d seen, %d notes", l.Origins, l.URLs, l.SeenURLs, l.Notes)
}

// printSummary prints how many lines and URLs were imported.
func (m *importer) printSummary() error {
	_, err := fmt.Fprintf(m.stdout, "imported: %v; queued: %d, resting: %d, parked: %d\n", m.readTotals,
		m.urlsByState[storage.StateQueued], m.urlsByState[storage.StateAwaitingRevisit],
		m.urlsByState[storage.StateParked])
	return err
}

// showProgress prints the number of the current line, at most once in terminal.DrawInterval on a
// terminal, else once in terminal.PrintInterval.
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
