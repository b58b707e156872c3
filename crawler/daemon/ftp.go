package daemon

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/ftpfetch"
)

// errProxiedFTP refuses what would go around the proxy.
var errProxiedFTP = errors.New("ftp cannot go through fetch.proxy")

// errFTPWithHandler refuses what callbacks would not be told of.
var errFTPWithHandler = errors.New("the callbacks of a handler see http and https only")

// checkSeedURL returns why the crawl cannot begin at s, if so (LOC-18).
func (p *Project) checkSeedURL(s string) error {
	if err := p.seedURLProblem(s); err != nil {
		return fmt.Errorf("%q %w", s, err)
	}
	return nil
}

// seedURLProblem returns what is wrong with a seed, without its text.
func (p *Project) seedURLProblem(s string) error {
	u, err := decorum.ParseURL(s)
	switch {
	case err != nil:
		return errSeedNotURL
	case !u.Origin().IsHTTP() && p.Fetch.Proxy != "":
		return fmt.Errorf("cannot be visited: %w", errProxiedFTP)
	case !u.Origin().IsHTTP() && p.Handler != "":
		return fmt.Errorf("cannot be visited: %w", errFTPWithHandler)
	}
	return nil
}

// errSeedNotURL is the error for a seed that is not a URL.
var errSeedNotURL = errors.New("is not a URL the crawl can visit: expected https://host/path")

// newSchemeFetcher returns web for http and https, and beside it what fetches ftp: over
// connections that web makes, so that what it refuses is refused. Where there is
// a proxy, nothing fetches ftp.
func (p *Project) newSchemeFetcher(httpFetcher *collyfetch.Fetcher, bodyMemory *bodymem.Budget) (crawler.Fetcher, error) {
	fetchers := crawler.SchemeFetcher{"http": httpFetcher, "https": httpFetcher}
	if p.Fetch.Proxy != "" {
		return fetchers, nil
	}
	ftp, err := ftpfetch.New(ftpfetch.Config{
		Dialer: httpFetcher, Password: strings.TrimPrefix(p.Agent.Contact, "mailto:"),
		Timeout: time.Duration(p.Fetch.Timeout), MaxBody: int64(p.Fetch.MaxBody), ContentTypes: p.Fetch.ContentTypes,
		BodyMemory: bodyMemory,
	})
	fetchers["ftp"] = ftp
	return fetchers, err
}
