package daemon

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

const ledgerShowHelp = `Show what a ledger has of requests and refusals, oldest first: when, of what, by
which line of which robots.txt, which rest the host was owed and had, and what came
of it. --format jsonl writes the records as they are, but without their hashes.

Exit codes: 0 shown, 3 the ledger has nothing of that URL or host, 1 it cannot be
read, 2 wrong usage.`

const ledgerShowExample = `  decorum ledger show --url https://example.com/
  decorum ledger show --host example.com --format jsonl | jq .request.robots`

// A ledgerQuery is what of a ledger is wanted.
type ledgerQuery struct{ data, url, host, format string }

func (a *app) ledgerShowCommand() *cobra.Command {
	var q ledgerQuery
	c := &cobra.Command{
		Use: "show [--url URL] [--host HOST]", Short: "Show what permitted requests", Long: ledgerShowHelp,
		Example: ledgerShowExample, Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return a.showLedger(q) },
	}
	fs := c.Flags()
	dataFlag(fs, &q.data)
	fs.StringVar(&q.url, "url", "", "of one `URL` alone")
	fs.StringVar(&q.host, "host", "", "of one `HOST` alone")
	fs.StringVar(&q.format, "format", "text", "write `FORMAT`: text or jsonl")
	return c
}

// showLedger prints what a ledger has.
func (a *app) showLedger(q ledgerQuery) (err error) {
	if err := checkFormat(q.format, "text", "jsonl"); err != nil {
		return err
	}
	if q.host, err = hostFlag(q.host); err != nil {
		return err
	}
	if q.url != "" {
		u, err := decorum.ParseURL(q.url)
		if err != nil {
			return usage("--url: %w", err)
		}
		q.url = u.String()
	}
	dir, _, err := ledgerIn(q.data)
	if err != nil {
		return err
	}
	s := &shower{ledgerQuery: q, out: a.stdout, open: map[int64]*ledger.Record{}}
	for r, err := range ledger.Records(dir) {
		if err != nil {
			return err
		}
		if err := s.next(r); err != nil {
			return err
		}
	}
	if err := s.flush(); err != nil {
		return err
	}
	if !s.found {
		return &exit{ExitNo, fmt.Errorf("the ledger has nothing of %s", cmp.Or(q.url, q.host, "any URL"))}
	}
	return nil
}

// A shower prints records, each request with its answer.
type shower struct {
	ledgerQuery
	out   io.Writer
	open  map[int64]*ledger.Record // requests without an answer
	found bool
}

// wants reports whether a URL was asked for.
func (s *shower) wants(url string) bool {
	if s.host != "" {
		if u, err := decorum.ParseURL(url); err != nil || u.Origin().Host() != s.host {
			return false
		}
	}
	return s.url == "" || s.url == url
}

func (s *shower) next(r *ledger.Record) error {
	switch {
	case r.Request != nil && s.wants(r.Request.URL):
		s.open[r.N] = r
		return s.raw(r)
	case r.Answer != nil && s.open[r.Answer.Request] != nil:
		asked := s.open[r.Answer.Request]
		delete(s.open, asked.N)
		if s.format == "text" {
			return s.text(asked, r.Answer)
		}
		return s.raw(r)
	case r.Refusal != nil && s.wants(r.Refusal.URL):
		if s.format == "text" {
			return s.refused(r)
		}
		return s.raw(r)
	case r.Run != nil, r.Recovery != nil:
		return s.flush()
	}
	return nil
}

// raw prints a record as it is, if that is wanted.
func (s *shower) raw(r *ledger.Record) error {
	s.found = true
	if s.format == "text" {
		return nil
	}
	line := *r
	line.Hash = "" // it is of the line as it stands there
	e := jsonline.NewEncoder(s.out)
	e.SetEscapeHTML(false)
	return e.Encode(&line)
}

// flush prints the requests that nothing came of, since the process was killed, or
// goes on.
func (s *shower) flush() error {
	numbers := make([]int64, 0, len(s.open))
	for n := range s.open {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		if s.format == "text" {
			if err := s.text(s.open[n], nil); err != nil {
				return err
			}
		}
	}
	clear(s.open)
	return nil
}

// text prints a request and its answer, nil if it has none.
func (s *shower) text(r *ledger.Record, a *ledger.Answer) error {
	q := r.Request
	came := "no answer"
	switch {
	case a != nil && a.Status != 0:
		came = fmt.Sprintf("%d, %d bytes", a.Status, a.Bytes)
	case a != nil:
		came = fmt.Sprintf("%q", a.Error)
	}
	if a != nil {
		came += of("; withheld: ", a.Withheld)
	}
	return s.lines(
		fmt.Sprintf("%s  %s %s  %s", r.Time.Format(time.RFC3339), cmp.Or(q.Method, "GET"), q.URL, came),
		fmt.Sprintf("%s by %s%s; %s; the host was owed %v and had %v%s", q.Kind, q.Source, of(" of ", q.Referrer), verdictWords(q.Robots),
			time.Duration(q.RequiredMS)*time.Millisecond, time.Duration(q.ObservedMS)*time.Millisecond,
			of("; at ", q.IP)+of("; overridden: ", q.Override)))
}

// lines prints what is said of one record. Much of it is others' words.
func (s *shower) lines(what, why string) error {
	_, err := fmt.Fprintf(s.out, "%s\n    %s\n", printable(what), printable(why))
	return err
}

// refused prints a refusal.
func (s *shower) refused(r *ledger.Record) error {
	s.found = true
	q := r.Refusal
	why := q.Why
	if q.Robots != nil {
		why = verdictWords(q.Robots)
	}
	return s.lines(fmt.Sprintf("%s  REFUSED %s", r.Time.Format(time.RFC3339), q.URL), q.Source+of(" of ", q.Referrer)+"; "+why)
}

// of returns what is said before something, and that; nothing of nothing.
func of(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// verdictWords says by what a URL was allowed or not.
func verdictWords(v *ledger.Verdict) string {
	switch {
	case v == nil:
		return "no verdict is needed"
	case v.NotForIndexing:
		marked := *v
		marked.NotForIndexing = false
		return verdictWords(&marked) + ", not for indexing"
	case v.Rule != "":
		return fmt.Sprintf("%s (line %d, group %s, robots.txt %.12s)", v.Rule, v.RuleLine, v.Group, v.SHA256)
	case v.SHA256 == "":
		return "there is no robots.txt"
	}
	return fmt.Sprintf("no line of robots.txt %.12s speaks of it", v.SHA256)
}
