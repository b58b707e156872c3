package robotstools

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier/sitemap"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
)

const sitemapHelp = `List the entries of a sitemap as JSON Lines. A sitemap may be XML, plain text, an index,
or an RSS or Atom feed, and may be compressed with gzip; the command detects the format
by the content. SITEMAP is a file, "-" for standard input, or a URL. The command
fetches a URL as a crawl would: only if robots.txt allows it, and when its host is due.

The fields of an entry are
  url            the URL in canonical form
  index          whether the entry is another sitemap
  priority       the priority; 0.5 if the sitemap has none
  lastmod, changefreq
                 the values in the sitemap; absent if it has none
  outside        true if sitemaps.org does not permit a sitemap at this URL to list
                 the entry, which has another origin or is above the sitemap's
                 directory. If the robots.txt of the entry's origin names the
                 sitemap, the entry is permitted all the same; --strict leaves out
                 the entries that are not
  sitemap        the URL of the sitemap; absent for a file

Mistakes in a sitemap are reported on standard error; all readable entries are printed.
--follow also lists the sitemaps of an index: up to three levels deep, each once, at
most 10,000. A sitemap may have 50 MiB and 50,000 entries.

Exit codes: 0 no mistakes, 1 a sitemap has mistakes or cannot be fetched, 2 wrong
usage, 4 interrupted.`

const sitemapExample = `  decorum sitemap https://example.com/sitemap.xml | jq -r .url
  decorum sitemap --follow https://example.com/sitemap-index.xml > entries.jsonl
  decorum sitemap --base https://example.com/sitemap.xml --strict sitemap.xml.gz
  curl -s https://example.com/feed | decorum sitemap --limit 10 -`

// A sitemapOptions holds the flags of decorum sitemap.
type sitemapOptions struct {
	checkOptions
	projectFlags                  []*pflag.Flag // flags that set fields of the project
	baseURL                       string        // URL of a sitemap in a file; empty: not known
	followIndexes, strictLocation bool
	limit                         int // of printed entries; 0: no limit
}

// NewSitemapCommand returns the command decorum sitemap.
func NewSitemapCommand(env *command.Env) *cobra.Command {
	q := sitemapOptions{checkOptions: checkOptions{env: env}}
	c := &cobra.Command{
		Use: "sitemap SITEMAP", Short: "List the entries of a sitemap",
		Long: sitemapHelp, Example: sitemapExample, Args: command.ArgsOrUsageError(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return q.listSitemap(c.Context(), c.InOrStdin(), args[0])
		},
	}
	fs := c.Flags()
	fs.BoolVar(&q.followIndexes, "follow", false, "also list the entries of the sitemaps in an index")
	fs.BoolVar(&q.strictLocation, "strict", false, "leave out entries that this sitemap is not permitted to list")
	fs.IntVar(&q.limit, "limit", 0, "stop after `N` entries; 0: no limit (default 0)")
	fs.StringVar(&q.baseURL, "base", "", "treat a sitemap in a file as if it were at `URL` (default: unknown)")
	q.projectFlags = project.AddFieldFlags(fs, "agent", "delay", "dialect")
	q.addFetchFlags(fs)
	return c
}

// listSitemap prints the entries of the sitemap name, a file or a URL, and with --follow those of
// the sitemaps below it.
func (q sitemapOptions) listSitemap(ctx context.Context, stdin io.Reader, name string) error {
	c, err := q.newSitemapCrawl()
	if err != nil {
		return err
	}
	base, err := q.sitemapURL(name)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(q.env.Stdout, 1<<16)
	lister := &sitemapLister{
		options: q, crawl: c, out: out, encoder: jsonline.NewEncoder(out), seenSitemaps: map[decorum.URL]bool{},
	}
	// The first sitemap is a file or a URL; those that it lists are URLs.
	if !hasURLScheme(name) {
		in, openErr := openFileOrStdin(stdin, name, "sitemap")
		if openErr != nil {
			return openErr
		}
		defer in.Close()
		err = lister.printAndFollowEntries(in, name, pendingSitemap{url: base})
	} else {
		lister.enqueue(pendingSitemap{url: base})
	}
	ctx, stop := q.env.WithSignalCancel(ctx)
	defer stop()
	for err == nil && lister.hasNext() && ctx.Err() == nil {
		err = lister.fetchAndPrintNext(ctx)
	}
	switch err := cmp.Or(err, lister.out.Flush()); {
	case err != nil:
		return err
	case errors.Is(context.Cause(ctx), engine.ErrInterrupted):
		return &command.ExitError{Code: command.ExitStopped, Err: engine.ErrInterrupted}
	case lister.hasProblems:
		return &command.ExitError{Code: command.ExitFailed}
	}
	return nil
}

