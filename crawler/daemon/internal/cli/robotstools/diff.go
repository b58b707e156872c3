package robotstools

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/lint"
)

const robotsDiffHelp = `Compare two versions of a robots.txt by their meaning: order, comments and spelling
make no difference. The command prints the rules that each agent gains and loses, for
the agents that either file names and for "*", and then the changes of delays and
sitemaps. An agent without its own group has the rules of "*".

With --urls it also prints the URLs that become allowed ("opens") or disallowed
("closes"), for each --agent, or without --agent for each agent that either file
names. The file of --urls has one URL or path a line; "-" is standard input.

--format json writes all changes of the files as one JSON object on the first line, then one
object for each URL that opens or closes.

Exit codes: 0 no difference in rules, delays and sitemaps, 3 a difference, 1 cannot get
a file, 2 wrong usage.`

const robotsDiffExample = `  decorum robots diff old.txt new.txt
  decorum robots diff https://example.com/robots.txt new.txt --urls urls.txt --agent Googlebot`

// A diffOptions holds the flags of decorum robots diff.
type diffOptions struct {
	checkOptions
	urlsFile string   // "-" is standard input; empty: no URLs are compared
	agents   []string // empty: all agents that either file names
}

func newDiffCommand(env *command.Env) *cobra.Command {
	q := diffOptions{checkOptions: checkOptions{env: env}}
	c := &cobra.Command{
		Use: "diff OLD NEW", Short: "Compare two versions of a robots.txt",
		Long: robotsDiffHelp, Example: robotsDiffExample, Args: command.ArgsOrUsageError(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return q.diffRobots(c.Context(), c.InOrStdin(), [2]string(args))
		},
	}
	fs := c.Flags()
	fs.StringVar(&q.urlsFile, "urls", "", "compare the verdicts on the URLs or paths in `FILE`, one a line; - is "+
		"standard input (default: none)")
	fs.StringArrayVar(&q.agents, "agent", nil,
		"compare --urls for the agent `NAME`, a product token; repeatable (default: all agents in the files)")
	fs.StringVar(&q.dialect, "dialect", "google", "read the files in `DIALECT`: google, yandex or google-oss")
	command.AddFormatFlag(c, &q.format, "text", "json")
	q.addFetchFlags(fs)
	return c
}

// diffRobots prints how the files names[0] and names[1] differ. It returns ExitCheckFailed if they
// do.
func (q diffOptions) diffRobots(ctx context.Context, stdin io.Reader, names [2]string) error {
	dialect, err := robots.ParseDialect(q.dialect)
	if err != nil {
		return usage.Errorf("--dialect: %w", err)
	}
	for _, name := range q.agents {
		if name != "*" && robots.AgentFromName(name).Token() == "" {
			return usage.Errorf("--agent: %q is not a crawler; expected a product token such as examplebot, or *", name)
		}
	}
	var files [2]*robots.File
	for i, name := range names {
		body, err := q.loadRobotsBody(ctx, dialect, name)
		if err != nil {
			return err
		}
		files[i] = robots.Parse(body, dialect)
	}
	// Compare the rules first, then the verdicts on the URLs of --urls.
	old, new := files[0], files[1]
	changes := lint.Diff(old, new)
	if err := q.printChanges(q.env.Stdout, changes); err != nil {
		return err
	}
	anyChanged, err := q.printChangedURLVerdicts(stdin, old, new)
	if err == nil && (anyChanged || !changes.IsEmpty()) {
		return &command.ExitError{Code: command.ExitCheckFailed}
	}
	return err
}

