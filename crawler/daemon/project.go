package daemon

import (
	"reflect"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage/ledger"
	"github.com/decorum-crawler/decorum/storage/warc"
)

// A Project is one crawl as its owner describes it: the project file, field by
// field. A field that the file leaves out keeps its value of DefaultProject.
type Project struct {
	Name       string     `yaml:"project"`
	Agent      Agent      `yaml:"agent"`
	Seeds      []string   `yaml:"seeds"`
	SeedFiles  []string   `yaml:"seed_files"` // one URL a line; # begins a comment
	Handler    string     `yaml:"handler"`    // name of the Go callbacks
	Scope      Scope      `yaml:"scope"`
	Robots     Robots     `yaml:"robots"`
	Politeness Politeness `yaml:"politeness"`
	Limits     Limits     `yaml:"limits"`
	Fetch      Fetch      `yaml:"fetch"`
	Discover   Discover   `yaml:"discover"`
	Revisit    Revisit    `yaml:"revisit"`
	Store      Store      `yaml:"store"`
	Output     Output     `yaml:"output"`
}

// An Agent is who the crawl says it is.
type Agent struct {
	Product string `yaml:"product"` // the token looked for in robots.txt
	Version string `yaml:"version"` // empty: the version of decorum
	Contact string `yaml:"contact"` // URL or mailto:; compulsory

	Signature Signing `yaml:"signature"`
}

// Scope says which URLs belong to the crawl.
type Scope struct {
	Within          string   `yaml:"within"` // origin, host, domain or any, relative to the seeds
	Include         []string `yaml:"include"`
	Exclude         []string `yaml:"exclude"`
	MaxDepth        int      `yaml:"max_depth"`
	MaxPagesPerHost int      `yaml:"max_pages_per_host"` // 0: no limit
	MaxURLLength    int      `yaml:"max_url_length"`
	// Limits against sites that make up URLs without end; 0 is the default.
	MaxParams         int    `yaml:"max_params"`           // parameters of a query
	MaxPathDepth      int    `yaml:"max_path_depth"`       // segments of a path
	MaxRepeat         int    `yaml:"max_repeat"`           // times that the same segments stand in a row
	MaxRedirects      int    `yaml:"max_redirects"`        // in a row
	MaxURLsPerPattern int    `yaml:"max_urls_per_pattern"` // of a host, that differ in numbers, dates and tokens only
	MaxURLsPerHost    int    `yaml:"max_urls_per_host"`    // ever queued
	Params            Params `yaml:"params"`
}

// Params says which parameters of queries do not matter, on top of what
// Clean-param says. "*" in a name stands for any characters.
type Params struct {
	Drop []string `yaml:"drop"` // taken off
	Keep []string `yaml:"keep"` // but not these; without drop, all but these are
	Sort bool     `yaml:"sort"` // the rest is put in the order of names
}

// Robots says how robots.txt and its relatives are read.
type Robots struct {
	Dialect    string   `yaml:"dialect"`
	Extensions bool     `yaml:"extensions"` // Crawl-delay, Clean-param, Host
	MaxTTL     Duration `yaml:"max_ttl"`
	Meta       bool     `yaml:"meta"` // robots meta elements, X-Robots-Tag, rel=nofollow
	// Purpose is what the crawl is for: search, ai-input, ai-train, archive. Pages
	// whose robots.txt or tdmrep.json asks not to be used for it are not visited, and
	// of those that ask so themselves the content is not kept. Empty: not stated.
	Purpose []string `yaml:"purpose"`
}

// Politeness says how gently hosts are visited.
type Politeness struct {
	Delay         Duration                  `yaml:"delay"`
	Adaptive      float64                   `yaml:"adaptive"` // times the last visit's duration; 0: off
	Concurrency   int                       `yaml:"concurrency"`
	MaxCrawlDelay Duration                  `yaml:"max_crawl_delay"`
	IP            IPPoliteness              `yaml:"ip"`
	Window        Window                    `yaml:"window"`
	Hosts         map[string]HostPoliteness `yaml:"hosts"`
}

