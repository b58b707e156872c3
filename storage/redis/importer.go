package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// maxItemFingerprints is how many fingerprints one item of a call holds. It is small because a call
// has up to client.MaxBatchItems items, and keeps its server busy.
const maxItemFingerprints = 16

// importer adds the dumps of another store.
type importer struct{ client *client.Client }

// Import implements storage.Importer. If it fails, some items may have been imported. A call whose
// reply was lost is repeated, and adds nothing twice.
func (i *importer) Import(ctx context.Context, dumps []storage.OriginDump) error {
	if err := storage.ValidateDumps(dumps); err != nil {
		return err
	}
	ctx, end, err := i.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	var items []importItem
	for k := range dumps {
		items = appendImportItems(i.client.ScriptClock(), items, &dumps[k])
	}
	batches := i.client.Partitions().Batches(len(items), func(k int) (string, []string) {
		return items[k].origin.Host(), items[k].scriptArgs()
	})
	// A partition remembers the id of its last call, so that the script recognises a repeated one.
	// This suffices because the calls of a partition are sent one after another.
	for _, b := range batches {
		b.Args = append([]string{strconv.FormatUint(rand.Uint64(), 36)}, b.Args...)
	}
	err = i.client.SendBatches(ctx, batches, true, lua.Import, nil, func(int, byte, bool) error { return nil })
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return nil
}

// An importItem is one item of a call of import.lua.
type importItem struct {
	kind   string // "h" state of the host and hold, "u" a URL, "s" fingerprints
	origin decorum.Origin
	values []string // the arguments after the item's header
}

// scriptArgs returns the item as import.lua takes it: a header, and the values.
func (i *importItem) scriptArgs() []string {
	return append([]string{i.kind, i.origin.String(), i.origin.Host(), strconv.Itoa(len(i.values))}, i.values...)
}

// appendImportItems appends the items of a dump: the host's state first, then URLs, then
// fingerprints.
func appendImportItems(c *client.ScriptClock, items []importItem, p *storage.OriginDump) []importItem {
	if p.HostState != nil {
		hold := []string{c.TimeArg(p.HeldUntil), client.BoolArg(p.Suspended)}
		items = append(items, importItem{"h", p.Origin, append(hold, hostStateArgs(c, p.HostState)...)})
	}
	for i := range p.URLs {
		items = append(items, importItem{"u", p.Origin, storedURLArgs(c, &p.URLs[i])})
	}
	for fingerprints := range slices.Chunk(p.SeenURLFingerprints, maxItemFingerprints) {
		values := make([]string, len(fingerprints))
		for i, f := range fingerprints {
			values[i] = fingerprintArg(f)
		}
		items = append(items, importItem{"s", p.Origin, values})
	}
	return items
}

// storedURLArgs returns the values of an item of kind "u".
func storedURLArgs(c *client.ScriptClock, k *storage.StoredEntry) []string {
	e, lane, state, at, fingerprint := &k.Entry, schedule.LaneOf(&k.Entry), "q", c.TimeArg(k.NotBefore), ""
	switch {
	case k.State == storage.StateAwaitingRevisit:
		state = "r"
	case k.State == storage.StateParked:
		state = "p"
	case at != "":
		lane = lane.DelayedLane()
	}
	if e.RobotsFor.IsZero() {
		fingerprint = fingerprintArg(e.RequestFingerprint())
	}
	return []string{state, strconv.Itoa(int(lane)), rankArg(e), at, fingerprint, encodeEntry(e)}
}
