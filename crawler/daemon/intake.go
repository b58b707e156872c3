package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/storage"
)

// An intake takes URLs that somebody names, many at a time, and counts what
// becomes of them. It holds a batch, and what frontier.Frontier.Offer has not
// taken yet has to wait.
type intake struct {
	offer    func(context.Context, func(storage.Entry, error), []storage.Entry) (int, error)
	counts   api.AddURLsResult
	refusals refusals
	batch    []storage.Entry
}

func newIntake(offer func(context.Context, func(storage.Entry, error), []storage.Entry) (int, error)) *intake {
	return &intake{offer: offer, refusals: refusals{}}
}

// takeAll takes what lines name until they end, or with an error. What came
// before that is taken.
func (in *intake) takeAll(ctx context.Context, lines iter.Seq2[string, error]) (end error) {
	for line, err := range lines {
		if end = err; err != nil {
			break
		}
		if err := in.take(ctx, line); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastTaking)
		defer cancel()
	}
	return errors.Join(end, in.flush(ctx))
}

// lastTaking is how long a store may take for the last batch of somebody who has
// gone away.
const lastTaking = 5 * time.Second

// take takes what a line names, if it names anything.
func (in *intake) take(ctx context.Context, line string) error {
	e, ok := entryOf(line)
	switch {
	case seedOf(line) == "": // blank, or a comment
	case !ok:
		in.counts.InvalidLines++
	default:
		in.batch = append(in.batch, e)
	}
	if len(in.batch) < seedBatch {
		return nil
	}
	return in.flush(ctx)
}

// flush adds the batch.
func (in *intake) flush(ctx context.Context) error {
	refused := in.counts.Refused
	added, err := in.offer(ctx, in.refuse, in.batch)
	if err == nil {
		in.counts.Added += added
		in.counts.Duplicates += len(in.batch) - added - (in.counts.Refused - refused)
	}
	in.batch = in.batch[:0]
	return err
}

// refuse takes note of what is out of scope.
func (in *intake) refuse(e storage.Entry, err error) {
	in.counts.Refused++
	in.refusals.note(api.RefusalSummary{RefusedBy: whyScope, Rule: cause(err)}, e.URL)
}

// result returns what became of all that was taken.
func (in *intake) result() *api.AddURLsResult {
	in.counts.Refusals = in.refusals.list()
	return &in.counts
}

// entryOf returns what a line names: a URL, or an object with one.
func entryOf(line string) (e storage.Entry, ok bool) {
	named := struct {
		URL      string `json:"url"`
		Depth    int    `json:"depth"`
		Referrer string `json:"referrer"`
	}{URL: seedOf(line)}
	if line = strings.TrimSpace(strings.TrimPrefix(line, byteOrderMark)); strings.HasPrefix(line, "{") {
		if json.Unmarshal([]byte(line), &named) != nil {
			return e, false
		}
	}
	u, err := decorum.ParseURL(named.URL)
	e = storage.Entry{URL: u, Source: storage.Seed, Class: storage.Early, Depth: named.Depth, Referrer: named.Referrer}
	return e, err == nil && e.Check() == nil
}
