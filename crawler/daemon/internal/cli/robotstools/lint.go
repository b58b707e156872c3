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

const robotsLintHelp = `Look at a robots.txt for its author: what crawlers ignore, what does the opposite of
what it seems, rules that can never win, and what other crawlers read otherwise.

One line a finding, as compilers write it, with what is there, what a crawler does
and what was probably meant. An error does not work, a warning works, though hardly
as meant, a hint does not work everywhere. --json writes one JSON object a finding:
file, line, severity, requirement, message, effect, advice.

Exit codes: 0 nothing but hints, 3 an error or a warning, 1 the file could not be
had, 2 wrong usage.`

const robotsLintExample = `  decorum robots lint robots.txt
  decorum robots lint --json https://example.com/robots.txt`

func newLintCommand(env *command.Env) *cobra.Command {
	q := checkOptions{env: env}
	c := &cobra.Command{
		Use: "lint FILE|URL", Short: "Look for mistakes in a robots.txt",
		Long: robotsLintHelp, Example: robotsLintExample, Args: command.ArgsOrUsageError(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return q.lintRobots(c.Context(), args[0]) },
	}
	c.Flags().BoolVar(&q.asJSON, "json", false, "write findings as JSON, one object a line")
	c.Flags().StringVar(&q.dialect, "dialect", "google", "`DIALECT` to read the file in")
	q.addFetchFlags(c.Flags())
	return c
}

// lintRobots prints what is found in the robots.txt of that name.
func (q checkOptions) lintRobots(ctx context.Context, name string) error {
	dialect, err := robots.ParseDialect(q.dialect)
	if err != nil {
		return usage.Errorf("--dialect: %w", err)
	}
	if dialect == robots.GoogleOSS {
		return usage.Errorf("--dialect: a file is looked at as authors write for google or yandex; robots check and batch know google-oss")
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
