package transfer

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/storage"
)

// maxExportLine is the longest line that import reads, in bytes: a body or note of 16 MiB in base64,
// and the other fields.
const maxExportLine = 24 << 20

// The bounds of a batch. The importer holds one batch, and one line, in memory.
const (
	maxImportItems = 4096    // URLs, fingerprints, notes and origins
	maxImportBytes = 1 << 20 // of lines
)

// exportLines yields the lines of an export, and an error of reading last.
func exportLines(in io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		lines := bufio.NewScanner(in)
		lines.Buffer(make([]byte, 1<<16), maxExportLine)
		for lines.Scan() {
			if !yield(lines.Text(), nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield("", fmt.Errorf("cannot read the export: %w", err))
		}
	}
}

// decodeExportLine decodes a line. It rejects unknown fields, which the import would lose.
func decodeExportLine[T any](line string) (*T, error) {
	v := new(T)
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return nil, fmt.Errorf("the line is truncated or invalid: %w", err)
	}
	if d.More() {
		return nil, errors.New("more text follows the JSON object")
	}
	return v, nil
}

// readExportLine decodes a line and calls add with it.
func readExportLine[T any](line string, add func(*T) error) error {
	l, err := decodeExportLine[T](line)
	if err != nil {
		return err
	}
	return add(l)
}

// An importer writes the lines of an export into stores, batch by batch.
type importer struct {
	stdout      io.Writer
	stderr      *terminal.StatusLineWriter
	stores      datadir.CrawlStores
	saveProject func() error         // saves the project in the data directory
	marker      datadir.ImportMarker // identifies the export, and says whether its import is complete
	isResumed   bool                 // an interrupted import left a part of this export in the store

	// What has been read.
	lineNumber    int            // of the line that was read last, from 1
	currentOrigin decorum.Origin // of that line
	readTotals    exportTotals
	urlsByState   [len(inspect.StateNames)]int
	sawEndLine    bool
	lastProgress  time.Time // when showProgress printed last

	// The batch that flushBatch writes.
	pendingOriginDumps         []storage.OriginDump
	pendingNotes               []exportedNote
	batchItemCount, batchBytes int
	alreadyImportedRedirects   alreadyImportedRobotsRedirects
}

// importLine adds a line to the batch, and writes the batch if it is full or the line is the last.
func (m *importer) importLine(ctx context.Context, line string) (err error) {
	if m.sawEndLine {
		return errors.New("more lines follow the line of type end")
	}
	var kind struct{ Type string }
	if err := json.Unmarshal([]byte(line), &kind); err != nil {
		return fmt.Errorf("the line is truncated or invalid: %w", err)
	}
	switch kind.Type {
	case "origin":
		err = readExportLine(line, m.addOrigin)
	case "url":
		err = readExportLine(line, func(l *api.FrontierURL) error { return m.addURL(ctx, l) })
	case "seen":
		err = readExportLine(line, m.addFingerprints)
	case "note":
		err = readExportLine(line, m.addNote)
	case "end":
		err = readExportLine(line, m.checkTotals)
	default:
		err = fmt.Errorf("the line has type %q, which this version of decorum does not know", kind.Type)
	}
	// A batch is written when it is full, and after the last line.
	m.batchBytes += len(line)
	if err == nil && (m.sawEndLine || m.batchItemCount >= maxImportItems || m.batchBytes >= maxImportBytes) {
		err = m.flushBatch(ctx)
	}
	return err
}

// getOrCreateOriginDump returns the dump of the origin name in the batch: the last one, or a new one.
// The lines of an origin follow each other.
func (m *importer) getOrCreateOriginDump(name string) (*storage.OriginDump, error) {
	if n := len(m.pendingOriginDumps); n > 0 && name == m.pendingOriginDumps[n-1].Origin.String() {
		return &m.pendingOriginDumps[n-1], nil
	}
	o, err := inspect.ParseOrigin(name)
	if err != nil {
		return nil, err
	}
	m.currentOrigin = o
	m.pendingOriginDumps = append(m.pendingOriginDumps, storage.OriginDump{Origin: o})
	return &m.pendingOriginDumps[len(m.pendingOriginDumps)-1], nil
}