// sitemapURL returns the URL of the sitemap name: name itself, or --base if name is a file. It is
// zero for a file without --base.
func (q sitemapOptions) sitemapURL(name string) (decorum.URL, error) {
	argName, address := "--base", q.baseURL
	switch {
	case hasURLScheme(name) && q.baseURL != "":
		return decorum.URL{}, usage.Errorf("--base is the URL of a sitemap in a file, but %q is already a URL", name)
	case hasURLScheme(name):
		argName, address = "SITEMAP", name
	case q.baseURL == "" && q.strictLocation:
		return decorum.URL{}, usage.Errorf("--strict: the URLs that a sitemap may list depend on its own URL; set " +
			"--base")
	case q.baseURL == "":
		return decorum.URL{}, nil
	}
	u, err := decorum.ParseURL(address)
	if err != nil {
		return decorum.URL{}, usage.Errorf("%s: %q is not the URL of a sitemap; expected https://host/path", argName,
			address)
	}
	return u, nil
}

// maxSitemapBytes is the largest decompressed size of a sitemap that is read, in bytes: the limit of
// sitemaps.org.
const maxSitemapBytes = 50 << 20

// newSitemapCrawl returns a crawl that fetches sitemaps with the settings of the flags.
func (q sitemapOptions) newSitemapCrawl() (*crawler.OnDemandCrawl, error) {
	if q.limit < 0 {
		return nil, usage.Errorf("--limit: %d is negative", q.limit)
	}
	d := q.newProjectFromFlags()
	d.Fetch.ContentTypes = nil
	d.Fetch.MaxBody = maxSitemapBytes + 1 // one byte more shows that a sitemap is too large
	if err := project.ApplyFieldFlags(d, q.projectFlags); err != nil {
		return nil, err
	}
	if err := d.Check(); err != nil {
		return nil, err
	}
	gateConfig, err := d.GateConfig()
	if err != nil {
		return nil, err
	}
	return engine.NewOnDemandCrawl(&d.Project, gateConfig)
}

// Limits of a listing.
const (
	maxSitemaps           = 10_000 // sitemaps read in all
	maxSitemapIndexDepth  = 3      // indexes above a sitemap
	maxSitemapRedirects   = 5      // redirects to one sitemap
	maxPrintedEntryErrors = 20     // errors printed for one sitemap
)

// A sitemapLister prints the entries of sitemaps, one sitemap after the other.
type sitemapLister struct {
	options        sitemapOptions
	crawl          *crawler.OnDemandCrawl
	out            *bufio.Writer
	encoder        *json.Encoder // writes to out
	hasProblems    bool          // printProblem was called
	isLimitReached bool          // --limit entries were written
	writtenEntries int

	pending      []pendingSitemap     // sitemaps to fetch, in order
	seenSitemaps map[decorum.URL]bool // sitemaps that were ever in pending
}

// A pendingSitemap is a sitemap to fetch.
type pendingSitemap struct {
	url            decorum.URL
	indexDepth     int           // number of indexes above it
	redirectedFrom []decorum.URL // URLs that redirected to it, the first first
}

// urlBeforeRedirects returns the URL that named the sitemap, before any redirect.
func (f pendingSitemap) urlBeforeRedirects() decorum.URL {
	if len(f.redirectedFrom) > 0 {
		return f.redirectedFrom[0]
	}
	return f.url
}

// A listedSitemapEntry is one line of output. sitemapHelp documents its fields.
type listedSitemapEntry struct {
	URL             string    `json:"url"`
	IsSitemap       bool      `json:"index"`
	Priority        float64   `json:"priority"`
	LastMod         time.Time `json:"lastmod,omitzero"`
	ChangeFreq      string    `json:"changefreq,omitempty"`
	OutsideLocation bool      `json:"outside,omitempty"`
	Sitemap         string    `json:"sitemap,omitempty"`
}

// hasNext reports whether a sitemap is left to fetch and --limit is not reached.
func (l *sitemapLister) hasNext() bool { return len(l.pending) > 0 && !l.isLimitReached }

