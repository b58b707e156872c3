package daemon

import (
	"net/http"
	"time"

	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
)

// fetcherConfig returns how pages are requested, except for cookies. It opens key files
// within c.
func (p *Project) fetcherConfig(c *pathConfinement) (collyfetch.Config, error) {
	cfg := collyfetch.Config{
		UserAgent: p.userAgent(), From: collyfetch.ContactMail(p.Agent.Contact), Timeout: time.Duration(p.Fetch.Timeout), FirstByteTimeout: time.Duration(p.Fetch.FirstByteTimeout),
		MaxHeaderBytes: int64(p.Fetch.MaxHeader), MaxBody: int64(p.Fetch.MaxBody), MaxRequestBody: int64(p.Fetch.MaxRequestBody), ContentTypes: p.Fetch.ContentTypes,
		Headers: make(http.Header, len(p.Fetch.Headers)), AllowPrivate: p.Fetch.AllowPrivate, DNSTTL: time.Duration(p.Fetch.DNSTTL),
		CaptureExchanges: p.Output.WARCDir != "",
	}
	if cfg.DNSTTL == 0 {
		cfg.DNSTTL = -1
	}
	for name, value := range p.Fetch.Headers {
		cfg.Headers.Set(name, value)
	}
	for _, rule := range p.Fetch.ConnectToRules {
		to, err := collyfetch.ParseConnectTo(rule)
		if err != nil {
			return cfg, err
		}
		cfg.ConnectToRules = append(cfg.ConnectToRules, to)
	}
	var err error
	if cfg.Signer, err = p.Agent.Signature.newSigner(c.openInput); err != nil || p.Fetch.Proxy == "" {
		return cfg, err
	}
	cfg.Proxy, err = collyfetch.ParseProxy(p.Fetch.Proxy)
	return cfg, err
}

// newFetcher returns a fetcher for the project, whose cookies are kept in notes. It
// sends its requests over transport; nil: over the network.
func (p *Project) newFetcher(
	c *pathConfinement, notes collyfetch.OriginNoteStore, transport http.RoundTripper, bodyMemory *bodymem.Budget,
) (*collyfetch.Fetcher, error) {
	cfg, err := p.fetcherConfig(c)
	if err != nil {
		return nil, err
	}
	cfg.Transport, cfg.BodyMemory = transport, bodyMemory
	if p.Fetch.Cookies {
		cfg.Cookies = collyfetch.NewCookies(notes)
	}
	return collyfetch.NewFetcher(cfg)
}
