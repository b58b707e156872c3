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

// maxExportLine bounds a line: a body or note of 16 MiB in base64, and the rest.
const maxExportLine = 24 << 20

// What is imported at a time: so much is held in memory, and one line.
const (
	maxImportItems = 4096 // URLs, fingerprints, notes and origins
	maxImportBytes = 1 << 20
)

// exportLines yields the lines of an export. An error is yielded last.
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

// decodeExportLine reads a line strictly: what it does not know would be lost.
func decodeExportLine[T any](line string) (*T, error) {
	v := new(T)
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return nil, fmt.Errorf("it is cut short, or makes no sense: %w", err)
	}
	if d.More() {
		return nil, errors.New("something follows the object")
	}
	return v, nil
}

// readExportLine reads a line strictly, and has add take it.
func readExportLine[T any](line string, add func(*T) error) error {
	l, err := decodeExportLine[T](line)
	if err != nil {
		return err
	}
	return add(l)
}

// An importer puts the lines of an export into stores.
type importer struct {
	stdout      io.Writer
	stderr      *terminal.StatusLineWriter
	stores      datadir.CrawlStores
	saveProject func() error // keeps the project in the directory
	marker      datadir.ImportMarker
	isResumed   bool // a part of it is there

	lineNumber    int // the number of the one that was read last
	currentOrigin decorum.Origin
	readTotals    exportTotals // of the lines that were read
	urlsByState   [len(inspect.StateNames)]int
	sawEndLine    bool
	lastProgress  time.Time

	pendingOriginDumps         []storage.OriginDump
	pendingNotes               []exportedNote
	batchItemCount, batchBytes int
	alreadyImportedRedirects   alreadyImportedRobotsRedirects
}

// importLine takes a line, and imports what has gathered if it is much.
func (m *importer) importLine(ctx context.Context, line string) (err error) {
	if m.sawEndLine {
		return errors.New("there is more after the last line")
	}
	var kind struct{ Type string }
	if err := json.Unmarshal([]byte(line), &kind); err != nil {
		return fmt.Errorf("it is cut short, or makes no sense: %w", err)
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
		err = fmt.Errorf("a line of type %q, which this version of decorum does not know", kind.Type)
	}
	m.batchBytes += len(line)
	if err == nil && (m.sawEndLine || m.batchItemCount >= maxImportItems || m.batchBytes >= maxImportBytes) {
		err = m.flushBatch(ctx)
	}
	return err
}

// getOrCreateOriginDump returns the one of an origin that is being filled.
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

func (m *importer) addOrigin(l *exportedOrigin) error {
	p, err := m.getOrCreateOriginDump(l.Origin)
	if err != nil {
		return err
	}
	if h := l.Host; h.Name != p.Origin.Host() {
		return fmt.Errorf("%q is not the host of %v", h.Name, p.Origin)
	}
	p.HostState = &storage.HostState{Due: l.Host.Due, LostVisitDelay: l.Host.Delay, Slots: l.Host.Slots, ConsecutiveFailures: l.Host.ConsecutiveFailures, EncodedStats: l.Host.EncodedStats}
	p.HeldUntil, p.Suspended = l.HeldUntil, l.Suspended
	m.readTotals.Origins++
	m.batchItemCount++
	return nil
}

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
	if m.isResumed && !k.RobotsFor.IsZero() {
		if stored, err := m.alreadyImportedRedirects.consumeIfImported(ctx, m.stores.Frontier, k); stored || err != nil {
			return err
		}
	}
	p.URLs = append(p.URLs, *k)
	m.batchItemCount++
	return nil
}

func (m *importer) addFingerprints(l *exportedSeenFingerprints) error {
	if len(l.Fingerprints)%8 != 0 {
		return fmt.Errorf("fingerprints of %d bytes, which is no multiple of 8", len(l.Fingerprints))
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

func (m *importer) addNote(l *exportedNote) error {
	if l.StoreName != "frontier" && l.StoreName != "robots" {
		return fmt.Errorf("a note of %q, which is no store of a crawl", l.StoreName)
	}
	if l.Value == nil {
		l.Value = []byte{} // nil would delete it
	}
	m.readTotals.Notes++
	m.pendingNotes = append(m.pendingNotes, *l)
	m.batchItemCount++
	return nil
}

func (m *importer) checkTotals(l *exportTotals) error {
	m.readTotals.Type = l.Type
	if m.readTotals != *l {
		return fmt.Errorf("lines are missing, or there more than once: there were %v, and the export has %v", m.readTotals, *l)
	}
	m.sawEndLine = true
	return nil
}

// flushBatch imports what has gathered: each URL before the fingerprints of its origin,
// by which it would be known.
func (m *importer) flushBatch(ctx context.Context) error {
	if err := m.stores.Frontier.Import(ctx, m.pendingOriginDumps); err != nil {
		return err
	}
	if err := m.writeNotesToStore(ctx); err != nil {
		return err
	}
	clear(m.pendingOriginDumps)
	clear(m.pendingNotes)
	m.pendingOriginDumps, m.pendingNotes, m.batchItemCount, m.batchBytes = m.pendingOriginDumps[:0], m.pendingNotes[:0], 0, 0
	m.showProgress(time.Now())
	return nil
}

// maxConcurrentNotes is how many notes are set at a time: each is a call.
const maxConcurrentNotes = 16

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

func (m *importer) writeNoteToStore(ctx context.Context, l *exportedNote) (err error) {
	var o decorum.Origin // the crawl's own
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

// beginOrResumeImport marks the state as half imported, if it is empty, and reports whether this
// export is there already.
func (m *importer) beginOrResumeImport(ctx context.Context) (complete bool, err error) {
	storedStatus, imported, err := datadir.ReadImportMarker(ctx, m.stores.Frontier)
	switch {
	case err != nil:
		return false, err
	case imported && storedStatus.ExportHeaderSHA256 == m.marker.ExportHeaderSHA256:
		m.isResumed = true
		return storedStatus.Complete, nil
	case imported && !storedStatus.Complete:
		return false, usage.Errorf("it holds a part of another export: import that one, or into an empty store")
	}
	for _, s := range []storage.NoteStore{m.stores.Frontier, m.stores.Robots} {
		if empty, err := datadir.IsEmptyStore(ctx, s); err != nil {
			return false, err
		} else if !empty {
			return false, usage.Errorf("it holds a crawl already: import into an empty store, with another --data, or another project or store.redis.prefix")
		}
	}
	return false, errors.Join(m.saveProject(), m.marker.SaveToFrontier(ctx, m.stores.Frontier))
}

// verifyAndFinishImport is the end of the lines: all must be there, and nothing else.
func (m *importer) verifyAndFinishImport(ctx context.Context) error {
	if !m.sawEndLine {
		return errors.New("the export is cut short: its last line is missing")
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

// A robotsRedirectKey is known by its URL and by whose robots.txt leads there.
type robotsRedirectKey struct{ targetURL, robotsFor string }

// alreadyImportedRobotsRedirects are the hops of an origin that an import which was broken off has left:
// they pass by the seen set, and would be there twice.
type alreadyImportedRobotsRedirects struct {
	origin    decorum.Origin
	remaining map[robotsRedirectKey]int
}

// consumeIfImported reports whether a hop is there, and counts it off.
func (h *alreadyImportedRobotsRedirects) consumeIfImported(ctx context.Context, s datadir.StoreInspectorImporter, k *storage.StoredEntry) (bool, error) {
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
