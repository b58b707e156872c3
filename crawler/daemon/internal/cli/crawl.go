package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/usage"
)

const crawlHelp = `Crawl from the given URLs until there is nothing left to visit or a limit is
reached. Every flag that has a field in the project file wins over it; URLs are
added to the project's seeds.

The state of the crawl is kept in the data directory (--data), so that a crawl
that was stopped, or killed, can go on with --resume. Ctrl-C stops the crawl when
the visits in hand are over; a second one breaks them off.

With --dry-run only robots.txt files and sitemaps are visited, and tdmrep.json files
by a crawl that asks for them (robots.purpose), as politely as ever, and a table
says for each host what the crawl would do: requests, bytes, how long it would take
at the pace that the project and the host's robots.txt ask for, and which URLs are
closed, by which line. No page is visited, the data directory is only asked how
large the pages of an earlier crawl were, and nothing is kept; --output writes the
forecast as JSON Lines, the totals first. What only links lead to is not in it.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 4 stopped by a
limit or a signal.`

const crawlExample = `  decorum crawl --contact https://example.com/bot https://example.com/
  decorum crawl -c books.yaml --max-pages 1000
  decorum crawl -c books.yaml --dry-run
  decorum crawl --contact mailto:you@example.com --output - https://example.com/ | jq .title
  decorum crawl --resume --data decorum-data`

// A crawlOptions is how a crawl is begun, beyond what its project says.
type crawlOptions struct {
	configFile         string
	resume, startFresh bool
	progressMode       string
	bodyMemory         project.Size
	fastRetries        bool // ask again soon where an answer failed: the demo's servers are its own
	dryRunOptions      dryRunOptions
	projectFlags       []*pflag.Flag
}

func (a *program) newCrawlCommand() *cobra.Command {
	var s crawlOptions
	c := &cobra.Command{
		Use: "crawl [URL…] [-c project.yaml]", Short: "Crawl in the foreground",
		Long: crawlHelp, Example: crawlExample, Args: command.ArgsOrUsageError(cobra.ArbitraryArgs),
	}
	fs := c.Flags()
	s.projectFlags = project.AddFieldFlags(fs)
	fs.StringVarP(&s.configFile, "config", "c", "", "read the project file `FILE`")
	fs.BoolVar(&s.resume, "resume", false, "go on with the crawl in the data directory")
	fs.BoolVar(&s.startFresh, "fresh", false, "start anew; the files of the crawl in the data directory are moved aside")
	fs.StringVar(&s.progressMode, "progress", "auto", progressFlagUsage)
	addBodyMemoryFlag(fs, &s.bodyMemory)
	s.dryRunOptions.addFlags(fs)
	c.RunE = func(c *cobra.Command, urls []string) error { return a.crawl(c, s, urls) }
	return c
}

// crawl reads what is wanted, makes the data directory fit for it, and runs.
func (a *program) crawl(c *cobra.Command, s crawlOptions, urls []string) error {
	if s.resume && s.startFresh {
		return usage.Errorf("--resume goes on and --fresh starts anew: choose one")
	}
	if err := errors.Join(checkProgressFlag(s.progressMode), s.dryRunOptions.checkFlagsAndSetOutput(c.Flags())); err != nil {
		return err
	}
	if err := a.initBodyMemory(s.bodyMemory); err != nil {
		return err
	}
	d, err := s.loadProject(urls)
	if err != nil {
		return err
	}
	if err := d.Check(); err != nil {
		return err
	}
	if f := engine.CheckHandler(a.Handlers, d.Handler); f != nil {
		return d.FieldError(*f)
	}
	if s.dryRunOptions.enabled {
		return a.forecastByDryRun(c.Context(), d.Project, s)
	}
	return a.runProject(c.Context(), d.Project, s)
}

// loadProject returns the project: the defaults, under the project file or, if the
// crawl goes on, the project it was started with, under the flags.
func (s *crawlOptions) loadProject(urls []string) (*project.File, error) {
	d, err := s.loadBaseProject()
	if err != nil {
		return nil, err
	}
	if err := project.ApplyFieldFlags(d, s.projectFlags); err != nil {
		return nil, err
	}
	if len(urls) > 0 {
		return d, d.SetFieldFromCommandLine("seeds", "URL", append(urls, d.Seeds...)...)
	}
	return d, nil
}

// loadBaseProject returns the project that the flags are laid over.
func (s *crawlOptions) loadBaseProject() (*project.File, error) {
	switch {
	case s.configFile != "":
		return project.ReadFile(s.configFile)
	case !s.resume:
		return project.NewFile(), nil
	}
	d := project.NewFile() // for the flag that says where the crawl is kept
	if err := project.ApplyFieldFlags(d, s.projectFlags); err != nil {
		return nil, err
	}
	dir := datadir.StateDir(d.Store.Path)
	if hasCrawl, err := dir.HasCrawl(); err != nil || !hasCrawl {
		return nil, errors.Join(dir.NewNoCrawlError(), err)
	}
	saved, err := project.ReadFile(dir.Path(datadir.ProjectFile))
	if err != nil {
		return nil, usage.Errorf("%w\n%s is where the crawl keeps its project: give the project again with -c, or start anew with --fresh",
			err, dir.Path(datadir.ProjectFile))
	}
	saved.Store.Path = string(dir) // it may have been moved since
	return saved, nil
}