// addOrigin adds a line of type origin to the batch.
func (m *importer) addOrigin(l *exportedOrigin) error {
	p, err := m.getOrCreateOriginDump(l.Origin)
	if err != nil {
		return err
	}
	if h := l.Host; h.Name != p.Origin.Host() {
		return fmt.Errorf("%q is not the host of %v", h.Name, p.Origin)
	}
	p.HostState = &storage.HostState{Due: l.Host.Due, LostVisitDelay: l.Host.Delay, Slots: l.Host.Slots,
		ConsecutiveFailures: l.Host.ConsecutiveFailures, EncodedStats: l.Host.EncodedStats}
	p.HeldUntil, p.Suspended = l.HeldUntil, l.Suspended
	m.readTotals.Origins++
	m.batchItemCount++
	return nil
}

// addURL adds a line of type url to the batch, unless it is a redirect of a robots.txt that an
// interrupted import has already stored.
func (m *importer) addURL(ctx context.Context, l *api.FrontierURL) error {
	k, err := inspect.ToStoredEntry(l)
	if err != nil {
		return err
	}
	m.readTotals.URLs++
	m.urlsByState[k.State]++
	p, err := m.getOrCreateOriginDump(k.URL.Origin().String())
	if err != nil {
		return err
	}
	// The seen set recognises repeated URLs, but not redirects of robots.txt files.
	if m.isResumed && !k.RobotsFor.IsZero() {
		if stored, err := m.alreadyImportedRedirects.consumeIfImported(ctx, m.stores.Frontier, k); stored ||
			err != nil {
			return err
		}
	}
	p.URLs = append(p.URLs, *k)
	m.batchItemCount++
	return nil
}

// addFingerprints adds a line of type seen to the batch.
func (m *importer) addFingerprints(l *exportedSeenFingerprints) error {
	if len(l.Fingerprints)%8 != 0 {
		return fmt.Errorf("the fingerprints have %d bytes, which is not a multiple of 8", len(l.Fingerprints))
	}
	p, err := m.getOrCreateOriginDump(l.Origin)
	if err != nil {
		return err
	}
	for f := l.Fingerprints; len(f) > 0; f = f[8:] {
		p.SeenURLFingerprints = append(p.SeenURLFingerprints, binary.BigEndian.Uint64(f))
		m.readTotals.SeenURLs++
		m.batchItemCount++
	}
	return nil
}

// addNote adds a line of type note to the batch.
func (m *importer) addNote(l *exportedNote) error {
	if l.StoreName != "frontier" && l.StoreName != "robots" {
		return fmt.Errorf("the note is of store %q: expected frontier or robots", l.StoreName)
	}
	if l.Value == nil {
		l.Value = []byte{} // SetNote deletes a note whose value is nil
	}
	m.readTotals.Notes++
	m.pendingNotes = append(m.pendingNotes, *l)
	m.batchItemCount++
	return nil
}

// checkTotals compares the line of type end with the lines that were read.
func (m *importer) checkTotals(l *exportTotals) error {
	m.readTotals.Type = l.Type
	if m.readTotals != *l {
		return fmt.Errorf("lines are missing or repeated: read %v, but the export has %v", m.readTotals, *l)
	}
	m.sawEndLine = true
	return nil
}

// flushBatch writes the batch to the stores and empties it. The URLs of an origin must be stored no
// later than its fingerprints: the store takes a URL whose fingerprint it has for a known one.
func (m *importer) flushBatch(ctx context.Context) error {
	if err := m.stores.Frontier.Import(ctx, m.pendingOriginDumps); err != nil {
		return err
	}
	if err := m.writeNotesToStore(ctx); err != nil {
		return err
	}
	clear(m.pendingOriginDumps)
	clear(m.pendingNotes)
	m.pendingOriginDumps, m.pendingNotes, m.batchItemCount, m.batchBytes = m.pendingOriginDumps[:0], m.pendingNotes[:0],
		0, 0
	m.showProgress(time.Now())
	return nil
}

// maxConcurrentNotes is how many notes are written at a time. In Redis each is one call.
const maxConcurrentNotes = 16

