package robotstools

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
	"github.com/decorum-crawler/decorum/robots/gate"
)

const robotsCheckHelp = `Say for each URL whether robots.txt allows an agent to visit it, and which rule
on which line decides. The robots.txt of each URL's origin is fetched, once and at
a polite pace, unless --file names another to judge by.

One line a URL: the verdict, the URL and the rule, separated by tabs. --explain
adds the file, the group, every rule that matches with the part of the URL it takes
("*" under what a wildcard stands for) and why it lost, and what the file asks of pace
and of AI use. --json writes the same as one JSON object a line.

YandexDirect and YandexCalendar may fetch what is closed to "*". What YandexBot may
not fetch is then allowed, and "not for indexing" stands behind the rule.

A URL is judged in canonical form, as it is before Clean-param: decorum explain says
what a crawl makes of it. With --dialect google-oss decorum robots batch judges it as
it is written.

Exit codes: 0 all are allowed, 3 at least one is not, 1 a robots.txt could not be
had, 2 wrong usage, 4 interrupted.`

const robotsCheckExample = `  decorum robots check --agent examplebot https://example.com/ https://example.com/private/
  decorum robots check --agent Googlebot-Image --file robots.txt https://example.com/photo.jpg
  decorum robots check --agent YandexBot --dialect yandex https://example.com/`

// NewRobotsCommand returns the command robots and its subcommands.
func NewRobotsCommand(env *command.Env) *cobra.Command {
	return command.NewGroup("robots", "Ask robots.txt files", "",
		newCheckCommand(env), newBatchCommand(env), newLintCommand(env), newDiffCommand(env))
}

// A checkOptions is what somebody asks of robots.txt files.
type checkOptions struct {
	env                  *command.Env
	file, agent, contact string
	dialect              string
	connectToRules       []string
	allowPrivate         bool
	explain, asJSON      bool
}

func newCheckCommand(env *command.Env) *cobra.Command {
	q := checkOptions{env: env}
	c := &cobra.Command{
		Use: "check --agent NAME [--file FILE|URL] URL…", Short: "Ask whether an agent may visit URLs",
		Long: robotsCheckHelp, Example: robotsCheckExample, Args: command.ArgsOrUsageError(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, urls []string) error { return q.checkRobots(c.Context(), urls) },
	}
	fs := c.Flags()
	fs.StringVar(&q.agent, "agent", "", "product token `NAME`, or a well-known crawler such as Googlebot-News; compulsory")
	fs.StringVar(&q.file, "file", "", "judge by this `FILE`, or by the robots.txt at this URL")
	fs.StringVar(&q.dialect, "dialect", robots.Google.String(), "read robots.txt as `ENGINE` does: google, yandex or google-oss")
	fs.BoolVar(&q.explain, "explain", false, "say for each URL all that led to the verdict")
	fs.BoolVar(&q.asJSON, "json", false, "write what --explain says as JSON, one object a line")
	q.addFetchFlags(fs)
	return c
}

// checkRobots prints a verdict for each URL.
func (q checkOptions) checkRobots(ctx context.Context, urls []string) error {
	agent := robots.AgentFromName(q.agent)
	if agent.Token() == "" {
		return usage.Errorf("--agent: %q names no crawler; expected a product token, as in examplebot", q.agent)
	}
	dialect, err := robots.ParseDialect(q.dialect)
	if err != nil {
		return usage.Errorf("--dialect: %v", err)
	}
	pages := make([]decorum.URL, len(urls))
	for i, s := range urls {
		if pages[i], err = decorum.ParseURL(s); err != nil {
			return usage.Errorf("%q is not a URL that robots.txt speaks of: expected https://host/path", s)
		}
	}
	explain, err := newExplainFunc(q, agent, dialect)
	if err != nil {
		return err
	}
	ctx, stop := q.env.WithSignalCancel(ctx)
	defer stop()
	isDisallowed, explainErrs := false, error(nil)
	for _, u := range pages {
		e, err := explain(ctx, u)
		if err != nil {
			explainErrs = errors.Join(explainErrs, err)
			continue
		}
		isDisallowed = isDisallowed || !e.Allowed
		if err := q.printCheckResult(q.env.Stdout, u, e); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(context.Cause(ctx), engine.ErrInterrupted):
		return &command.ExitError{Code: command.ExitStopped, Err: engine.ErrInterrupted}
	case explainErrs == nil && isDisallowed:
		return &command.ExitError{Code: command.ExitCheckFailed}
	}
	return explainErrs
}

