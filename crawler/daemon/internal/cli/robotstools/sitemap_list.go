package robotstools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/oneoff"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/frontier/sitemap"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
)

// Bounds of a listing.
const (
	maxSitemaps           = 10_000 // that are read
	maxSitemapIndexDepth  = 3      // of indexes
	maxSitemapRedirects   = 5      // to one sitemap
	maxPrintedEntryErrors = 20     // of one sitemap that are told
)

// A sitemapLister prints what sitemaps list.
type sitemapLister struct {
	options        sitemapOptions
	fetcher        *oneoff.Fetcher
	out            *bufio.Writer
	encoder        *json.Encoder // to out
	stderr         io.Writer
	hasProblems    bool // with a sitemap
	isLimitReached bool // by --limit
	writtenEntries int  // of lines

	pending      []pendingSitemap
	seenSitemaps map[decorum.URL]bool
}

// A pendingSitemap is a sitemap that is to be read.
type pendingSitemap struct {
	url            decorum.URL
	indexDepth     int           // of indexes above it
	redirectedFrom []decorum.URL // what redirected to it, from the first on
}

// urlBeforeRedirects returns the URL by which the sitemap was named: where redirects began.
func (f pendingSitemap) urlBeforeRedirects() decorum.URL {
	if len(f.redirectedFrom) > 0 {
		return f.redirectedFrom[0]
	}
	return f.url
}

// A listedSitemapEntry is one line of output.
type listedSitemapEntry struct {
	URL             string    `json:"url"`
	IsSitemap       bool      `json:"index"`
	Priority        float64   `json:"priority"`
	LastMod         time.Time `json:"lastmod,omitzero"`
	ChangeFreq      string    `json:"changefreq,omitempty"`
	OutsideLocation bool      `json:"outside,omitempty"`
	Sitemap         string    `json:"sitemap,omitempty"`
}

func newSitemapLister(q sitemapOptions, e *oneoff.Fetcher, out, stderr io.Writer) *sitemapLister {
	w := bufio.NewWriterSize(out, 1<<16)
	return &sitemapLister{
		options: q, fetcher: e, out: w, encoder: jsonline.NewEncoder(w), stderr: stderr, seenSitemaps: map[decorum.URL]bool{},
	}
}

// hasNext reports whether there is a sitemap to read.
func (l *sitemapLister) hasNext() bool { return len(l.pending) > 0 && !l.isLimitReached }

// enqueue has a sitemap read, unless it has been or there are too many.
func (l *sitemapLister) enqueue(f pendingSitemap) {
	switch {
	case slices.Contains(f.redirectedFrom, f.url):
		l.printProblem(f.urlBeforeRedirects().String(), errors.New("redirects in a circle"))
	case l.seenSitemaps[f.url]:
	case f.indexDepth > maxSitemapIndexDepth:
		l.printProblem(f.url.String(), fmt.Errorf("not followed: indexes are nested more than %d deep", maxSitemapIndexDepth))
	case len(f.redirectedFrom) > maxSitemapRedirects:
		l.printProblem(f.urlBeforeRedirects().String(), fmt.Errorf("more than %d redirects", maxSitemapRedirects))
	case len(l.seenSitemaps) == maxSitemaps:
		l.printProblem(f.url.String(), fmt.Errorf("not followed: it is beyond the first %d sitemaps", maxSitemaps))
	default:
		l.seenSitemaps[f.url] = true
		l.pending = append(l.pending, f)
	}
}

// printProblem says what is wrong with a sitemap.
func (l *sitemapLister) printProblem(name string, err error) {
	l.hasProblems = true
	fmt.Fprintf(l.stderr, "decorum: %s: %s\n", plaintext.ReplaceControlChars(name), plaintext.ReplaceControlChars(err.Error()))
}

// printLocalSitemap reads a sitemap on disk or standard input.
func (l *sitemapLister) printLocalSitemap(stdin io.Reader, name string, base decorum.URL) error {
	in, err := openFileOrStdin(stdin, name, "sitemap")
	if err != nil {
		return err
	}
	defer in.Close()
	return l.printAndFollowEntries(in, name, pendingSitemap{url: base})
}

