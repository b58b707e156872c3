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

const frontierExportHelp = `Write a whole crawl as JSON Lines, which decorum frontier import reads into another
store. No process may be using the crawl. Each line has a type:

  export  the first line: the format of the export (1), and the project as YAML
  origin  an origin, until when it is held, and the timing of its host, which is the
          same on the lines of all origins of the host; durations in nanoseconds
  url     a URL of that origin that is queued, resting or parked, within each state
          in the order in which the crawl would visit it
  seen    fingerprints of all URLs of that origin that were ever queued: 64 bits of
          FNV-1a over the path and query and, for methods other than GET, a line
          feed, the method, a line feed and the body; big-endian, in base64
  note    a value that the named store (frontier, or robots for the robots.txt files)
          keeps under a key for an origin, or without an origin for the crawl
  end     the last line: the number of lines of each type, by which import detects
          that an export is truncated

Fields whose bytes need not be text are in base64: context, body, etag,
last_modified, memo, fingerprints, value.`

// NewExportCommand returns the command decorum frontier export.
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

// The lines of an export. A line of type url is an api.FrontierURL.
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
		Suspended bool         `json:"dormant,omitempty"` // the crawl does not wait for HeldUntil
		Host      exportedHost `json:"host"`
	}
	exportedHost struct {
		Name                string        `json:"name"`
		Due                 time.Time     `json:"due,omitzero"`
		Delay               time.Duration `json:"gap_ns"` // storage.HostState.LostVisitDelay
		Slots               int           `json:"slots"`
		ConsecutiveFailures int           `json:"strikes"`
		EncodedStats        []byte        `json:"memo,omitempty"`
	}
	exportedSeenFingerprints struct {
		Type         string `json:"type"`
		Origin       string `json:"origin"`
		Fingerprints []byte `json:"fingerprints"` // 8 bytes each, big-endian
	}
	exportedNote struct {
		Type      string `json:"type"`
		StoreName string `json:"store"`            // frontier or robots
		Origin    string `json:"origin,omitempty"` // empty: a note of the crawl
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

// exportFormat is the version of the format. import accepts no other version.
const exportFormat = 1

// maxFingerprintsPerLine is the largest number of fingerprints in a line of type seen.
const maxFingerprintsPerLine = 1024

// exportFrontier writes the crawl in dataDir to standard output.
func exportFrontier(ctx context.Context, env *command.Env, dataDir string) error {
	return stoppedcrawl.OpenAndDo(ctx, env, dataDir, func(ctx context.Context, k *stoppedcrawl.Crawl) error {
		text, err := os.ReadFile(k.Dir.Path(datadir.ProjectFile))
		if err != nil {
			return err
		}
		w := bufio.NewWriterSize(env.Stdout, 1<<16)
		x := &exporter{Crawl: k, encoder: jsonline.NewEncoder(w), totals: exportTotals{Type: "end"}}
		x.writeLine(exportHeader{"export", exportFormat, k.AsOf.UTC(), string(text)})
		// The lock of the directory does not stop other processes on a crawl in Redis: compare the
		// counts before and after.
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

// An exporter writes lines until the first error. In memory it holds only the names of the origins,
// not what it writes.
type exporter struct {
	*stoppedcrawl.Crawl
	encoder *json.Encoder
	totals  exportTotals // of the lines written so far
	err     error        // the first error; no line follows it
}

// writeLine writes the line v unless an error came before. It reports whether x.err is still nil.
func (x *exporter) writeLine(v any) bool {
	if x.err == nil {
		x.err = x.encoder.Encode(v)
	}
	return x.err == nil
}

// keepFirstError sets x.err to err if it is the first error.
func (x *exporter) keepFirstError(err error) {
	x.err = cmp.Or(x.err, err)
}

// errCrawlInUse says that the state changes during the export, which would then be inconsistent.
var errCrawlInUse = errors.New("other processes are using this crawl: stop them first; their visits in flight " +
	"are released when their leases expire (store.redis.lease)")

// countsIfIdle returns the numbers of queued, resting, parked and seen URLs. It records
// errCrawlInUse if a URL is leased.
func (x *exporter) countsIfIdle(ctx context.Context) [4]int {
	c, err := x.FrontierStore.Counts(ctx)
	x.keepFirstError(err)
	if c.LeasedURLs > 0 {
		x.keepFirstError(errCrawlInUse)
	}
	return [...]int{c.QueuedURLs, c.AwaitingRevisit, c.ParkedURLs, c.SeenURLs}
}

// listOrigins returns the origins of the store s.
func (x *exporter) listOrigins(ctx context.Context, s storage.OriginLister) (names []decorum.Origin) {
	x.keepFirstError(s.OriginNames(ctx, func(o decorum.Origin) bool {
		names = append(names, o)
		return true
	}))
	return names
}

// writeFrontier writes the frontier's store, origin by origin, and then its notes.
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
		// All URLs before the fingerprints, as importer.flushBatch needs them.
		for state := range inspect.StateNames {
			x.keepFirstError(x.FrontierStore.OriginURLsInState(ctx, name, storage.EntryState(state),
				func(e storage.Entry, at time.Time) bool {
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

// writeFingerprints writes the fingerprints of the origin o, maxFingerprintsPerLine a line.
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

// writeStoredNotes writes the notes of the store s, which the export calls name. It skips the notes
// that are meaningless in another store.
func (x *exporter) writeStoredNotes(ctx context.Context, s storage.NoteStore, name string) {
	for _, o := range append(x.listOrigins(ctx, s), decorum.Origin{}) { // the zero Origin has the crawl's notes
		x.keepFirstError(s.OriginNotes(ctx, o, func(key string, value []byte) bool {
			if o.IsZero() && (key == datadir.ImportNoteKey || frontier.IsStoreSpecificNote(key)) {
				return true
			}
			x.totals.Notes++
			return x.writeLine(exportedNote{"note", name, o.String(), key, value})
		}))
	}
}