// printChanges writes the changes of the files, agent by agent, then those of the sitemaps.
func (q diffOptions) printChanges(w io.Writer, c lint.FileChanges) error {
	if q.format == "json" {
		return jsonline.NewEscapingEncoder(w).Encode(c)
	}
	var b strings.Builder
	writeAll := func(format string, lines []string) {
		for _, line := range lines {
			fmt.Fprintf(&b, format, line)
		}
	}
	for _, agent := range c.AgentChanges {
		fmt.Fprintf(&b, "agent %s\n", agent.Agent)
		for _, r := range agent.AddedRules {
			fmt.Fprintf(&b, "  + %s (line %d)\n", plaintext.ReplaceControlChars(r.Rule), r.Line)
		}
		for _, r := range agent.RemovedRules {
			fmt.Fprintf(&b, "  - %s (line %d)\n", plaintext.ReplaceControlChars(r.Rule), r.Line)
		}
		if agent.OldDelay != agent.NewDelay {
			fmt.Fprintf(&b, "  crawl-delay %s -> %s\n", agent.OldDelay, agent.NewDelay)
		}
		writeAll("  + %s\n", linesNotIn(agent.NewRateAndVisitTimeLines, agent.OldRateAndVisitTimeLines))
		writeAll("  - %s\n", linesNotIn(agent.OldRateAndVisitTimeLines, agent.NewRateAndVisitTimeLines))
	}
	if c.AgentsNotComparedCount > 0 {
		fmt.Fprintf(&b, "%d more agents were not compared\n", c.AgentsNotComparedCount)
	}
	writeAll("sitemap\n  + %s\n", c.SitemapsAdded)
	writeAll("sitemap\n  - %s\n", c.SitemapsRemoved)
	_, err := io.WriteString(w, b.String())
	return err
}

// An agentRulesChange holds the rules of both files for one agent.
type agentRulesChange struct {
	name     string
	old, new *robots.Rules
}

// printChangedURLVerdicts prints the URLs of --urls whose verdict differs between the files, and
// reports whether there are any.
func (q diffOptions) printChangedURLVerdicts(stdin io.Reader, old, new *robots.File) (anyChanged bool, err error) {
	if q.urlsFile == "" {
		return false, nil
	}
	in, err := openFileOrStdin(stdin, q.urlsFile, "URLs")
	if err != nil {
		return false, err
	}
	defer in.Close()
	// Rules are compiled once for each agent; each URL is checked against both files.
	agents := q.agentRulesToCompare(old, new)
	s := bufio.NewScanner(in)
	n := 1
	for ; s.Scan(); n++ {
		text := strings.TrimSpace(strings.TrimPrefix(s.Text(), plaintext.ByteOrderMark))
		if text == "" {
			continue
		}
		u, err := parsePathOrURL(text)
		if err != nil {
			return anyChanged, usage.Errorf("--urls: line %d: %q is neither a URL nor a path", n, text)
		}
		for _, agent := range agents {
			before, after := agent.old.Check(u), agent.new.Check(u)
			if before.Allowed == after.Allowed {
				continue
			}
			anyChanged = true
			if err := q.printChangedURL(q.env.Stdout, text, agent.name, before, after); err != nil {
				return anyChanged, err
			}
		}
	}
	if err := s.Err(); err != nil {
		return anyChanged, fmt.Errorf("cannot read the URLs: line %d: %w", n, plaintext.DescribeScanError(err))
	}
	return anyChanged, nil
}

// agentRulesToCompare returns the agents of --agent, or without that flag the agents that either
// file names, each once, with their rules.
func (q diffOptions) agentRulesToCompare(old, new *robots.File) []agentRulesChange {
	names := q.agents
	if len(names) == 0 {
		names, _ = lint.ComparedAgents(old, new)
	}
	var agents []agentRulesChange
	seen := make(map[string]bool)
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			a := robots.AgentFromName(name)
			agents = append(agents, agentRulesChange{name, old.RulesFor(a), new.RulesFor(a)})
		}
	}
	return agents
}

// parsePathOrURL parses a URL, or a path.
func parsePathOrURL(s string) (decorum.URL, error) {
	if strings.HasPrefix(s, "/") { // rules match the path alone, so any host will do
		s = "https://host.invalid" + s
	}
	return decorum.ParseURL(s)
}

// printChangedURL writes the URL text, which opens or closes for agent, and the rule that decides.
func (q diffOptions) printChangedURL(w io.Writer, text, agent string, before, after robots.Verdict) error {
	if q.format == "json" {
		return jsonline.NewEscapingEncoder(w).Encode(struct {
			URL   string         `json:"url"`
			Agent string         `json:"agent"`
			Old   robots.Verdict `json:"old"`
			New   robots.Verdict `json:"new"`
		}{text, agent, before, after})
	}
	change, decisive := "closes", after
	if after.Allowed {
		change = "opens"
	}
	if after.Rule == "" { // the rule that decided was removed
		decisive = before
	}
	_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s (line %d)\n", change, agent, plaintext.ReplaceControlChars(text),
		plaintext.ReplaceControlChars(decisive.Rule), decisive.Line)
	return err
}

// linesNotIn returns the elements of lines that others does not contain.
func linesNotIn(lines, others []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return slices.Contains(others, s) })
}
