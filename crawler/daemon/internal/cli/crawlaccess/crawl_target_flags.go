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

// A CrawlTargetFlags holds the flags that select the crawl a command inspects, which is that of a
// directory or a project of a daemon, and the format of the command's output.
type CrawlTargetFlags struct {
	DaemonFlags
	Env     *command.Env
	Format  string // one of the formats given to AddFlags
	project string // name of the daemon's project; empty: its only project
}

// AddFlags adds the flags to c, whose output has one of formats, the first by default.
func (f *CrawlTargetFlags) AddFlags(env *command.Env, c *cobra.Command, formats ...string) {
	fs := c.Flags()
	f.Env, f.flagSet = env, fs
	command.AddFormatFlag(c, &f.Format, formats...)
	command.AddDataFlag(fs, &f.DataDir)
	fs.StringVar(&f.project, "project", "",
		"use the project `NAME` of the daemon of --data or --server (default: its only project)")
	fs.StringVar(&f.serverURL, "server", "",
		"call the daemon at `URL`, as http://127.0.0.1:8470, instead of using --data")
	fs.StringVar(&f.tokenFile, "token-file", "", "read the token for --server from `FILE` (default DIR/token)")
}

// NamesDaemon reports whether the flags name a daemon, or a project of one.
func (f *CrawlTargetFlags) NamesDaemon() bool { return f.isExplicit() || f.project != "" }

// Place returns the address or the directory of the crawl, for messages.
func (f *CrawlTargetFlags) Place() string {
	return cmp.Or(f.serverURL, f.DataDir)
}

// Do calls do with an Inspector of the selected crawl. The Inspector calls the process that runs the
// crawl, and ExplainError explains its errors. If no process runs the crawl, the Inspector reads its
// files, and Do locks the data directory meanwhile. A signal cancels the context of do.
func (f *CrawlTargetFlags) Do(ctx context.Context, do func(context.Context, api.Inspector) error) error {
	inspector, dir, err := f.FindRunning(ctx)
	if err != nil {
		return f.ExplainError(ctx, err)
	}
	if inspector == nil {
		return stoppedcrawl.OpenAndDo(ctx, f.Env, string(dir), func(ctx context.Context, k *stoppedcrawl.Crawl) error {
			return do(ctx, k)
		})
	}
	ctx, stop := f.Env.WithSignalCancel(ctx)
	defer stop()
	return f.ExplainError(ctx, do(ctx, inspector))
}

// FindRunning returns an Inspector that calls the process which runs the selected crawl. If no
// process runs it, FindRunning returns nil and the data directory of the crawl.
func (f *CrawlTargetFlags) FindRunning(ctx context.Context) (i api.Inspector, dir datadir.StateDir, err error) {
	// --server or --token-file: the daemon is named, and the data directory has no say.
	if f.isExplicit() {
		f.serverURL = cmp.Or(f.serverURL, defaultServer)
		client, err := f.NewClient(ctx)
		if err != nil {
			return nil, "", err
		}
		client.HTTP.Timeout = 0 // a report may take longer than clientTimeout
		name, err := f.projectOf(ctx, client)
		return client.Crawl(name), "", err
	}
	// --data is the directory of a daemon, of a daemon's project, or of a crawl in the foreground.
	dir = datadir.StateDir(f.DataDir)
	daemon, project := dir.DaemonProject()
	switch {
	case dir.IsDaemonDir():
		daemon = dir
	case f.project != "":
		return nil, "", usage.Errorf("--project: %s is not the data directory of a daemon", dir)
	case project != "":
		f.project = project
	default: // a crawl in the foreground
		if client := f.newSocketClientIfListening(ctx, dir); client != nil {
			return client.Crawl(api.CrawlName), "", nil
		}
		return nil, dir, nil
	}
	if client := f.newSocketClientIfListening(ctx, daemon); client != nil {
		name, err := f.projectOf(ctx, client)
		return client.Crawl(name), "", err
	}
	// The daemon does not run: read the files of its project.
	dirs, err := daemon.ProjectDirs()
	if err != nil {
		return nil, "", err
	}
	name, err := f.chooseProject(slices.Sorted(maps.Keys(dirs)))
	return nil, dirs[name], err
}

// projectOf returns the name of the selected project of the daemon that client calls.
func (f *CrawlTargetFlags) projectOf(ctx context.Context, client *api.Client) (string, error) {
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

// chooseProject returns the selected project of a daemon whose projects are names. It returns a
// usage error if --project names none of them, or is missing and there are none or several.
func (f *CrawlTargetFlags) chooseProject(names []string) (string, error) {
	switch {
	case f.project != "":
		return f.project, CheckProjectNames([]string{f.project}, names)
	case len(names) == 1:
		return names[0], nil
	case len(names) == 0:
		return "", usage.Errorf("the daemon has no project yet")
	}
	return "", usage.Errorf("the daemon has %d projects: choose one with --project: %s",
		len(names), strings.Join(names, ", "))
}
