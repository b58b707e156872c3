package completion

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/crawlaccess"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
)

// timeout is how long a completion may read a crawl: a user waits for it at a prompt.
const timeout = 2 * time.Second

// maxHosts is how many hosts a completion offers.
const maxHosts = 200

// valuesByFlag holds the values of flags that take one of a few words. A flag of a name has the same
// values in all commands. The values of --format differ, and command.AddFormatFlag completes them.
var valuesByFlag = map[string][]string{
	"dialect":    {"google", "yandex", "google-oss"},
	"level":      {"hint", "warning", "error"},
	"log-format": {"text", "json"},
	"log-level":  {"debug", "info", "warn", "error"},
	"progress":   {"auto", "plain", "none"},
	"scope":      {"path", "origin", "host", "domain", "any"},
	"state":      {"queued", "resting", "parked"},
}

// Register adds the completion of values to the commands below root. It recognises a flag by its name, and
// an argument by its word in Command.Use: HOST, PROJECT or URL.
func Register(env *command.Env, root *cobra.Command) {
	hosts := func(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return hostNames(env, c, prefix), cobra.ShellCompDirectiveNoFileComp
	}
	projects := func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return projectNames(c, prefix), cobra.ShellCompDirectiveNoFileComp
	}
	addToFlag := func(c *cobra.Command, f *pflag.Flag) {
		// RegisterFlagCompletionFunc fails where the command has registered its own; that one is kept.
		switch values := valuesByFlag[f.Name]; {
		case values != nil:
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		case f.Name == "host" && f.Value.Type() == "string":
			_ = c.RegisterFlagCompletionFunc(f.Name, hosts)
		case f.Name == "project":
			_ = c.RegisterFlagCompletionFunc(f.Name, projects)
		}
	}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { addToFlag(c, f) })
		if c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 {
			switch _, arguments, _ := strings.Cut(c.Use, " "); {
			case strings.Contains(arguments, "PROJECT"):
				c.ValidArgsFunction = eachArgumentOnce(projects, strings.HasSuffix(arguments, "..."))
			case strings.Contains(arguments, "HOST"):
				c.ValidArgsFunction = eachArgumentOnce(hosts, strings.HasSuffix(arguments, "..."))
			case strings.HasPrefix(strings.TrimLeft(arguments, "["), "URL"):
				c.ValidArgsFunction = cobra.NoFileCompletions
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
}

// eachArgumentOnce completes the first argument with complete, or every argument if repeated, without the
// values that the line has already.
func eachArgumentOnce(complete cobra.CompletionFunc, repeated bool) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !repeated {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		values, directive := complete(c, args, prefix)
		return slices.DeleteFunc(values, func(v string) bool { return slices.Contains(args, v) }), directive
	}
}

// projectNames returns the projects of the daemon in the directory of --data that begin with prefix.
func projectNames(c *cobra.Command, prefix string) []string {
	dirs, _ := datadir.StateDir(flagValue(c, "data")).ProjectDirs()
	return withPrefix(slices.Sorted(maps.Keys(dirs)), prefix)
}

// hostNames returns at most maxHosts hosts of the crawl that the flags of c select, or of all projects of the
// daemon if the command has no flag --project.
func hostNames(env *command.Env, c *cobra.Command, prefix string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	projects := []string{flagValue(c, "project")}
	if c.Flags().Lookup("project") == nil {
		if all := projectNames(c, ""); len(all) > 0 {
			projects = all
		}
	}
	var names []string
	for _, project := range projects {
		names = append(names, hostNamesOf(ctx, targetOf(env, c, project), prefix, maxHosts-len(names))...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// hostNamesOf returns at most limit hosts of a crawl. It calls the process that runs the crawl. It reads the
// file of a crawl that no process runs without the lock of its directory: a crawl that begins meanwhile must
// not find it in use, and a completion changes nothing.
func hostNamesOf(ctx context.Context, target *crawlaccess.CrawlTargetFlags, prefix string, limit int) (names []string) {
	crawl, dir, err := target.FindRunning(ctx)
	if err != nil {
		return nil
	}
	if crawl == nil {
		names, _ = dir.HostNames(prefix, limit)
		return names
	}
	_ = crawl.Report(ctx, api.ReportQuery{}, func(r *api.StreamedReport) error {
		for h, err := range r.Hosts {
			if err != nil || len(names) == limit {
				return err
			}
			if strings.HasPrefix(h.Host, prefix) {
				names = append(names, h.Host)
			}
		}
		return nil
	})
	return names
}

// targetOf returns the crawl that the flags of c select, with the given project.
func targetOf(env *command.Env, c *cobra.Command, project string) *crawlaccess.CrawlTargetFlags {
	quiet := *env
	quiet.Log = slog.New(slog.DiscardHandler)
	var target crawlaccess.CrawlTargetFlags
	selected := &cobra.Command{}
	target.AddFlags(&quiet, selected, "table", "json")
	for _, name := range []string{"data", "server", "token-file"} {
		if f := c.Flags().Lookup(name); f != nil && (f.Changed || name == "data") {
			_ = selected.Flags().Set(name, f.Value.String())
		}
	}
	if project != "" {
		_ = selected.Flags().Set("project", project)
	}
	return &target
}

// flagValue returns the value of a flag of c, or "" if c has no such flag.
func flagValue(c *cobra.Command, name string) string {
	f := c.Flags().Lookup(name)
	if f == nil {
		return ""
	}
	return f.Value.String()
}

func withPrefix(words []string, prefix string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, prefix) })
}
