package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// An importQuery is where an import goes.
type importQuery struct {
	config string
	flags  []*pflag.Flag
}

func (a *app) frontierImportCommand() *cobra.Command {
	var q importQuery
	c := &cobra.Command{
		Use: "import [-c project.yaml]", Short: "Take over a crawl that was exported", Long: frontierImportHelp,
		Example: frontierImportExample, Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return a.frontierImport(c.Context(), c.InOrStdin(), q) },
	}
	q.flags = addProjectFlags(c.Flags(), "data")
	c.Flags().StringVarP(&q.config, "config", "c", "", "read the project file `FILE`; without it, the project is the one of the export")
	return c
}

// project returns the project that the crawl is to have.
func (q *importQuery) project(head *exportHeader) (p Project, err error) {
	var d *draft
	if q.config != "" {
		d, err = readDraft(q.config)
	} else if d, err = parseDraft("the project of the export", []byte(head.Project)); err == nil {
		d.Store = DefaultProject().Store // where the old one was
	}
	if err == nil {
		err = applyFlags(d, q.flags)
	}
	if err == nil {
		err = d.check()
	}
	if err != nil {
		return p, err
	}
	return d.Project, nil
}

func (a *app) frontierImport(ctx context.Context, in io.Reader, q importQuery) error {
	ctx, stop := a.untilSignal(ctx)
	defer stop()
	err := a.importFrom(ctx, in, q)
	if errors.Is(context.Cause(ctx), errSignal) {
		err = &exit{ExitStopped, cmp.Or(err, errSignal)}
	}
	return err
}

// importFrom imports what it reads.
func (a *app) importFrom(ctx context.Context, in io.Reader, q importQuery) error {
	next, over := iter.Pull2(inBackground(ctx, 0, exportLines(in)))
	defer over()
	first, err, _ := next()
	if err != nil {
		return err
	}
	head, err := readHead(first)
	if err != nil {
		return err
	}
	p, err := q.project(head)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(first))
	m := &importer{app: a, lineNumber: 1, mark: importMark{Export: hex.EncodeToString(sum[:])}}
	return m.into(p, func() error { return m.run(ctx, next) })
}

// readHead reads the first line.
func readHead(line string) (*exportHeader, error) {
	head, err := decodeExportLine[exportHeader](line)
	switch {
	case line == "":
		return nil, usage("there is nothing to import on standard input: expected what decorum frontier export writes")
	case err != nil || head.Type != "export":
		return nil, usage("what is on standard input was not written by decorum frontier export")
	case head.Format != exportFormat:
		return nil, usage("the export is of format %d, and this version of decorum reads %d", head.Format, exportFormat)
	}
	return head, nil
}

// into opens the stores of the project, which must be empty or hold a part of this
// export, for as long as do works with them.
func (m *importer) into(p Project, do func() error) (err error) {
	dir := stateDir(p.Store.Path)
	lock, err := dir.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	holds, err := dir.holdsCrawl()
	if err != nil {
		return err
	}
	if !holds { // a directory that holds a crawl holds its project
		if err := dir.save(p, nil); err != nil {
			return err
		}
	}
	if m.files, err = openAnyStores(p, m.app.boltOptions(p, nil)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.files.Close()) }()
	m.save = func() error { return dir.save(p, nil) }
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}

// run imports all lines.
func (m *importer) run(ctx context.Context, next func() (string, error, bool)) error {
	whole, err := m.begin(ctx)
	if err != nil {
		return err
	}
	if whole {
		_, err := fmt.Fprintln(m.app.stdout, "this export was imported before; nothing is changed")
		return err
	}
	for {
		line, err, more := next()
		if more && err == nil {
			m.lineNumber++
			err = m.read(ctx, line)
		}
		if !more && err == nil {
			err = m.finish(ctx)
		}
		if err != nil {
			m.app.screen.draw("")
			return fmt.Errorf("the import was broken off at line %d%s, and can be repeated: %w", m.lineNumber, m.where(), err)
		}
		if !more {
			m.app.screen.draw("")
			return m.tell()
		}
	}
}
