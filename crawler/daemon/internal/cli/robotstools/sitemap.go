package robotstools

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
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

const sitemapHelp = `List what a sitemap lists, as JSON Lines. It may be XML, plain text, an index, an RSS
or Atom feed, compressed with gzip or not: its content decides. SITEMAP is a file, "-"
for standard input, or a URL, which is fetched as a crawl would: only if robots.txt
allows it, and no sooner than its host is due.

An entry has
  url            in canonical form
  index          whether it is another sitemap
  priority       0.5 if the sitemap does not say
  lastmod, changefreq
                 only if the sitemap says
  outside        true if sitemaps.org does not let a sitemap at this place list the
                 URL: it is of another origin, or above the sitemap's directory. It
                 may be listed all the same if the robots.txt of its origin names
                 the sitemap; --strict leaves out what is outside and not so named
  sitemap        the URL of the sitemap, unless it is a file

What is wrong is said on standard error; what can be read is printed all the same.
--follow goes on with the sitemaps that an index lists: three levels deep, each once,
at most 10,000. A sitemap may have 50 MiB and 50,000 entries.

Exit codes: 0 all is well, 1 something is wrong with a sitemap or it could not be
had, 2 wrong usage, 4 interrupted.`

const sitemapExample = `  decorum sitemap https://example.com/sitemap.xml | jq -r .url
  decorum sitemap --follow https://example.com/sitemap-index.xml > entries.jsonl
  decorum sitemap --base https://example.com/sitemap.xml --strict sitemap.xml.gz
  curl -s https://example.com/feed | decorum sitemap --limit 10 -`

// A sitemapOptions is what somebody asks of a sitemap.
type sitemapOptions struct {
	checkOptions
	projectFlags                  []*pflag.Flag
	baseURL                       string
	followIndexes, strictLocation bool
	limit                         int
}

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
	fs.BoolVar(&q.followIndexes, "follow", false, "list what the sitemaps of an index list, too")
	fs.BoolVar(&q.strictLocation, "strict", false, "leave out URLs that are not for this sitemap to list")
	fs.IntVar(&q.limit, "limit", 0, "stop after `N` entries; 0: no limit")
	fs.StringVar(&q.baseURL, "base", "", "`URL` that a file is, or will be, found at")
	q.projectFlags = project.AddFieldFlags(fs, "agent", "delay", "dialect")
	q.addFetchFlags(fs)
	return c
}

// listSitemap prints what the sitemap of that name lists.
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
	if !hasURLScheme(name) {
		signal.Reset(os.Interrupt, syscall.SIGTERM) // standard input would not wake up
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

// sitemapURL returns the URL of the sitemap, zero if it is a file and nobody says.
func (q sitemapOptions) sitemapURL(name string) (decorum.URL, error) {
	argName, address := "--base", q.baseURL
	switch {
	case hasURLScheme(name) && q.baseURL != "":
		return decorum.URL{}, usage.Errorf("--base: says where a file is to be found, and %q is no file", name)
	case hasURLScheme(name):
		argName, address = "SITEMAP", name
	case q.baseURL == "" && q.strictLocation:
		return decorum.URL{}, usage.Errorf("--strict: which URLs a file may list depends on where it is found; set --base")
	case q.baseURL == "":
		return decorum.URL{}, nil
	}
	u, err := decorum.ParseURL(address)
	if err != nil {
		return decorum.URL{}, usage.Errorf("%s: %q is not the URL of a sitemap; expected https://host/path", argName, address)
	}
	return u, nil
}

// maxSitemapBytes is how many bytes of a sitemap are read, decompressed: as
// many as sitemaps.org allows.
const maxSitemapBytes = 50 << 20

// newSitemapCrawl returns what fetches the sitemaps.
func (q sitemapOptions) newSitemapCrawl() (*crawler.OnDemandCrawl, error) {
	if q.limit < 0 {
		return nil, usage.Errorf("--limit: %d is less than 0", q.limit)
	}
	d := q.newProjectFromFlags()
	d.Fetch.ContentTypes = nil
	d.Fetch.MaxBody = maxSitemapBytes + 1 // shows that there is more
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
	crawl          *crawler.OnDemandCrawl
	out            *bufio.Writer
	encoder        *json.Encoder // to out
	hasProblems    bool          // with a sitemap
	isLimitReached bool          // by --limit
	writtenEntries int           // of lines

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
	fmt.Fprintln(l.options.env.Stderr, "decorum:", plaintext.ReplaceControlChars(name+": "+err.Error()))
}

// fetchAndPrintNext fetches and reads the next sitemap. The error is one of writing.
func (l *sitemapLister) fetchAndPrintNext(ctx context.Context) error {
	f := l.pending[0]
	l.pending = l.pending[1:]
	name := f.url.String()
	v, err := l.crawl.Visit(ctx, f.url)
	switch {
	case ctx.Err() != nil:
		return nil // the command says why
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
			sitemaps, err := l.crawl.Gate().Sitemaps(context.Background(), o)
			names = err == nil && slices.Contains(sitemaps, u)
			namesByOrigin[o] = names
		}
		return names
	}
}