// IPPoliteness is the pace of one address, of all its hosts together. What is
// nil is 2 at a time, and no delay. If both are, loopback addresses are left
// out: the services of the machine are the operator's own.
type IPPoliteness struct {
	Concurrency *int      `yaml:"concurrency,omitempty"`
	Delay       *Duration `yaml:"delay,omitempty"`
}

// HostPoliteness is what is otherwise for one host. What is nil is as for all.
type HostPoliteness struct {
	Delay       *Duration `yaml:"delay,omitempty"`
	Adaptive    *float64  `yaml:"adaptive,omitempty"`
	Concurrency *int      `yaml:"concurrency,omitempty"`
	Window      *Window   `yaml:"window,omitempty"`
	Reason      string    `yaml:"reason,omitempty"`  // told in the log
	Expires     Date      `yaml:"expires,omitempty"` // the last day, in UTC, on which this holds; none: for good
}

// A Window is the hours of a day in which hosts are visited; none: always.
type Window struct {
	Hours string `yaml:"hours"` // ranges as 22:00-06:00, separated by commas
	Zone  string `yaml:"zone"`  // IANA name, as Europe/Prague; empty: UTC
}

// Limits bound the crawl as a whole; 0 is no limit.
type Limits struct {
	Workers           int      `yaml:"workers"`
	Pages             int      `yaml:"pages"`
	Bytes             Size     `yaml:"bytes"`
	Duration          Duration `yaml:"duration"`
	RequestsPerSecond float64  `yaml:"requests_per_second"`
	BytesPerSecond    Size     `yaml:"bytes_per_second"`
}

// Fetch says how pages are requested.
type Fetch struct {
	Timeout        Duration          `yaml:"timeout"`    // of a visit
	FirstByte      Duration          `yaml:"first_byte"` // of it, until the answer begins; 0: timeout
	MaxHeader      Size              `yaml:"max_header"`
	MaxBody        Size              `yaml:"max_body"`         // as decoded
	MaxRequestBody Size              `yaml:"max_request_body"` // of what callbacks post
	ContentTypes   []string          `yaml:"content_types"`    // bodies of others are not read; empty: all are
	Headers        map[string]string `yaml:"headers"`          // of every request, on top of the crawl's own
	Cookies        bool              `yaml:"cookies"`          // keep them, by site
	Proxy          string            `yaml:"proxy"`            // http, https, socks5 or socks5h; empty: none
	DNSTTL         Duration          `yaml:"dns_ttl"`          // for how long addresses of hosts are remembered
	ConnectTo      []string          `yaml:"connect_to"`
	AllowPrivate   bool              `yaml:"allow_private"`
	FTP            bool              `yaml:"ftp"` // ftp URLs within the scope are visited, too; they are wherever a seed is one
}

// Discover says what leads to further URLs.
type Discover struct {
	Links     bool `yaml:"links"`
	Sitemaps  bool `yaml:"sitemaps"`
	Feeds     bool `yaml:"feeds"`
	Canonical bool `yaml:"canonical"`
	Images    bool `yaml:"images"`    // of pages; fetch.content_types says which bodies are read
	MaxLinks  int  `yaml:"max_links"` // taken from one page, or feed
	// MaxSitemaps is how many sitemaps the robots.txt of a host may lead to in a
	// run, by itself and by indexes.
	MaxSitemaps int `yaml:"max_sitemaps"`
}

// Revisit says when pages are visited again: never (none), always after the same
// time (interval: Every), or by how often each has been found changed (adaptive:
// from Min to Max).
type Revisit struct {
	Mode  string   `yaml:"mode"`
	Every Duration `yaml:"every"`
	Min   Duration `yaml:"min"`
	Max   Duration `yaml:"max"`
}

// Store says where the state of the crawl is kept.
type Store struct {
	Path  string `yaml:"path"`
	Redis Redis  `yaml:"redis"`
}

