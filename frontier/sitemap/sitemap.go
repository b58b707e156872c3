// Package sitemap reads sitemaps: lists of URLs that a site offers to
// crawlers. It reads the XML and the plain text form of sitemaps.org, sitemap
// indexes, and the entries of RSS and Atom feeds, compressed with gzip or not.
//
// It is a pure parser: it fetches nothing, decides nothing and holds no more
// than one entry at a time. What a file declares it to be counts for little,
// since much of it is wrong in practice: content decides. It resolves no
// external entities and expands no declared ones, so a file can neither make
// it read something else nor grow while it is read. Whether a site may speak
// for the URLs it lists is for the caller to judge: the rule of sitemaps.org
// that they lie below the sitemap itself is not applied.
package sitemap

import (
	"errors"
	"io"
	"time"

	"github.com/decorum-crawler/decorum"
)

// An Entry is one URL of a sitemap.
type Entry struct {
	URL        decorum.URL
	Index      bool      // the URL is that of another sitemap
	LastMod    time.Time // in UTC; zero if the file does not say, or not legibly
	Priority   float64   // from 0 to 1; DefaultPriority if the file does not say
	ChangeFreq string    // "always" to "never"; empty if the file does not say
}

// DefaultPriority is the priority of entries that give none.
const DefaultPriority = 0.5

// Limits bound what Read takes from one sitemap. The defaults are the limits
// of sitemaps.org.
type Limits struct {
	Entries int   // 0 means 50,000
	Bytes   int64 // after decompression; 0 means 50 MiB
	Depth   int   // of nested XML elements; 0 means 64
}

// withDefaults returns the limits with every zero replaced.
func (l Limits) withDefaults() Limits {
	if l.Entries <= 0 {
		l.Entries = 50_000
	}
	if l.Bytes <= 0 {
		l.Bytes = 50 << 20
	}
	if l.Depth <= 0 {
		l.Depth = 64
	}
	return l
}

// Errors of Read, to be asked for with errors.Is.
var (
	// ErrNotSitemap refuses a file that is neither a sitemap nor a feed.
	ErrNotSitemap = errors.New("not a sitemap")
	// ErrLimit ends a file that goes on past one of the Limits.
	ErrLimit = errors.New("limit exceeded")
	// ErrSyntax ends a file that is broken XML.
	ErrSyntax = errors.New("broken XML")
)

// Read calls yield for each entry of the sitemap, in the order of the file.
// base is the URL of the sitemap; relative locations are resolved against it,
// though the protocol wants none. Entries without a usable location are passed
// over.
//
// If the file breaks off, is broken or exceeds a limit, what was read stands,
// and the error, of kind decorum.Invalid, says at which line and byte of the
// decompressed text that was.
// An error of yield ends the reading and is returned as it is.
func Read(r io.Reader, base decorum.URL, limits Limits, yield func(Entry) error) error {
	limits = limits.withDefaults()
	in := newInput(r, limits.Bytes)
	s := &sink{base: base, left: limits.Entries, yield: yield}
	err := read(in, s, limits.Depth)
	if err == nil || s.stopped {
		return err
	}
	return &decorum.Error{Op: "read sitemap", URL: base.String(), Kind: decorum.Invalid, Err: in.at(err)}
}

// read reads either form.
func read(in *input, s *sink, depth int) error {
	markup, err := in.open()
	if err != nil {
		return err
	}
	if !markup {
		return readText(in, s)
	}
	return (&document{scanner: scanner{in: in}, sink: s, depth: depth}).read()
}
