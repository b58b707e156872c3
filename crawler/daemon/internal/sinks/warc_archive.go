package sinks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/disk"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/robots/aiuse"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/warc"
)

// A WARCArchive is the crawl's Archive: it writes WARC files of every exchange, including robots.txt files
// and sitemaps. The operating system has the records before the visit is acked, and the disk has them
// before the ack is durable (see bolt.Options.BeforeWrite).
type WARCArchive struct {
	archive *warc.ArchiveWriter
	dirPath string // the directory of the WARC files
	dir     *os.Root
	lock    *datadir.DirectoryLock
	diskFullRetrier
	captureNotes       storage.Notes // hold the last capture of each URL that is revisited; nil: no revisit records
	crawlRevisitsPages bool
}

// WARCLockFile is the lock file that is held by the process that writes WARC files to a directory.
const WARCLockFile = "warc.lock"

// openArchive opens the archive of a crawl, or returns nil if the crawl writes none. It opens the directory
// within cfg.Confinement.
func openArchive(cfg *Config) (*WARCArchive, error) {
	if cfg.WARC == nil {
		return nil, nil
	}
	// Lock the directory before looking at its files: another crawl may be writing them.
	warcConfig := *cfg.WARC
	dir, err := openWARCDir(warcConfig.Dir, cfg.FileMode, cfg.Confinement)
	if err != nil {
		return nil, usage.Errorf("cannot make the directory for WARC files: %w", err)
	}
	lock, err := datadir.LockDirectory(dir, WARCLockFile, "the directory for WARC files",
		"--warc", string(cfg.StateDir))
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	if err := claimWARCDir(cfg.Confinement, warcConfig.Dir, dir); err != nil {
		return nil, errors.Join(err, lock.Close(), dir.Close())
	}
	// Open the writer, which closes the file that an earlier run has left unfinished.
	durable := cfg.Durable.Find(warcConfig.Dir)
	warcConfig.LastDurableExtent = warc.DurableExtent{FileName: durable.Name, Size: durable.SyncedSize}
	warcConfig.Root, warcConfig.FileMode = dir, cfg.FileMode
	warcConfig.OnRecovered = func(file string, bytesCut int64) {
		cfg.Log.Info("a WARC file that was left open has been closed", "file", file, "bytes_cut", bytesCut)
	}
	files, err := warc.OpenArchiveWriter(warcConfig)
	if err != nil {
		return nil, errors.Join(err, lock.Close(), dir.Close())
	}
	return &WARCArchive{
		archive: files, dirPath: warcConfig.Dir, dir: dir, lock: lock,
		diskFullRetrier: diskFullRetrier{log: cfg.Log, onDiskFull: cfg.OnDiskFull},
	}, nil
}

// openWARCDir opens a directory for WARC files of the given mode, and creates it if it is missing.
func openWARCDir(name string, mode fs.FileMode, c *confine.ProjectAccess) (*os.Root, error) {
	if c != nil {
		return c.OpenOutputDir(name, mode)
	}
	if err := disk.MakeDirsForFileMode(name, mode); err != nil {
		return nil, err
	}
	return os.OpenRoot(name)
}

// claimWARCDir records that a confined project writes to a directory. It refuses a directory with an
// unfinished WARC file of another program: opening the archive would cut such a file, or remove it if it
// has no record.
func claimWARCDir(c *confine.ProjectAccess, name string, dir *os.Root) error {
	if c == nil || datadir.IsWithin(name, c.ProjectDir) || c.IsKnownOutput(name) {
		return nil
	}
	unfinished, err := fs.Glob(dir.FS(), "*.warc.gz.open")
	if err != nil {
		return err
	}
	if len(unfinished) > 0 {
		return usage.Errorf("output.warc: %s holds %s, and this project, which came by the API, has not written it: "+
			"move it away, name another directory, or put the project file into %s by hand", name,
			unfinished[0], c.ProjectFilesDir)
	}
	return c.RecordOutput(name)
}

// EnableRevisitRecords makes later visits of an unchanged URL revisit records. notes keep the last capture
// of each URL. Unless revisitsPages is set, this applies to robots.txt files only. Call it before the first
// Record.
func (a *WARCArchive) EnableRevisitRecords(notes storage.Notes, revisitsPages bool) {
	a.captureNotes, a.crawlRevisitsPages = notes, revisitsPages
}

// Record writes the records of one visit. While the disk is full it waits, until ctx is done, and other
// visits wait for it.
func (a *WARCArchive) Record(ctx context.Context, v *crawler.Visit) error {
	switch {
	case v.Exchange == nil && v.Response == nil:
		return nil // no request was sent
	case v.Exchange == nil:
		return errors.New("the bytes of the response were not captured")
	}
	// Write the records. Their payload is left out if it equals that of the previous capture.
	previous, err := a.previousCapture(ctx, v)
	if err != nil {
		return err
	}
	visit := &warc.Visit{URL: v.URL().String(), Date: v.Start, Exchange: v.Exchange,
		MetadataFields: warcMetadata(v), PreviousCapture: previous}
	var written warc.CaptureDateAndDigest
	err = a.retryOneForAll(ctx, func() (err error) { written, err = a.archive.WriteVisit(visit); return err })
	if errors.Is(err, warc.ErrNoResponse) {
		a.log.Debug("not archived", "url", v.URL(), "why", err)
		return nil
	}
	if err != nil {
		return err
	}
	return a.saveCaptureNoteIfNeeded(ctx, v, previous, written)
}

