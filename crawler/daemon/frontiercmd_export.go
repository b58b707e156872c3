package daemon

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/storage"
)

const frontierExportHelp = `Write all that is needed to move a crawl to another store, as JSON Lines, which
decorum frontier import reads. Nobody may be at work on the crawl. Each line has a type:

  export  the first: the format of what follows (1), and the project as YAML
  origin  an origin, until when it is held, and the clock of its host, which is the
          same on the lines of all origins of the host; durations in nanoseconds
  url     a URL of that origin that is queued, resting or parked, within each state
          in the order in which it would be visited
  seen    fingerprints of URLs of that origin that were ever queued: 64 bits of
          FNV-1a over path and query and, of what is not asked for by GET, a line
          feed, the method, a line feed and the body; big-endian, in base64
  note    what is kept under a key for an origin, or, without one, for the crawl,
          in the store named: frontier, or robots for the robots.txt files
  end     the last: how many of each there were. A file without it is cut short

Bytes that need not be text are in base64: context, body, etag, last_modified, memo,
fingerprints, value.`

func (a *app) frontierExportCommand() *cobra.Command {
	var data string
	c := &cobra.Command{
		Use: "export", Short: "Write a whole crawl as JSON Lines", Long: frontierExportHelp,
		Example: "  decorum frontier export | zstd >crawl.jsonl.zst", Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return a.frontierExport(c.Context(), data) },
	}
	dataFlag(c.Flags(), &data)
	return c
}

// The lines of an export, but for api.FrontierURL.
type (
	exportHeader struct {
		Type    string    `json:"type"`
		Format  int       `json:"format"`
		At      time.Time `json:"at"`
		Project string    `json:"project"`
	}
	exportedOrigin struct {
		Type    string       `json:"type"`
		Origin  string       `json:"origin"`
		Hold    time.Time    `json:"hold,omitzero"`
		Dormant bool         `json:"dormant,omitempty"`
		Host    exportedHost `json:"host"`
	}
	exportedHost struct {
		Name    string        `json:"name"`
		Due     time.Time     `json:"due,omitzero"`
		Gap     time.Duration `json:"gap_ns"`
		Slots   int           `json:"slots"`
		Strikes int           `json:"strikes"`
		Memo    []byte        `json:"memo,omitempty"`
	}
	exportedSeenFingerprints struct {
		Type         string `json:"type"`
		Origin       string `json:"origin"`
		Fingerprints []byte `json:"fingerprints"`
	}
	exportedNote struct {
		Type   string `json:"type"`
		Store  string `json:"store"`
		Origin string `json:"origin,omitempty"`
		Key    string `json:"key"`
		Value  []byte `json:"value"`
	}
	exportTotals struct {
		Type    string `json:"type"`
		Origins int    `json:"origins"`
		URLs    int    `json:"urls"`
		Seen    int    `json:"seen"`
		Notes   int    `json:"notes"`
	}
)

// exportFormat is that of the lines. Who reads them knows no other.
const exportFormat = 1

// seenChunk is how many fingerprints a line has at most.
const seenChunk = 1024

func (a *app) frontierExport(ctx context.Context, data string) error {
	return a.look(ctx, data, func(ctx context.Context, k *offlineCrawl) error {
		text, err := os.ReadFile(k.dir.path(projectFile))
		if err != nil {
			return err
		}
		w := bufio.NewWriterSize(a.stdout, 1<<16)
		x := &exporter{offlineCrawl: k, json: jsonline.NewEncoder(w), end: exportTotals{Type: "end"}}
		x.json.SetEscapeHTML(false)
		x.writeLine(exportHeader{"export", exportFormat, k.now.UTC(), string(text)})
		before := x.quiet(ctx)
		x.frontier(ctx)
		x.notes(ctx, k.robots, "robots")
		if x.quiet(ctx) != before {
			x.try(errAtWork)
		}
		x.writeLine(x.end)
		return cmp.Or(x.err, w.Flush())
	})
}

// An exporter writes lines until something fails. Of what it writes it holds
// no more than the names of origins.
type exporter struct {
	*offlineCrawl
	json *json.Encoder
	end  exportTotals
	err  error
}

// writeLine writes a line, and reports whether all went well so far.
func (x *exporter) writeLine(v any) bool {
	if x.err == nil {
		x.err = x.json.Encode(v)
	}
	return x.err == nil
}

// try takes note of an error of a store.
func (x *exporter) try(err error) {
	if x.err == nil {
		x.err = err
	}
}

// errAtWork refuses to write what is not of one moment.
var errAtWork = errors.New("others are at work on this crawl: stop them first; what they had in hand " +
	"is free when their leases have run out (store.redis.lease)")

// quiet returns how much the store holds, which must not change: nothing is leased.
func (x *exporter) quiet(ctx context.Context) [4]int {
	c, err := x.store.Counts(ctx)
	x.try(err)
	if c.Leased > 0 {
		x.try(errAtWork)
	}
	return [...]int{c.Queued, c.Resting, c.Parked, c.Seen}
}

// names returns the origins of a store.
func (x *exporter) names(ctx context.Context, s store) (names []decorum.Origin) {
	x.try(s.Origins(ctx, func(o storage.OriginInfo) bool {
		names = append(names, o.Origin)
		return true
	}))
	return names
}

// frontier writes the frontier's store, origin by origin.
func (x *exporter) frontier(ctx context.Context) {
	for _, name := range x.names(ctx, x.store) {
		if x.err != nil {
			return
		}
		o, _, err := x.store.Origin(ctx, name)
		x.try(err)
		x.origin(&o)
		for in := range stateNames {
			x.try(x.store.URLs(ctx, name, storage.State(in), func(e storage.Entry, at time.Time) bool {
				l := newURLLine(&e, storage.State(in), at)
				l.ExportType = "url"
				x.end.URLs++
				return x.writeLine(l)
			}))
		}
		x.seen(ctx, name)
	}
	x.notes(ctx, x.store, "frontier")
}

func (x *exporter) origin(o *storage.OriginInfo) {
	x.end.Origins++
	x.writeLine(exportedOrigin{"origin", o.Origin.String(), o.Hold, o.Dormant, exportedHost{
		o.Origin.Host(), o.Host.Due, o.Host.Gap, o.Host.Slots, o.Host.Strikes, o.Host.Memo}})
}

// seen writes the fingerprints of an origin, many on a line.
func (x *exporter) seen(ctx context.Context, o decorum.Origin) {
	var chunk []byte
	flush := func() bool {
		l := exportedSeenFingerprints{"seen", o.String(), chunk}
		x.end.Seen += len(chunk) / 8
		chunk = chunk[:0]
		return len(l.Fingerprints) == 0 || x.writeLine(l)
	}
	x.try(x.store.Seen(ctx, o, func(f uint64) bool {
		chunk = binary.BigEndian.AppendUint64(chunk, f)
		return len(chunk) < 8*seenChunk || flush()
	}))
	flush()
}

// notes writes what a store keeps for its origins.
func (x *exporter) notes(ctx context.Context, s store, name string) {
	for _, o := range append(x.names(ctx, s), decorum.Origin{}) { // which is the crawl's own
		x.try(s.Notes(ctx, o, func(key string, value []byte) bool {
			if o.IsZero() && (key == importNote || frontier.IsOwnNote(key)) {
				return true
			}
			x.end.Notes++
			return x.writeLine(exportedNote{"note", name, o.String(), key, value})
		}))
	}
}
