package cli

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/usage"
)

const crawlHelp = `Crawl from the given URLs until no URL is left to visit or a limit is reached. A flag
overrides the field of the same meaning in the project file. The URLs are added to the
project's seeds. In the project file, the paths of inputs are relative to that file, and
those of outputs to the data directory; in flags, paths are relative to the working
directory.

The data directory (--data) holds the state of the crawl, so that --resume continues a
crawl that was stopped or killed. The same command, repeated, continues it as well,
unless its lines went to standard output. A new crawl that sends no request, for example
because the name of its host is wrong, removes its files from the directory.

Ctrl-C stops the crawl after the visits in flight have finished; a second one aborts
them. The end of the terminal (SIGHUP) stops the crawl in the same way, unless nohup
starts it.

--output - writes to standard output. If its reader exits, as head does, the crawl
stops. --resume does not write again the lines that the reader did not read: where
they matter, use --output FILE.

--dry-run fetches only robots.txt files and sitemaps, and tdmrep.json files if
robots.purpose requires them, at the crawl's usual pace. It then prints a table that
forecasts the crawl for each host: requests, bytes, the duration at the pace of the
project and of the host's robots.txt, and which URLs robots.txt disallows, by which
line. It visits no page and keeps nothing. It reads the data directory only for the
size of the pages of an earlier crawl. --output writes the forecast as JSON Lines, the
totals first. The forecast leaves out pages that only links lead to.

The page at the end of a seed's redirects may be on another host, which then belongs to
the crawl (scope.seed_redirects). If no seed leads to a page, now or in an earlier run,
the crawl fails and says why.

Exit codes: 0 done, also where a limit of pages or bytes ends the crawl, 1 failed,
2 wrong usage or configuration, 4 stopped by a signal, by --max-time, or by a reader
that closed standard output. A dry run has the same codes, but nothing to continue.`

const crawlExample = `  decorum crawl --contact https://example.com/bot https://example.com/
  decorum crawl -c books.yaml --max-pages 1000
  decorum crawl -c books.yaml --dry-run
  decorum crawl --contact mailto:you@example.com --output - https://example.com/ | jq .title
  decorum crawl --resume --data decorum-data`

// A crawlOptions holds the flags of decorum crawl.
type crawlOptions struct {
	configFile         string // project file; empty: none
	resume, startFresh bool
	progressMode       string       // auto, plain or none
	bodyMemory         project.Size // bytes; 0: the default of initBodyMemory
	idleConns          int          // see initIdleConns
	fastRetries        bool         // retry within seconds; only the demo may, on its own servers
	temporary          bool         // the data directory is deleted after the run, as the demo does
	// atEnd is called after the run, before its stores are closed, unless it is nil.
	atEnd         func(*foregroundRun)
	dryRunOptions dryRunOptions // --dry-run and its flags
	projectFlags  []*pflag.Flag // flags that set fields of the project
}

// newCrawlCommand returns the command decorum crawl.
func (a *program) newCrawlCommand() *cobra.Command {
	var s crawlOptions
	c := &cobra.Command{
		Use: "crawl [URL…] [-c project.yaml]", Short: "Crawl in the foreground",
		Long: crawlHelp, Example: crawlExample, Args: command.ArgsOrUsageError(cobra.ArbitraryArgs),
	}
	fs := c.Flags()
	s.projectFlags = project.AddFieldFlags(fs)
	fs.StringVarP(&s.configFile, "config", "c", "", "read the project file `FILE` (default: no file)")
	fs.BoolVar(&s.resume, "resume", false, "continue the crawl in the data directory")
	fs.BoolVar(&s.startFresh, "fresh", false,
		"start a new crawl, and move the files of the one in the data directory aside")
	fs.StringVar(&s.progressMode, "progress", "auto", progressFlagUsage)
	a.addQuietFlag(fs)
	addBodyMemoryFlag(fs, &s.bodyMemory)
	addIdleConnectionsFlag(fs, &s.idleConns)
	s.dryRunOptions.addFlags(fs)
	c.RunE = func(c *cobra.Command, urls []string) error { return a.crawl(c, s, urls) }
	return c
}

// crawl builds the project from the flags, checks it and its handler, and runs it or its dry run.
// Errors of usage are returned before any file of the data directory is touched.
func (a *program) crawl(c *cobra.Command, s crawlOptions, urls []string) error {
	if s.resume && s.startFresh {
		return usage.Errorf("--resume continues a crawl and --fresh starts a new one: choose one")
	}
	if err := errors.Join(checkProgressFlag(s.progressMode),
		s.dryRunOptions.checkFlagsAndSetOutput(c.Flags())); err != nil {
		return err
	}
	a.silenceProgressIfQuiet(c.Flags(), &s.progressMode)
	if err := errors.Join(a.initBodyMemory(s.bodyMemory), a.initIdleConns(s.idleConns)); err != nil {
		return err
	}
	// Check the project as a whole, after the flags have changed it. d knows which flag or which
	// line of the file has set a field, for errors.
	d, err := s.loadProject(urls)
	if err != nil {
		return err
	}
	p, err := d.Resolve(engine.CheckHandler(a.Handlers, d.Handler))
	if err != nil {
		return err
	}
	if s.dryRunOptions.enabled {
		return a.forecastByDryRun(c.Context(), p, s)
	}
	return a.runProject(c.Context(), p, s)
}

// loadProject returns the project: the one of loadBaseProject, overridden by the flags, with urls
// before its seeds.
func (s *crawlOptions) loadProject(urls []string) (*project.File, error) {
	d, err := s.loadBaseProject()
	if err != nil {
		return nil, err
	}
	if err := project.ApplyFieldFlags(d, s.projectFlags); err != nil {
		return nil, err
	}
	for _, url := range urls {
		if name := filepath.Ext(url); (name == ".yaml" || name == ".yml") && !strings.Contains(url, "://") {
			return nil, usage.Errorf("%q is not a URL; did you mean -c %s?", url, url)
		}
	}
	if len(urls) > 0 {
		return d, d.SetFieldFromCommandLine("seeds", "URL", append(urls, d.Seeds...)...)
	}
	return d, nil
}

// loadBaseProject returns the project that the flags override: the project file of -c, else with
// --resume the project that the crawl saved, else the defaults.
func (s *crawlOptions) loadBaseProject() (*project.File, error) {
	switch {
	case s.configFile != "":
		return project.ReadUnchecked(s.configFile)
	case !s.resume:
		return project.NewFile(), nil
	}
	d := project.NewFile() // only for store.path, which --data may set
	if err := project.ApplyFieldFlags(d, s.projectFlags); err != nil {
		return nil, err
	}
	dir := datadir.StateDir(d.Store.Path)
	if hasCrawl, err := dir.HasCrawl(); err != nil || !hasCrawl {
		return nil, errors.Join(dir.NewNoCrawlError(), err)
	}
	saved, err := project.ReadFile(dir.Path(datadir.ProjectFile))
	if err != nil {
		return nil, usage.Errorf("%w\n%s holds the project of the crawl: name the project file again with -c, or "+
			"start a new crawl with --fresh",
			err, dir.Path(datadir.ProjectFile))
	}
	saved.Store.Path = string(dir) // the directory may have been moved since
	return saved, nil
}
