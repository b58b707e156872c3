package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
)

const robotsCheckHelp = `Say for each URL whether robots.txt allows an agent to visit it, and which rule
on which line decides. The robots.txt of each URL's origin is fetched, once and at
a polite pace, unless --file names another to judge by.

One line a URL: the verdict, the URL and the rule, separated by tabs.

Exit codes: 0 all are allowed, 3 at least one is not, 1 a robots.txt could not be
had, 2 wrong usage.`

const robotsCheckExample = `  decorum robots check --agent examplebot https://example.com/ https://example.com/private/
  decorum robots check --agent Googlebot-Image --file robots.txt https://example.com/photo.jpg
  decorum robots check --agent YandexBot --dialect yandex https://example.com/`

// A robotsCheck is what somebody asks of robots.txt files.
type robotsCheck struct {
	file, agent, contact string
	dialect              string
	connectTo            []string
	allowPrivate         bool
}

func (a *app) robotsCheckCommand() *cobra.Command {
	var q robotsCheck
	c := &cobra.Command{
		Use: "check --agent NAME [--file FILE|URL] URL…", Short: "Ask whether an agent may visit URLs",
		Long: robotsCheckHelp, Example: robotsCheckExample, Args: args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, urls []string) error { return a.checkRobots(c.Context(), q, urls) },
	}
	fs := c.Flags()
	fs.StringVar(&q.agent, "agent", "", "product token `NAME`, or a well-known crawler such as Googlebot-News; compulsory")
	fs.StringVar(&q.file, "file", "", "judge by this `FILE`, or by the robots.txt at this URL")
	fs.StringVar(&q.dialect, "dialect", robots.Google.String(), "read robots.txt as `ENGINE` does: google, yandex or google-oss")
	fs.StringVar(&q.contact, "contact", "https://"+modulePath, "`URL` or mailto: that is sent with the requests")
	fs.StringArrayVar(&q.connectTo, "connect-to", nil, "connect to HOST2:PORT2 instead, `HOST:PORT:HOST2:PORT2` as curl's; repeatable")
	fs.BoolVar(&q.allowPrivate, "allow-private", false, "allow connections to loopback and private addresses")
	return c
}

// checkRobots prints a verdict for each URL.
func (a *app) checkRobots(ctx context.Context, q robotsCheck, urls []string) error {
	agent := robots.Named(q.agent)
	if agent.Token() == "" {
		return usage("--agent: %q names no crawler; expected a product token, as in examplebot", q.agent)
	}
	dialect, err := robots.ParseDialect(q.dialect)
	if err != nil {
		return usage("--dialect: %v", err)
	}
	pages := make([]decorum.URL, len(urls))
	for i, s := range urls {
		if pages[i], err = decorum.ParseURL(s); err != nil || !fetchable(pages[i]) {
			return usage("%q is not a URL that robots.txt speaks of: expected https://host/path", s)
		}
	}
	rulesOf, err := a.rulebook(q, agent, dialect)
	if err != nil {
		return err
	}
	ctx, stop := a.untilSignal(ctx)
	defer stop()
	no, failed := false, error(nil)
	for _, u := range pages {
		rules, err := rulesOf(ctx, u)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		v := rules.Check(u)
		no = no || !v.Allowed
		if err := printVerdict(a.stdout, u, v); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(context.Cause(ctx), errSignal):
		return &exit{ExitStopped, errSignal}
	case failed == nil && no:
		return &exit{code: ExitNo}
	}
	return failed
}

// untilSignal returns a context that the first signal ends, with errSignal for
// its cause.
func (a *app) untilSignal(ctx context.Context) (context.Context, func()) {
	ctx, stop := context.WithCancelCause(ctx)
	var listening sync.WaitGroup
	listening.Go(func() {
		select {
		case <-a.signals:
			stop(errSignal)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		stop(nil)
		listening.Wait()
	}
}

func printVerdict(w io.Writer, u decorum.URL, v robots.Verdict) error {
	verdict, why := "disallowed", "no rule"
	if v.Allowed {
		verdict = "allowed"
	}
	if v.Rule != "" {
		why = fmt.Sprintf("%s (line %d, group %s)", v.Rule, v.Line, v.Group)
	}
	_, err := fmt.Fprintf(w, "%s\t%s\t%s\n", verdict, u, why)
	return err
}

// A rulesOf returns the rules that judge a URL.
type rulesOf func(context.Context, decorum.URL) (*robots.Rules, error)

// rulebook returns where the rules come from: a file, one origin, or the
// origin of each URL.
func (a *app) rulebook(q robotsCheck, agent robots.Agent, dialect robots.Dialect) (rulesOf, error) {
	if q.file != "" && !strings.Contains(q.file, "://") {
		rules, err := readRules(q.file, agent, dialect)
		return func(context.Context, decorum.URL) (*robots.Rules, error) { return rules, nil }, err
	}
	e, err := newErrand(q, agent, dialect)
	if err != nil {
		return nil, err
	}
	if q.file == "" {
		return func(ctx context.Context, u decorum.URL) (*robots.Rules, error) { return e.rules(ctx, u.Origin()) }, nil
	}
	file, err := decorum.ParseURL(q.file)
	if err != nil || file != file.Origin().RobotsURL() { // LOC-06
		return nil, usage("--file: %q is not the place of a robots.txt; expected https://host/robots.txt", q.file)
	}
	return func(ctx context.Context, _ decorum.URL) (*robots.Rules, error) { return e.rules(ctx, file.Origin()) }, nil
}

// readRules reads a robots.txt from a file.
func readRules(name string, agent robots.Agent, dialect robots.Dialect) (*robots.Rules, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the robots.txt: %w", err)
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, robots.Limit))
	if err != nil {
		return nil, fmt.Errorf("cannot read the robots.txt: %w", err)
	}
	return robots.Parse(body, dialect).For(agent), nil
}
