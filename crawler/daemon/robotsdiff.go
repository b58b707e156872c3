package daemon

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/robots"
)

const robotsDiffHelp = `Compare two versions of a robots.txt by what they mean: order, comments and spelling
make no difference. For each agent that either file names, and for "*", the rules it
gains and loses; then delays and sitemaps. An agent without a group of its own has
the rules of "*".

With --urls also the URLs that open or close, for each --agent, or without one for
each agent that either file names: one URL or path a line of the file, "-" for
standard input.

--json writes all changes of the files as one JSON object on the first line, then one
object for each URL that opens or closes.

Exit codes: 0 no difference in rules, delays and sitemaps, 3 a difference, 1 a file
could not be had, 2 wrong usage.`

const robotsDiffExample = `  decorum robots diff old.txt new.txt
  decorum robots diff https://example.com/robots.txt new.txt --urls urls.txt --agent Googlebot`

// A robotsDiff is what somebody asks of two versions of a robots.txt.
type robotsDiff struct {
	robotsCheck
	urls   string
	agents []string
}

func (a *app) robotsDiffCommand() *cobra.Command {
	var q robotsDiff
	c := &cobra.Command{
		Use: "diff OLD NEW", Short: "Compare two versions of a robots.txt",
		Long: robotsDiffHelp, Example: robotsDiffExample, Args: args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return a.diffRobots(c.Context(), q, c.InOrStdin(), args[0], args[1])
		},
	}
	fs := c.Flags()
	fs.StringVar(&q.urls, "urls", "", "judge the URLs or paths in this `FILE`, one a line; - is standard input")
	fs.StringArrayVar(&q.agents, "agent", nil, "judge --urls for this agent, a product `NAME`; repeatable")
	fs.StringVar(&q.dialect, "dialect", "google", "`DIALECT` to read the files in")
	fs.BoolVar(&q.json, "json", false, "write JSON, one object a line")
	q.askFlags(fs)
	return c
}

// diffRobots prints how two files differ.
func (a *app) diffRobots(ctx context.Context, q robotsDiff, stdin io.Reader, names ...string) error {
	dialect, err := robots.ParseDialect(q.dialect)
	if err != nil {
		return usage("--dialect: %w", err)
	}
	for _, name := range q.agents {
		if name != "*" && robots.Named(name).Token() == "" {
			return usage("--agent: %q names no crawler; expected a product token, as in examplebot, or *", name)
		}
	}
	bodies, err := q.robotsBodies(ctx, dialect, names...)
	if err != nil {
		return err
	}
	old, new := robots.Parse(bodies[0], dialect), robots.Parse(bodies[1], dialect)
	changes := robots.Diff(old, new)
	if err := q.printChanges(a.stdout, changes); err != nil {
		return err
	}
	turned, err := a.diffURLs(q, stdin, old, new)
	if err == nil && (turned || !changes.Empty()) {
		return &exit{code: ExitNo}
	}
	return err
}

func (q robotsDiff) printChanges(w io.Writer, c robots.Changes) error {
	if q.json {
		return jsonline.NewEncoder(w).Encode(c)
	}
	var b strings.Builder
	for _, agent := range c.Agents {
		fmt.Fprintf(&b, "agent %s\n", agent.Agent)
		for _, r := range agent.Added {
			fmt.Fprintf(&b, "  + %s (line %d)\n", plain(r.Rule), r.Line)
		}
		for _, r := range agent.Removed {
			fmt.Fprintf(&b, "  - %s (line %d)\n", plain(r.Rule), r.Line)
		}
		if agent.OldDelay != agent.NewDelay {
			fmt.Fprintf(&b, "  crawl-delay %s -> %s\n", agent.OldDelay, agent.NewDelay)
		}
		for _, line := range without(agent.NewPace, agent.OldPace) {
			fmt.Fprintf(&b, "  + %s\n", line)
		}
		for _, line := range without(agent.OldPace, agent.NewPace) {
			fmt.Fprintf(&b, "  - %s\n", line)
		}
	}
	if c.Left > 0 {
		fmt.Fprintf(&b, "%d more agents were not compared\n", c.Left)
	}
	for _, s := range c.SitemapsAdded {
		fmt.Fprintf(&b, "sitemap\n  + %s\n", s)
	}
	for _, s := range c.SitemapsRemoved {
		fmt.Fprintf(&b, "sitemap\n  - %s\n", s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// An agentDiff is what the two files say to one agent.
type agentDiff struct {
	name     string
	old, new *robots.Rules
}

// diffURLs prints the URLs that the new file judges otherwise, and reports
// whether there are any.
func (a *app) diffURLs(q robotsDiff, stdin io.Reader, old, new *robots.File) (turned bool, err error) {
	if q.urls == "" {
		return false, nil
	}
	in := stdin
	if q.urls != "-" {
		f, err := os.Open(q.urls)
		if err != nil {
			return false, fmt.Errorf("cannot read the URLs: %w", err)
		}
		defer f.Close()
		in = f
	}
	agents := q.asked(old, new)
	s := bufio.NewScanner(in)
	n := 1
	for ; s.Scan(); n++ {
		text := strings.TrimSpace(strings.TrimPrefix(s.Text(), byteOrderMark))
		if text == "" {
			continue
		}
		u, err := pathOrURL(text)
		if err != nil {
			return turned, usage("--urls: line %d: %q is neither a URL nor a path", n, text)
		}
		for _, agent := range agents {
			was, is := agent.old.Check(u), agent.new.Check(u)
			if was.Allowed == is.Allowed {
				continue
			}
			turned = true
			if err := q.printTurn(a.stdout, text, agent.name, was, is); err != nil {
				return turned, err
			}
		}
	}
	if err := s.Err(); err != nil {
		return turned, fmt.Errorf("cannot read the URLs: line %d: %w", n, inWords(err))
	}
	return turned, nil
}

// asked returns the agents to judge for.
func (q robotsDiff) asked(old, new *robots.File) []agentDiff {
	names := q.agents
	if len(names) == 0 {
		names, _ = robots.DiffAgents(old, new)
	}
	var agents []agentDiff
	seen := make(map[string]bool)
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			a := robots.Named(name)
			agents = append(agents, agentDiff{name, old.For(a), new.For(a)})
		}
	}
	return agents
}

// pathOrURL reads a URL, or a path of whatever host.
func pathOrURL(s string) (decorum.URL, error) {
	if strings.HasPrefix(s, "/") {
		s = "https://host.invalid" + s
	}
	return decorum.ParseURL(s)
}

// printTurn writes one URL that opens or closes for an agent.
func (q robotsDiff) printTurn(w io.Writer, text, agent string, was, is robots.Verdict) error {
	if q.json {
		return jsonline.NewEncoder(w).Encode(struct {
			URL   string         `json:"url"`
			Agent string         `json:"agent"`
			Old   robots.Verdict `json:"old"`
			New   robots.Verdict `json:"new"`
		}{text, agent, was, is})
	}
	turn, why := "closes", is
	if is.Allowed {
		turn = "opens"
	}
	if is.Rule == "" {
		why = was
	}
	_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s (line %d)\n", turn, agent, plain(text), plain(why.Rule), why.Line)
	return err
}

// without returns what lines has and others has not.
func without(lines, others []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return slices.Contains(others, s) })
}