// enqueue adds the sitemap f to pending. It skips a sitemap that was added before, and reports one
// that is beyond a limit or redirects in a circle.
func (l *sitemapLister) enqueue(f pendingSitemap) {
	switch {
	case slices.Contains(f.redirectedFrom, f.url):
		l.printProblem(f.urlBeforeRedirects().String(), errors.New("redirects in a circle"))
	case l.seenSitemaps[f.url]:
	case f.indexDepth > maxSitemapIndexDepth:
		l.printProblem(f.url.String(), fmt.Errorf("not followed: indexes are nested more than %d deep",
			maxSitemapIndexDepth))
	case len(f.redirectedFrom) > maxSitemapRedirects:
		l.printProblem(f.urlBeforeRedirects().String(), fmt.Errorf("more than %d redirects", maxSitemapRedirects))
	case len(l.seenSitemaps) == maxSitemaps:
		l.printProblem(f.url.String(), fmt.Errorf("not followed: it is beyond the first %d sitemaps", maxSitemaps))
	default:
		l.seenSitemaps[f.url] = true
		l.pending = append(l.pending, f)
	}
}

// printProblem writes a problem with the sitemap name to standard error.
func (l *sitemapLister) printProblem(name string, err error) {
	l.hasProblems = true
	text := plaintext.ReplaceControlChars(name + ": " + err.Error())
	if messages := l.options.env.JSONMessages; messages != nil {
		messages.Warn(text)
		return
	}
	fmt.Fprintln(l.options.env.Stderr, "decorum:", text)
}

// fetchAndPrintNext fetches the next sitemap and prints its entries. It reports problems with the
// sitemap by printProblem, and returns only errors of writing.
func (l *sitemapLister) fetchAndPrintNext(ctx context.Context) error {
	f := l.pending[0]
	l.pending = l.pending[1:]
	name := f.url.String()
	v, err := l.crawl.Visit(ctx, f.url)
	switch {
	case ctx.Err() != nil:
		return nil // listSitemap reports the signal
	case err != nil:
		l.printProblem(name, err)
		return nil
	}
	if to, ok := v.Response.Location(); ok {
		l.enqueue(pendingSitemap{to, f.indexDepth, append(f.redirectedFrom, f.url)})
		return nil
	}
	if !v.OK() {
		l.printProblem(name, fmt.Errorf("status %d", v.Status()))
		return nil
	}
	return l.printAndFollowEntries(v.OpenBody(), name, f)
}

// printAndFollowEntries prints the entries of the sitemap f, which r contains, and reports its
// problems under name. It returns only errors of writing.
func (l *sitemapLister) printAndFollowEntries(r io.Reader, name string, f pendingSitemap) error {
	// Print the entries as they are read, and keep the first errors for later: a file that turns
	// out not to be a sitemap gets one error instead.
	var printErr error
	var entryErrs []sitemap.EntryError
	more := 0
	err := sitemap.Read(r, f.url, sitemap.Options{
		MaxBytes: maxSitemapBytes, StrictLocation: l.options.strictLocation,
		AllowsCrossSubmit: l.crossSubmitChecker(f.urlBeforeRedirects()),
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
		entryErrs, more = nil, 0 // err says it all
	}
	for _, entryErr := range entryErrs {
		l.printProblem(name, entryErr)
	}
	if more > 0 {
		l.printProblem(name, fmt.Errorf("and %d more errors", more))
	}
	if err != nil {
		l.printProblem(name, errors.New(engine.InnerErrorText(err))) // printProblem adds the name
	}
	return l.out.Flush()
}

// errEntryLimit ends the reading of a sitemap when --limit entries are printed.
var errEntryLimit = errors.New("the limit is reached")

// printAndFollowEntry prints the entry e of the sitemap f, and with --follow enqueues it if it is a
// sitemap. It returns errEntryLimit after the last entry that --limit permits.
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

// crossSubmitChecker returns a function that reports whether the robots.txt of an origin names the
// sitemap at u. It knows only robots.txt files that have been fetched.
func (l *sitemapLister) crossSubmitChecker(u decorum.URL) func(decorum.Origin) bool {
	namesByOrigin := map[decorum.Origin]bool{}
	return func(o decorum.Origin) bool {
		names, ok := namesByOrigin[o]
		if !ok {
			sitemaps, err := l.crawl.Gate().Sitemaps(context.Background(), o)
			names = err == nil && slices.Contains(sitemaps, u)
			namesByOrigin[o] = names
		}
		return names
	}
}
