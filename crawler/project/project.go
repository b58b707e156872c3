package project

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
// field. A field that the file leaves out keeps its value of Default.
type Project struct {
	Name       string             `yaml:"project"` // 1 to 64 of a-z, 0-9 and -; in a daemon, the name of the file
	Agent      AgentSettings      `yaml:"agent"`
	Seeds      []string           `yaml:"seeds"`      // URLs to begin with; here or in seed_files there must be one
	SeedFiles  []string           `yaml:"seed_files"` // files with one URL a line; # begins a comment
	Handler    string             `yaml:"handler"`    // name of the Go callbacks; empty: pages are recorded and links followed
	Scope      ScopeSettings      `yaml:"scope"`
	Robots     RobotsSettings     `yaml:"robots"`
	Politeness PolitenessSettings `yaml:"politeness"`
	Limits     LimitSettings      `yaml:"limits"`
	Fetch      FetchSettings      `yaml:"fetch"`
	Discover   DiscoverySettings  `yaml:"discover"`
	Revisit    RevisitSettings    `yaml:"revisit"`
	Store      StoreSettings      `yaml:"store"`
	Output     OutputSettings     `yaml:"output"`
}

// An AgentSettings is who the crawl says it is.
type AgentSettings struct {
	Product string `yaml:"product"` // the token looked for in robots.txt
	// FallbackTokens are the tokens looked for, in order, where no group of a robots.txt names
	// product. Empty: none, or where product is that of a well-known crawler, what its
	// operator documents, such as googlebot for Googlebot-News.
	FallbackTokens []string `yaml:"wider"`
	Version        string   `yaml:"version"` // empty: the version of decorum
	Contact        string   `yaml:"contact"` // URL or mailto:; compulsory

	Signature Signing `yaml:"signature"`
}

// ScopeSettings says which URLs belong to the crawl. The limits from max_params on are
// against sites that make up URLs without end; for them 0 is the default.
type ScopeSettings struct {
	ScopeMode         string     `yaml:"within"`               // origin, host, domain or any, relative to the seeds
	Include           []string   `yaml:"include"`              // RE2 patterns; a URL must match one of them. Empty: all do
	Exclude           []string   `yaml:"exclude"`              // RE2 patterns; a URL that matches one is left out, whatever include says
	MaxDepth          int        `yaml:"max_depth"`            // links from a seed; 0: seeds only
	MaxPagesPerHost   int        `yaml:"max_pages_per_host"`   // over all runs together; 0: no limit
	MaxBytesPerHost   Size       `yaml:"max_bytes_per_host"`   // of bodies, as decoded, over all runs together; 0: no limit
	MaxURLLength      int        `yaml:"max_url_length"`       // bytes of a URL
	MaxParams         int        `yaml:"max_params"`           // parameters of a query
	MaxPathDepth      int        `yaml:"max_path_depth"`       // segments of a path
	MaxPathRepeats    int        `yaml:"max_repeat"`           // times that the same segments stand in a row
	MaxRedirects      int        `yaml:"max_redirects"`        // in a row
	MaxURLsPerPattern int        `yaml:"max_urls_per_pattern"` // of a host, that differ in numbers, dates and tokens only
	MaxURLsPerHost    int        `yaml:"max_urls_per_host"`    // ever queued
	MaxHostsPerDomain int        `yaml:"max_hosts_per_domain"` // of a registrable domain, that ever have a URL queued; seeds' hosts are never refused
	MaxHosts          int        `yaml:"max_hosts"`            // of all domains together, that ever have a URL queued; seeds' hosts are never refused
	Params            ParamRules `yaml:"params"`
}

// ParamRules says which parameters of queries do not matter, on top of what
// Clean-param says. "*" in a name stands for any characters.
type ParamRules struct {
	Drop []string `yaml:"drop"` // taken off
	Keep []string `yaml:"keep"` // but not these; without drop, all but these are
	Sort bool     `yaml:"sort"` // the rest is put in the order of names
}

