package inspectcmd

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/stoppedcrawl"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

const frontierListHelp = `List the URLs of the frontier, one a line: its state, when it can be visited, the
URL, and why it waits or is parked, separated by tabs. Within an origin they come
in the order in which they would be visited.

  queued   to be visited; the time is that of its next attempt, if it was put off
  resting  visited; the time is that of its revisit
  parked   closed by robots.txt, or out of scope

--format jsonl writes all that is kept of each URL, one object a line; decorum
frontier add reads that too.`

const frontierListExample = `  decorum frontier list --host example.com --limit 20
  decorum frontier list --state parked
  decorum frontier list --state queued --format jsonl | jq -r .url`

// A frontierListOptions is which URLs somebody wants to see.
type frontierListOptions struct {
	env                                  *command.Env
	dataDir, host, origin, state, format string
	limit                                int
}

func NewFrontierListCommand(env *command.Env) *cobra.Command {
	q := frontierListOptions{env: env}
	c := &cobra.Command{
		Use: "list", Short: "List the URLs of a crawl's frontier", Long: frontierListHelp,
		Example: frontierListExample, Args: command.ArgsOrUsageError(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return q.listFrontier(c.Context()) },
	}
	fs := c.Flags()
	command.AddDataFlag(fs, &q.dataDir)
	fs.StringVar(&q.host, "host", "", "only of this `HOST`")
	fs.StringVar(&q.origin, "origin", "", "only of this `ORIGIN`, as https://example.com")
	fs.StringVar(&q.state, "state", "", "only in this `STATE`: queued, resting or parked")
	fs.IntVar(&q.limit, "limit", 0, "list `N` URLs at most; 0: all")
	fs.StringVar(&q.format, "format", "table", "write `FORMAT`: table or jsonl")
	return c
}

// parseFilters returns the states and the origin that are asked for.
func (q *frontierListOptions) parseFilters() (states []storage.EntryState, host string, o decorum.Origin, err error) {
	if err := command.CheckFormat(q.format, "table", "jsonl"); err != nil {
		return nil, "", o, err
	}
	for s, name := range inspect.StateNames {
		if q.state == name || q.state == "" {
			states = append(states, storage.EntryState(s))
		}
	}
	switch {
	case len(states) == 0:
		return nil, "", o, usage.Errorf("--state: %q is not one of queued, resting, parked", q.state)
	case q.limit < 0:
		return nil, "", o, usage.Errorf("--limit: %d is not a number of URLs", q.limit)
	case q.origin != "":
		u, err := decorum.ParseURL(q.origin)
		if err != nil || u.PathAndQuery() != "/" {
			return nil, "", o, usage.Errorf("--origin: %q is not an origin, as https://example.com", q.origin)
		}
		o = u.Origin()
	}
	host, err = command.ParseHostFlag(q.host)
	return states, host, o, err
}

func (q frontierListOptions) listFrontier(ctx context.Context) error {
	states, host, only, err := q.parseFilters()
	if err != nil {
		return err
	}
	return stoppedcrawl.OpenAndDo(ctx, q.env, q.dataDir, func(ctx context.Context, k *stoppedcrawl.Crawl) error {
		if err := k.LoadScope(); err != nil {
			q.env.Log.Warn("what is out of scope cannot be told", "why", err)
		}
		origins, err := k.MatchingOrigins(ctx, func(o *storage.OriginInfo) bool {
			return (host == "" || o.Origin.Host() == host) && (only.IsZero() || o.Origin == only)
		})
		if err != nil {
			return err
		}
		w := bufio.NewWriterSize(q.env.Stdout, 1<<16)
		l := &urlLister{Crawl: k, writeURL: newFrontierURLWriter(w, q.format), limit: q.limit}
		for i := range origins {
			if err = l.listOrigin(ctx, &origins[i], states); err != nil {
				break
			}
		}
		if errors.Is(err, errStopListing) {
			err = nil
		}
		return cmp.Or(err, w.Flush())
	})
}

// errStopListing ends a listing that is long enough.
var errStopListing = errors.New("enough URLs")

// A urlLister lists URLs until there are enough.
type urlLister struct {
	*stoppedcrawl.Crawl
	writeURL func(*api.FrontierURL) error
	limit    int // 0: none
	count    int
}

// listOrigin lists the URLs of one origin.
func (l *urlLister) listOrigin(ctx context.Context, o *storage.OriginInfo, states []storage.EntryState) error {
	evaluate, err := crawler.NewVerdictFunc(ctx, l.Gate, l.FrontierStore, o.Origin)
	if err != nil {
		return err
	}
	for _, state := range states {
		var writeErr error
		err := l.FrontierStore.OriginURLsInState(ctx, o.Origin, state, func(e storage.Entry, at time.Time) bool {
			line := inspect.ToAPIFrontierURL(&e, state, at)
			line.Reason = l.waitReason(&e, o, state, evaluate)
			writeErr = l.writeURL(line)
			if l.count++; writeErr == nil && l.count == l.limit {
				writeErr = errStopListing
			}
			return writeErr == nil
		})
		if err := errors.Join(err, writeErr); err != nil {
			return err
		}
	}
	return nil
}

// waitReason says why a URL waits, or is parked.
func (l *urlLister) waitReason(e *storage.Entry, o *storage.OriginInfo, state storage.EntryState, evaluate func(decorum.URL) robots.Verdict) string {
	switch {
	case state == storage.StateParked:
		_, r := l.ParkedReason(*e, evaluate)
		if place := reporttext.RuleLocationText(r); place != "" {
			return reporttext.RefusalText(r) + " of " + place
		}
		return reporttext.RefusalText(r)
	case o.HeldUntil.After(l.Time):
		return "its origin is held until " + inspect.FormatTime(o.HeldUntil)
	case e.FailedAttempts > 0:
		return fmt.Sprintf("put off after %d failed visits", e.FailedAttempts)
	}
	return ""
}

// newFrontierURLWriter returns how a line is written in the format.
func newFrontierURLWriter(w io.Writer, format string) func(*api.FrontierURL) error {
	if format == "jsonl" {
		e := jsonline.NewEscapingEncoder(w)
		e.SetEscapeHTML(false)
		return func(l *api.FrontierURL) error { return e.Encode(l) }
	}
	return func(l *api.FrontierURL) error {
		at := "-"
		if !l.NotBefore.IsZero() {
			at = inspect.FormatTime(l.NotBefore)
		}
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.State, at, l.URL, l.Reason)
		return err
	}
}
