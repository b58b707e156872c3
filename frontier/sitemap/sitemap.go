package sitemap

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/decorum-crawler/decorum"
)

// An Entry is one URL of a sitemap.
type Entry struct {
	URL       decorum.URL
	IsSitemap bool // the URL is another sitemap, or the next page of a feed
	// AllowedByLocation is set if the sitemap's location entitles it to list the URL by the rule of
	// sitemaps.org: both have the same origin, and a page lies in the sitemap's directory or below
	// it.
	AllowedByLocation bool
	LastMod           time.Time // in UTC; zero if missing or unreadable
	Priority          float64   // from 0 to 1; DefaultPriority if missing
	ChangeFreq        string    // "always" to "never"; empty if missing
}

// DefaultPriority is the priority of entries that state none.
const DefaultPriority = 0.5

// Options configures Read. The zero Options has the limits of sitemaps.org and accepts every URL
// that a sitemap lists.
type Options struct {
	MaxEntries int   // 0 means 50,000
	MaxBytes   int64 // after decompression; 0 means 50 MiB
	// MaxDecompressionRatio limits how many times its compressed size a file may grow, not counting
	// the first MiB. 0 means 200.
	MaxDecompressionRatio int
	MaxElementDepth       int // depth of XML elements or JSON values; 0 means 64
	MaxURLBytes           int // length of a URL in canonical form; 0 means 2,048

	// FeedsOnly refuses all files but RSS, Atom and JSON feeds with ErrNotSitemap. JSON feeds are
	// read only if it is set.
	FeedsOnly bool
	// StrictLocation skips entries that are not AllowedByLocation, unless AllowsCrossSubmit returns
	// true for their origin.
	StrictLocation bool
	// AllowsCrossSubmit reports whether the robots.txt of an origin names this sitemap, which
	// entitles the sitemap to list any URL of that origin. Nil: no origin does.
	AllowsCrossSubmit func(decorum.Origin) bool

	// OnEntryError is called with each field or entry that is skipped; may be nil.
	OnEntryError func(EntryError)
}

// withDefaults returns o with each limit that is 0 or less set to its default.
func (o Options) withDefaults() Options {
	o.MaxEntries = cmp.Or(max(o.MaxEntries, 0), 50_000)
	o.MaxBytes = cmp.Or(max(o.MaxBytes, 0), 50<<20)
	o.MaxDecompressionRatio = cmp.Or(max(o.MaxDecompressionRatio, 0), 200)
	o.MaxElementDepth = cmp.Or(max(o.MaxElementDepth, 0), 64)
	o.MaxURLBytes = cmp.Or(max(o.MaxURLBytes, 0), 2048)
	return o
}

// An EntryError reports a field or an entry of a sitemap that cannot be used. Read continues after
// it.
type EntryError struct {
	Line      int    // line where the field ends
	Field     string // "location", or the element: "lastmod", "pubDate", "priority" …
	FieldText string // text of the field, at most 256 bytes
	Err       error  // reason
}

// Error returns the line, the field, its text and the reason.
func (f EntryError) Error() string {
	return fmt.Sprintf("line %d: %s %q: %v", f.Line, f.Field, f.FieldText, f.Err)
}

// Unwrap returns f.Err.
func (f EntryError) Unwrap() error { return f.Err }

// Errors that Read and EntryErrors wrap.
var (
	// ErrNotSitemap means that a file is neither a sitemap nor a feed, or not a feed if
	// Options.FeedsOnly is set.
	ErrNotSitemap = errors.New("not a sitemap")
	// ErrLimit means that a file exceeds a limit and reading has ended, or that a text exceeds one
	// and is not used.
	ErrLimit = errors.New("limit exceeded")
	// ErrSyntax means that a file is malformed XML.
	ErrSyntax = errors.New("broken XML")
	// ErrJSON means that a file is malformed JSON.
	ErrJSON = errors.New("broken JSON")
	// ErrLocation means that Options.StrictLocation has skipped an entry.
	ErrLocation = errors.New("a sitemap at this location may not list it")
)

// Read calls yield for each entry of the sitemap, in the order of the file. base is the URL of the
// sitemap. If it is zero, entries with relative locations are skipped, and no entry is
// AllowedByLocation.
//
// If the file is truncated, malformed or exceeds a limit, Read returns an error of kind
// decorum.Invalid after the entries before that place. The error gives the line and the byte of the
// decompressed text in UTF-8. An error of yield ends Read, which returns it unchanged.
func Read(r io.Reader, base decorum.URL, options Options, yield func(Entry) error) error {
	options = options.withDefaults()
	in := newInput(r)
	s := newEntryEmitter(base, options, yield)
	err := readAnyFormat(in, s)
	if err == nil || s.stopped {
		return err
	}
	return &decorum.Error{Op: "read sitemap", URL: base.String(), Kind: decorum.Invalid, Err: in.errorAt(err)}
}

// Detect reports whether Read would find a sitemap, a sitemap index or an XML feed in r: the root element
// says so, or the first line of a text is an http or https URL and nothing else. It reads the beginning of r.
func Detect(r io.Reader) bool {
	in, options := newInput(r), Options{}.withDefaults()
	isMarkup, err := in.decodeAndDetectMarkup(options)
	if err != nil {
		return false
	}
	if !isMarkup {
		line, _ := in.r.Peek(maxTextLen)
		line, _, _ = bytes.Cut(line, []byte("\n"))
		line = bytes.TrimSpace(line)
		u, err := decorum.ParseURL(string(line))
		return err == nil && u.Origin().IsHTTP() && !bytes.ContainsAny(line, " \t\"<>")
	}
	found := errors.New("an entry was found")
	s := newEntryEmitter(decorum.URL{}, options, func(Entry) error { return found })
	return !errors.Is((&xmlDocumentReader{scanner: scanner{in: in}, emitter: s}).readDocument(), ErrNotSitemap)
}

// readAnyFormat reads a file of any format.
func readAnyFormat(in *input, s *entryEmitter) error {
	isMarkup, err := in.decodeAndDetectMarkup(s.Options)
	if err != nil {
		return err
	}
	if !isMarkup {
		if head, _ := in.r.Peek(1); s.FeedsOnly && string(head) == "{" {
			return readJSONFeed(in, s)
		}
		if s.FeedsOnly {
			return ErrNotSitemap
		}
		return readTextSitemap(in, s)
	}
	return (&xmlDocumentReader{scanner: scanner{in: in}, emitter: s}).readDocument()
}

// readTextSitemap reads a list of URLs, one on each line. Only absolute URLs are used: another line
// may be any text.
func readTextSitemap(in *input, s *entryEmitter) error {
	var line []byte
	for {
		// A long line comes in several chunks. Keep its first maxTextLen bytes.
		n := in.line
		b, complete, err := in.readChunkUntil('\n')
		line = append(line, b[:min(len(b), maxTextLen-len(line))]...)
		if complete || errors.Is(err, io.EOF) {
			if emitErr := s.emitLine(n, line); emitErr != nil {
				return emitErr
			}
			line = line[:0]
		}
		switch {
		// A text needs a URL to be a sitemap.
		case errors.Is(err, io.EOF) && s.urlCount == 0:
			return ErrNotSitemap
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// emitLine emits the entry of the n-th line.
func (s *entryEmitter) emitLine(n int, line []byte) error {
	text := bytes.TrimSpace(line)
	switch {
	case len(text) == 0:
		return nil
	case len(line) == maxTextLen:
		s.reportError(n, locationField, text, ErrLimit)
		return nil
	}
	return s.emit(&partialEntry{fallbackLoc: text, line: n, priority: DefaultPriority}, false)
}