// RobotsSettings says how robots.txt and its relatives are read.
type RobotsSettings struct {
	Dialect        string   `yaml:"dialect"`    // google, yandex or google-oss: Google's published parser to the letter
	ObeyExtensions bool     `yaml:"extensions"` // Crawl-delay, Request-rate, Visit-time, Clean-param, Host, Content-Signal, Content-Usage
	MaxTTL         Duration `yaml:"max_ttl"`    // for how long a robots.txt holds at most: for what its Cache-Control says, or else a day
	ObeyMetaTags   bool     `yaml:"meta"`       // robots meta elements, X-Robots-Tag, rel=nofollow
	// Purposes is what the crawl is for: search, ai-input, ai-train, archive. Pages
	// whose robots.txt or tdmrep.json asks not to be used for it are not visited, and
	// of those that ask so themselves the content is not kept. Empty: not stated.
	Purposes []string `yaml:"purpose"`
}

// PolitenessSettings says how gently hosts are visited.
type PolitenessSettings struct {
	Delay          Duration                  `yaml:"delay"`           // least rest of a host, from the end of an answer to the next request; what is longer of this, Crawl-delay, Retry-After and back-off holds
	AdaptiveFactor float64                   `yaml:"adaptive"`        // the rest is at least so many times as long as the last visit took; 0: off
	Concurrency    int                       `yaml:"concurrency"`     // visits at a time to one host
	MaxCrawlDelay  Duration                  `yaml:"max_crawl_delay"` // hosts that ask for a longer one are set aside, and reported
	PerIP          IPPoliteness              `yaml:"ip"`
	Window         Window                    `yaml:"window"`
	Hosts          map[string]HostPoliteness `yaml:"hosts"`
}

// IPPoliteness is the pace of one address, of all its hosts together. What is
// left out is 2 at a time, and no delay. If both are, loopback addresses are not
// counted: the services of the machine are the operator's own.
type IPPoliteness struct {
	Concurrency *int      `yaml:"concurrency,omitempty"` // visits at a time
	Delay       *Duration `yaml:"delay,omitempty"`       // least rest between two
}

// HostPoliteness is what is otherwise for the host of that name. What is left out is
// as for all hosts. It sets the project's own pace only: a longer Crawl-delay holds.
type HostPoliteness struct {
	Delay          *Duration `yaml:"delay,omitempty"`       // as politeness.delay
	AdaptiveFactor *float64  `yaml:"adaptive,omitempty"`    // as politeness.adaptive
	Concurrency    *int      `yaml:"concurrency,omitempty"` // as politeness.concurrency
	Window         *Window   `yaml:"window,omitempty"`      // as politeness.window
	Reason         string    `yaml:"reason,omitempty"`      // told in the log
	Expires        Date      `yaml:"expires,omitempty"`     // the last day, in UTC, on which this holds; none: for good
}

// A Window is the hours of a day in which hosts are visited; none: always.
type Window struct {
	Hours string `yaml:"hours"` // ranges as 22:00-06:00, separated by commas
	Zone  string `yaml:"zone"`  // IANA name, as Europe/Prague; empty: UTC
}

// LimitSettings says what bounds the crawl as a whole; 0 is no limit.
type LimitSettings struct {
	Workers           int      `yaml:"workers"`             // visits at a time, over all hosts
	Pages             int      `yaml:"pages"`               // visited by a run
	Bytes             Size     `yaml:"bytes"`               // of bodies, received by a run
	Duration          Duration `yaml:"duration"`            // of a run
	RequestsPerSecond float64  `yaml:"requests_per_second"` // over all hosts
	BytesPerSecond    Size     `yaml:"bytes_per_second"`    // over all hosts
}

