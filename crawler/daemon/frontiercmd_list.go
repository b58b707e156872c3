package daemon

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
	"github.com/decorum-crawler/decorum/internal/jsonline"
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

// A listQuery is which URLs somebody wants to see.
type listQuery struct {
	data, host, origin, state, format string
	limit                             int
}

func (a *app) frontierListCommand() *cobra.Command {
	var q listQuery
	c := &cobra.Command{
		Use: "list", Short: "List the URLs of a crawl's frontier", Long: frontierListHelp,
		Example: frontierListExample, Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return a.frontierList(c.Context(), q) },
	}
	fs := c.Flags()
	dataFlag(fs, &q.data)
	fs.StringVar(&q.host, "host", "", "only of this `HOST`")
	fs.StringVar(&q.origin, "origin", "", "only of this `ORIGIN`, as https://example.com")
	fs.StringVar(&q.state, "state", "", "only in this `STATE`: queued, resting or parked")
	fs.IntVar(&q.limit, "limit", 0, "list `N` URLs at most; 0: all")
	fs.StringVar(&q.format, "format", "table", "write `FORMAT`: table or jsonl")
	return c
}

// stateNames are how the states of a URL are written.
var stateNames = [...]string{storage.InQueue: "queued", storage.InRest: "resting", storage.InParking: "parked"}

// wants returns the states and the origin that are asked for.
func (q *listQuery) wants() (states []storage.State, host string, o decorum.Origin, err error) {
	if err := checkFormat(q.format, "table", "jsonl"); err != nil {
		return nil, "", o, err
	}
	for s, name := range stateNames {
		if q.state == name || q.state == "" {
			states = append(states, storage.State(s))
		}
	}
	switch {
	case len(states) == 0:
		return nil, "", o, usage("--state: %q is not one of queued, resting, parked", q.state)
	case q.limit < 0:
		return nil, "", o, usage("--limit: %d is not a number of URLs", q.limit)
	case q.origin != "":
		u, err := decorum.ParseURL(q.origin)
		if err != nil || u.Path() != "/" {
			return nil, "", o, usage("--origin: %q is not an origin, as https://example.com", q.origin)
		}
		o = u.Origin()
	}
	host, err = hostFlag(q.host)
	return states, host, o, err
}

func (a *app) frontierList(ctx context.Context, q listQuery) error {
	states, host, only, err := q.wants()
	if err != nil {
		return err
	}
	return a.look(ctx, q.data, func(ctx context.Context, k *offlineCrawl) error {
		if err := k.withScope(); err != nil {
			a.log.Warn("what is out of scope cannot be told", "why", err)
		}
		origins, err := k.origins(ctx, func(o *storage.OriginInfo) bool {
			return (host == "" || o.Origin.Host() == host) && (only.IsZero() || o.Origin == only)
		})
		if err != nil {
			return err
		}
		w := bufio.NewWriterSize(a.stdout, 1<<16)
		l := &lister{offlineCrawl: k, write: newFrontierURLWriter(w, q.format), limit: q.limit}
		for i := range origins {
			if err = l.list(ctx, &origins[i], states); err != nil {
				break
			}
		}
		if errors.Is(err, errEnough) {
			err = nil
		}
		return cmp.Or(err, w.Flush())
	})
}

// origins returns what the store has of the origins that are wanted.
func (q *inquiry) origins(ctx context.Context, want func(*storage.OriginInfo) bool) (wanted []storage.OriginInfo, err error) {
	err = q.store.Origins(ctx, func(o storage.OriginInfo) bool {
		if want(&o) {
			wanted = append(wanted, o)
		}
		return true
	})
	return wanted, err
}

// A lister lists URLs until there are enough.
type lister struct {
	*offlineCrawl
	write func(*api.FrontierURL) error
	limit int // 0: none
	count int
}

// list lists the URLs of one origin.
func (l *lister) list(ctx context.Context, o *storage.OriginInfo, states []storage.State) error {
	evaluate, err := crawler.NewVerdictFunc(ctx, l.gate, l.store, o.Origin)
	if err != nil {
		return err
	}
	for _, state := range states {
		var failed error
		err := l.store.URLs(ctx, o.Origin, state, func(e storage.Entry, at time.Time) bool {
			line := newURLLine(&e, state, at)
			line.Reason = l.why(&e, o, state, evaluate)
			failed = l.write(line)
			if l.count++; failed == nil && l.count == l.limit {
				failed = errEnough
			}
			return failed == nil
		})
		if err := errors.Join(err, failed); err != nil {
			return err
		}
	}
	return nil
}

// why says why a URL waits, or is parked.
func (l *lister) why(e *storage.Entry, o *storage.OriginInfo, state storage.State, evaluate func(decorum.URL) robots.Verdict) string {
	switch {
	case state == storage.InParking:
		_, r := l.whyParked(*e, evaluate)
		if place := rulePlace(r); place != "" {
			return refusalText(r) + " of " + place
		}
		return refusalText(r)
	case o.Hold.After(l.now):
		return "its origin is held until " + clock(o.Hold)
	case e.Attempt > 0:
		return fmt.Sprintf("put off after %d failed visits", e.Attempt)
	}
	return ""
}

// newFrontierURLWriter returns how a line is written in the format.
func newFrontierURLWriter(w io.Writer, format string) func(*api.FrontierURL) error {
	if format == "jsonl" {
		e := jsonline.NewEncoder(w)
		e.SetEscapeHTML(false)
		return func(l *api.FrontierURL) error { return e.Encode(l) }
	}
	return func(l *api.FrontierURL) error {
		at := "-"
		if !l.NotBefore.IsZero() {
			at = clock(l.NotBefore)
		}
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.State, at, l.URL, l.Reason)
		return err
	}
}
