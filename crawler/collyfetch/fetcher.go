package collyfetch

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	// Capture keeps the bytes of each exchange, for crawler.Visit.Exchange, as
	// many as of a body again. Requests are then made by HTTP/1.1 alone.
	Capture bool
	// Transport sends the requests; nil: one made from the fields above. One
	// that is given must not follow redirects and is not guarded by
	// AllowPrivate and ConnectTo, nor does Capture see what passes through it.
	// It is for tests without a network.
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
	if f.cfg.Capture {
		visit.tape = newTape(f.cfg.bodyLimit(t))
	}
	c := f.engine.Clone()
	c.Context = context.WithValue(ctx, passageKey{}, visit)
	err := c.Request(http.MethodGet, t.URL().String(), nil, nil, headerFor(ctx, c))
	if visit.tape != nil {
		t.Keep(visit.tape.stop(visit.cut(ctx, err)))
	}
	if visit.response != nil {
		return visit.response, nil // colly's own view of it does not matter
	}
	if err == nil {
		err = errors.New("no answer")
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return nil, &decorum.Error{Op: "fetch", URL: t.URL().String(), Kind: kind(err), Err: err}
}

// extraKey is the key of a context for the headers that a callback has set.
type extraKey struct{}

// headerFor returns the headers of a request of c, nil for those that it has
// anyway.
func headerFor(ctx context.Context, c *colly.Collector) http.Header {
	extra, _ := ctx.Value(extraKey{}).(http.Header)
	if len(extra) == 0 {
		return nil
	}
	h := headerOf(c)
	maps.Copy(h, extra)
	return h
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

// kind returns the class of a failed request.
func kind(err error) decorum.Kind {
	for _, k := range []decorum.Kind{decorum.Unticketed, decorum.Forbidden, decorum.NotDue} {
		if errors.Is(err, k) {
			return k
		}
	}
	return decorum.Unreachable
}

type errTimeout time.Duration

// Error says how long was waited.
func (e errTimeout) Error() string { return fmt.Sprintf("no whole answer within %v", time.Duration(e)) }
