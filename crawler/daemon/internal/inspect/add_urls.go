package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/storage"
)

// An EnqueueFunc queues entries, as frontier.Frontier.DiscoverReportingRefusals does.
type EnqueueFunc func(ctx context.Context, onRefused func(storage.Entry, error), entries []storage.Entry) (int, error)

// AddURLs queues what lines name until they end, or with an error, and returns what became of
// it. What came before the error is taken.
func AddURLs(ctx context.Context, discover EnqueueFunc, lines iter.Seq2[string, error]) (*api.AddURLsResult, error) {
	in := &urlBatchAdder{discover: discover, refusals: RefusalTally{}}
	err := in.addAll(ctx, lines)
	in.counts.Refusals = in.refusals.Sorted()
	return &in.counts, err
}

// A urlBatchAdder takes URLs that somebody names, many at a time, and counts what becomes of
// them. It holds a batch, and what discover has not taken yet has to wait.
type urlBatchAdder struct {
	discover EnqueueFunc
	counts   api.AddURLsResult
	refusals RefusalTally
	batch    []storage.Entry
}

// addAll takes what lines name, and flushes the last batch.
func (in *urlBatchAdder) addAll(ctx context.Context, lines iter.Seq2[string, error]) (readErr error) {
	for line, err := range lines {
		if readErr = err; err != nil {
			break
		}
		if err := in.addLine(ctx, line); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastFlushTimeout)
		defer cancel()
	}
	return errors.Join(readErr, in.flushBatch(ctx))
}

// lastFlushTimeout is how long a store may take for the last batch of somebody who has
// gone away.
const lastFlushTimeout = 5 * time.Second

// addLine takes what a line names, if it names anything.
func (in *urlBatchAdder) addLine(ctx context.Context, line string) error {
	e, ok := parseURLOrJSONLine(line)
	switch {
	case project.ParseSeedLine(line) == "": // blank, or a comment
	case !ok:
		in.counts.InvalidLines++
	default:
		in.batch = append(in.batch, e)
	}
	if len(in.batch) < engine.SeedBatchSize {
		return nil
	}
	return in.flushBatch(ctx)
}

// flushBatch adds the batch.
func (in *urlBatchAdder) flushBatch(ctx context.Context) error {
	refused := in.counts.Refused
	added, err := in.discover(ctx, in.countRefusal, in.batch)
	if err == nil {
		in.counts.Added += added
		in.counts.Duplicates += len(in.batch) - added - (in.counts.Refused - refused)
	}
	in.batch = in.batch[:0]
	return err
}

// countRefusal takes note of what is out of scope.
func (in *urlBatchAdder) countRefusal(e storage.Entry, err error) {
	in.counts.Refused++
	in.refusals.AddURL(api.RefusalSummary{RefusedBy: ParkedByScope, Rule: engine.InnerErrorText(err)}, e.URL)
}

// parseURLOrJSONLine returns what a line names: a URL, or an object with one.
func parseURLOrJSONLine(line string) (e storage.Entry, ok bool) {
	named := struct {
		URL      string `json:"url"`
		Depth    int    `json:"depth"`
		Referrer string `json:"referrer"`
	}{URL: project.ParseSeedLine(line)}
	if line = strings.TrimSpace(strings.TrimPrefix(line, plaintext.ByteOrderMark)); strings.HasPrefix(line, "{") {
		if json.Unmarshal([]byte(line), &named) != nil {
			return e, false
		}
	}
	u, err := decorum.ParseURL(named.URL)
	e = storage.Entry{URL: u, Source: storage.SourceSeed, PriorityClass: storage.ClassEarly, Depth: named.Depth, Referrer: named.Referrer}
	return e, err == nil && e.Validate() == nil
}