// fetchAndPrintNext fetches and reads the next sitemap. The error is one of writing.
func (l *sitemapLister) fetchAndPrintNext(ctx context.Context) error {
	f := l.pending[0]
	l.pending = l.pending[1:]
	name := f.url.String()
	res, err := l.fetcher.FetchURL(ctx, f.url)
	switch {
	case ctx.Err() != nil:
		return nil // the command says why
	case err != nil:
		l.printProblem(name, err)
		return nil
	}
	if to, ok := res.Location(); ok {
		l.enqueue(pendingSitemap{to, f.indexDepth, append(f.redirectedFrom, f.url)})
		return nil
	}
	if res.Status < 200 || res.Status > 299 {
		l.printProblem(name, fmt.Errorf("status %d", res.Status))
		return nil
	}
	return l.printAndFollowEntries(bytes.NewReader(res.Body), name, f)
}

// printAndFollowEntries prints what a sitemap lists, and says what is wrong with it.
func (l *sitemapLister) printAndFollowEntries(r io.Reader, name string, f pendingSitemap) error {
	var printErr error
	var entryErrs []sitemap.EntryError
	more := 0
	err := sitemap.Read(r, f.url, sitemap.Options{
		MaxBytes: maxSitemapBytes, StrictLocation: l.options.strictLocation, AllowsCrossSubmit: l.crossSubmitChecker(f.urlBeforeRedirects()),
		OnEntryError: func(entryErr sitemap.EntryError) {
			if len(entryErrs) < maxPrintedEntryErrors {
				entryErrs = append(entryErrs, entryErr)
			} else {
				more++
			}
		},
	}, func(e sitemap.Entry) error {
		printErr = l.printAndFollowEntry(e, f)
		return printErr
	})
	switch {
	case errors.Is(printErr, errEntryLimit):
		err = nil
	case printErr != nil:
		return printErr
	case errors.Is(err, sitemap.ErrNotSitemap):
		entryErrs, more = nil, 0 // it was not meant for us
	}
	for _, entryErr := range entryErrs {
		l.printProblem(name, entryErr)
	}
	if more > 0 {
		l.printProblem(name, fmt.Errorf("and %d more of the kind", more))
	}
	if err != nil {
		l.printProblem(name, errors.New(engine.InnerErrorText(err))) // its name is said already
	}
	return l.out.Flush()
}

// errEntryLimit ends a listing that has as many lines as were asked for.
var errEntryLimit = errors.New("the limit is reached")

// printAndFollowEntry prints one entry.
func (l *sitemapLister) printAndFollowEntry(e sitemap.Entry, f pendingSitemap) error {
	if e.IsSitemap && l.options.followIndexes {
		l.enqueue(pendingSitemap{url: e.URL, indexDepth: f.indexDepth + 1})
	}
	err := l.encoder.Encode(listedSitemapEntry{
		URL: e.URL.String(), IsSitemap: e.IsSitemap, Priority: e.Priority, LastMod: e.LastMod,
		ChangeFreq: e.ChangeFreq, OutsideLocation: !e.AllowedByLocation && !f.url.IsZero(), Sitemap: f.url.String(),
	})
	if err != nil {
		return fmt.Errorf("cannot write the entries: %w", err)
	}
	l.writtenEntries++
	if l.isLimitReached = l.writtenEntries == l.options.limit; l.isLimitReached {
		return errEntryLimit
	}
	return nil
}

// crossSubmitChecker returns a func that reports whether the robots.txt of an origin
// names the sitemap at u, as far as it has been fetched.
func (l *sitemapLister) crossSubmitChecker(u decorum.URL) func(decorum.Origin) bool {
	namesByOrigin := map[decorum.Origin]bool{}
	return func(o decorum.Origin) bool {
		names, ok := namesByOrigin[o]
		if !ok {
			sitemaps, err := l.fetcher.Gate.Sitemaps(context.Background(), o)
			names = err == nil && slices.Contains(sitemaps, u)
			namesByOrigin[o] = names
		}
		return names
	}
}
