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
	IsSitemap bool // the URL is that of another sitemap, or of where a feed goes on
	// AllowedByLocation says that the place of the sitemap entitles it to list the URL, by
	// the rule of sitemaps.org: both have the same origin, and a page lies in
	// the sitemap's directory or below.
	AllowedByLocation bool
	LastMod           time.Time // in UTC; zero if the file does not say, or not legibly
	Priority          float64   // from 0 to 1; DefaultPriority if the file does not say
	ChangeFreq        string    // "always" to "never"; empty if the file does not say
}

// DefaultPriority is the priority of entries that give none.
const DefaultPriority = 0.5

// Options are how a sitemap is read. The zero Options have the limits of
// sitemaps.org and take whatever URL a sitemap lists.
type Options struct {
	MaxEntries int   // at most; 0 means 50,000
	MaxBytes   int64 // at most, after decompression; 0 means 50 MiB
	// MaxDecompressionRatio bounds how many times its size a file grows by decompression, not
	// counting the first MiB. 0 means 200.
	MaxDecompressionRatio int
	MaxElementDepth       int // of nested XML elements at most; 0 means 64
	MaxURLBytes           int // bytes of a URL in canonical form at most; 0 means 2,048

	// FeedsOnly refuses all but RSS, Atom and JSON feeds, as ErrNotSitemap. JSON is
	// read only so.
	FeedsOnly bool
	// StrictLocation passes over entries that are not AllowedByLocation, unless AllowsCrossSubmit
	// says that their origin names the sitemap.
	StrictLocation bool
	// AllowsCrossSubmit reports whether the robots.txt of an origin names this sitemap,
	// which so may list any URL of it. Nil: none does.
	AllowsCrossSubmit func(decorum.Origin) bool

	// OnEntryError is told of what is passed over. Nil: nobody wants to know.
	OnEntryError func(EntryError)
}

// withDefaults returns the options with every limit that is zero replaced.
func (o Options) withDefaults() Options {
	o.MaxEntries = cmp.Or(max(o.MaxEntries, 0), 50_000)
	o.MaxBytes = cmp.Or(max(o.MaxBytes, 0), 50<<20)
	o.MaxDecompressionRatio = cmp.Or(max(o.MaxDecompressionRatio, 0), 200)
	o.MaxElementDepth = cmp.Or(max(o.MaxElementDepth, 0), 64)
	o.MaxURLBytes = cmp.Or(max(o.MaxURLBytes, 0), 2048)
	return o
}

// An EntryError is something in a sitemap that cannot be used. The rest is read all
// the same.
type EntryError struct {
	Line      int    // where it ends
	Field     string // "location", or the element: "lastmod", "pubDate", "priority" …
	FieldText string // of it, at most 256 bytes
	Err       error  // why
}

// Error says where and what the flaw is.
func (f EntryError) Error() string {
	return fmt.Sprintf("line %d: %s %q: %v", f.Line, f.Field, f.FieldText, f.Err)
}

// Unwrap returns the reason.
func (f EntryError) Unwrap() error { return f.Err }

// Errors of Read and of flaws, to be asked for with errors.Is.
var (
	// ErrNotSitemap refuses a file that is neither a sitemap nor a feed, or not
	// the one that is asked for.
	ErrNotSitemap = errors.New("not a sitemap")
	// ErrLimit ends a file that goes on past one of the limits, or is why a
	// text is not used.
	ErrLimit = errors.New("limit exceeded")
	// ErrSyntax ends a file that is broken XML.
	ErrSyntax = errors.New("broken XML")
	// ErrJSON ends a file that is broken JSON.
	ErrJSON = errors.New("broken JSON")
	// ErrLocation is why an entry is passed over by Options.StrictLocation.
	ErrLocation = errors.New("not for a sitemap at this place to list")
)

// Read calls yield for each entry of the sitemap, in the order of the file.
// base is the URL of the sitemap. If it is zero, relative locations cannot be
// used, and no entry is AllowedByLocation.
//
// If the file breaks off, is broken or exceeds a limit, what was read stands,
// and the error, of kind decorum.Invalid, says at which line and byte of the
// text, decompressed and as UTF-8, that was.
// An error of yield ends the reading and is returned as it is.
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

// readAnyFormat reads either form.
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

// readTextSitemap reads a list of URLs, one a line. They must be complete: anything
// else may be any text.
func readTextSitemap(in *input, s *entryEmitter) error {
	var line []byte
	for {
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
		case errors.Is(err, io.EOF) && s.urlCount == 0:
			return ErrNotSitemap
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// emitLine hands on the n-th line.
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
