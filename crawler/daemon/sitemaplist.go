package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier/sitemap"
	"github.com/decorum-crawler/decorum/internal/jsonline"
)

// Bounds of a listing.
const (
	maxSitemaps           = 10_000 // that are read
	sitemapLevels         = 3      // of indexes
	sitemapRedirects      = 5      // to one sitemap
	maxPrintedEntryErrors = 20     // of one sitemap that are told
)

// A listing prints what sitemaps list.
type listing struct {
	ask    sitemapQuery
	errand *politeFetcher
	out    *bufio.Writer
	lines  *json.Encoder // to out
	errors io.Writer
	wrong  bool // with a sitemap
	full   bool // by --limit
	count  int  // of lines

	queued []found
	seen   map[decorum.URL]bool
}

// A found is a sitemap that is to be read.
type found struct {
	url   decorum.URL
	level int           // of indexes above it
	via   []decorum.URL // what redirected to it, from the first on
}

// name returns the URL by which the sitemap was named: where redirects began.
func (f found) name() decorum.URL {
	if len(f.via) > 0 {
		return f.via[0]
	}
	return f.url
}

// A listed is one line of output.
type listed struct {
	URL        string    `json:"url"`
	Index      bool      `json:"index"`
	Priority   float64   `json:"priority"`
	LastMod    time.Time `json:"lastmod,omitzero"`
	ChangeFreq string    `json:"changefreq,omitempty"`
	Outside    bool      `json:"outside,omitempty"`
	Sitemap    string    `json:"sitemap,omitempty"`
}

func newListing(q sitemapQuery, e *politeFetcher, out, errors io.Writer) *listing {
	w := bufio.NewWriterSize(out, 1<<16)
	lines := jsonline.NewEncoder(w)
	lines.SetEscapeHTML(false)
	return &listing{ask: q, errand: e, out: w, lines: lines, errors: errors, seen: map[decorum.URL]bool{}}
}

// goesOn reports whether there is a sitemap to read.
func (l *listing) goesOn() bool { return len(l.queued) > 0 && !l.full }

// queue has a sitemap read, unless it has been or there are too many.
func (l *listing) queue(f found) {
	switch {
	case slices.Contains(f.via, f.url):
		l.complain(f.name().String(), errors.New("redirects in a circle"))
		return
	case l.seen[f.url]:
		return
	case f.level > sitemapLevels:
		l.complain(f.url.String(), fmt.Errorf("not followed: indexes are nested more than %d deep", sitemapLevels))
		return
	case len(f.via) > sitemapRedirects:
		l.complain(f.name().String(), fmt.Errorf("more than %d redirects", sitemapRedirects))
		return
	case len(l.seen) == maxSitemaps:
		l.complain(f.url.String(), fmt.Errorf("not followed: it is beyond the first %d sitemaps", maxSitemaps))
		return
	}
	l.seen[f.url] = true
	l.queued = append(l.queued, f)
}

// complain says what is wrong with a sitemap.
func (l *listing) complain(name string, err error) {
	l.wrong = true
	fmt.Fprintf(l.errors, "decorum: %s: %s\n", plain(name), plain(err.Error()))
}

// file reads a sitemap on disk or standard input.
func (l *listing) file(stdin io.Reader, name string, base decorum.URL) error {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("cannot read the sitemap: %w", err)
		}
		defer f.Close()
		in = f
	}
	return l.read(in, name, found{url: base})
}

// next fetches and reads the next sitemap. The error is one of writing.
func (l *listing) next(ctx context.Context) error {
	f := l.queued[0]
	l.queued = l.queued[1:]
	name := f.url.String()
	res, err := l.errand.fetch(ctx, f.url)
	switch {
	case ctx.Err() != nil:
		return nil // the command says why
	case err != nil:
		l.complain(name, err)
		return nil
	}
	if to, ok := res.Location(); ok {
		l.queue(found{to, f.level, append(f.via, f.url)})
		return nil
	}
	if res.Status < 200 || res.Status > 299 {
		l.complain(name, fmt.Errorf("status %d", res.Status))
		return nil
	}
	return l.read(bytes.NewReader(res.Body), name, f)
}

// read prints what a sitemap lists, and says what is wrong with it.
func (l *listing) read(r io.Reader, name string, f found) error {
	var failed error
	var flaws []sitemap.Flaw
	more := 0
	err := sitemap.Read(r, f.url, sitemap.Options{
		Bytes: maxSitemapBytes, Strict: l.ask.strict, Vouched: l.vouched(f.name()),
		Flaw: func(flaw sitemap.Flaw) {
			if len(flaws) < maxPrintedEntryErrors {
				flaws = append(flaws, flaw)
			} else {
				more++
			}
		},
	}, func(e sitemap.Entry) error {
		failed = l.entry(e, f)
		return failed
	})
	switch {
	case errors.Is(failed, errFull):
		err = nil
	case failed != nil:
		return failed
	case errors.Is(err, sitemap.ErrNotSitemap):
		flaws, more = nil, 0 // it was not meant for us
	}
	for _, flaw := range flaws {
		l.complain(name, flaw)
	}
	if more > 0 {
		l.complain(name, fmt.Errorf("and %d more of the kind", more))
	}
	if err != nil {
		l.complain(name, innermost(err))
	}
	return l.out.Flush()
}

// innermost returns why a sitemap cannot be read: its name is said elsewhere.
func innermost(err error) error {
	if e := new(decorum.Error); errors.As(err, &e) && e.Err != nil {
		return e.Err
	}
	return err
}

// errFull ends a listing that has as many lines as were asked for.
var errFull = errors.New("the limit is reached")

// entry prints one entry.
func (l *listing) entry(e sitemap.Entry, f found) error {
	if e.Index && l.ask.follow {
		l.queue(found{url: e.URL, level: f.level + 1})
	}
	err := l.lines.Encode(listed{
		URL: e.URL.String(), Index: e.Index, Priority: e.Priority, LastMod: e.LastMod,
		ChangeFreq: e.ChangeFreq, Outside: !e.Within && !f.url.IsZero(), Sitemap: f.url.String(),
	})
	if err != nil {
		return fmt.Errorf("cannot write the entries: %w", err)
	}
	l.count++
	if l.full = l.count == l.ask.limit; l.full {
		return errFull
	}
	return nil
}

// vouched returns a func that reports whether the robots.txt of an origin
// names the sitemap at u, as far as it has been fetched.
func (l *listing) vouched(u decorum.URL) func(decorum.Origin) bool {
	known := map[decorum.Origin]bool{}
	return func(o decorum.Origin) bool {
		names, ok := known[o]
		if !ok {
			sitemaps, err := l.errand.gate.Sitemaps(context.Background(), o)
			names = err == nil && slices.Contains(sitemaps, u)
			known[o] = names
		}
		return names
	}
}