// tracksCaptures reports whether the crawl is expected to visit the URL of a visit more than once.
func (a *WARCArchive) tracksCaptures(v *crawler.Visit) bool {
	return a.captureNotes != nil && (a.crawlRevisitsPages && v.Lease.Request == nil || v.Clearance.IsForRobots())
}

// captureNoteKey returns the key of the note that holds the last capture of a URL.
func captureNoteKey(u decorum.URL) string {
	sum := sha256.Sum256([]byte(u.String()))
	return "warc " + hex.EncodeToString(sum[:16])
}

// previousCapture returns the last capture of the URL, or nil if it is unknown.
func (a *WARCArchive) previousCapture(ctx context.Context, v *crawler.Visit) (*warc.CaptureDateAndDigest, error) {
	if !a.tracksCaptures(v) {
		return nil, nil
	}
	note, err := a.captureNotes.ReadNote(ctx, v.URL().Origin(), captureNoteKey(v.URL()))
	if err != nil {
		return nil, err
	}
	date, payload, _ := strings.Cut(string(note), " ")
	at, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return nil, nil // no note, or an invalid one: archive the whole page
	}
	return &warc.CaptureDateAndDigest{Date: at, PayloadDigest: payload}, nil
}

// saveCaptureNoteIfNeeded stores the last capture of a URL, unless it is stored already.
func (a *WARCArchive) saveCaptureNoteIfNeeded(ctx context.Context, v *crawler.Visit,
	previous *warc.CaptureDateAndDigest, written warc.CaptureDateAndDigest) error {
	if !a.tracksCaptures(v) || written.Date.IsZero() || previous != nil && written == *previous {
		return nil
	}
	note := written.Date.UTC().Format(time.RFC3339Nano) + " " + written.PayloadDigest
	return a.captureNotes.SetNote(context.WithoutCancel(ctx), v.URL().Origin(), captureNoteKey(v.URL()), []byte(note))
}

// warcMetadata returns the fields of a visit's metadata record. They have the names of the fields of an
// OutputRecord; those of the robots.txt verdict begin with robots_.
func warcMetadata(v *crawler.Visit) []warc.Field {
	var fields []warc.Field
	add := func(name, value string) {
		if value != "" {
			fields = append(fields, warc.Field{Name: name, Value: value})
		}
	}
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	source := v.Lease.Source
	if !v.Kind.IsPage() {
		source = storage.SourcePrerequisite // the lease describes the page that needs this visit
	}
	// Say how the URL was found, and which rule allowed it.
	add("source", source.String())
	add("depth", strconv.Itoa(v.Lease.Depth))
	add("referrer", v.Lease.Referrer)
	if file := v.Clearance.FetchSummary(); !v.Clearance.IsForRobots() {
		verdict := v.Clearance.Verdict()
		add("robots_file_sha256", file.SHA256)
		add("robots_rule", verdict.Rule)
		add("robots_line", strconv.Itoa(verdict.Line))
		if verdict.DisallowedForMainRobot {
			add("not_for_indexing", "true")
		}
	}
	// Add the delays, the preferences of the site, and the error.
	add("delay_required_ms", ms(v.RequiredDelay()))
	add("delay_observed_ms", ms(v.ObservedDelay()))
	add("duration_ms", ms(v.End.Sub(v.Start)))
	for _, s := range v.ContentUsageAssessment().Signals {
		add("ai_use", UsageSignalText(s))
	}
	if v.Err != nil {
		add("error", v.Err.Error())
	}
	return fields
}

// Sync returns when all records that were written before are on the disk.
func (a *WARCArchive) Sync() error {
	if a == nil {
		return nil
	}
	return a.archive.Sync()
}

// Close syncs and closes the files, and unlocks the directory: see Outputs.Close.
func (a *WARCArchive) Close() error {
	if a == nil {
		return nil
	}
	return errors.Join(a.archive.Close(), a.lock.Close(), a.dir.Close())
}

// UsageSignalText returns a preference about the use of content as text: its field, category and value,
// with the place where it is stated.
func UsageSignalText(s aiuse.Signal) string {
	text := fmt.Sprintf("%s: %s: %s", s.Field, plaintext.ReplaceControlChars(s.Category), s.Preference)
	switch {
	case s.Line > 0 && s.Source != aiuse.InRobots:
		text += fmt.Sprintf(" (%s, line %d)", s.Source, s.Line)
	case s.Line > 0:
		text += fmt.Sprintf(" (line %d)", s.Line)
	default:
		text += fmt.Sprintf(" (%s)", s.Source)
	}
	if s.TDMPolicy != "" {
		text += ", policy " + plaintext.ReplaceControlChars(s.TDMPolicy)
	}
	return text
}