// FetchSettings says how pages are requested.
type FetchSettings struct {
	Timeout          Duration          `yaml:"timeout"`          // of a visit
	FirstByteTimeout Duration          `yaml:"first_byte"`       // of it, until the answer begins; 0: timeout
	MaxHeader        Size              `yaml:"max_header"`       // of an answer; a longer one fails
	MaxBody          Size              `yaml:"max_body"`         // as decoded; a longer one is cut
	MaxSitemapBody   Size              `yaml:"max_sitemap_body"` // as decoded and decompressed; of a longer one the rest is not read
	MaxRequestBody   Size              `yaml:"max_request_body"` // of what callbacks post; more is refused
	ContentTypes     []string          `yaml:"content_types"`    // bodies of others are not read; empty: all are
	Headers          map[string]string `yaml:"headers"`          // of every request, on top of the crawl's own
	Cookies          bool              `yaml:"cookies"`          // keep them, by site, for pages only
	Proxy            string            `yaml:"proxy"`            // http, https, socks5 or socks5h; empty: none
	DNSTTL           Duration          `yaml:"dns_ttl"`          // for how long addresses of hosts are remembered
	ConnectToRules   []string          `yaml:"connect_to"`       // HOST:PORT:HOST2:PORT2: connect to HOST2:PORT2 for HOST:PORT, as curl does; an empty part is any; ports of other services, as 22, 25 and 6379, are connected to only where a rule names a port
	AllowPrivate     bool              `yaml:"allow_private"`    // connect to loopback, private and other addresses that are not public, and to public ones of this machine
	FTP              bool              `yaml:"ftp"`              // ftp URLs within the scope are visited, too; they are wherever a seed is one
}

// DiscoverySettings says what leads to further URLs.
type DiscoverySettings struct {
	Links     bool `yaml:"links"`     // of pages and headers, but not where they ask robots not to follow
	Sitemaps  bool `yaml:"sitemaps"`  // that robots.txt names
	Feeds     bool `yaml:"feeds"`     // RSS, Atom and JSON Feed that pages announce, and what they list
	Canonical bool `yaml:"canonical"` // the URL that a page names as its canonical one
	Images    bool `yaml:"images"`    // of pages; fetch.content_types says which bodies are read
	MaxLinks  int  `yaml:"max_links"` // taken from one page, or feed
	// MaxSitemapsPerHost is how many sitemaps the robots.txt of a host may lead to in a
	// run, by itself and by indexes.
	MaxSitemapsPerHost int `yaml:"max_sitemaps"`
}

// RevisitSettings says when pages are visited again: never (none), always after the same
// time (interval: every), or by how often each has been found changed (adaptive:
// from min to max).
type RevisitSettings struct {
	Mode        string   `yaml:"mode"`  // none, interval or adaptive
	Interval    Duration `yaml:"every"` // with mode: interval
	MinInterval Duration `yaml:"min"`   // with mode: adaptive
	MaxInterval Duration `yaml:"max"`   // with mode: adaptive
}

// StoreSettings says where the state of the crawl is kept.
type StoreSettings struct {
	Path  string        `yaml:"path"` // directory of the state; not to be set in a daemon
	Redis RedisSettings `yaml:"redis"`
}

// OutputSettings says what is written down of each visit.
type OutputSettings struct {
	JSONL            string `yaml:"jsonl"`          // "-": standard output; empty: pages.jsonl in the store's directory
	JSONLMaxFileSize Size   `yaml:"jsonl_max_size"` // of each file of lines; 0: one without end
	WARCDir          string `yaml:"warc"`           // directory for WARC files; empty: none are written
	WARCMaxFileSize  Size   `yaml:"warc_max_size"`  // of each WARC file
	FileMode         string `yaml:"mode"`           // of new files of lines, WARC, bodies and the ledger: 0600, 0640 or 0644; what is there keeps its own
	WriteBodies      bool   `yaml:"bodies"`         // bodies of pages, as decoded, into bodies/ in the store's directory
	WriteLedger      bool   `yaml:"ledger"`         // of what permitted each request, into ledger/ in the store's directory

	RecordRefusalsInLedger   bool     `yaml:"ledger_refusals"`   // of URLs, too
	LedgerMaxFileSize        Size     `yaml:"ledger_max_size"`   // of each file of it, before it is compressed
	LedgerKeyFile            string   `yaml:"ledger_key"`        // file of the Ed25519 key that signs checkpoints; empty: there are none
	LedgerCheckpointInterval Duration `yaml:"ledger_checkpoint"` // the time between two of them
}

