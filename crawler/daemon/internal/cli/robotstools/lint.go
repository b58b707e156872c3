package robotstools

import (
	"context"
	"fmt"
	"io"
	"strings"

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
a crawler does, what was probably meant, and a code in brackets. An error has no effect,
a warning has an effect but probably not the intended one, a hint does not work with
every crawler. The command prints errors and warnings; --level hint adds hints, for
example about robots of the 1994 standard. The last lines count the findings and name
the page that explains each code.

--format json writes one JSON object for each finding: file, line, severity, requirement (the
code), message, effect, advice, url (of the section about the code).

"-" is standard input.

Exit codes: 0 nothing printed is worse than a hint, 3 an error or a warning is printed,
1 cannot get the file, 2 wrong usage.`

const robotsLintExample = `  decorum robots lint robots.txt
  decorum robots lint --level hint --format json https://example.com/robots.txt
  curl -s https://example.com/robots.txt | decorum robots lint -`

// A lintOptions holds the flags of decorum robots lint.
type lintOptions struct {
	checkOptions
	level string // the name of the least severity that is printed
}

// newLintCommand returns the command decorum robots lint.
func newLintCommand(env *command.Env) *cobra.Command {
	q := lintOptions{checkOptions: checkOptions{env: env}}
	c := &cobra.Command{
		Use: "lint FILE|URL", Short: "Find mistakes in a robots.txt",
		Long: robotsLintHelp, Example: robotsLintExample, Args: command.ArgsOrUsageError(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return q.lintRobots(c.Context(), c.InOrStdin(), args[0])
		},
	}
	command.AddFormatFlag(c, &q.format, "text", "json")
	c.Flags().StringVar(&q.dialect, "dialect", "google", "read the file in `DIALECT`: google or yandex")
	_ = c.RegisterFlagCompletionFunc("dialect",
		cobra.FixedCompletions([]string{"google", "yandex"}, cobra.ShellCompDirectiveNoFileComp))
	c.Flags().StringVar(&q.level, "level", lint.Warning.String(),
		"print findings of the severity `LEVEL` and worse ones: hint, warning or error")
	q.addFetchFlags(c.Flags())
	return c
}

// lintRobots prints the findings in the robots.txt name: a file, a URL, or "-" for stdin. It returns
// ExitCheckFailed if it prints one that is worse than a hint.
func (q lintOptions) lintRobots(ctx context.Context, stdin io.Reader, name string) error {
	dialect, err := robots.ParseDialect(q.dialect)
	if err != nil {
		return usage.Errorf("--dialect: %w", err)
	}
	level, err := lint.ParseSeverity(q.level)
	if err != nil {
		return usage.Errorf("--level: %w", err)
	}
	if dialect == robots.GoogleOSS {
		return usage.Errorf("--dialect: robots lint reads only google and yandex; use google-oss with robots check " +
			"or robots batch")
	}
	var body []byte
	if name == "-" {
		var in io.ReadCloser
		if in, err = openFileOrStdin(stdin, name, "robots.txt"); err != nil {
			return err
		}
		name = "stdin" // in findings
		body, err = readRobotsText(in)
	} else {
		body, err = q.loadRobotsBody(ctx, dialect, name)
	}
	if err != nil {
		return err
	}
	return q.printLintFindings(name, level, lint.Check(body, robots.ParseOptions{Dialect: dialect}))
}

// printLintFindings prints the findings of at least the severity level, and the summary unless --format json
// is given. It returns ExitCheckFailed if one that it prints is worse than a hint.
func (q lintOptions) printLintFindings(name string, level lint.Severity, found []lint.Finding) error {
	var counts lintCounts
	bad := false
	for _, f := range found {
		counts[f.Severity]++
		if f.Severity < level {
			continue
		}
		bad = bad || f.Severity > lint.Hint
		if err := printLintFinding(q.env.Stdout, q.format == "json", name, f); err != nil {
			return err
		}
	}
	if q.format != "json" {
		if _, err := io.WriteString(q.env.Stdout, counts.summary(name, level)); err != nil {
			return err
		}
	}
	if bad {
		return &command.ExitError{Code: command.ExitCheckFailed}
	}
	return nil
}

// A lintCounts holds the number of findings of each severity.
type lintCounts [lint.Error + 1]int

// summary returns the lines that follow the findings in the file name: how many there are of each
// severity, which of them are below level and therefore not printed, and where the codes are explained.
func (c *lintCounts) summary(name string, level lint.Severity) string {
	var printed, hidden []string
	hasPrinted := false
	for _, s := range [...]lint.Severity{lint.Error, lint.Warning, lint.Hint} {
		text := fmt.Sprintf("%d %ss", c[s], s)
		if c[s] == 1 {
			text = fmt.Sprintf("1 %s", s)
		}
		switch {
		case s >= level:
			printed = append(printed, text)
			hasPrinted = hasPrinted || c[s] > 0
		case c[s] > 0:
			hidden = append(hidden, text)
		}
	}
	text := name + ": " + strings.Join(printed, ", ")
	if len(hidden) > 0 {
		text += "; not shown: " + strings.Join(hidden, ", ") + " (--level hint)"
	}
	if hasPrinted {
		text += "\n" + name + ": the codes in brackets are explained at " + lint.PageURL
	}
	return text + "\n"
}

// printLintFinding writes the finding f in the file name. It leaves out the line number of a finding
// about the whole file.
func printLintFinding(w io.Writer, asJSON bool, name string, f lint.Finding) error {
	if asJSON {
		return jsonline.NewEscapingEncoder(w).Encode(struct {
			File string `json:"file"`
			lint.Finding
			URL string `json:"url"`
		}{name, f, f.URL()})
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
