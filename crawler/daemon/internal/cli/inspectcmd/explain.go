package inspectcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/crawlaccess"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/stoppedcrawl"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
)

const explainHelp = `Explain step by step how a crawl treats a URL, and which rule decides: its canonical
form, the project's rules for parameters, Clean-param, scope and the limits against
URL traps, the verdict of robots.txt, whether the URL is known, and when and why the
crawl would visit it. The explanation runs the crawl's own code.

The command explains by the crawl in the data directory, running or not, and does not
change it. With -c it explains by a project file instead, and by the state of the crawl
in that project's store.path, if there is one, which must not be running. It treats a
URL that the crawl does not know as a link of a seed.

The command sends no request, except with --fetch: if the robots.txt of the URL's
origin is not known, --fetch fetches it at a polite pace, and does not keep it. A
running crawl fetches robots.txt itself and rejects --fetch.

Only a running crawl counts the URLs of each pattern.

Exit codes: 0 explained, 1 cannot fetch robots.txt, 2 wrong usage, 4 interrupted.`

const explainExample = `  decorum explain 'https://example.com/shop?ref=home&item=7'
  decorum explain -c books.yaml --fetch https://example.com/private/
  decorum explain --format json https://example.com/ | jq .robots.rule`

// An explainOptions holds the flags of decorum explain.
type explainOptions struct {
	crawlaccess.CrawlTargetFlags
	configFile  string // project file; empty: the project of the crawl
	fetchRobots bool
}

// NewExplainCommand returns the command decorum explain.
func NewExplainCommand(env *command.Env) *cobra.Command {
	var q explainOptions
	c := &cobra.Command{
		Use: "explain URL [--data DIR | -c project.yaml]", Short: "Explain how a crawl treats a URL, and why",
		Long: explainHelp, Example: explainExample, Args: command.ArgsOrUsageError(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if q.configFile != "" && (c.Flags().Changed("data") || q.NamesDaemon()) {
				return usage.Errorf("--data and -c select two crawls: choose one")
			}
			return q.explain(c.Context(), args[0])
		},
	}
	fs := c.Flags()
	q.AddFlags(env, c, "table", "json")
	fs.StringVarP(&q.configFile, "config", "c", "",
		"explain by the project file `FILE` (default: the project of the crawl)")
	fs.BoolVar(&q.fetchRobots, "fetch", false, "fetch robots.txt if the crawl does not know it")
	return c
}

// explain prints the explanation of the URL text by the selected crawl or by the project file.
func (q explainOptions) explain(ctx context.Context, text string) error {
	if _, err := decorum.ParseURL(text); err != nil {
		return usage.Errorf("%q is not a URL: %s", text, engine.InnerErrorText(err))
	}
	explain := func(ctx context.Context, crawl api.Inspector) error { return q.explainAndWrite(ctx, crawl, text) }
	if q.configFile == "" {
		return q.Do(ctx, explain)
	}
	p, err := project.Read(q.configFile)
	if err != nil {
		return err
	}
	k, err := stoppedcrawl.OpenProject(q.Env, p)
	if err != nil {
		return err
	}
	return k.UseAndClose(ctx, q.Env, func(ctx context.Context, k *stoppedcrawl.Crawl) error { return explain(ctx, k) })
}

// explainAndWrite prints crawl's explanation of the URL text. With --fetch it first makes sure that
// the robots.txt of the URL is known.
func (q explainOptions) explainAndWrite(ctx context.Context, crawl api.Inspector, text string) error {
	if q.fetchRobots {
		k, isStopped := crawl.(*stoppedcrawl.Crawl)
		if !isStopped {
			return usage.Errorf("--fetch: the crawl is running and fetches robots.txt itself before it visits the " +
				"host: leave out --fetch")
		}
		if err := ensureRobotsFetched(ctx, k, text); err != nil {
			return err
		}
	}
	e, err := crawl.ExplainURL(ctx, text)
	switch {
	case err != nil:
		return err
	case q.Format == "json":
		return jsonline.WriteIndented(q.Env.Stdout, e)
	}
	return writeURLExplanation(q.Env.Stdout, e)
}

// ensureRobotsFetched makes sure that k.Gate knows the robots.txt of the origin of the URL text. If
// it does not, ensureRobotsFetched fetches the file when the host is due by the state of the crawl,
// and replaces k.Gate by one that has it.
func ensureRobotsFetched(ctx context.Context, k *stoppedcrawl.Crawl, text string) error {
	u, _, err := k.RewriteURL(ctx, text)
	if err != nil {
		return err
	}
	if rules, err := k.Gate.Rules(ctx, u.Origin()); err != nil || rules != nil {
		return err
	}
	cfg, err := k.Project.GateConfig()
	if err != nil {
		return err
	}
	c, err := engine.NewOnDemandCrawl(&k.Project, cfg)
	if err != nil {
		return err
	}
	// The crawl's last visit to the host still counts: wait until the host is due.
	info, _, err := k.FrontierStore.Origin(ctx, u.Origin())
	if err != nil {
		return err
	}
	c.PostponeHost(u.Origin().Host(), info.HostState.Due)
	k.Gate = c.Gate()
	if _, err := c.FetchRobots(ctx, u.Origin()); err != nil {
		return fmt.Errorf("cannot explain the verdict of robots.txt: %w", err)
	}
	return nil
}

