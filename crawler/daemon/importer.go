package daemon

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/storage"
)

// maxExportLine bounds a line: a body or note of 16 MiB in base64, and the rest.
const maxExportLine = 24 << 20

// What is imported at a time: so much is held in memory, and one line.
const (
	importBatch = 4096 // URLs, fingerprints, notes and origins
	importBytes = 1 << 20
)

// exportLines returns how the lines of an export are read.
func exportLines(in io.Reader) func(yield func(string) bool) error {
	return func(yield func(string) bool) error {
		lines := bufio.NewScanner(in)
		lines.Buffer(make([]byte, 1<<16), maxExportLine)
		for lines.Scan() {
			if !yield(lines.Text()) {
				return nil
			}
		}
		if err := lines.Err(); err != nil {
			return fmt.Errorf("cannot read the export: %w", err)
		}
		return nil
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

// An importer puts the lines of an export into stores.
type importer struct {
	app   *app
	files stores
	save  func() error // keeps the project in the directory
	mark  importMark
	again bool // a part of it is there

	lineNumber   int // the number of the one that was read last
	origin       decorum.Origin
	count        exportTotals // of the lines that were read
	states       [len(stateNames)]int
	ended        bool
	lastProgress time.Time

	parcels     []storage.Parcel
	notes       []exportedNote
	items, size int
	hops        hopsThere
}

// where says of which origin the line is.
func (m *importer) where() string {
	if m.origin.IsZero() {
		return ""
	}
	return ", of " + m.origin.String()
}

// read takes a line, and imports what has gathered if it is much.
func (m *importer) read(ctx context.Context, line string) (err error) {
	if m.ended {
		return errors.New("there is more after the last line")
	}
	var kind struct{ Type string }
	if err := json.Unmarshal([]byte(line), &kind); err != nil {
		return fmt.Errorf("it is cut short, or makes no sense: %w", err)
	}
	switch kind.Type {
	case "origin":
		err = m.readOrigin(line)
	case "url":
		err = m.readURL(ctx, line)
	case "seen":
		err = m.readSeen(line)
	case "note":
		err = m.readNote(line)
	case "end":
		err = m.readEnd(line)
	default:
		err = fmt.Errorf("a line of type %q, which this version of decorum does not know", kind.Type)
	}
	m.size += len(line)
	if err == nil && (m.ended || m.items >= importBatch || m.size >= importBytes) {
		err = m.flush(ctx)
	}
	return err
}

// parcel returns the one of an origin that is being filled.
func (m *importer) parcel(name string) (*storage.Parcel, error) {
	if n := len(m.parcels); n > 0 && name == m.parcels[n-1].Origin.String() {
		return &m.parcels[n-1], nil
	}
	o, err := parseOrigin(name)
	if err != nil {
		return nil, err
	}
	m.origin = o
	m.parcels = append(m.parcels, storage.Parcel{Origin: o})
	return &m.parcels[len(m.parcels)-1], nil
}

// parseOrigin reads an origin as it is written.
func parseOrigin(name string) (o decorum.Origin, err error) {
	u, err := parseExact(name + "/")
	if err != nil {
		return o, fmt.Errorf("%q is no origin", name)
	}
	return u.Origin(), nil
}

// parseExact reads a URL that must be as the crawl writes it, for it is known by that.
func parseExact(text string) (decorum.URL, error) {
	u, err := decorum.ParseURL(text)
	if err == nil && u.String() != text {
		err = fmt.Errorf("%q is not how decorum writes a URL: %q is", text, u)
	}
	return u, err
}

func (m *importer) readOrigin(line string) error {
	l, err := decodeExportLine[exportedOrigin](line)
	if err != nil {
		return err
	}
	p, err := m.parcel(l.Origin)
	if err != nil {
		return err
	}
	if h := l.Host; h.Name != p.Origin.Host() {
		return fmt.Errorf("%q is not the host of %v", h.Name, p.Origin)
	}
	p.Host = &storage.Host{Due: l.Host.Due, Gap: l.Host.Gap, Slots: l.Host.Slots, Strikes: l.Host.Strikes, Memo: l.Host.Memo}
	p.Hold, p.Dormant = l.Hold, l.Dormant
	m.count.Origins++
	m.items++
	return nil
}

func (m *importer) readURL(ctx context.Context, line string) error {
	l, err := decodeExportLine[api.FrontierURL](line)
	if err != nil {
		return err
	}
	k, err := toStoredEntry(l)
	if err != nil {
		return err
	}
	m.count.URLs++
	m.states[k.In]++
	p, err := m.parcel(k.URL.Origin().String())
	if err != nil {
		return err
	}
	if m.again && !k.For.IsZero() {
		if there, err := m.hops.take(ctx, m.files.frontier, k); there || err != nil {
			return err
		}
	}
	p.URLs = append(p.URLs, *k)
	m.items++
	return nil
}

func (m *importer) readSeen(line string) error {
	l, err := decodeExportLine[exportedSeenFingerprints](line)
	if err != nil {
		return err
	}
	if len(l.Fingerprints)%8 != 0 {
		return fmt.Errorf("fingerprints of %d bytes, which is no multiple of 8", len(l.Fingerprints))
	}
	p, err := m.parcel(l.Origin)
	if err != nil {
		return err
	}
	for f := l.Fingerprints; len(f) > 0; f = f[8:] {
		p.Seen = append(p.Seen, binary.BigEndian.Uint64(f))
		m.count.Seen++
		m.items++
	}
	return nil
}

func (m *importer) readNote(line string) error {
	l, err := decodeExportLine[exportedNote](line)
	if err != nil {
		return err
	}
	if l.Store != "frontier" && l.Store != "robots" {
		return fmt.Errorf("a note of %q, which is no store of a crawl", l.Store)
	}
	if l.Value == nil {
		l.Value = []byte{} // nil would delete it
	}
	m.count.Notes++
	m.notes = append(m.notes, *l)
	m.items++
	return nil
}

func (m *importer) readEnd(line string) error {
	l, err := decodeExportLine[exportTotals](line)
	if err != nil {
		return err
	}
	m.count.Type = l.Type
	if m.count != *l {
		return fmt.Errorf("lines are missing, or there more than once: there were %v, and the export has %v", m.count, *l)
	}
	m.ended = true
	return nil
}

// flush imports what has gathered: each URL before the fingerprints of its origin,
// by which it would be known.
func (m *importer) flush(ctx context.Context) error {
	if err := m.files.frontier.Import(ctx, m.parcels); err != nil {
		return err
	}
	if err := m.setNotes(ctx); err != nil {
		return err
	}
	clear(m.parcels)
	clear(m.notes)
	m.parcels, m.notes, m.items, m.size = m.parcels[:0], m.notes[:0], 0, 0
	m.progress(time.Now())
	return nil
}

// noteWidth is how many notes are set at a time: each is a call.
const noteWidth = 16

func (m *importer) setNotes(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for first := range noteWidth {
		wg.Go(func() {
			for i := first; i < len(m.notes) && ctx.Err() == nil; i += noteWidth {
				if err := m.setNote(ctx, &m.notes[i]); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (m *importer) setNote(ctx context.Context, l *exportedNote) (err error) {
	var o decorum.Origin // the crawl's own
	if l.Origin != "" {
		if o, err = parseOrigin(l.Origin); err != nil {
			return err
		}
	}
	to := m.files.frontier
	if l.Store == "robots" {
		to = m.files.robots
	}
	return to.SetNote(ctx, o, l.Key, l.Value)
}