// Output says what is written down of each visit.
type Output struct {
	JSONL        string `yaml:"jsonl"`          // "-": standard output; empty: pages.jsonl in the store's directory
	JSONLMaxSize Size   `yaml:"jsonl_max_size"` // of each file of lines; 0: one without end
	WARC         string `yaml:"warc"`           // directory for WARC files; empty: none are written
	WARCMaxSize  Size   `yaml:"warc_max_size"`  // of each WARC file
	Bodies       bool   `yaml:"bodies"`         // bodies of pages, as decoded, into bodies/ in the store's directory
	Ledger       bool   `yaml:"ledger"`         // of what permitted each request, into ledger/ in the store's directory

	LedgerRefusals   bool     `yaml:"ledger_refusals"`   // of URLs, too
	LedgerMaxSize    Size     `yaml:"ledger_max_size"`   // of each file of it, before it is compressed
	LedgerKey        string   `yaml:"ledger_key"`        // file of the Ed25519 key that signs checkpoints; empty: there are none
	LedgerCheckpoint Duration `yaml:"ledger_checkpoint"` // the time between two of them
}

// judgesAs reports whether p decides as q does which URLs may be visited: scope
// reaches from the seeds.
func (p *Project) judgesAs(q Project) bool {
	return p.Agent.Product == q.Agent.Product && p.Fetch.FTP == q.Fetch.FTP &&
		sameAs(reflect.ValueOf(p.Robots), reflect.ValueOf(q.Robots)) && sameAs(reflect.ValueOf(p.Scope), reflect.ValueOf(q.Scope)) &&
		slices.Equal(p.Seeds, q.Seeds) && slices.Equal(p.SeedFiles, q.SeedFiles)
}

// DefaultProject returns what holds where nobody says otherwise. It lacks
// seeds, and a contact, which has no default.
func DefaultProject() Project {
	return Project{
		Agent: Agent{Product: "decorum", Signature: Signing{Valid: Duration(botauth.DefaultValid)}},
		Scope: Scope{
			Within: "host", MaxDepth: 32, MaxURLLength: 2048,
			MaxParams: frontier.DefaultMaxParams, MaxPathDepth: frontier.DefaultMaxPathDepth,
			MaxRepeat: frontier.DefaultMaxRepeat, MaxRedirects: frontier.DefaultMaxRedirects,
			MaxURLsPerPattern: frontier.DefaultMaxURLsPerPattern, MaxURLsPerHost: frontier.DefaultMaxURLsPerHost,
		},
		Robots: Robots{Dialect: "google", Extensions: true, MaxTTL: Duration(24 * time.Hour), Meta: true},
		Politeness: Politeness{
			Delay: Duration(time.Second), Adaptive: 1, Concurrency: 1, MaxCrawlDelay: Duration(time.Hour),
		},
		Limits: Limits{Workers: 64},
		Fetch: Fetch{
			Timeout: Duration(30 * time.Second), MaxHeader: 64 << 10, MaxBody: 10 << 20, MaxRequestBody: 1 << 20, DNSTTL: Duration(time.Minute),
			ContentTypes: []string{"text/html", "application/xhtml+xml", "text/plain", "application/pdf"},
		},
		Discover: Discover{Links: true, Sitemaps: true, Feeds: true, Canonical: true,
			MaxLinks: crawler.DefaultMaxLinks, MaxSitemaps: crawler.DefaultSitemaps},
		Revisit: Revisit{
			Mode: "none", Every: Duration(day), Min: Duration(time.Hour), Max: Duration(30 * day),
		},
		Store: Store{Path: "decorum-data", Redis: defaultRedis()},
		Output: Output{WARCMaxSize: warc.DefaultMaxSize, Ledger: true,
			LedgerMaxSize: ledger.DefaultMaxSize, LedgerCheckpoint: Duration(ledger.DefaultCheckpoint)},
	}
}
