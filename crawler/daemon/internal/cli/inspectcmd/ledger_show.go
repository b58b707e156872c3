package inspectcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/crawlaccess"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

const ledgerShowHelp = `Show what a ledger has of requests and refusals, oldest first: when, of what, by
which line of which robots.txt, which rest the host was owed and had, and what came
of it. --format jsonl writes the records as they are, but without their hashes. A crawl
that runs, or a daemon, is asked by its socket.

Exit codes: 0 shown, 3 the ledger has nothing of that URL or host, 1 it cannot be
read, 2 wrong usage.`

const ledgerShowExample = `  decorum ledger show --url https://example.com/
  decorum ledger show --host example.com --format jsonl | jq .request.robots`

// A ledgerShowOptions is what of a ledger is wanted.
type ledgerShowOptions struct {
	crawlaccess.CrawlFlags
	api.LedgerQuery
}

func newLedgerShowCommand(env *command.Env) *cobra.Command {
	var q ledgerShowOptions
	c := &cobra.Command{
		Use: "show [--url URL] [--host HOST]", Short: "Show what permitted requests", Long: ledgerShowHelp,
		Example: ledgerShowExample, Args: command.ArgsOrUsageError(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return q.showLedger(c.Context()) },
	}
	fs := c.Flags()
	q.AddFlags(env, c, "text", "jsonl")
	fs.StringVar(&q.URL, "url", "", "of one `URL` alone")
	fs.StringVar(&q.Host, "host", "", "of one `HOST` alone")
	return c
}

// showLedger prints what a ledger has.
func (q ledgerShowOptions) showLedger(ctx context.Context) (err error) {
	if q.Host, err = command.ParseHostFlag(q.Host); err != nil {
		return err
	}
	if q.URL != "" {
		u, err := decorum.ParseURL(q.URL)
		if err != nil {
			return usage.Errorf("--url: %w", err)
		}
		q.URL = u.String()
	}
	ctx, stop := q.Env.WithSignalCancel(ctx)
	defer stop()
	return q.ExplainError(ctx, q.printLedger(ctx))
}

// printLedger prints the records that were asked for: those of the process that runs the
// crawl, or those in the files.
func (q ledgerShowOptions) printLedger(ctx context.Context) error {
	crawl, dir, err := q.FindRunning(ctx)
	if err != nil {
		return err
	}
	var records iter.Seq2[*ledger.Record, error]
	if crawl != nil {
		records = crawl.LedgerRecords(ctx, q.LedgerQuery)
	} else {
		ledgerDir, _, err := findLedger(string(dir))
		if err != nil {
			return err
		}
		records = inspect.LedgerRecords(ctx, ledgerDir, q.LedgerQuery)
	}
	s := &ledgerPrinter{out: q.Env.Stdout, format: q.Format, unansweredRequests: map[int64]*ledger.Record{}}
	for r, err := range records {
		if err != nil {
			return err
		}
		if err := s.printOrHoldRecord(r); err != nil {
			return err
		}
	}
	if err := s.flushUnanswered(); err != nil {
		return err
	}
	if !s.anyPrinted {
		return &command.ExitError{Code: command.ExitCheckFailed, Err: fmt.Errorf("the ledger has nothing of %s", cmp.Or(q.URL, q.Host, "any URL"))}
	}
	return nil
}

// A ledgerPrinter prints records, each request with its answer.
type ledgerPrinter struct {
	out                io.Writer
	format             string
	unansweredRequests map[int64]*ledger.Record // requests without an answer
	anyPrinted         bool
}

// printOrHoldRecord prints a record, but holds a request until its answer comes.
func (s *ledgerPrinter) printOrHoldRecord(r *ledger.Record) error {
	if r.RunStart != nil || r.Recovery != nil {
		return s.flushUnanswered()
	}
	s.anyPrinted = true
	switch {
	case s.format != "text":
		return jsonline.NewEncoder(s.out).Encode(r)
	case r.Request != nil:
		s.unansweredRequests[r.Number] = r
	case r.Refusal != nil:
		return s.printRefusal(r)
	case r.Response != nil && s.unansweredRequests[r.Response.RequestNumber] != nil:
		request := s.unansweredRequests[r.Response.RequestNumber]
		delete(s.unansweredRequests, request.Number)
		return s.printRequest(request, r.Response)
	}
	return nil
}

// flushUnanswered prints the requests that nothing came of, since the process was killed, or
// goes on.
func (s *ledgerPrinter) flushUnanswered() error {
	for _, n := range slices.Sorted(maps.Keys(s.unansweredRequests)) {
		if err := s.printRequest(s.unansweredRequests[n], nil); err != nil {
			return err
		}
	}
	clear(s.unansweredRequests)
	return nil
}

// printRequest prints a request and its answer, nil if it has none.
func (s *ledgerPrinter) printRequest(r *ledger.Record, a *ledger.Response) error {
	q := r.Request
	outcome := "no answer"
	switch {
	case a != nil && a.Status != 0:
		outcome = fmt.Sprintf("%d, %d bytes", a.Status, a.BodyBytes)
	case a != nil:
		outcome = fmt.Sprintf("%q", a.Error)
	}
	if a != nil {
		outcome += inspect.PrefixIfSet("; withheld: ", a.WithheldReason)
	}
	return s.printSummaryAndDetail(
		fmt.Sprintf("%s  %s %s  %s", r.Time.Format(time.RFC3339), cmp.Or(q.Method, "GET"), q.URL, outcome),
		fmt.Sprintf("%s by %s%s; %s; the host was owed %v and had %v%s",
			q.Kind, q.URLSource, inspect.PrefixIfSet(" of ", q.Referrer), ledgerVerdictText(q.RobotsVerdict),
			time.Duration(q.RequiredDelayMS)*time.Millisecond, time.Duration(q.ObservedDelayMS)*time.Millisecond,
			inspect.PrefixIfSet("; at ", q.ServerIP)+inspect.PrefixIfSet("; overridden: ", q.OverrideReason)))
}

// printSummaryAndDetail prints what is said of one record. Much of it is others' words.
func (s *ledgerPrinter) printSummaryAndDetail(summary, detail string) error {
	_, err := fmt.Fprintf(s.out, "%s\n    %s\n", plaintext.ReplaceNonPrintable(summary), plaintext.ReplaceNonPrintable(detail))
	return err
}

// printRefusal prints a refusal.
func (s *ledgerPrinter) printRefusal(r *ledger.Record) error {
	q := r.Refusal
	reason := q.Reason
	if q.RobotsVerdict != nil {
		reason = ledgerVerdictText(q.RobotsVerdict)
	}
	return s.printSummaryAndDetail(fmt.Sprintf("%s  REFUSED %s", r.Time.Format(time.RFC3339), q.URL),
		q.URLSource+inspect.PrefixIfSet(" of ", q.Referrer)+"; "+reason)
}

// ledgerVerdictText says by what a URL was allowed or not.
func ledgerVerdictText(v *ledger.RobotsVerdict) string {
	switch {
	case v == nil:
		return "no verdict is needed"
	case v.DisallowedForMainRobot:
		unmarked := *v
		unmarked.DisallowedForMainRobot = false
		return ledgerVerdictText(&unmarked) + ", not for indexing"
	case v.Rule != "":
		return fmt.Sprintf("%s (line %d, group %s, robots.txt %.12s)", v.Rule, v.RuleLine, v.Group, v.FileSHA256)
	case v.FileSHA256 == "":
		return "there is no robots.txt"
	}
	return fmt.Sprintf("no line of robots.txt %.12s speaks of it", v.FileSHA256)
}
