package crawlaccess

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/stoppedcrawl"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// A CrawlTargetFlags says which crawl a command looks into: that of a directory, or a project of a
// daemon. It says also in which format the command answers.
type CrawlTargetFlags struct {
	DaemonFlags
	Env     *command.Env
	Format  string
	project string // of a daemon; empty: its only one
}

// AddFlags adds the flags to those of c, which answers in one of formats.
func (f *CrawlTargetFlags) AddFlags(env *command.Env, c *cobra.Command, formats ...string) {
	fs := c.Flags()
	f.Env, f.flagSet = env, fs
	command.AddFormatFlag(c, &f.Format, formats...)
	command.AddDataFlag(fs, &f.DataDir)
	fs.StringVar(&f.project, "project", "", "the project `NAME`, where --data or --server is a daemon's that has several")
	fs.StringVar(&f.serverURL, "server", "", "ask the daemon at `URL`, as http://127.0.0.1:8470, instead of that of --data")
	fs.StringVar(&f.tokenFile, "token-file", "", "the `FILE` that holds the token for --server (default DIR/token)")
}

// NamesDaemon reports whether the flags name a daemon, or a project of one.
func (f *CrawlTargetFlags) NamesDaemon() bool { return f.isExplicit() || f.project != "" }

// Place names the crawl for people.
func (f *CrawlTargetFlags) Place() string {
	return cmp.Or(f.serverURL, f.DataDir)
}

// Do calls do with an Inspector of the crawl, until a signal ends that: of the process that
// runs the crawl if there is one, else of the crawl's files, which are locked meanwhile.
func (f *CrawlTargetFlags) Do(ctx context.Context, do func(context.Context, api.Inspector) error) error {
	inspector, dir, err := f.FindRunning(ctx)
	if err != nil {
		return f.ExplainError(ctx, err)
	}
	if inspector == nil {
		return stoppedcrawl.OpenAndDo(ctx, f.Env, string(dir), func(ctx context.Context, k *stoppedcrawl.Crawl) error { return do(ctx, k) })
	}
	ctx, stop := f.Env.WithSignalCancel(ctx)
	defer stop()
	return f.ExplainError(ctx, do(ctx, inspector))
}

// FindRunning returns an Inspector of the process that runs the crawl, or nil and the
// directory of the crawl.
func (f *CrawlTargetFlags) FindRunning(ctx context.Context) (i api.Inspector, dir datadir.StateDir, err error) {
	if f.isExplicit() {
		f.serverURL = cmp.Or(f.serverURL, defaultServer)
		client, err := f.NewClient(ctx)
		if err != nil {
			return nil, "", err
		}
		client.HTTP.Timeout = 0 // an answer may be long
		name, err := f.projectOf(ctx, client)
		return client.Crawl(name), "", err
	}
	dir = datadir.StateDir(f.DataDir)
	daemon, isProject := dir.DaemonDir()
	switch {
	case dir.IsDaemonDir():
		daemon = dir
	case f.project != "":
		return nil, "", usage.Errorf("--project: %s is not the directory of a daemon", dir)
	case isProject:
		f.project = dir.BaseName()
	default: // a crawl's own
		if client := f.newSocketClientIfListening(ctx, dir); client != nil {
			return client.Crawl(api.CrawlName), "", nil
		}
		return nil, dir, nil
	}
	if client := f.newSocketClientIfListening(ctx, daemon); client != nil {
		name, err := f.projectOf(ctx, client)
		return client.Crawl(name), "", err
	}
	dirs, err := daemon.ProjectDirs()
	if err != nil {
		return nil, "", err
	}
	name, err := f.chooseProject(slices.Sorted(maps.Keys(dirs)))
	return nil, dirs[name], err
}

// projectOf returns the name of the project of a daemon that is meant.
func (f *CrawlTargetFlags) projectOf(ctx context.Context, client *api.Client) (string, error) {
	if f.project != "" {
		return f.project, nil
	}
	projects, err := client.Projects(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	for _, p := range projects {
		names = append(names, p.Name)
	}
	return f.chooseProject(names)
}

// chooseProject returns the project that is meant, of those that a daemon has.
func (f *CrawlTargetFlags) chooseProject(names []string) (string, error) {
	switch {
	case f.project != "" && slices.Contains(names, f.project):
		return f.project, nil
	case f.project != "":
		return "", usage.Errorf("--project: the daemon has no project %s", f.project)
	case len(names) == 1:
		return names[0], nil
	case len(names) == 0:
		return "", usage.Errorf("the daemon has no project yet")
	}
	return "", usage.Errorf("the daemon has %d projects: name one with --project: %s", len(names), strings.Join(names, ", "))
}
