package robotstools

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/oneoff"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/project"
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
	e, err := q.newPoliteFetcher()
	if err != nil {
		return err
	}
	base, err := q.sitemapURL(name)
	if err != nil {
		return err
	}
	lister := newSitemapLister(q, e, q.env.Stdout, q.env.Stderr)
	if !hasURLScheme(name) {
		signal.Reset(os.Interrupt, syscall.SIGTERM) // standard input would not wake up
		err = lister.printLocalSitemap(stdin, name, base)
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

// newPoliteFetcher returns the fetcher of sitemaps.
func (q sitemapOptions) newPoliteFetcher() (*oneoff.Fetcher, error) {
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
	return oneoff.NewFetcher(d, gateConfig)
}
