package transfer

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
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/stoppedcrawl"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
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

func NewExportCommand(env *command.Env) *cobra.Command {
	var dataDir string
	c := &cobra.Command{
		Use: "export", Short: "Write a whole crawl as JSON Lines", Long: frontierExportHelp,
		Example: "  decorum frontier export | zstd >crawl.jsonl.zst", Args: command.ArgsOrUsageError(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return exportFrontier(c.Context(), env, dataDir) },
	}
	command.AddDataFlag(c.Flags(), &dataDir)
	return c
}

// The lines of an export, but for api.FrontierURL.
type (
	exportHeader struct {
		Type          string    `json:"type"`
		FormatVersion int       `json:"format"`
		ExportedAt    time.Time `json:"at"`
		ProjectYAML   string    `json:"project"`
	}
	exportedOrigin struct {
		Type      string       `json:"type"`
		Origin    string       `json:"origin"`
		HeldUntil time.Time    `json:"hold,omitzero"`
		Suspended bool         `json:"dormant,omitempty"`
		Host      exportedHost `json:"host"`
	}
	exportedHost struct {
		Name                string        `json:"name"`
		Due                 time.Time     `json:"due,omitzero"`
		Delay               time.Duration `json:"gap_ns"`
		Slots               int           `json:"slots"`
		ConsecutiveFailures int           `json:"strikes"`
		EncodedStats        []byte        `json:"memo,omitempty"`
	}
	exportedSeenFingerprints struct {
		Type         string `json:"type"`
		Origin       string `json:"origin"`
		Fingerprints []byte `json:"fingerprints"`
	}
	exportedNote struct {
		Type      string `json:"type"`
		StoreName string `json:"store"`
		Origin    string `json:"origin,omitempty"`
		Key       string `json:"key"`
		Value     []byte `json:"value"`
	}
	exportTotals struct {
		Type     string `json:"type"`
		Origins  int    `json:"origins"`
		URLs     int    `json:"urls"`
		SeenURLs int    `json:"seen"`
		Notes    int    `json:"notes"`
	}
)

// exportFormat is that of the lines. Who reads them knows no other.
const exportFormat = 1

// maxFingerprintsPerLine is how many fingerprints a line has at most.
const maxFingerprintsPerLine = 1024

func exportFrontier(ctx context.Context, env *command.Env, dataDir string) error {
	return stoppedcrawl.OpenAndDo(ctx, env, dataDir, func(ctx context.Context, k *stoppedcrawl.Crawl) error {
		text, err := os.ReadFile(k.Dir.Path(datadir.ProjectFile))
		if err != nil {
			return err
		}
		w := bufio.NewWriterSize(env.Stdout, 1<<16)
		x := &exporter{Crawl: k, encoder: jsonline.NewEncoder(w), totals: exportTotals{Type: "end"}}
		x.writeLine(exportHeader{"export", exportFormat, k.AsOf.UTC(), string(text)})
		before := x.countsIfIdle(ctx)
		x.writeFrontier(ctx)
		x.writeStoredNotes(ctx, k.RobotsStore, "robots")
		if x.countsIfIdle(ctx) != before {
			x.keepFirstError(errCrawlInUse)
		}
		x.writeLine(x.totals)
		return cmp.Or(x.err, w.Flush())
	})
}

// A exporter writes lines until something fails. Of what it writes it holds
// no more than the names of origins.
type exporter struct {
	*stoppedcrawl.Crawl
	encoder *json.Encoder
	totals  exportTotals
	err     error
}

// writeLine writes a line, and reports whether all went well so far.
func (x *exporter) writeLine(v any) bool {
	if x.err == nil {
		x.err = x.encoder.Encode(v)
	}
	return x.err == nil
}

// keepFirstError takes note of an error of a store.
func (x *exporter) keepFirstError(err error) {
	x.err = cmp.Or(x.err, err)
}

// errCrawlInUse refuses to write what is not of one moment.
var errCrawlInUse = errors.New("others are at work on this crawl: stop them first; what they had in hand " +
	"is free when their leases have run out (store.redis.lease)")

// countsIfIdle returns how much the store holds, which must not change: nothing is leased.
func (x *exporter) countsIfIdle(ctx context.Context) [4]int {
	c, err := x.FrontierStore.Counts(ctx)
	x.keepFirstError(err)
	if c.LeasedURLs > 0 {
		x.keepFirstError(errCrawlInUse)
	}
	return [...]int{c.QueuedURLs, c.AwaitingRevisit, c.ParkedURLs, c.SeenURLs}
}

// listOrigins returns the origins of a store.
func (x *exporter) listOrigins(ctx context.Context, s storage.OriginLister) (names []decorum.Origin) {
	x.keepFirstError(s.OriginNames(ctx, func(o decorum.Origin) bool {
		names = append(names, o)
		return true
	}))
	return names
}

// writeFrontier writes the frontier's store, origin by origin.
func (x *exporter) writeFrontier(ctx context.Context) {
	for _, name := range x.listOrigins(ctx, x.FrontierStore) {
		if x.err != nil {
			return
		}
		o, _, err := x.FrontierStore.Origin(ctx, name)
		x.keepFirstError(err)
		x.totals.Origins++
		h := o.HostState
		x.writeLine(exportedOrigin{"origin", name.String(), o.HeldUntil, o.Suspended,
			exportedHost{name.Host(), h.Due, h.LostVisitDelay, h.Slots, h.ConsecutiveFailures, h.EncodedStats}})
		for state := range inspect.StateNames {
			x.keepFirstError(x.FrontierStore.OriginURLsInState(ctx, name, storage.EntryState(state), func(e storage.Entry, at time.Time) bool {
				l := inspect.ToAPIFrontierURL(&e, storage.EntryState(state), at)
				l.ExportLineType = "url"
				x.totals.URLs++
				return x.writeLine(l)
			}))
		}
		x.writeFingerprints(ctx, name)
	}
	x.writeStoredNotes(ctx, x.FrontierStore, "frontier")
}

// writeFingerprints writes the fingerprints of an origin, many on a line.
func (x *exporter) writeFingerprints(ctx context.Context, o decorum.Origin) {
	var chunk []byte
	flush := func() bool {
		l := exportedSeenFingerprints{"seen", o.String(), chunk}
		x.totals.SeenURLs += len(chunk) / 8
		chunk = chunk[:0]
		return len(l.Fingerprints) == 0 || x.writeLine(l)
	}
	x.keepFirstError(x.FrontierStore.SeenURLFingerprints(ctx, o, func(f uint64) bool {
		chunk = binary.BigEndian.AppendUint64(chunk, f)
		return len(chunk) < 8*maxFingerprintsPerLine || flush()
	}))
	flush()
}

// writeStoredNotes writes what a store keeps for its origins.
func (x *exporter) writeStoredNotes(ctx context.Context, s storage.NoteStore, name string) {
	for _, o := range append(x.listOrigins(ctx, s), decorum.Origin{}) { // which is the crawl's own
		x.keepFirstError(s.OriginNotes(ctx, o, func(key string, value []byte) bool {
			if o.IsZero() && (key == datadir.ImportNoteKey || frontier.IsStoreSpecificNote(key)) {
				return true
			}
			x.totals.Notes++
			return x.writeLine(exportedNote{"note", name, o.String(), key, value})
		}))
	}
}