// AllowsSameURLs reports whether p decides as q does which URLs may be visited: scope
// reaches from the seeds.
func (p *Project) AllowsSameURLs(q Project) bool {
	return p.Agent.Product == q.Agent.Product && slices.Equal(p.Agent.FallbackTokens, q.Agent.FallbackTokens) && p.Fetch.FTP == q.Fetch.FTP &&
		equalFieldValues(reflect.ValueOf(p.Robots), reflect.ValueOf(q.Robots)) && equalFieldValues(reflect.ValueOf(p.Scope), reflect.ValueOf(q.Scope)) &&
		slices.Equal(p.Seeds, q.Seeds) && slices.Equal(p.SeedFiles, q.SeedFiles)
}

// Default returns what holds where nobody says otherwise. It lacks
// seeds, and a contact, which has no default.
func Default() Project {
	return Project{
		Agent: AgentSettings{Product: "decorum", Signature: Signing{SignatureTTL: Duration(botauth.DefaultLifetime), SignatureAgentForm: string(botauth.DictionaryForm)}},
		Scope: ScopeSettings{
			ScopeMode: "host", MaxDepth: frontier.DefaultMaxDepth, MaxURLLength: frontier.DefaultMaxURLLength,
			MaxParams: frontier.DefaultMaxParams, MaxPathDepth: frontier.DefaultMaxPathDepth,
			MaxPathRepeats: frontier.DefaultMaxPathRepeats, MaxRedirects: frontier.DefaultMaxRedirects,
			MaxURLsPerPattern: frontier.DefaultMaxURLsPerPattern, MaxURLsPerHost: frontier.DefaultMaxURLsPerHost,
			MaxHostsPerDomain: frontier.DefaultMaxHostsPerDomain, MaxHosts: frontier.DefaultMaxHosts,
		},
		Robots: RobotsSettings{Dialect: "google", ObeyExtensions: true, MaxTTL: Duration(24 * time.Hour), ObeyMetaTags: true},
		Politeness: PolitenessSettings{
			Delay: Duration(time.Second), AdaptiveFactor: 1, Concurrency: 1, MaxCrawlDelay: Duration(time.Hour),
		},
		Limits: LimitSettings{Workers: 64},
		Fetch: FetchSettings{
			Timeout: Duration(30 * time.Second), DNSTTL: Duration(time.Minute),
			MaxHeader: 64 << 10, MaxBody: 10 << 20, MaxSitemapBody: crawler.DefaultMaxSitemapBody, MaxRequestBody: 1 << 20,
			ContentTypes: []string{"text/html", "application/xhtml+xml", "text/plain", "application/pdf"},
		},
		Discover: DiscoverySettings{Links: true, Sitemaps: true, Feeds: true, Canonical: true,
			MaxLinks: crawler.DefaultMaxLinks, MaxSitemapsPerHost: crawler.DefaultMaxSitemapsPerHost},
		Revisit: RevisitSettings{
			Mode: "none", Interval: Duration(day), MinInterval: Duration(time.Hour), MaxInterval: Duration(30 * day),
		},
		Store: StoreSettings{Path: "decorum-data", Redis: defaultRedisConfig()},
		Output: OutputSettings{FileMode: allowedFileModes[0], WARCMaxFileSize: warc.DefaultMaxFileSize, WriteLedger: true,
			LedgerMaxFileSize: ledger.DefaultMaxSegmentSize, LedgerCheckpointInterval: Duration(ledger.DefaultCheckpointInterval)},
	}
}
