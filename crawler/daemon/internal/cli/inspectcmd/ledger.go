package inspectcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/crawlaccess"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

const ledgerHelp = `Check and show the ledger of a crawl: what permitted each request, in files
whose records are chained by hashes. docs/ledger.md tells what it proves.

--data names the directory of a crawl, or one that holds a ledger alone.`

func NewLedgerCommand(env *command.Env) *cobra.Command {
	return command.NewGroup("ledger", "Check and show what permitted each request", ledgerHelp,
		newLedgerVerifyCommand(env), newLedgerShowCommand(env))
}

const ledgerVerifyHelp = `Check a ledger: that no record was changed, left out, added or moved; that each
robots.txt beside it has its hash; that each verdict is the one which that file
gives; that each host had the rest that it was owed, by the times of the records;
that each request labelled as a robots.txt is one; with --key, that the checkpoints
are signed with that key; and, with --holds, that the ledger has the records in FILE.

A crawl that goes on meanwhile is checked as far as it has come. A warning says that
the clock of the machine was set: nothing is wrong with that.

Exit codes: 0 all is right, 3 something is not, 1 it cannot be read, 2 wrong usage.`

const ledgerVerifyExample = `  decorum ledger verify --data decorum-data
  decorum ledger verify --data evidence --key public.pem
  decorum ledger verify --data evidence --holds kept.txt`

// A ledgerVerifyOptions is what of a ledger is checked, and by what.
type ledgerVerifyOptions struct {
	env                               *command.Env
	dataDir, key, recordsFile, format string
}

func newLedgerVerifyCommand(env *command.Env) *cobra.Command {
	q := ledgerVerifyOptions{env: env}
	c := &cobra.Command{
		Use: "verify [--data DIR] [--key FILE] [--holds FILE]", Short: "Check a ledger", Long: ledgerVerifyHelp,
		Example: ledgerVerifyExample, Args: command.ArgsOrUsageError(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return q.verifyLedger() },
	}
	fs := c.Flags()
	command.AddDataFlag(fs, &q.dataDir)
	fs.StringVar(&q.key, "key", "", "check the signatures of checkpoints with the public Ed25519 key in `FILE`, in PEM")
	fs.StringVar(&q.recordsFile, "holds", "",
		"check that the ledger has the records in `FILE`: each line is a record, "+
			"or the number and hash of one as an earlier verify printed them")
	command.AddFormatFlag(c, &q.format, "text", "json")
	return c
}

// findLedger returns the directory of a crawl's ledger, and whether the crawl goes on.
// Where there is none, name itself may be the ledger.
func findLedger(name string) (dir string, isRunning bool, err error) {
	d := datadir.StateDir(name)
	dir = d.Path(datadir.LedgerDir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if ledgerFiles, _ := filepath.Glob(filepath.Join(name, "ledger-*.jsonl*")); len(ledgerFiles) == 0 {
			return "", false, usage.Errorf("%s holds no ledger: name the directory of a crawl, or of its ledger, with --data", name)
		}
		home, err := filepath.Abs(name)
		return name, filepath.Base(home) == datadir.LedgerDir && datadir.StateDir(filepath.Dir(home)).IsInUse(), err
	} else if err != nil {
		return "", false, err
	}
	return dir, d.IsInUse(), nil
}

// verifyLedger checks a ledger, and says what is wrong with it.
func (q ledgerVerifyOptions) verifyLedger() error {
	dir, isRunning, err := findLedger(q.dataDir)
	if err != nil {
		return err
	}
	opts := ledger.VerifyOptions{StillBeingWritten: isRunning}
	if q.key != "" {
		text, err := inputfile.ReadSmall(os.Open, q.key)
		if err != nil {
			return usage.Errorf("--key: %w", err)
		}
		if opts.PublicKey, err = ledger.ParsePublicKey(text); err != nil {
			return usage.Errorf("--key: %s: %w", q.key, err)
		}
	}
	if q.recordsFile != "" {
		text, err := inputfile.ReadSmall(os.Open, q.recordsFile)
		if err != nil {
			return usage.Errorf("--holds: %w", err)
		}
		if opts.ExpectedRecordHashes, err = ledger.ParseRecordHashes(text); err != nil {
			return usage.Errorf("--holds: %s: %w", q.recordsFile, err)
		}
	}
	report, err := ledger.Verify(dir, opts)
	if err != nil {
		return err
	}
	if q.format == "json" {
		err = jsonline.WriteIndented(q.env.Stdout, report)
	} else {
		err = printVerifyReport(q.env.Stdout, report, opts)
	}
	if err == nil && !report.OK() {
		err = &command.ExitError{Code: command.ExitCheckFailed}
	}
	return err
}

// printVerifyReport prints what was found.
func printVerifyReport(w io.Writer, r *ledger.VerifyReport, opts ledger.VerifyOptions) error {
	var p reporttext.Builder
	for _, f := range r.Findings {
		p.WriteLine("%s", plaintext.ReplaceNonPrintable(f.String()))
	}
	for _, f := range r.Warnings {
		p.WriteLine("%s", plaintext.ReplaceNonPrintable("warning: "+f.String()))
	}
	signatures := "not checked: --key names the key"
	if opts.PublicKey != nil {
		signatures = "checked"
	}
	status := "it is closed"
	if !r.Closed {
		status = "it is not closed"
	}
	if opts.StillBeingWritten {
		status = "the crawl goes on"
	}
	heldText := ""
	if n := len(opts.ExpectedRecordHashes); n > 0 {
		heldText = fmt.Sprintf("\n%d of %d held records are there", r.ExpectedHashesFound, n)
	}
	p.WriteLine(`%d records in %d files, of %d runs; %s
%d requests: %d answers, %d interrupted; %d refusals
%d verdicts derived again, from %d robots.txt files
%d rests measured
%d checkpoints, signatures %s; %d records after the last
to keep for --holds: %s%s
%s`, r.Records, r.Segments, r.Runs, status, r.Requests, r.Responses, r.UnansweredRequests, r.Refusals,
		r.CheckedVerdicts, r.RobotsFiles, r.MeasuredDelays, r.Checkpoints, signatures, r.UnsignedRecords, r.LastRecordHash, heldText, ledgerVerifyConclusion(r))
	return p.PrintTo(w)
}

// ledgerVerifyConclusion says in a line whether a ledger is right.
func ledgerVerifyConclusion(r *ledger.VerifyReport) string {
	if n := int64(len(r.Findings)) + r.UnlistedFindings; n > 0 {
		if r.StoppedAtFaultLimit {
			return fmt.Sprintf("NOT RIGHT: more than %d findings; the rest of the ledger was not read", n)
		}
		return fmt.Sprintf("NOT RIGHT: %d findings", n)
	}
	if n := int64(len(r.Warnings)) + r.UnlistedWarnings; n > 0 {
		return fmt.Sprintf("all is right, with %d warnings", n)
	}
	return "all is right"
}

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
	crawlaccess.CrawlTargetFlags
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
