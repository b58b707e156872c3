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

const robotsCheckHelp = `Check for each URL whether robots.txt allows an agent to visit it, and print which rule
on which line decides. The command fetches the robots.txt of each URL's origin, once
and at a polite pace. With --file it uses that file instead.

It prints one line for each URL: the verdict, the URL and the rule, separated by tabs.
--explain adds the file, the group, every matching rule with the part of the URL that
it matches ("*" marks what a wildcard matches) and why it lost, and what the file
requires about pace and AI use. --format json prints the same as one JSON object a
line.

YandexDirect and YandexCalendar may fetch URLs that are disallowed for "*". If
YandexBot may not fetch a URL that these agents may fetch, the verdict is "allowed",
and "not for indexing" follows the rule.

The command evaluates a URL in its canonical form, before Clean-param. decorum explain
shows what a crawl does with it. decorum robots batch --dialect google-oss evaluates
it as written.

Exit codes: 0 all URLs are allowed, 3 at least one is disallowed, 1 cannot get a
robots.txt, 2 wrong usage, 4 interrupted.`

const robotsExplainHelp = `Explain for each URL why robots.txt allows or disallows it for an agent: the file, the
group, every matching rule with the part of the URL that it matches and why it lost,
and what the file requires about pace and AI use. The command is robots check with
--explain, and has its flags and exit codes.

decorum explain also shows what a crawl would do with a URL, and when.`

const robotsCheckExample = `  decorum robots check --agent examplebot https://example.com/ https://example.com/private/
  decorum robots check --agent Googlebot-Image --file robots.txt https://example.com/photo.jpg
  decorum robots check --agent YandexBot --dialect yandex https://example.com/`

// NewRobotsCommand returns the command decorum robots and its subcommands.
func NewRobotsCommand(env *command.Env) *cobra.Command {
	return command.NewGroup("robots", "Evaluate, check and compare robots.txt files", "",
		newCheckCommand(env), newExplainCommand(env), newBatchCommand(env), newLintCommand(env), newDiffCommand(env))
}

// A checkOptions holds the flags of decorum robots check. The other commands of this package use
// those of its fields whose flags they have.
type checkOptions struct {
	env                  *command.Env
	file, agent, contact string // file: a path or a URL; empty: the robots.txt of each URL's origin
	dialect              string
	connectToRules       []string
	allowPrivate         bool
	explain              bool
	format               string // text or json
}

// newExplainCommand returns the command decorum robots explain, which is check with --explain.
func newExplainCommand(env *command.Env) *cobra.Command {
	c := newCheckCommand(env)
	c.Use = "explain" + strings.TrimPrefix(c.Use, "check")
	c.Short, c.Long = "Explain which rules of robots.txt decide on URLs", robotsExplainHelp
	c.Example = `  decorum robots explain --agent examplebot https://example.com/private/`
	explain := c.Flags().Lookup("explain")
	explain.DefValue, explain.Hidden = "true", true
	_ = explain.Value.Set("true") // "true" is always a valid bool
	return c
}

func newCheckCommand(env *command.Env) *cobra.Command {
	q := checkOptions{env: env}
	c := &cobra.Command{
		Use: "check --agent NAME [--file FILE|URL] URL…", Short: "Check whether an agent may visit URLs",
		Long: robotsCheckHelp, Example: robotsCheckExample, Args: command.ArgsOrUsageError(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, urls []string) error { return q.checkRobots(c.Context(), urls) },
	}
	fs := c.Flags()
	fs.StringVar(&q.agent, "agent", "", "check for the product token `NAME`, or a well-known crawler such as "+
		"Googlebot-News; required")
	fs.StringVar(&q.file, "file", "", "use this `FILE`, or the robots.txt at this URL (default: that of each URL's "+
		"origin)")
	fs.StringVar(&q.dialect, "dialect", robots.Google.String(),
		"read robots.txt as `ENGINE` does: google, yandex or google-oss")
	fs.BoolVar(&q.explain, "explain", false, "print for each URL all that led to the verdict")
	command.AddFormatFlag(c, &q.format, "text", "json")
	q.addFetchFlags(fs)
	return c
}

// checkRobots prints a verdict for each of urls. It returns ExitCheckFailed if one is disallowed, and
// the errors of all robots.txt files that it cannot get.
func (q checkOptions) checkRobots(ctx context.Context, urls []string) error {
	agent := robots.AgentFromName(q.agent)
	if agent.Token() == "" {
		return usage.Errorf("--agent: %q is not a crawler; expected a product token such as examplebot", q.agent)
	}
	dialect, err := robots.ParseDialect(q.dialect)
	if err != nil {
		return usage.Errorf("--dialect: %v", err)
	}
	pages := make([]decorum.URL, len(urls))
	for i, s := range urls {
		if pages[i], err = decorum.ParseURL(s); err != nil {
			return usage.Errorf("%q is not a URL that robots.txt applies to: expected https://host/path", s)
		}
	}
	explain, err := newExplainFunc(q, agent, dialect)
	if err != nil {
		return err
	}
	ctx, stop := q.env.WithSignalCancel(ctx)
	defer stop()
	// An origin without its robots.txt gives an error, but the other URLs still get their verdicts.
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

// An explainFunc returns the verdict of a robots.txt on a URL, with its reasons.
type explainFunc func(context.Context, decorum.URL) (gate.Explanation, error)

// newExplainFunc returns a function that explains URLs by the file on disk of --file, by the
// robots.txt at the URL of --file, or without --file by the robots.txt of each URL's origin.
func newExplainFunc(q checkOptions, agent robots.Agent, dialect robots.Dialect) (explainFunc, error) {
	if !hasURLScheme(q.file) && q.file != "" { // a file on disk
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
	var o decorum.Origin // zero: the origin of each URL
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

// printCheckResult writes the result e for the URL u, in the format of the flags.
func (q checkOptions) printCheckResult(w io.Writer, u decorum.URL, e gate.Explanation) error {
	if q.format == "json" {
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

// writeRobotsExplanation writes the lines of --explain: the file, the group, the matching rules with
// the deciding rule first, and what the file requires about AI use and pace.
func writeRobotsExplanation(b *reporttext.Builder, e gate.Explanation) {
	b.WriteLineIf(e.SHA256 != "", "  file\tSHA-256 %s", e.SHA256)
	b.WriteLineIf(e.Group == "", "  group\tno group applies to the agent")
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
		b.WriteLine("  %s\t%s (line %d, %d octets)%s", role,
			plaintext.ReplaceControlChars(m.Rule), m.Line, m.RuleLength,
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

// ruleMatchUnderline returns a line that underlines with "^" the part of the path that the rule m
// matches, with "*" below the parts that wildcards match.
func ruleMatchUnderline(m robots.MatchingRule) string {
	marks := []byte(strings.Repeat("^", m.Span.End))
	for _, w := range m.WildcardSpans {
		for i := w.Start; i < w.End; i++ {
			marks[i] = '*'
		}
	}
	return string(marks)
}

// lineNumbersText returns "line 3" or "lines 3, 5".
func lineNumbersText(numbers []int) string {
	word := "line "
	if len(numbers) > 1 {
		word = "lines "
	}
	return word + strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]")
}
