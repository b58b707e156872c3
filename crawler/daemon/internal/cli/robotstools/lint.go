package robotstools

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/lint"
)

const robotsLintHelp = `Find mistakes in a robots.txt, for its author: lines that crawlers ignore, lines that do
the opposite of what they seem to do, rules that can never win, and lines that other
crawlers read differently.

The command prints each finding on a line, in the format of compilers: the mistake, what
a crawler does, and what was probably meant. An error has no effect, a warning has an
effect but probably not the intended one, a hint does not work with every crawler.
--json writes one JSON object for each finding: file, line, severity, requirement,
message, effect, advice.

Exit codes: 0 only hints, 3 an error or a warning, 1 cannot get the file, 2 wrong
usage.`

const robotsLintExample = `  decorum robots lint robots.txt
  decorum robots lint --json https://example.com/robots.txt`

// newLintCommand returns the command decorum robots lint.
func newLintCommand(env *command.Env) *cobra.Command {
	q := checkOptions{env: env}
	c := &cobra.Command{
		Use: "lint FILE|URL", Short: "Find mistakes in a robots.txt",
		Long: robotsLintHelp, Example: robotsLintExample, Args: command.ArgsOrUsageError(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return q.lintRobots(c.Context(), args[0]) },
	}
	c.Flags().BoolVar(&q.asJSON, "json", false, "write findings as JSON, one object a line")
	c.Flags().StringVar(&q.dialect, "dialect", "google", "read the file in `DIALECT`: google or yandex")
	q.addFetchFlags(c.Flags())
	return c
}

// lintRobots prints the findings in the robots.txt name, a file or a URL. It returns ExitCheckFailed
// if one is worse than a hint.
func (q checkOptions) lintRobots(ctx context.Context, name string) error {
	dialect, err := robots.ParseDialect(q.dialect)
	if err != nil {
		return usage.Errorf("--dialect: %w", err)
	}
	if dialect == robots.GoogleOSS {
		return usage.Errorf("--dialect: robots lint reads only google and yandex; use google-oss with robots check " +
			"or robots batch")
	}
	body, err := q.loadRobotsBody(ctx, dialect, name)
	if err != nil {
		return err
	}
	bad := false
	for _, f := range lint.Check(body, robots.ParseOptions{Dialect: dialect}) {
		bad = bad || f.Severity > lint.Hint
		if err := printLintFinding(q.env.Stdout, q.asJSON, name, f); err != nil {
			return err
		}
	}
	if bad {
		return &command.ExitError{Code: command.ExitCheckFailed}
	}
	return nil
}

// printLintFinding writes the finding f in the file name. It leaves out the line number of a finding
// about the whole file.
func printLintFinding(w io.Writer, asJSON bool, name string, f lint.Finding) error {
	if asJSON {
		return jsonline.NewEscapingEncoder(w).Encode(struct {
			File string `json:"file"`
			lint.Finding
		}{name, f})
	}
	place := name
	if f.Line > 0 {
		place = fmt.Sprintf("%s:%d", name, f.Line)
	}
	advice := ""
	if f.Advice != "" {
		advice = "; " + f.Advice
	}
	_, err := fmt.Fprintf(w, "%s: %s: %s: %s%s [%s]\n", place, f.Severity, f.Message, f.Effect, advice, f.Code)
	return err
}