// writeURLExplanation writes the explanation as a table, one step after the other.
func writeURLExplanation(w io.Writer, e *api.URLExplanation) error {
	var p reporttext.Builder
	p.WriteLine("%s", plaintext.ReplaceControlChars(e.Input))
	p.WriteTable(func(row func(...any)) {
		rows := func(label string, lines []string) {
			for _, line := range lines {
				row(label, line)
				label = "" // only the first line has the label
			}
		}
		for _, s := range e.RewriteSteps {
			row("  "+strings.ReplaceAll(s.Step, "_", "-"), cmp.Or(strings.Join(s.Changes, "; "), "no change"))
			if len(s.Changes) > 0 {
				row("", "→ "+s.URL)
			}
		}
		row("  scope", explainedScopeText(&e.Scope))
		rows("  robots.txt", explainedRulesLines(&e.Robots))
		row("  state", explainedStateText(&e.FrontierState))
		rows("  host", explainedHostLines(e.Host))
		row("  visit", explainedNextVisitText(&e.Visit))
	})
	return p.PrintTo(w)
}

// explainedScopeText returns the row "scope": whether the URL is in scope, and the pattern that it
// counts for.
func explainedScopeText(s *api.ExplainedScope) string {
	text := "within"
	switch {
	case !s.InScope:
		text = fmt.Sprintf("refused: %s (%s)", s.Detail, s.Reason)
	case s.Detail != "":
		text = s.Detail
	}
	return text + inspect.PrefixIfSet("; counts as ", s.CountedPattern)
}

// explainedRulesLines returns the rows "robots.txt".
func explainedRulesLines(r *api.ExplainedRules) (lines []string) {
	file := "not known"
	if !r.FetchedAt.IsZero() {
		file = fmt.Sprintf("%s, fetched at %s", strings.ReplaceAll(r.Outcome, "_", " "),
			inspect.FormatTime(r.FetchedAt))
	}
	file += inspect.PrefixIfSet(", SHA-256 ", r.SHA256)
	if r.MayVisit == nil {
		return append(lines, file, "the crawl fetches it first: --fetch fetches it now")
	}
	verdict := "disallowed"
	if *r.MayVisit {
		verdict = "allowed"
	}
	// The verdict first, then the file, and then what else the file says of the URL.
	lines = append(lines, verdict+": "+r.Reason, file)
	if r.IndexingVerdict != nil {
		lines = append(lines, reporttext.DisallowedForMainRobotText(*r.IndexingVerdict))
	}
	if r.OriginPostponedReason != "" {
		lines = append(lines, fmt.Sprintf("closed until %s: %s",
			inspect.FormatTime(r.OriginPostponedUntil), r.OriginPostponedReason))
	}
	for _, m := range r.Matches[min(1, len(r.Matches)):] {
		lines = append(lines, fmt.Sprintf("%s (line %d) loses%s", plaintext.ReplaceControlChars(m.Rule), m.Line,
			reporttext.LostRuleReasonText(m, r.Matches[0])))
	}
	for _, s := range r.UsageSignals {
		lines = append(lines, "asks "+sinks.UsageSignalText(s))
	}
	return lines
}

// explainedStateText returns the row "state": where the URL is in the frontier, and its order there.
func explainedStateText(s *api.ExplainedFrontierState) string {
	order := fmt.Sprintf("class %d, rank %d", s.PriorityClass, s.PriorityRank)
	switch {
	case s.Entry == nil && s.KnownAs != "":
		return "unknown, except for " + s.KnownAs
	case s.Entry == nil && s.State == inspect.HostUnknown:
		return "unknown; as a link of a seed: " + order
	case s.Entry == nil:
		return s.State
	}
	return fmt.Sprintf("%s%s, found as %s at depth %d, %s%s", s.State, inspect.PrefixIfSet(" as ", s.KnownAs),
		s.Entry.Source, s.Entry.Depth, order, inspect.PrefixIfSet(", on ", s.Entry.Referrer))
}

// explainedHostLines describes the state and the pace of the URL's host; h is nil if the crawl does
// not know the host.
func explainedHostLines(h *api.Host) []string {
	if h == nil {
		return []string{"not known yet"}
	}
	lines := []string{
		h.Host + " is " + hostStateText(h),
		fmt.Sprintf("delay: %s; slots %d, failures in a row %d", hostDelaysText(h), h.Slots, h.ConsecutiveFailures),
	}
	if h.BackoffReason != "" {
		lines = append(lines, h.BackoffReason)
	}
	return lines
}

// explainedNextVisitText returns the row "visit": when the crawl would visit the URL, and why.
func explainedNextVisitText(v *api.ExplainedNextVisit) string {
	switch v.When {
	case "now":
		return "now: " + v.Reason
	case "at":
		return fmt.Sprintf("not before %s: %s", inspect.FormatTime(v.NotBefore), v.Reason)
	case "after":
		return fmt.Sprintf("not before %s, about: %s", inspect.FormatTime(v.NotBefore), v.Reason)
	}
	return "no: " + v.Reason
}
