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

// errCalledFTP refuses what callbacks would not be told of.
var errCalledFTP = errors.New("the callbacks of a handler see http and https only")

// checkSeed returns why the crawl cannot begin at s, if so (LOC-18).
func (p *Project) checkSeed(s string) error {
	if err := p.refusesSeed(s); err != nil {
		return fmt.Errorf("%q %w", s, err)
	}
	return nil
}

// refusesSeed returns what is wrong with a seed, without its text.
func (p *Project) refusesSeed(s string) error {
	u, err := decorum.ParseURL(s)
	switch {
	case err != nil:
		return errNoSeed
	case !u.Origin().IsHTTP() && p.Fetch.Proxy != "":
		return fmt.Errorf("cannot be visited: %w", errProxiedFTP)
	case !u.Origin().IsHTTP() && p.Handler != "":
		return fmt.Errorf("cannot be visited: %w", errCalledFTP)
	}
	return nil
}

// errNoSeed is the error for a seed that is not a URL.
var errNoSeed = errors.New("is not a URL the crawl can visit: expected https://host/path")

// withFTP returns web for http and https, and beside it what fetches ftp: over
// connections that web makes, so that what it refuses is refused. Where there is
// a proxy, nothing fetches ftp.
func (p *Project) withFTP(web *collyfetch.Fetcher, bodies *bodymem.Memory) (crawler.Fetcher, error) {
	fetchers := crawler.SchemeFetcher{"http": web, "https": web}
	if p.Fetch.Proxy != "" {
		return fetchers, nil
	}
	ftp, err := ftpfetch.New(ftpfetch.Config{
		Dialer: web, Password: strings.TrimPrefix(p.Agent.Contact, "mailto:"),
		Timeout: time.Duration(p.Fetch.Timeout), MaxBody: int64(p.Fetch.MaxBody), ContentTypes: p.Fetch.ContentTypes,
		Bodies: bodies,
	})
	fetchers["ftp"] = ftp
	return fetchers, err
}
