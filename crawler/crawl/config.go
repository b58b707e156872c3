package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/crawler/internal/httpheader"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
)

// A Config configures a crawl. Agent and Contact are compulsory; the zero value of any other field is
// the default of its package.
type Config struct {
	// Agent is the product token that robots.txt rules are looked up by, or product/version. A
	// token has only letters, "_" and "-" (RFC 9309, section 2.2.1).
	Agent string
	// Contact is a URL or mailto: by which a site's owner can reach you. It is part of the
	// User-Agent header.
	Contact string
	// StateDir is the directory that keeps the state of the crawl, frontier.db and robots.db; it is
	// created if necessary. A program that was stopped or killed resumes where it was when it is
	// started again. Delete the directory to start over. One process at a time may use it. Empty:
	// the state is in memory, and ends with the process.
	StateDir string
	// Seeds are the URLs from which the crawl starts. Unless FrontierConfig.Scope is set, only
	// URLs of their hosts, and of the hosts to which they redirect, are visited. Seeds that an
	// earlier run visited are not visited again.
	Seeds []string
	// OnPage is called with each page that was answered with 2xx, in one call at a time. If it
	// returns nil, the crawl follows the links of the page; otherwise its error has the meaning of
	// a Handler's. After a crash it may be called again for the pages that were being visited.
	OnPage func(context.Context, *crawler.Visit) error
	// Handler replaces OnPage, for a program that chooses the links or reads pages concurrently.
	Handler crawler.Handler

	// KeepLedger records what permits each request, before its first byte is sent, in the directory
	// ledger of StateDir. "decorum ledger verify --data StateDir" checks the ledger. A run ends if
	// the ledger cannot be written.
	KeepLedger bool
	// KeepCookies sends sites the cookies that they set, and keeps them in the state of the crawl.
	// Otherwise cookies are ignored.
	KeepCookies bool

	Policy politeness.Policy // the delay between visits to a host
	// LimiterConfig limits the whole crawl and each address. IPConcurrency 0 is 2.
	LimiterConfig politeness.LimiterConfig
	// RobotsConfig says how robots.txt is read, and what the pages are used for (Purposes: see
	// docs/ai-use.md). The zero Agent is made from Agent; another, which may have wider tokens, must
	// have its product token.
	RobotsConfig gate.Config
	// FrontierConfig says which URLs belong to the crawl, and their order. Open sets CleanURL and
	// Budget.
	FrontierConfig frontier.Config
	// FetchConfig says how requests are sent. Open sets UserAgent from Agent and Contact, and
	// Cookies if KeepCookies is set.
	FetchConfig httpfetch.Config
	Settings    crawler.Settings // the limits of a run

	// Hooks are called at points of the crawl, from several workers at a time.
	Hooks    crawler.Hooks
	Recorder crawler.Recorder // nil: pages are not recorded
	Log      *slog.Logger     // nil: slog.Default
}

// withDefaults returns cfg, whose seeds are parsed, with the defaults of this package and the identity
// of the crawl. It returns an error for an invalid field.
func (cfg Config) withDefaults(seeds []decorum.URL) (Config, error) {
	if err := cfg.setIdentity(); err != nil {
		return cfg, err
	}
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	cfg.LimiterConfig.IPConcurrency = cmp.Or(cfg.LimiterConfig.IPConcurrency, 2)
	if cfg.FrontierConfig.Scope == nil {
		cfg.FrontierConfig.Scope = frontier.NewScope(
			frontier.ScopeConfig{Mode: frontier.HostScope, SeedRedirects: frontier.AnyScope,
				CurrentYear: time.Now().Year()}, seeds)
	}
	switch {
	case cfg.OnPage != nil && cfg.Handler != nil:
		return cfg, errors.New("OnPage and Handler are set: set one of them")
	case cfg.KeepLedger && cfg.StateDir == "":
		return cfg, errLedgerNeedsDir
	}
	return cfg, errors.Join(cfg.Policy.Validate(), cfg.RobotsConfig.Validate())
}

// setIdentity sets, from Agent and Contact, what robots.txt rules are looked up by and what requests
// say of the crawl. It returns an error for a field that says something else.
func (cfg *Config) setIdentity() error {
	product, userAgent, err := httpheader.BuildUserAgent(cfg.Agent, cfg.Contact)
	if err != nil {
		return err
	}
	switch token := cfg.RobotsConfig.Agent.Token(); {
	case cfg.FetchConfig.UserAgent != "" && cfg.FetchConfig.UserAgent != userAgent:
		return fmt.Errorf("FetchConfig.UserAgent %q: Agent and Contact make it %q", cfg.FetchConfig.UserAgent,
			userAgent)
	case token != "" && !strings.EqualFold(token, product):
		return fmt.Errorf("RobotsConfig.Agent %q: Agent is %q", token, cfg.Agent)
	case cfg.Settings.ProductToken != "" && !strings.EqualFold(cfg.Settings.ProductToken, product):
		return fmt.Errorf("Settings.ProductToken %q: Agent is %q", cfg.Settings.ProductToken, cfg.Agent)
	case token == "":
		if cfg.RobotsConfig.Agent, err = robots.PresetOrNewAgent(cfg.RobotsConfig.Dialect, product); err != nil {
			return fmt.Errorf("agent: %w", err)
		}
	}
	cfg.FetchConfig.UserAgent, cfg.Settings.ProductToken = userAgent, product
	return nil
}
