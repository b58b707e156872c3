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

// An EnqueueFunc queues entries and returns how many it added, as
// frontier.Frontier.DiscoverReportingRefusals does. It calls onRefused for each entry out of scope.
type EnqueueFunc func(ctx context.Context, onRefused func(storage.Entry, error), entries []storage.Entry) (int, error)

// AddURLs queues the URLs in lines, one URL or JSON object per line, and returns how many were
// added, refused, known already or invalid. On an error it has still queued the lines before the
// error.
func AddURLs(ctx context.Context, discover EnqueueFunc, lines iter.Seq2[string, error]) (*api.AddURLsResult, error) {
	in := &urlBatchAdder{discover: discover, refusals: RefusalTally{}}
	err := in.addAll(ctx, lines)
	in.counts.Refusals = in.refusals.Sorted()
	return &in.counts, err
}

// A urlBatchAdder queues URLs in batches of engine.SeedBatchSize and counts the results. It reads no
// further line until discover has queued the batch.
type urlBatchAdder struct {
	discover EnqueueFunc
	counts   api.AddURLsResult
	refusals RefusalTally // refused URLs by reason
	batch    []storage.Entry
}

// addAll adds all lines and flushes the last batch.
func (in *urlBatchAdder) addAll(ctx context.Context, lines iter.Seq2[string, error]) (readErr error) {
	for line, err := range lines {
		if readErr = err; err != nil {
			break
		}
		if err := in.addLine(ctx, line); err != nil {
			return err
		}
	}
	// Queue the last batch even if the caller has gone.
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastFlushTimeout)
		defer cancel()
	}
	return errors.Join(readErr, in.flushBatch(ctx))
}

// lastFlushTimeout is how long the store may take for the last batch after the caller has gone.
const lastFlushTimeout = 5 * time.Second

// addLine adds the URL of a line to the batch, and flushes a full batch. It skips blank lines and
// comments.
func (in *urlBatchAdder) addLine(ctx context.Context, line string) error {
	e, ok := parseURLOrJSONLine(line)
	switch {
	case project.ParseSeedLine(line) == "": // a blank line or a comment
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

// flushBatch queues the batch and counts its URLs.
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

// countRefusal counts an entry that is out of scope because of err.
func (in *urlBatchAdder) countRefusal(e storage.Entry, err error) {
	in.counts.Refused++
	in.refusals.AddURL(api.RefusalSummary{RefusedBy: ParkedByScope, Rule: engine.InnerErrorText(err)}, e.URL)
}

// parseURLOrJSONLine returns the entry of a line: a URL, or a JSON object with url and, optionally,
// depth and referrer. ok is false for an invalid line.
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
	e = storage.Entry{URL: u, Source: storage.SourceSeed, PriorityClass: storage.ClassEarly,
		Depth: named.Depth, Referrer: named.Referrer}
	return e, err == nil && e.Validate() == nil
}
