package inspectcmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

const ledgerShowHelp = `Show what a ledger has of requests and refusals, oldest first: when, of what, by
which line of which robots.txt, which rest the host was owed and had, and what came
of it. --format jsonl writes the records as they are, but without their hashes.

Exit codes: 0 shown, 3 the ledger has nothing of that URL or host, 1 it cannot be
read, 2 wrong usage.`

const ledgerShowExample = `  decorum ledger show --url https://example.com/
  decorum ledger show --host example.com --format jsonl | jq .request.robots`

// A ledgerShowOptions is what of a ledger is wanted.
type ledgerShowOptions struct {
	env                        *command.Env
	dataDir, url, host, format string
}

func newLedgerShowCommand(env *command.Env) *cobra.Command {
	q := ledgerShowOptions{env: env}
	c := &cobra.Command{
		Use: "show [--url URL] [--host HOST]", Short: "Show what permitted requests", Long: ledgerShowHelp,
		Example: ledgerShowExample, Args: command.ArgsOrUsageError(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return q.showLedger() },
	}
	fs := c.Flags()
	command.AddDataFlag(fs, &q.dataDir)
	fs.StringVar(&q.url, "url", "", "of one `URL` alone")
	fs.StringVar(&q.host, "host", "", "of one `HOST` alone")
	fs.StringVar(&q.format, "format", "text", "write `FORMAT`: text or jsonl")
	return c
}

// showLedger prints what a ledger has.
func (q ledgerShowOptions) showLedger() (err error) {
	if err := command.CheckFormat(q.format, "text", "jsonl"); err != nil {
		return err
	}
	if q.host, err = command.ParseHostFlag(q.host); err != nil {
		return err
	}
	if q.url != "" {
		u, err := decorum.ParseURL(q.url)
		if err != nil {
			return usage.Errorf("--url: %w", err)
		}
		q.url = u.String()
	}
	dir, _, err := findLedger(q.dataDir)
	if err != nil {
		return err
	}
	s := &ledgerPrinter{ledgerShowOptions: q, out: q.env.Stdout, unansweredRequests: map[int64]*ledger.Record{}}
	for r, err := range ledger.Records(dir) {
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
		return &command.ExitError{Code: command.ExitCheckFailed, Err: fmt.Errorf("the ledger has nothing of %s", cmp.Or(q.url, q.host, "any URL"))}
	}
	return nil
}

// A ledgerPrinter prints records, each request with its answer.
type ledgerPrinter struct {
	ledgerShowOptions
	out                io.Writer
	unansweredRequests map[int64]*ledger.Record // requests without an answer
	anyPrinted         bool
}

// matchesURLFilter reports whether a URL was asked for.
func (s *ledgerPrinter) matchesURLFilter(url string) bool {
	if s.host != "" {
		if u, err := decorum.ParseURL(url); err != nil || u.Origin().Host() != s.host {
			return false
		}
	}
	return s.url == "" || s.url == url
}

func (s *ledgerPrinter) printOrHoldRecord(r *ledger.Record) error {
	switch {
	case r.Request != nil && s.matchesURLFilter(r.Request.URL):
		s.unansweredRequests[r.Number] = r
		return s.printRawUnlessText(r)
	case r.Response != nil && s.unansweredRequests[r.Response.RequestNumber] != nil:
		request := s.unansweredRequests[r.Response.RequestNumber]
		delete(s.unansweredRequests, request.Number)
		if s.format == "text" {
			return s.printRequest(request, r.Response)
		}
		return s.printRawUnlessText(r)
	case r.Refusal != nil && s.matchesURLFilter(r.Refusal.URL):
		if s.format == "text" {
			return s.printRefusal(r)
		}
		return s.printRawUnlessText(r)
	case r.RunStart != nil, r.Recovery != nil:
		return s.flushUnanswered()
	}
	return nil
}

// printRawUnlessText prints a record as it is, if that is wanted.
func (s *ledgerPrinter) printRawUnlessText(r *ledger.Record) error {
	s.anyPrinted = true
	if s.format == "text" {
		return nil
	}
	line := *r
	line.Hash = "" // it is of the line as it stands there
	e := jsonline.NewEscapingEncoder(s.out)
	e.SetEscapeHTML(false)
	return e.Encode(&line)
}

// flushUnanswered prints the requests that nothing came of, since the process was killed, or
// goes on.
func (s *ledgerPrinter) flushUnanswered() error {
	numbers := make([]int64, 0, len(s.unansweredRequests))
	for n := range s.unansweredRequests {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		if s.format == "text" {
			if err := s.printRequest(s.unansweredRequests[n], nil); err != nil {
				return err
			}
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
		outcome += prefixIfSet("; withheld: ", a.WithheldReason)
	}
	return s.printSummaryAndDetail(
		fmt.Sprintf("%s  %s %s  %s", r.Time.Format(time.RFC3339), cmp.Or(q.Method, "GET"), q.URL, outcome),
		fmt.Sprintf("%s by %s%s; %s; the host was owed %v and had %v%s", q.Kind, q.URLSource, prefixIfSet(" of ", q.Referrer), ledgerVerdictText(q.RobotsVerdict),
			time.Duration(q.RequiredDelayMS)*time.Millisecond, time.Duration(q.ObservedDelayMS)*time.Millisecond,
			prefixIfSet("; at ", q.ServerIP)+prefixIfSet("; overridden: ", q.OverrideReason)))
}

// printSummaryAndDetail prints what is said of one record. Much of it is others' words.
func (s *ledgerPrinter) printSummaryAndDetail(summary, detail string) error {
	_, err := fmt.Fprintf(s.out, "%s\n    %s\n", plaintext.ReplaceNonPrintable(summary), plaintext.ReplaceNonPrintable(detail))
	return err
}

// printRefusal prints a refusal.
func (s *ledgerPrinter) printRefusal(r *ledger.Record) error {
	s.anyPrinted = true
	q := r.Refusal
	reason := q.Reason
	if q.RobotsVerdict != nil {
		reason = ledgerVerdictText(q.RobotsVerdict)
	}
	return s.printSummaryAndDetail(fmt.Sprintf("%s  REFUSED %s", r.Time.Format(time.RFC3339), q.URL), q.URLSource+prefixIfSet(" of ", q.Referrer)+"; "+reason)
}

// prefixIfSet returns what is said before something, and that; nothing of nothing.
func prefixIfSet(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
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
