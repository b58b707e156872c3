package collyfetch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
)

// Config is how a Fetcher fetches.
type Config struct {
	// UserAgent is the User-Agent header: product/version (+contact). Compulsory.
	UserAgent string
	// Timeout bounds a visit, from dialling to the end of the body. Default 30 s.
	Timeout time.Duration
	// MaxBody is how many bytes of a body, as decoded, are kept. Default 10 MiB.
	// Of a robots.txt at least 512,000 bytes are kept, of a sitemap 50 MiB.
	MaxBody int64
	// ContentTypes are the media types whose bodies are read; of others only
	// the headers are. Empty: all. robots.txt, sitemaps and feeds are always read.
	ContentTypes []string
	// ConnectTo sends connections elsewhere than to where the URL says.
	ConnectTo []ConnectTo
	// AllowPrivate allows connections to loopback, private and other addresses
	// that are not public. They are refused otherwise, after the name has been
	// resolved.
	AllowPrivate bool
	// Transport sends the requests; nil: one made from the fields above. One
	// that is given must not follow redirects and is not guarded by
	// AllowPrivate and ConnectTo. It is for tests without a network.
	Transport http.RoundTripper
}

func (cfg Config) withDefaults() Config {
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = 10 << 20
	}
	cfg.MaxBody = min(cfg.MaxBody, math.MaxInt64-1) // one more is read, to see whether there is more
	if cfg.Transport == nil {
		cfg.Transport = newTransport(cfg)
	}
	return cfg
}

// A Fetcher is a crawler.Fetcher on colly. Its methods may be called at the
// same time.
type Fetcher struct {
	cfg    Config
	engine *colly.Collector
}

var _ crawler.Fetcher = (*Fetcher)(nil)

// New returns a Fetcher.
func New(cfg Config) (*Fetcher, error) {
	if cfg.UserAgent == "" {
		return nil, errors.New("collyfetch: a User-Agent is compulsory: product/version (+contact)")
	}
	cfg = cfg.withDefaults()
	return &Fetcher{cfg: cfg, engine: newEngine(cfg.UserAgent, &turnstile{next: cfg.Transport, cfg: cfg})}, nil
}

// newEngine returns a collector with everything off that decorum decides.
// Fields are set after NewCollector, so that no COLLY_ environment variable
// has the last word.
func newEngine(userAgent string, transport http.RoundTripper) *colly.Collector {
	c := colly.NewCollector()
	c.UserAgent = userAgent
	c.IgnoreRobotsTxt = true // decorum's own gate has been asked
	c.AllowURLRevisit = true // decorum's seen set has been asked
	c.ParseHTTPErrorResponse = true
	c.Async = false
	c.CacheDir = ""
	c.DetectCharset = false
	c.MaxDepth, c.MaxRequests = 0, 0
	c.MaxBodySize = 0 // bounded by the turnstile, which can tell that it cut
	c.AllowedDomains, c.DisallowedDomains = nil, nil
	c.DisableCookies()
	c.SetRequestTimeout(0) // the visit's context has the timeout
	c.SetRedirectHandler(func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse })
	c.WithTransport(transport)
	return c
}

// Fetch makes one request, which the ticket pays for.
func (f *Fetcher) Fetch(ctx context.Context, t crawler.Ticket) (*decorum.Response, error) {
	if t.URL().IsZero() {
		return nil, t.Use("") // refused: it is for no URL
	}
	if err := sendable(t.URL()); err != nil {
		return nil, &decorum.Error{Op: "fetch", URL: t.URL().String(), Kind: decorum.Invalid, Err: err}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.cfg.Timeout, errTimeout(f.cfg.Timeout))
	defer cancel()
	visit := &passage{ticket: t}
	c := f.engine.Clone()
	c.Context = context.WithValue(ctx, passageKey{}, visit)
	err := c.Request(http.MethodGet, t.URL().String(), nil, nil, nil)
	if visit.response != nil {
		return visit.response, nil // colly's own view of it does not matter
	}
	if err == nil {
		err = errors.New("no answer")
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return nil, crawler.NoAnswer(t, err)
}

// errScheme refuses what there is no fetcher for (LOC-18).
var errScheme = errors.New("only http and https are fetched")

// sendable returns why net/http cannot send a request for u, if it cannot: its
// scheme, or a stray percent sign in the path, which hardly a server would take.
func sendable(u decorum.URL) error {
	if !u.Origin().IsHTTP() {
		return errScheme
	}
	_, err := url.Parse(u.String())
	return err
}

type errTimeout time.Duration

// Error says how long was waited.
func (e errTimeout) Error() string { return fmt.Sprintf("no whole answer within %v", time.Duration(e)) }
