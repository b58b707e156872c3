package inspect

import (
	"context"
	"iter"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// A RunningCrawl implements api.Inspector for a crawl that this process runs, or could run. It
// makes an Inspector for each query.
type RunningCrawl struct {
	Name string // name of the crawl in errors
	// WithEngine calls do with an engine of the crawl and keeps its stores open until do returns.
	WithEngine func(ctx context.Context, do func(context.Context, *engine.Engine) error) error
	// URLsAdded is called when AddURLs has queued URLs. It may be nil.
	URLsAdded func(*engine.Engine)
}

// inspect calls do with an Inspector of the crawl at the present time.
func (c *RunningCrawl) inspect(ctx context.Context, do func(context.Context, *Inspector) error) error {
	return c.WithEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
		q, err := New(ctx, e)
		if err != nil {
			return err
		}
		q.Name = c.Name
		return do(ctx, q)
	})
}

// Report implements api.Inspector. use is called while the stores are open, and the hosts of its
// report are read as use iterates over them.
func (c *RunningCrawl) Report(ctx context.Context, query api.ReportQuery, use func(*api.StreamedReport) error) error {
	// The first part has the totals, the others have one host each: see reportParts.
	next, stop := iter.Pull2(streamInspection(ctx, c, (*Inspector).reportParts, query))
	defer stop()
	first, err, _ := next()
	if err != nil {
		return err
	}
	return use(&api.StreamedReport{Totals: *first.totals, Hosts: func(yield func(*api.Host, error) bool) {
		for part, err, more := next(); more; part, err, more = next() {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(part.host, nil) {
				return
			}
		}
	}})
}

// ExplainURL implements api.Inspector.
func (c *RunningCrawl) ExplainURL(ctx context.Context, url string) (e *api.URLExplanation, err error) {
	if _, err := decorum.ParseURL(url); err != nil {
		return nil, api.InvalidInput("%q is not a URL: %s", url, engine.InnerErrorText(err))
	}
	err = c.inspect(ctx, func(ctx context.Context, q *Inspector) error {
		e, err = q.ExplainURL(ctx, url)
		return err
	})
	return e, err
}

// FrontierStats implements api.Inspector.
func (c *RunningCrawl) FrontierStats(ctx context.Context) (s *api.FrontierStats, err error) {
	err = c.inspect(ctx, func(ctx context.Context, q *Inspector) error {
		s, err = q.FrontierStats(ctx)
		return err
	})
	return s, err
}

// FrontierURLs implements api.Inspector.
func (c *RunningCrawl) FrontierURLs(ctx context.Context,
	query api.FrontierURLQuery) iter.Seq2[*api.FrontierURL, error] {
	return streamInspection(ctx, c, (*Inspector).FrontierURLs, query)
}

// LedgerRecords implements api.Inspector.
func (c *RunningCrawl) LedgerRecords(ctx context.Context, query api.LedgerQuery) iter.Seq2[*ledger.Record, error] {
	return streamInspection(ctx, c, (*Inspector).LedgerRecords, query)
}

// streamInspection yields the values that list, a method of Inspector, yields for the crawl. list
// runs in a goroutine of its own, so that closing the stores, which cancels its context, never
// waits for a slow reader of the iteration. The goroutine has ended when the iteration ends. If
// list panics, the panic continues in the caller's goroutine.
func streamInspection[Q, T any](
	ctx context.Context, c *RunningCrawl, list func(*Inspector, context.Context, Q) iter.Seq2[*T, error], query Q,
) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		values := make(chan *T)
		// The goroutine sets listErr and panicValue before it closes values.
		var listErr error
		var panicValue any
		go func() {
			defer close(values)
			defer func() { panicValue = recover() }()
			listErr = c.inspect(ctx, func(ctx context.Context, q *Inspector) error {
				for v, err := range list(q, ctx, query) {
					if err != nil {
						return err
					}
					select {
					case values <- v:
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}
				return nil
			})
		}()
		defer func() {
			cancel()
			for range values { // wait for the goroutine, which may be sending a value
			}
		}()
		for v := range values {
			if !yield(v, nil) {
				return
			}
		}
		if panicValue != nil {
			panic(panicValue)
		}
		if listErr != nil {
			yield(nil, listErr)
		}
	}
}

// AddURLs implements api.Inspector. It adds a batch before it reads the next, so that the sender is
// no faster than the store. When it returns without an error, the URLs that it counts as added are
// on disk. The result is valid with an error, too.
func (c *RunningCrawl) AddURLs(ctx context.Context, lines iter.Seq2[string, error]) (*api.AddURLsResult, error) {
	result, err := AddURLs(ctx, c.enqueueURLs, lines)
	if err == nil {
		err = c.WithEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
			return e.Stores.Frontier.Flush(ctx)
		})
	}
	return result, err
}

// enqueueURLs queues entries. It gets the engine again for each batch, because the project file may
// change while a long list arrives.
func (c *RunningCrawl) enqueueURLs(ctx context.Context, onRefused func(storage.Entry, error),
	entries []storage.Entry) (added int, err error) {
	err = c.WithEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
		added, err = e.Frontier.DiscoverReportingRefusals(ctx, onRefused, entries)
		if added > 0 && c.URLsAdded != nil {
			c.URLsAdded(e)
		}
		return err
	})
	return added, err
}