// writeNotesToStore writes the notes of the batch in maxConcurrentNotes goroutines, and waits for
// them. It returns the first error.
func (m *importer) writeNotesToStore(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for first := range maxConcurrentNotes {
		wg.Go(func() {
			for i := first; i < len(m.pendingNotes) && ctx.Err() == nil; i += maxConcurrentNotes {
				if err := m.writeNoteToStore(ctx, &m.pendingNotes[i]); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// writeNoteToStore writes one note to the store that it names.
func (m *importer) writeNoteToStore(ctx context.Context, l *exportedNote) (err error) {
	var o decorum.Origin // zero: a note of the crawl
	if l.Origin != "" {
		if o, err = inspect.ParseOrigin(l.Origin); err != nil {
			return err
		}
	}
	var to storage.Notes = m.stores.Frontier
	if l.StoreName == "robots" {
		to = m.stores.Robots
	}
	return to.SetNote(ctx, o, l.Key, l.Value)
}

// beginOrResumeImport marks an empty store as partly imported, and reports whether the store already
// holds this whole export. It returns a usage error if the store holds anything else. With a part of
// this export in the store, it sets m.isResumed.
func (m *importer) beginOrResumeImport(ctx context.Context) (complete bool, err error) {
	storedStatus, imported, err := datadir.ReadImportMarker(ctx, m.stores.Frontier)
	switch {
	case err != nil:
		return false, err
	case imported && storedStatus.ExportHeaderSHA256 == m.marker.ExportHeaderSHA256:
		m.isResumed = true
		return storedStatus.Complete, nil
	case imported && !storedStatus.Complete:
		return false, usage.Errorf(
			"the store holds a part of another export: import that export, or use an empty store")
	}
	// No import has begun here: the stores must be empty.
	for _, s := range []storage.NoteStore{m.stores.Frontier, m.stores.Robots} {
		if empty, err := datadir.IsEmptyStore(ctx, s); err != nil {
			return false, err
		} else if !empty {
			return false, usage.Errorf("the store already holds a crawl: import into an empty store, with another " +
				"--data, or another project or store.redis.prefix")
		}
	}
	return false, errors.Join(m.saveProject(), m.marker.SaveToFrontier(ctx, m.stores.Frontier))
}

// verifyAndFinishImport checks after the last line that the store holds as many URLs as the
// export, and marks the import as complete. Both stores are flushed before the mark.
func (m *importer) verifyAndFinishImport(ctx context.Context) error {
	if !m.sawEndLine {
		return errors.New("the export is truncated: its last line, of type end, is missing")
	}
	if err := m.verifyStoreCounts(ctx); err != nil {
		return err
	}
	if err := errors.Join(m.stores.Robots.Flush(ctx), m.stores.Frontier.Flush(ctx)); err != nil {
		return err
	}
	m.marker.Complete = true
	return m.marker.SaveToFrontier(ctx, m.stores.Frontier)
}

// A robotsRedirectKey identifies a redirect of a robots.txt by its target and by the origin whose
// robots.txt redirects there.
type robotsRedirectKey struct{ targetURL, robotsFor string }

// alreadyImportedRobotsRedirects counts the redirects of robots.txt files that an interrupted import
// has stored for one origin. The seen set does not contain them, so a repeated import would store
// them twice.
type alreadyImportedRobotsRedirects struct {
	origin    decorum.Origin
	remaining map[robotsRedirectKey]int // redirects in the store that the export has not repeated yet
}

// consumeIfImported reports whether the redirect k is already in the store s, and subtracts it from
// the count.
func (h *alreadyImportedRobotsRedirects) consumeIfImported(ctx context.Context, s datadir.StoreInspectorImporter,
	k *storage.StoredEntry) (bool, error) {
	// Count the redirects in the store when the lines of another origin begin.
	if o := k.URL.Origin(); h.origin != o {
		h.origin, h.remaining = o, map[robotsRedirectKey]int{}
		var errs []error
		for _, state := range []storage.EntryState{storage.StateQueued, storage.StateParked} {
			errs = append(errs, s.OriginURLsInState(ctx, o, state, func(e storage.Entry, _ time.Time) bool {
				if !e.RobotsFor.IsZero() {
					h.remaining[robotsRedirectKey{e.URL.String(), e.RobotsFor.String()}]++
				}
				return true
			}))
		}
		if err := errors.Join(errs...); err != nil {
			return false, err
		}
	}
	key := robotsRedirectKey{k.URL.String(), k.RobotsFor.String()}
	if h.remaining[key] == 0 {
		return false, nil
	}
	h.remaining[key]--
	return true, nil
}
