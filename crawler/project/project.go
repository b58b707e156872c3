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

// A Project is one crawl as its owner describes it: the project file, field by field. A
// field that the file leaves out has its value of Default.
type Project struct {
	Name      string        `yaml:"project"` // 1 to 64 of a-z, 0-9 and -; in a daemon, the name of the file
	Agent     AgentSettings `yaml:"agent"`
	Seeds     []string      `yaml:"seeds"`      // URLs to begin with; seeds or seed_files must have at least one
	SeedFiles []string      `yaml:"seed_files"` // files with one URL per line; # begins a comment
	// name of the Go callbacks; empty: the crawl records pages and follows links
	Handler    string             `yaml:"handler"`
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

// AgentSettings is the identity of the crawl: the name that robots.txt files address and the
// parts of the User-Agent header.
type AgentSettings struct {
	Product string `yaml:"product"` // the product token, which the crawl looks for in robots.txt
	// FallbackTokens are the tokens that the crawl looks for, in order, in a robots.txt without a
	// group for product. Empty: no token, unless product is that of a well-known crawler: then
	// the tokens that its operator documents, such as googlebot for Googlebot-News.
	FallbackTokens []string `yaml:"wider"`
	Version        string   `yaml:"version"` // empty: the version of decorum
	Contact        string   `yaml:"contact"` // URL or mailto: address of the operator; required

	Signature Signing `yaml:"signature"`
}

// ScopeSettings says which URLs belong to the crawl. The limits from max_params on stop sites
// that generate URLs without end; 0 sets each of these limits to its default.
type ScopeSettings struct {
	ScopeMode string `yaml:"within"` // path, origin, host, domain or any, relative to the seeds
	// origin, host, domain or any: how far from a seed its own redirects may lead; the host (or directory,
	// origin or domain, as within says) at their end then belongs to the crawl
	SeedRedirects string   `yaml:"seed_redirects"`
	Include       []string `yaml:"include"`   // RE2 patterns; a URL must match one of them. Empty: every URL matches
	Exclude       []string `yaml:"exclude"`   // RE2 patterns; a URL that matches one is excluded, even if include matches
	MaxDepth      int      `yaml:"max_depth"` // links from a seed; 0: seeds only
	// pages visited on one host, over all runs together; 0: no limit
	MaxPagesPerHost int `yaml:"max_pages_per_host"`
	// decoded bytes of bodies from one host, over all runs together; 0: no limit
	MaxBytesPerHost Size `yaml:"max_bytes_per_host"`
	MaxURLLength    int  `yaml:"max_url_length"` // bytes of a URL
	MaxParams       int  `yaml:"max_params"`     // parameters of a query
	MaxPathDepth    int  `yaml:"max_path_depth"` // segments of a path
	MaxPathRepeats  int  `yaml:"max_repeat"`     // occurrences of the same segments in a row; /a/b/a/b has two
	MaxRedirects    int  `yaml:"max_redirects"`  // redirects in a row
	// URLs of one host that differ only in numbers, dates and tokens
	MaxURLsPerPattern int `yaml:"max_urls_per_pattern"`
	// URLs of one host that are queued as links of pages with the body of another of its pages
	MaxDuplicateLinks int `yaml:"max_duplicate_links"`
	// pages of one pattern with the body of another page, after which the pattern is closed
	MaxDuplicatesPerPattern int `yaml:"max_duplicates_per_pattern"`
	MaxURLsPerHost          int `yaml:"max_urls_per_host"` // URLs of one host that are ever queued
	// hosts of one registrable domain that ever have a URL queued; seeds' hosts are never refused
	MaxHostsPerDomain int `yaml:"max_hosts_per_domain"`
	// hosts of all domains together that ever have a URL queued; seeds' hosts are never refused
	MaxHosts int        `yaml:"max_hosts"`
	Params   ParamRules `yaml:"params"`
}

// ParamRules says which query parameters the crawl removes, in addition to those that Clean-param
// lists. "*" in a name stands for any characters.
type ParamRules struct {
	Drop []string `yaml:"drop"` // parameters to remove
	Keep []string `yaml:"keep"` // exceptions from drop; without drop, all other parameters are removed
	Sort bool     `yaml:"sort"` // put the remaining parameters in the order of their names
	// leave session IDs in paths and queries; without it, the crawl removes those that are certain
	KeepSessionIDs bool `yaml:"keep_session_ids"`
}

// RobotsSettings says how the crawl reads robots.txt, robots meta elements and X-Robots-Tag.
type RobotsSettings struct {
	Dialect string `yaml:"dialect"` // google, yandex or google-oss: Google's published parser to the letter
	// obey Crawl-delay, Request-rate, Visit-time, Clean-param, Host, Content-Signal, Content-Usage
	ObeyExtensions bool `yaml:"extensions"`
	// longest time that a robots.txt is used. Within it, its Cache-Control or Expires decides; without
	// both, a day
	MaxTTL       Duration `yaml:"max_ttl"`
	ObeyMetaTags bool     `yaml:"meta"` // obey robots meta elements, X-Robots-Tag, rel=nofollow
	// Purposes is what the crawl is for: search, ai-input, ai-train, archive. The crawl does not
	// visit pages whose robots.txt or tdmrep.json reserves the use for a purpose, and does not keep
	// the content of pages that reserve it themselves. Empty: not stated.
	Purposes []string `yaml:"purpose"`
}

// PolitenessSettings says how gently the crawl visits hosts.
type PolitenessSettings struct {
	// shortest pause of a host, from the end of a response to the next request; the longest of this,
	// Crawl-delay, Retry-After and back-off applies
	Delay Duration `yaml:"delay"`
	// the pause is at least this many times the duration of the last visit; 0: off
	AdaptiveFactor float64 `yaml:"adaptive"`
	Concurrency    int     `yaml:"concurrency"` // simultaneous visits to one host
	// a host whose Crawl-delay is longer is suspended and reported
	MaxCrawlDelay Duration          `yaml:"max_crawl_delay"`
	Backoff       BackoffPoliteness `yaml:"backoff"`
	// longest pause that the crawl learns for a host from its answers 429 and 503; 0: it learns none
	MaxLearnedDelay Duration                  `yaml:"max_learned_delay"`
	PerIP           IPPoliteness              `yaml:"ip"`
	Window          Window                    `yaml:"window"`
	Hosts           map[string]HostPoliteness `yaml:"hosts"`
}

// BackoffPoliteness is the growing pause of a host that fails, and of a page between its attempts.
type BackoffPoliteness struct {
	Initial Duration `yaml:"initial"` // pause after the first failure
	Factor  float64  `yaml:"factor"`  // each further failure makes the pause so many times as long; a success undoes one
	Max     Duration `yaml:"max"`     // longest pause
}

// IPPoliteness limits the visits to one IP address, over all hosts at the address. The default is
// 2 simultaneous visits without a pause. If both fields are left out, loopback addresses have no
// limit, because the services on the machine are the operator's own.
type IPPoliteness struct {
	Concurrency *int      `yaml:"concurrency,omitempty"` // simultaneous visits
	Delay       *Duration `yaml:"delay,omitempty"`       // shortest time between two visits
}

// HostPoliteness overrides the politeness for the host with that name. A field that is left
// out has the value for all hosts. The override changes only the project's own pace: a longer
// Crawl-delay still applies.
type HostPoliteness struct {
	Delay          *Duration `yaml:"delay,omitempty"`       // as politeness.delay
	AdaptiveFactor *float64  `yaml:"adaptive,omitempty"`    // as politeness.adaptive
	Concurrency    *int      `yaml:"concurrency,omitempty"` // as politeness.concurrency
	Window         *Window   `yaml:"window,omitempty"`      // as politeness.window
	Reason         string    `yaml:"reason,omitempty"`      // why; the log repeats it
	Expires        Date      `yaml:"expires,omitempty"`     // last day, in UTC, of the override; empty: no end
}

// Window is the hours of a day in which the crawl visits hosts. Empty: all hours.
type Window struct {
	Hours string `yaml:"hours"` // ranges as 22:00-06:00, separated by commas
	Zone  string `yaml:"zone"`  // IANA name, as Europe/Prague; empty: UTC
}

// LimitSettings limits the crawl as a whole. Except for workers, 0 means no limit.
type LimitSettings struct {
	Workers           int      `yaml:"workers"`             // simultaneous visits, over all hosts
	Pages             int      `yaml:"pages"`               // pages that a run visits
	Bytes             Size     `yaml:"bytes"`               // bytes of bodies that a run receives
	Duration          Duration `yaml:"duration"`            // duration of a run
	RequestsPerSecond float64  `yaml:"requests_per_second"` // over all hosts
	BytesPerSecond    Size     `yaml:"bytes_per_second"`    // over all hosts
}

// FetchSettings says how the crawl requests pages.
type FetchSettings struct {
	Timeout          Duration `yaml:"timeout"`    // longest duration of a visit
	FirstByteTimeout Duration `yaml:"first_byte"` // longest time from dialling to the response; 0: timeout
	MaxHeader        Size     `yaml:"max_header"` // size of a response's header; a longer one fails the visit
	MaxBody          Size     `yaml:"max_body"`   // decoded size of a body; a longer body is cut
	// size of a sitemap, decoded and decompressed; the rest of a longer one is not read
	MaxSitemapBody Size `yaml:"max_sitemap_body"`
	MaxRequestBody Size `yaml:"max_request_body"` // size of a body that callbacks post; a longer one is refused
	// media types whose bodies are read; empty: all
	ContentTypes []string          `yaml:"content_types"`
	Headers      map[string]string `yaml:"headers"` // headers of every request, in addition to the crawl's own
	Cookies      bool              `yaml:"cookies"` // keep cookies, by site, for pages only
	Proxy        string            `yaml:"proxy"`   // http, https, socks5 or socks5h URL; empty: no proxy
	DNSTTL       Duration          `yaml:"dns_ttl"` // how long the addresses of a host are cached
	// file of certificates (PEM) of authorities that vouch for servers and proxies, as those of an
	// intranet do, in addition to the system's; relative to the project file
	CAFile      string             `yaml:"ca_file"`
	Connections ConnectionSettings `yaml:"connections"`
	// HOST:PORT:HOST2:PORT2: connect to HOST2:PORT2 for HOST:PORT, as curl does; an empty part
	// matches any. The crawl connects to the ports of other services, such as 22, 25 and 6379, only
	// where a rule names a port
	ConnectToRules []string `yaml:"connect_to"`
	// connect to loopback, private and other addresses that are not public, and to this machine's
	// public ones
	AllowPrivate bool `yaml:"allow_private"`
	// visit ftp URLs within the scope, too; a seed that is an ftp URL has the same effect
	FTP bool `yaml:"ftp"`
}

// ConnectionSettings says how the crawl connects to hosts, and what it keeps of a connection for the next
// visit to the host. --idle-connections limits the connections of all projects together.
type ConnectionSettings struct {
	// how long a connection stays open without a visit, at most; it is closed before if its host has no
	// further URL, or if the server is likely to close it before the next visit. 0: connections are not
	// kept
	IdleTimeout Duration `yaml:"idle_timeout"`
	// TLS sessions kept in memory, so that the next connection to a host needs no full handshake; 0: none
	TLSSessions int `yaml:"tls_sessions"`
	// offer HTTP/2 to https servers: one connection for all visits that a host gets at a time, but more
	// memory for each host; without effect with output.warc
	HTTP2 bool `yaml:"http2"`
	// offer post-quantum key exchange (X25519MLKEM768) to https servers: auto, always or never. It keeps traffic
	// that is recorded today from the quantum computers of the future, and takes more processor time and
	// traffic on both sides. auto offers it if something may be secret: with cookies, callbacks, agent.signature,
	// headers other than Accept, Accept-Language and Accept-Charset, allow_private, or ca_file. Use always if
	// URLs have secrets, or if sites show the crawl what they do not show to everyone
	PostQuantum string `yaml:"post_quantum"`
}

// DiscoverySettings says where the crawl finds further URLs.
type DiscoverySettings struct {
	// links of pages and headers, embedded documents included, except where these ask robots not to follow
	Links    bool `yaml:"links"`
	Sitemaps bool `yaml:"sitemaps"` // sitemaps that robots.txt names
	// /sitemap.xml of an origin whose robots.txt names no sitemap; without sitemaps, it has no effect
	TrySitemapXML bool `yaml:"sitemap_xml"`
	Feeds         bool `yaml:"feeds"`     // RSS, Atom and JSON Feed that pages announce, and the URLs in them
	Canonical     bool `yaml:"canonical"` // the URL that a page names as its canonical one
	Images        bool `yaml:"images"`    // images of pages; fetch.content_types says which bodies are read
	// the actions of forms with the method GET, without their queries: such a request may have effects, as a
	// search or a log-out; without links, it has no effect
	Forms bool `yaml:"forms"`
	// styles, scripts, fonts, images, media and icons of pages, and what the styles name, within the scope;
	// their bodies are read whatever fetch.content_types says
	Resources bool `yaml:"resources"`
	MaxLinks  int  `yaml:"max_links"` // URLs from one page or feed
	// MaxSitemapsPerHost is how many sitemaps one run visits for the robots.txt of a host, including
	// those that sitemap indexes list.
	MaxSitemapsPerHost int `yaml:"max_sitemaps"`
	// feeds of one host that pages announce, as of single posts; a restart counts anew; 0: no limit
	MaxFeedsPerHost int `yaml:"max_feeds"`
	// links of one host that only sort a list, such as ?C=N;O=D or ?sort=price; a restart counts anew; 0: no
	// limit
	MaxSortLinksPerHost int `yaml:"max_sort_links"`
}

// RevisitSettings says when the crawl visits pages again: never (none), always after the same time
// (interval: every), or by how often each page has changed (adaptive: from min to max).
type RevisitSettings struct {
	Mode        string   `yaml:"mode"`  // none, interval or adaptive
	Interval    Duration `yaml:"every"` // with mode: interval
	MinInterval Duration `yaml:"min"`   // with mode: adaptive
	MaxInterval Duration `yaml:"max"`   // with mode: adaptive
	// how long at most a page rests because its answer is fresh by Cache-Control or Expires (RFC 9111), even
	// if every, or min and max, ask for an earlier visit; 0: freshness does not count
	MaxFreshness Duration `yaml:"max_freshness"`
	// with mode: adaptive, the same for an answer without these headers, whose freshness is estimated
	// as a tenth of the time since Last-Modified; 0: it is not estimated
	MaxHeuristicFreshness Duration `yaml:"max_heuristic_freshness"`
	// max_freshness for sitemaps and feeds, if it is shorter, so that no page is missed that they list for a
	// short time only; 0: they are never fresh
	MaxSitemapFreshness Duration `yaml:"max_sitemap_freshness"`
}

// StoreSettings says where the crawl keeps its state.
type StoreSettings struct {
	Path  string        `yaml:"path"` // directory of the state; a daemon refuses the field
	Redis RedisSettings `yaml:"redis"`
}

// OutputSettings says what the crawl writes for each visit.
type OutputSettings struct {
	// file of the lines, whose directory is created if it is missing; "-": standard output; empty:
	// pages.jsonl in the store's directory
	JSONL            string `yaml:"jsonl"`
	JSONLMaxFileSize Size   `yaml:"jsonl_max_size"` // of each file of lines; 0: one file of any size
	WARCDir          string `yaml:"warc"`           // directory for WARC files; empty: no WARC files
	WARCMaxFileSize  Size   `yaml:"warc_max_size"`  // of each WARC file
	// mode of new files of lines, WARC, bodies and the ledger: 0600, 0640 or 0644; existing files
	// keep theirs
	FileMode    string `yaml:"mode"`
	WriteBodies bool   `yaml:"bodies"` // write decoded bodies of pages into bodies/ in the store's directory
	// list the URLs of a page's links in its line of output, as outlinks
	WriteOutlinks bool `yaml:"outlinks"`
	// record what permitted each request, in ledger/ in the store's directory
	WriteLedger bool `yaml:"ledger"`

	RecordRefusalsInLedger bool `yaml:"ledger_refusals"` // record refused URLs in the ledger, too
	LedgerMaxFileSize      Size `yaml:"ledger_max_size"` // of each ledger file, before compression
	// file of the Ed25519 key that signs checkpoints of the ledger; empty: no checkpoints
	LedgerKeyFile            string   `yaml:"ledger_key"`
	LedgerCheckpointInterval Duration `yaml:"ledger_checkpoint"` // time between two checkpoints
}

// AllowsSameURLs reports whether p and q permit the same URLs: they have the same agent tokens,
// fetch.ftp, robots settings and scope, and the same seeds, since the scope is relative to the
// seeds.
func (p *Project) AllowsSameURLs(q Project) bool {
	return p.Agent.Product == q.Agent.Product && slices.Equal(p.Agent.FallbackTokens, q.Agent.FallbackTokens) &&
		p.Fetch.FTP == q.Fetch.FTP &&
		equalFieldValues(reflect.ValueOf(p.Robots), reflect.ValueOf(q.Robots)) &&
		equalFieldValues(reflect.ValueOf(p.Scope), reflect.ValueOf(q.Scope)) &&
		slices.Equal(p.Seeds, q.Seeds) && slices.Equal(p.SeedFiles, q.SeedFiles)
}

// Default returns a project with the default of every field. It lacks seeds and a contact, which
// have no default.
func Default() Project {
	return Project{
		Agent: AgentSettings{Product: "decorum", Signature: Signing{SignatureTTL: Duration(botauth.DefaultLifetime),
			SignatureAgentForm: string(botauth.DictionaryForm)}},
		Scope: ScopeSettings{
			ScopeMode: "host", SeedRedirects: "any",
			MaxDepth: frontier.DefaultMaxDepth, MaxURLLength: frontier.DefaultMaxURLLength,
			MaxParams: frontier.DefaultMaxParams, MaxPathDepth: frontier.DefaultMaxPathDepth,
			MaxPathRepeats: frontier.DefaultMaxPathRepeats, MaxRedirects: frontier.DefaultMaxRedirects,
			MaxURLsPerPattern:       frontier.DefaultMaxURLsPerPattern,
			MaxDuplicateLinks:       crawler.DefaultMaxDuplicateLinksPerHost,
			MaxDuplicatesPerPattern: frontier.DefaultMaxDuplicatesPerPattern,
			MaxURLsPerHost:          frontier.DefaultMaxURLsPerHost,
			MaxHostsPerDomain:       frontier.DefaultMaxHostsPerDomain, MaxHosts: frontier.DefaultMaxHosts,
		},
		Robots: RobotsSettings{Dialect: "google", ObeyExtensions: true,
			MaxTTL: Duration(24 * time.Hour), ObeyMetaTags: true},
		Politeness: PolitenessSettings{
			Delay: Duration(time.Second), AdaptiveFactor: 1, Concurrency: 1, MaxCrawlDelay: Duration(time.Hour),
			Backoff:         BackoffPoliteness{Initial: Duration(5 * time.Second), Factor: 2, Max: Duration(time.Hour)},
			MaxLearnedDelay: Duration(time.Minute),
		},
		Limits: LimitSettings{Workers: 64},
		Fetch: FetchSettings{
			Timeout: Duration(30 * time.Second), DNSTTL: Duration(time.Minute),
			Connections: ConnectionSettings{IdleTimeout: Duration(90 * time.Second), TLSSessions: 50_000,
				PostQuantum: "auto"},
			MaxHeader: 64 << 10, MaxBody: 10 << 20,
			MaxSitemapBody: crawler.DefaultMaxSitemapBody, MaxRequestBody: 1 << 20,
			ContentTypes: []string{"text/html", "application/xhtml+xml", "application/xml", "text/xml", "text/plain",
				"application/pdf"},
		},
		Discover: DiscoverySettings{Links: true, Sitemaps: true, TrySitemapXML: true, Feeds: true, Canonical: true,
			MaxLinks: crawler.DefaultMaxLinks, MaxSitemapsPerHost: crawler.DefaultMaxSitemapsPerHost,
			MaxFeedsPerHost: frontier.DefaultMaxFeedsPerHost, MaxSortLinksPerHost: frontier.DefaultMaxSortLinksPerHost},
		Revisit: RevisitSettings{
			Mode: "none", Interval: Duration(day), MinInterval: Duration(time.Hour), MaxInterval: Duration(30 * day),
			MaxFreshness:          Duration(frontier.DefaultMaxFreshness),
			MaxHeuristicFreshness: Duration(frontier.DefaultMaxHeuristicFreshness),
			MaxSitemapFreshness:   Duration(frontier.DefaultMaxSitemapFreshness),
		},
		Store: StoreSettings{Path: "decorum-data", Redis: defaultRedisConfig()},
		Output: OutputSettings{FileMode: allowedFileModes[0],
			WARCMaxFileSize: warc.DefaultMaxFileSize, WriteLedger: true,
			LedgerMaxFileSize:        ledger.DefaultMaxSegmentSize,
			LedgerCheckpointInterval: Duration(ledger.DefaultCheckpointInterval)},
	}
}
