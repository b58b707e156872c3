package transfer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/crawlaccess"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
)

const frontierAddHelp = `Queue URLs in a crawl's frontier. They pass the same checks as URLs that the crawl
finds: URLs out of the project's scope are refused, and known URLs are skipped. A
running crawl visits the new URLs before links, as soon as robots.txt allows it and
their hosts are due. For a stopped crawl, decorum crawl --resume does.

With - as the only argument, the command reads URLs from standard input, one a line.
It reads a line that begins with { as a JSON object with the fields url, depth and
referrer.

The command prints how many URLs were new, known and refused, and why. Exit code 1:
some lines were not URLs; all others were added.`

const frontierAddExample = `  decorum frontier add https://example.com/new https://example.com/also
  decorum frontier add - <urls.txt
  decorum frontier list --data old --format jsonl | decorum frontier add --data new -`

// NewAddCommand returns the command decorum frontier add.
func NewAddCommand(env *command.Env) *cobra.Command {
	var q crawlaccess.CrawlTargetFlags
	c := &cobra.Command{
		Use: "add URL… | -", Short: "Queue URLs in a crawl's frontier", Long: frontierAddHelp,
		Example: frontierAddExample, Args: command.ArgsOrUsageError(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, urls []string) error {
			// A URL on the command line that is invalid is wrong usage, and nothing is added. Lines
			// of standard input are checked one by one.
			for _, u := range urls {
				if _, err := decorum.ParseURL(u); err != nil && (u != "-" || len(urls) > 1) {
					return usage.Errorf("%q is not a URL that a crawl can visit: expected https://host/path", u)
				}
			}
			return addToFrontier(c.Context(), &q, c.InOrStdin(), urls)
		},
	}
	q.AddFlags(env, c, "table", "json")
	return c
}

// addToFrontier queues urls, or the lines of stdin if the only URL is -, and prints the result.
func addToFrontier(ctx context.Context, q *crawlaccess.CrawlTargetFlags, stdin io.Reader, urls []string) error {
	return q.Do(ctx, func(ctx context.Context, crawl api.Inspector) error {
		lines := sliceLines(urls)
		if urls[0] == "-" {
			lines = readInBackground(ctx, engine.SeedBatchSize, urlLines(stdin))
		}
		result, addErr := crawl.AddURLs(ctx, lines)
		if result == nil {
			return addErr
		}
		if addErr == nil && result.InvalidLines > 0 {
			addErr = fmt.Errorf("%d lines were not URLs that a crawl can visit", result.InvalidLines)
		}
		if q.Format == "json" {
			return errors.Join(addErr, jsonline.WriteIndented(q.Env.Stdout, result))
		}
		return errors.Join(addErr, printAddURLsResult(q.Env.Stdout, result))
	})
}

// printAddURLsResult prints how many URLs were new, known and refused, and the reasons of refusals.
func printAddURLsResult(w io.Writer, in *api.AddURLsResult) error {
	var p reporttext.Builder
	p.WriteLine("%d new, %d known already, %d refused", in.Added, in.Duplicates, in.Refused)
	for _, r := range in.Refusals {
		p.WriteLine("  %d refused: %s, such as %s", r.URLCount, r.Rule, r.Example)
	}
	return p.PrintTo(w)
}

// sliceLines yields the strings in all.
func sliceLines(all []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, line := range all {
			if !yield(line, nil) {
				return
			}
		}
	}
}

// urlLines yields the lines of r, trimmed of white space. It yields "(too long)", an invalid URL,
// for a line that is longer than any URL, and an error of reading last.
func urlLines(r io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		lines := bufio.NewReaderSize(r, 1<<16)
		for {
			line, err := plaintext.ReadLine(lines, nil)
			if errors.Is(err, plaintext.ErrLineTooLong) {
				line, err = []byte("(too long)"), nil
			}
			if more := yield(strings.TrimSpace(string(line)), nil); !more || errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield("", fmt.Errorf("cannot read the URLs: %w", err))
				return
			}
		}
	}
}

// readInBackground yields what from yields until ctx is done. A goroutine reads from, at most ahead
// lines in advance, so that a signal ends the command even while a read from a terminal blocks;
// such a read cannot be cancelled.
func readInBackground(ctx context.Context, ahead int, from iter.Seq2[string, error]) iter.Seq2[string, error] {
	type lineOrError struct {
		line string
		err  error
	}
	return func(yield func(string, error) bool) {
		// The goroutine reads until the input ends or the consumer stops.
		lines, stopped := make(chan lineOrError, ahead), make(chan struct{})
		defer close(stopped)
		go func() {
			defer close(lines)
			for line, err := range from {
				select {
				case lines <- lineOrError{line, err}:
				case <-stopped:
					return
				}
			}
		}()
		for {
			select {
			case l, more := <-lines:
				if !more || !yield(l.line, l.err) {
					return
				}
			case <-ctx.Done():
				yield("", context.Cause(ctx))
				return
			}
		}
	}
}
