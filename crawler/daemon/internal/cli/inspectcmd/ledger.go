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

const ledgerHelp = `Check and show the ledger of a crawl. The ledger records what permitted each request,
in files whose records are chained by hashes. docs/ledger.md explains what it proves.

--data is the data directory of a crawl, or a directory that holds only a ledger.`

// NewLedgerCommand returns the command decorum ledger and its subcommands.
func NewLedgerCommand(env *command.Env) *cobra.Command {
	return command.NewGroup("ledger", "Check and show what permitted each request", ledgerHelp,
		newLedgerVerifyCommand(env), newLedgerShowCommand(env))
}

const ledgerVerifyHelp = `Check that a ledger is complete and unchanged, and that each request was permitted:

  - no record was changed, left out, added or moved
  - each robots.txt beside the ledger has the recorded hash
  - each verdict is the one that its robots.txt gives
  - each host got its full delay, by the times of the records
  - each request labelled as one for robots.txt is one
  - with --key, the checkpoints are signed with that key
  - with --holds, the ledger has the records in FILE

The ledger of a running crawl is checked up to its latest record. A warning says that
the clock of the machine was set, which is not an error.

Exit codes: 0 no errors, 3 errors found, 1 cannot read the ledger, 2 wrong usage.`

const ledgerVerifyExample = `  decorum ledger verify --data decorum-data
  decorum ledger verify --data evidence --key public.pem
  decorum ledger verify --data evidence --holds kept.txt`

// A ledgerVerifyOptions holds the flags of decorum ledger verify.
type ledgerVerifyOptions struct {
	env *command.Env
	// key and recordsFile are the files of --key and --holds; empty: not checked.
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
	fs.StringVar(&q.key, "key", "", "check the signatures of checkpoints with the public Ed25519 key, in PEM, in "+
		"`FILE` (default: do not check them)")
	fs.StringVar(&q.recordsFile, "holds", "",
		"check that the ledger has the records in `FILE`: each line is a record, "+
			"or a record's number and hash as an earlier verify printed them")
	command.AddFormatFlag(c, &q.format, "text", "json")
	return c
}

// findLedger returns the directory of the ledger in the data directory name, and whether a process
// is using the crawl. If name has no ledger directory, name itself may hold the files of a ledger.
func findLedger(name string) (dir string, isRunning bool, err error) {
	d := datadir.StateDir(name)
	dir = d.Path(datadir.LedgerDir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if ledgerFiles, _ := filepath.Glob(filepath.Join(name, "ledger-*.jsonl*")); len(ledgerFiles) == 0 {
			return "", false, usage.Errorf("%s holds no ledger: use --data with the directory of a crawl or of a "+
				"ledger", name)
		}
		home, err := filepath.Abs(name)
		return name, filepath.Base(home) == datadir.LedgerDir && datadir.StateDir(filepath.Dir(home)).IsInUse(), err
	} else if err != nil {
		return "", false, err
	}
	return dir, d.IsInUse(), nil
}

// verifyLedger checks the ledger and prints the report. It returns ExitCheckFailed if the report has
// findings.
func (q ledgerVerifyOptions) verifyLedger() error {
	dir, isRunning, err := findLedger(q.dataDir)
	if err != nil {
		return err
	}
	// Read what the ledger is checked against.
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

// printVerifyReport prints the findings and warnings, one a line, and then the counts of the report.
func printVerifyReport(w io.Writer, r *ledger.VerifyReport, opts ledger.VerifyOptions) error {
	// A damaged ledger may contain any text: replace what does not print.
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
	status := "the ledger is closed"
	if !r.Closed {
		status = "the ledger is not closed"
	}
	if opts.StillBeingWritten {
		status = "the crawl is running"
	}
	heldText := ""
	if n := len(opts.ExpectedRecordHashes); n > 0 {
		heldText = fmt.Sprintf("\n%d of %d records of --holds found", r.ExpectedHashesFound, n)
	}
	p.WriteLine(`%d records in %d files, of %d runs; %s
%d requests: %d answers, %d interrupted; %d refusals
%d verdicts derived again, from %d robots.txt files
%d rests measured
%d checkpoints, signatures %s; %d records after the last
to keep for --holds: %s%s
%s`, r.Records, r.Segments, r.Runs, status, r.Requests, r.Responses, r.UnansweredRequests, r.Refusals,
		r.CheckedVerdicts, r.RobotsFiles, r.MeasuredDelays, r.Checkpoints, signatures, r.UnsignedRecords,
		r.LastRecordHash, heldText, ledgerVerifyConclusion(r))
	return p.PrintTo(w)
}

// ledgerVerifyConclusion returns the last line of the report: whether the ledger is right.
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

const ledgerShowHelp = `Show the requests and refusals in a ledger, the oldest first: the time, the URL, the
deciding line and the hash of its robots.txt, the delay that the host required and the
delay that it got, and the outcome. --format jsonl writes the records as they are, but
without their hashes. If the crawl or its daemon runs, the command calls it through
its socket.

Exit codes: 0 shown, 3 the ledger has no record of that URL or host, 1 cannot read the
ledger, 2 wrong usage.`

const ledgerShowExample = `  decorum ledger show --url https://example.com/
  decorum ledger show --host example.com --format jsonl | jq .request.robots`

// A ledgerShowOptions holds the flags of decorum ledger show.
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
	fs.StringVar(&q.URL, "url", "", "show only records of `URL` (default: all URLs)")
	fs.StringVar(&q.Host, "host", "", "show only records of `HOST` (default: all hosts)")
	return c
}

