package daemon

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

const frontierAddHelp = `Queue URLs in a crawl's frontier. They pass what every URL found by the crawl
passes: those out of the project's scope are refused, those seen before are passed
over. A decorum crawl --resume visits them ahead of links, when robots.txt allows
it and their hosts are due.

With - as the only argument URLs are read from standard input, one a line; a line
that begins with { is an object, of which url, depth and referrer are read.

It prints how many were new, known and refused, and why. Exit code 1: some lines
were no URLs; all others have been added.`

const frontierAddExample = `  decorum frontier add https://example.com/new https://example.com/also
  decorum frontier add - <urls.txt
  decorum frontier list --data old --format jsonl | decorum frontier add --data new -`

func (a *app) frontierAddCommand() *cobra.Command {
	var data, format string
	c := &cobra.Command{
		Use: "add URL… | -", Short: "Queue URLs in a crawl's frontier", Long: frontierAddHelp,
		Example: frontierAddExample, Args: args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, urls []string) error {
			if err := checkFormat(format, "table", "json"); err != nil {
				return err
			}
			for _, u := range urls {
				if _, err := decorum.ParseURL(u); err != nil && (u != "-" || len(urls) > 1) {
					return usage("%q is not a URL that a crawl can visit: expected https://host/path", u)
				}
			}
			in := readLines
			if urls[0] != "-" {
				in = func(_ io.Reader, yield func(string) bool) error { return each(urls, yield) }
			}
			return a.frontierAdd(c.Context(), data, format, func(yield func(string) bool) error { return in(c.InOrStdin(), yield) })
		},
	}
	dataFlag(c.Flags(), &data)
	c.Flags().StringVar(&format, "format", "table", "write `FORMAT`: table or json")
	return c
}

// An intake takes URLs that are offered, and counts what becomes of them.
type intake struct {
	api.Intake
	refusals refusals
	batch    []storage.Entry
}

func (a *app) frontierAdd(ctx context.Context, data, format string, lines func(yield func(string) bool) error) error {
	return a.look(ctx, data, func(ctx context.Context, k *kept) error {
		if err := k.withScope(); err != nil {
			return err
		}
		in := &intake{refusals: refusals{}}
		f := frontier.New(k.store, frontier.Config{Scope: k.scope, Params: k.params, Clean: k.gate.Clean, Refused: in.refuse})
		end := in.take(ctx, f, lines)
		in.Refusals = in.refusals.list()
		if end == nil && in.NoURLs > 0 {
			end = fmt.Errorf("%d lines were no URLs that a crawl can visit", in.NoURLs)
		}
		if format == "json" {
			return errors.Join(end, writeJSON(a.stdout, in.Intake))
		}
		return errors.Join(end, in.write(a.stdout))
	})
}

// refuse takes note of what is out of scope.
func (in *intake) refuse(e storage.Entry, err error) {
	in.Refused++
	in.refusals.note(api.Refusal{Why: whyScope, Rule: cause(err)}, e.URL)
}

// take adds what the lines name, until they end or ctx is done.
func (in *intake) take(ctx context.Context, f *frontier.Frontier, lines func(yield func(string) bool) error) error {
	var failed error
	err := inBackground(ctx, lines, func(line string) bool {
		e, ok := entryOf(line)
		switch {
		case seedOf(line) == "": // blank, or a comment
		case !ok:
			in.NoURLs++
		default:
			in.batch = append(in.batch, e)
		}
		if len(in.batch) == seedBatch {
			failed = in.discover(ctx, f)
		}
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return errors.Join(in.discover(context.WithoutCancel(ctx), f), err)
}

func (in *intake) discover(ctx context.Context, f *frontier.Frontier) error {
	refused := in.Refused
	added, err := f.Discover(ctx, in.batch...)
	if err == nil {
		in.Added += added
		in.Known += len(in.batch) - added - (in.Refused - refused)
	}
	in.batch = in.batch[:0]
	return err
}

// entryOf returns what a line names: a URL, or an object with one.
func entryOf(line string) (e storage.Entry, ok bool) {
	named := struct {
		URL      string `json:"url"`
		Depth    int    `json:"depth"`
		Referrer string `json:"referrer"`
	}{URL: seedOf(line)}
	if len(line) > 0 && line[0] == '{' {
		if json.Unmarshal([]byte(line), &named) != nil {
			return e, false
		}
	}
	u, err := decorum.ParseURL(named.URL)
	e = storage.Entry{URL: u, Source: storage.Seed, Class: storage.Early, Depth: named.Depth, Referrer: named.Referrer}
	return e, err == nil && e.Check() == nil
}

// write says what became of the URLs.
func (in *intake) write(w io.Writer) error {
	var p sheet
	p.line("%d new, %d known already, %d refused", in.Added, in.Known, in.Refused)
	for _, r := range in.Refusals {
		p.line("  %d refused: %s, such as %s", r.URLs, r.Rule, r.Example)
	}
	_, err := p.WriteTo(w)
	return err
}

func each(all []string, yield func(string) bool) error {
	for _, s := range all {
		if !yield(s) {
			break
		}
	}
	return nil
}

// readLines yields the lines of r without their ends. One that is too long to
// be a URL is yielded as one that is none.
func readLines(r io.Reader, yield func(string) bool) error {
	lines := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := readLine(lines, nil)
		if errors.Is(err, errLongQuestion) {
			line, err = []byte("(too long)"), nil
		}
		if more := yield(strings.TrimSpace(string(line))); !more {
			return nil
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("cannot read the URLs: %w", err)
		}
	}
}

// inBackground yields what from yields, until ctx is done: a terminal may have
// no more to say, and cannot be told that nobody listens.
func inBackground(ctx context.Context, from func(yield func(string) bool) error, yield func(string) bool) error {
	lines, end, over := make(chan string, seedBatch), make(chan error, 1), make(chan struct{})
	defer close(over)
	go func() {
		err := from(func(line string) bool {
			select {
			case lines <- line:
				return true
			case <-over:
				return false
			}
		})
		close(lines)
		end <- err
	}()
	for {
		select {
		case line, more := <-lines:
			if !more {
				return <-end
			}
			if !yield(line) {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
