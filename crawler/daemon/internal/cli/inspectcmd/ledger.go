package inspectcmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
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