// An explainFunc says what robots.txt says of a URL.
type explainFunc func(context.Context, decorum.URL) (gate.Explanation, error)

// newExplainFunc returns a judge by a file, by one origin, or by the origin of each
// URL.
func newExplainFunc(q checkOptions, agent robots.Agent, dialect robots.Dialect) (explainFunc, error) {
	if !hasURLScheme(q.file) && q.file != "" { // on disk
		body, err := readRobotsFile(q.file)
		if err != nil {
			return nil, err
		}
		file, sum := robots.Parse(body, dialect), fmt.Sprintf("%x", sha256.Sum256(body))
		rules, usageRules := file.RulesFor(agent), aiuse.Compile(file, agent)
		return func(_ context.Context, u decorum.URL) (gate.Explanation, error) {
			return gate.NewExplanation(rules.Explain(u), sum, usageRules.SignalsForURL(u)), nil
		}, nil
	}
	c, err := q.newOnDemandCrawl(agent, dialect)
	if err != nil {
		return nil, err
	}
	var o decorum.Origin // zero: that of each URL
	if q.file != "" {
		o, err = originOfRobotsURL("--file", q.file)
	}
	return func(ctx context.Context, u decorum.URL) (gate.Explanation, error) {
		o := cmp.Or(o, u.Origin())
		if _, err := c.FetchRobots(ctx, o); err != nil {
			return gate.Explanation{}, err
		}
		return c.Gate().Explain(ctx, o, u)
	}, err
}

// printCheckResult writes what is said of u as the flags ask.
func (q checkOptions) printCheckResult(w io.Writer, u decorum.URL, e gate.Explanation) error {
	if q.asJSON {
		return jsonline.NewEscapingEncoder(w).Encode(struct {
			URL string `json:"url"`
			gate.Explanation
		}{u.String(), e})
	}
	verdict, reason := "disallowed", "no rule"
	if e.Allowed {
		verdict = "allowed"
	}
	if e.Rule != "" {
		reason = inspect.RuleText(e.Verdict)
	}
	if e.DisallowedForMainRobot {
		reason += "; not for indexing"
	}
	var b reporttext.Builder
	b.WriteLine("%s\t%s\t%s", verdict, u, reason)
	if q.explain {
		writeRobotsExplanation(&b, e)
	}
	return b.PrintTo(w)
}

// writeRobotsExplanation words what led to a verdict.
func writeRobotsExplanation(b *reporttext.Builder, e gate.Explanation) {
	b.WriteLineIf(e.SHA256 != "", "  file\tSHA-256 %s", e.SHA256)
	b.WriteLineIf(e.Group == "", "  group\tnone speaks to the agent")
	b.WriteLineIf(e.Group != "", "  group\t%s (%s)",
		plaintext.ReplaceControlChars(e.Group), lineNumbersText(e.GroupAgentLineNumbers))
	b.WriteLineIf(e.Exempt, "  exempt\trobots.txt itself may always be fetched")
	if e.IndexingVerdict != nil {
		b.WriteLine("  index\t%s", reporttext.DisallowedForMainRobotText(*e.IndexingVerdict))
	}
	for i, m := range e.Matches {
		role := "loses"
		if i == 0 {
			role = "decides"
		}
		b.WriteLine("  %s\t%s (line %d, %d octets)%s", role, plaintext.ReplaceControlChars(m.Rule), m.Line, m.RuleLength,
			reporttext.LostRuleReasonText(m, e.Matches[0]))
		b.WriteLine("  \t  %s\n  \t  %s", e.PathAndQuery, ruleMatchUnderline(m))
	}
	for _, s := range e.UsageSignals {
		b.WriteLine("  asks\t%s", sinks.UsageSignalText(s))
	}
	for _, line := range e.PaceLines {
		b.WriteLine("  asks\t%s", line)
	}
}

// ruleMatchUnderline marks the part of a path that a rule matches, wildcards by "*".
func ruleMatchUnderline(m robots.MatchingRule) string {
	marks := []byte(strings.Repeat("^", m.Span.End))
	for _, w := range m.WildcardSpans {
		for i := w.Start; i < w.End; i++ {
			marks[i] = '*'
		}
	}
	return string(marks)
}

// lineNumbersText words line numbers.
func lineNumbersText(numbers []int) string {
	word := "line "
	if len(numbers) > 1 {
		word = "lines "
	}
	return word + strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]")
}