// showLedger checks the flags and prints the records that they select.
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

// printLedger prints the selected records. It gets them from the process that runs the crawl, or
// else from the ledger's files.
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
	// Requests whose answers are missing are printed when the records end.
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
		return &command.ExitError{Code: command.ExitCheckFailed,
			Err: fmt.Errorf("the ledger has no record of %s", cmp.Or(q.URL, q.Host, "any URL"))}
	}
	return nil
}

// A ledgerPrinter prints records. As text it prints each request together with its answer.
type ledgerPrinter struct {
	out                io.Writer
	format             string                   // text or jsonl
	unansweredRequests map[int64]*ledger.Record // requests whose answer has not come yet, by number
	anyPrinted         bool                     // a request, answer or refusal was in the records
}

// printOrHoldRecord prints the record r. As text it holds a request back until its answer comes.
func (s *ledgerPrinter) printOrHoldRecord(r *ledger.Record) error {
	if r.RunStart != nil || r.Recovery != nil { // requests of an earlier run get no answer any more
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

// flushUnanswered prints the requests without an answer: the process was killed, or they are still
// in flight.
func (s *ledgerPrinter) flushUnanswered() error {
	for _, n := range slices.Sorted(maps.Keys(s.unansweredRequests)) {
		if err := s.printRequest(s.unansweredRequests[n], nil); err != nil {
			return err
		}
	}
	clear(s.unansweredRequests)
	return nil
}

// printRequest prints the request r and its answer a, nil if it has none.
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
		fmt.Sprintf("%s by %s%s; %s; required delay %v, observed delay %v%s",
			q.Kind, q.URLSource, inspect.PrefixIfSet(" of ", q.Referrer), ledgerVerdictText(q.RobotsVerdict),
			time.Duration(q.RequiredDelayMS)*time.Millisecond, time.Duration(q.ObservedDelayMS)*time.Millisecond,
			inspect.PrefixIfSet("; at ", q.ServerIP)+inspect.PrefixIfSet("; overridden: ", q.OverrideReason)))
}

// printSummaryAndDetail prints the two lines of one record. It replaces characters that do not
// print, because URLs and errors contain text of the sites.
func (s *ledgerPrinter) printSummaryAndDetail(summary, detail string) error {
	_, err := fmt.Fprintf(s.out, "%s\n    %s\n", plaintext.ReplaceNonPrintable(summary),
		plaintext.ReplaceNonPrintable(detail))
	return err
}

// printRefusal prints the refusal r.
func (s *ledgerPrinter) printRefusal(r *ledger.Record) error {
	q := r.Refusal
	reason := q.Reason
	if q.RobotsVerdict != nil {
		reason = ledgerVerdictText(q.RobotsVerdict)
	}
	return s.printSummaryAndDetail(fmt.Sprintf("%s  REFUSED %s", r.Time.Format(time.RFC3339), q.URL),
		q.URLSource+inspect.PrefixIfSet(" of ", q.Referrer)+"; "+reason)
}

// ledgerVerdictText names the line, and the hash of the robots.txt, that allowed or disallowed a URL.
// v is nil for requests that need no verdict, such as that for robots.txt.
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
	return fmt.Sprintf("no line of robots.txt %.12s matches", v.FileSHA256)
}
