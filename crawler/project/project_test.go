package project

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/decorum-crawler/decorum/internal/doctest"
	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// minimalFile is a project file with only the required fields.
const minimalFile = `agent: {contact: "mailto:bot@example.com"}
seeds: [https://example.com/]
`

func TestReadProjectKeepsDefaults(t *testing.T) {
	got, err := Read(testfile.Write(t, "p.yaml", minimalFile+`politeness:
  delay: 2s
limits: {workers: 8}
fetch: {content_types: []}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Agent.Contact = "mailto:bot@example.com"
	want.Seeds = []string{"https://example.com/"}
	want.Politeness.Delay = Duration(2 * time.Second)
	want.Limits.Workers = 8
	want.Fetch.ContentTypes = []string{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestReadProjectOfAddresses: in a list in brackets, HOST:PORT is one plain value (YAML 1.2.2,
// 7.3.3), in every section of the file.
func TestReadProjectOfAddresses(t *testing.T) {
	p, err := Read(testfile.Write(t, "p.yaml", minimalFile+"project: books\nstore: {redis: {addresses: "+
		"[127.0.0.1:7000, redis.example:7001 , 'b.example:1']}}\nfetch: {connect_to: [a.example:80:127.0.0.1:8080]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"127.0.0.1:7000", "redis.example:7001",
		"b.example:1"}; !slices.Equal(p.Store.Redis.Addresses, want) {
		t.Errorf("addresses %q, want %q", p.Store.Redis.Addresses, want)
	}
	if want := []string{"a.example:80:127.0.0.1:8080"}; !slices.Equal(p.Fetch.ConnectToRules, want) {
		t.Errorf("connect_to %q, want %q", p.Fetch.ConnectToRules, want)
	}
}

// TestReadProjectErrors: every error names the file, line and column, shows the line, and says what
// is expected.
func TestReadProjectErrors(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"unknown field", "agent:\n  contact: mailto:a@b.example\nseed: [x]\n", `
p.yaml:3:1: unknown field seed; did you mean seeds?
  3 | seed: [x]
    | ^`},
		{"unknown field of a section", "store: {path: x, engine: bolt}\n", `
p.yaml:1:18: unknown field store.engine; expected one of path, redis
  1 | store: {path: x, engine: bolt}
    |                  ^`},
		{"wrong type: number", "limits:\n  workers: many\n", `
p.yaml:2:12: limits.workers: "many" is not a whole number
  2 |   workers: many
    |            ^`},
		{"wrong type: fraction", "limits: {pages: 1.5}\n", `
p.yaml:1:17: limits.pages: "1.5" is not a whole number
  1 | limits: {pages: 1.5}
    |                 ^`},
		{"wrong type: switch", "robots:\n  meta: yes\n", `
p.yaml:2:9: robots.meta: "yes" is neither true nor false; did you mean true?
  2 |   meta: yes
    |         ^`},
		{"wrong type: list", "seeds: https://example.com/\n", `
p.yaml:1:8: seeds: expected a list, such as [a, b], found the text "https://example.com/"
  1 | seeds: https://example.com/
    |        ^`},
		{"wrong type: a field in a list", "seeds: [https://example.com/, a: b]\n", `
p.yaml:1:31: seeds[1]: expected a single value, found the field "a"
  1 | seeds: [https://example.com/, a: b]
    |                               ^`},
		{"wrong type: a quoted field in a list", "store: {redis: {addresses: ['a':80]}}\nproject: a\n", `
p.yaml:1:29: store.redis.addresses[0]: expected a single value, found the field "a"
  1 | store: {redis: {addresses: ['a':80]}}
    |                             ^`},
		{"wrong type: section", "store: decorum-data\n", `
p.yaml:1:8: store: expected fields (path, redis), found "decorum-data"
  1 | store: decorum-data
    |        ^`},
		{"wrong type: not a section", "project:\n  name: books\n", `
p.yaml:2:3: project: expected a single value, found the field "name"
  2 |   name: books
    |   ^`},
		{"wrong type: list for a section", "agent:\n- product: x\n", `
p.yaml:2:1: agent: expected fields (product, wider, version, contact, signature), found a list
  2 | - product: x
    | ^`},
		{"wrong type: the whole file", "- agent\n", `
p.yaml:1:1: a project file: expected fields (project, agent, seeds, seed_files, handler, scope, robots, politeness, limits, fetch, discover, revisit, store, output), found a list
  1 | - agent
    | ^`},
		{"no value", "agent:\n  contact:\n", `
p.yaml:2:3: agent.contact has no value: give it one, or delete the line
  2 |   contact:
    |   ^`},
		{"duration", "politeness: {delay: 5 seconds}\n", `
p.yaml:1:21: politeness.delay: "5 seconds" is not a duration; write it as 500ms, 1s, 24h or 30d
  1 | politeness: {delay: 5 seconds}
    |                     ^`},
		{"size", "fetch:\n  max_body: 10 megs\n", `
p.yaml:2:13: fetch.max_body: "10 megs" is not a size; write it as 512KiB, 10MiB or 1GiB
  2 |   max_body: 10 megs
    |             ^`},
		{"a header of the crawl's own", minimalFile + "fetch:\n  headers: {Accept-Language: en, cookie: a=b}\n", `
p.yaml:4:42: fetch.headers.cookie: it may not be set: cookies are kept by host: see fetch.cookies
  4 |   headers: {Accept-Language: en, cookie: a=b}
    |                                          ^`},
		{"a header twice", minimalFile + "fetch: {headers: {X-A: a, x-a: b}}\n", `
p.yaml:3:32: fetch.headers.x-a: the header is set twice, in upper and lower case
  3 | fetch: {headers: {X-A: a, x-a: b}}
    |                                ^`},
		{"a bad proxy; its password is not shown", minimalFile + "fetch: {proxy: 'ftp://me:geheim@proxy.example'}\n", `
p.yaml:3:16: fetch.proxy: the scheme of a proxy is http, https, socks5 or socks5h
  3 | fetch: {proxy: 'ftp://*********@proxy.example'}
    |                ^`},
		{"a proxy, which ignores connect_to",
			minimalFile + "fetch: {proxy: 'socks5://p.example', connect_to: ['::a.test:80']}\n", `
p.yaml:3:16: fetch.proxy: the proxy makes the connections and ignores fetch.connect_to; leave one of the two out
  3 | fetch: {proxy: 'socks5://p.example', connect_to: ['::a.test:80']}
    |                ^`},
		{"a part longer than the whole", minimalFile + "fetch: {timeout: 10s, first_byte: 20s}\n", `
p.yaml:3:35: fetch.first_byte: 20s is longer than fetch.timeout, 10s
  3 | fetch: {timeout: 10s, first_byte: 20s}
    |                                   ^`},
		{"a header too short", minimalFile + "fetch: {max_header: 10}\n", `
p.yaml:3:21: fetch.max_header: 10 is out of range: expected 1024 to 16777216
  3 | fetch: {max_header: 10}
    |                     ^`},
		{"syntax", "agent:\n  contact: a: b\n", `
p.yaml:2:12: mapping value is not allowed in this context
  2 |   contact: a: b
    |            ^`},
		{"a field twice", "project: a\nproject: b\n", `
p.yaml:2:1: mapping key "project" already defined at [1:1]
  2 | project: b
    | ^`},
		{"a second document", "project: a\n---\nproject: b\n", `
p.yaml:2:1: a project file holds one document; here a second begins
  2 | ---
    | ^`},
		{"anchor", "project: &p a\n", `
p.yaml:1:10: anchors, aliases and tags have no place in a project file; write the value itself
  1 | project: &p a
    |          ^`},
		{"depth", "seeds: " + strings.Repeat("[", 40) + "\n", `
p.yaml:1:39: lists and mappings are nested more than 32 deep
  1 | seeds: ` + strings.Repeat("[", 40) + `
    |                                       ^`},
		{"project's name", minimalFile + "project: My Books\n", `
p.yaml:3:10: project: "My Books" is not a project's name: expected 1 to 64 of a-z, 0-9 and -
  3 | project: My Books
    |          ^`},
		{"AGENT-14", "agent:\n  product: decorum bot\n", `
p.yaml:2:12: agent.product: "decorum bot" is not a product token: expected letters, _ and - only, as in examplebot
  2 |   product: decorum bot
    |            ^`},
		{"AGENT-14, a wider token", "agent: {wider: [family, bot2]}\n", `
p.yaml:1:25: agent.wider[1]: "bot2" is not a product token: expected letters, _ and - only, as in examplebot
  1 | agent: {wider: [family, bot2]}
    |                         ^`},
		{"version", "agent: {version: 1/2}\n", `
p.yaml:1:18: agent.version: "1/2" is not a version: expected no blanks and no slashes, as in 1.0
  1 | agent: {version: 1/2}
    |                  ^`},
		{"no contact", "seeds: [https://example.com/]\n", `
p.yaml:1:1: agent.contact: contact is required: a URL or mailto: address at which a site owner can reach you; set agent.contact or --contact`},
		{"no contact, but an agent", "# a comment\n\nseeds: [https://example.com/]\nagent: {product: examplebot}\n", `
p.yaml:4:1: agent.contact: contact is required: a URL or mailto: address at which a site owner can reach you; set agent.contact or --contact
  4 | agent: {product: examplebot}
    | ^`},
		{"contact", "agent:\n  contact: me\n", `
p.yaml:2:12: agent.contact: "me" is not a contact: expected https://example.com/bot or mailto:you@example.com, in ASCII
  2 |   contact: me
    |            ^`},
		{"nothing to crawl", "agent: {contact: mailto:a@b.example}\n", `
p.yaml:1:1: seeds: nothing to crawl: set seeds or seed_files; decorum crawl also takes URLs as arguments`},
		{"seed", "agent: {contact: mailto:a@b.example}\nseeds:\n  - https://example.com/\n  - example.com\n", `
p.yaml:4:5: seeds[1]: "example.com" is not a URL the crawl can visit: expected https://host/path
  4 |   - example.com
    |     ^`},
		{"seed redirects", minimalFile + "scope: {seed_redirects: none}\n", `
p.yaml:3:25: scope.seed_redirects: "none" is not one of origin, host, domain, any
  3 | scope: {seed_redirects: none}
    |                         ^`},
		{"scope", minimalFile + "scope: {within: subdomain}\n", `
p.yaml:3:17: scope.within: "subdomain" is not one of path, origin, host, domain, any
  3 | scope: {within: subdomain}
    |                 ^`},
		{"pattern", minimalFile + "scope:\n  exclude: ['\\.pdf$', '(']\n", `
p.yaml:4:23: scope.exclude[1]: "(" is not a regular expression (RE2): error parsing regexp: missing closing ): ` + "`(`" + `
  4 |   exclude: ['\.pdf$', '(']
    |                       ^`},
		{"dialect", minimalFile + "robots: {dialect: bing}\n", `
p.yaml:3:19: robots.dialect: "bing" is not one of google, yandex, google-oss
  3 | robots: {dialect: bing}
    |                   ^`},
		{"not a number", minimalFile + "politeness: {adaptive: .nan}\n", `
p.yaml:3:24: politeness.adaptive: ".nan" is not a number
  3 | politeness: {adaptive: .nan}
    |                        ^`},
		{"NaN in Go's way", minimalFile + "politeness: {adaptive: nan}\n", `
p.yaml:3:24: politeness.adaptive: NaN is out of range: expected 0 to 1000
  3 | politeness: {adaptive: nan}
    |                        ^`},
		{"range", minimalFile + "politeness:\n\n  concurrency: 0\n", `
p.yaml:5:16: politeness.concurrency: 0 is out of range: expected 1 to 1000
  5 |   concurrency: 0
    |                ^`},
		{"a rate below one request a day", minimalFile + "limits: {requests_per_second: 1e-300}\n", `
p.yaml:3:31: limits.requests_per_second: 1e-300 is less than one request a day: expected 0, for no limit, or more
  3 | limits: {requests_per_second: 1e-300}
    |                               ^`},
		{"control characters", minimalFile + "politeness: {hosts: {\"a\\e\": {}}} # \x1b[2J\n", `
p.yaml:3:22: politeness.hosts.a�: "a\x1b" is not the name of a host: expected no scheme, port, path or wildcard, as in intranet.example
  3 | politeness: {hosts: {"a\e": {}}} # �[2J
    |                      ^`},
		{"a long line", minimalFile + "handler: " + strings.Repeat("x", 1000) + "\nscope: {exclude: [" +
			strings.Repeat("abc, ", 100) + "'(', " + strings.Repeat("abc, ", 100) + "]}\n", `
p.yaml:4:519: scope.exclude[100]: "(" is not a regular expression (RE2): error parsing regexp: missing closing ): ` + "`(`" + `
  4 | …` + strings.Repeat("abc, ", 16)[1:] + "'(', " + strings.Repeat("abc, ", 15) + `…
    |                                                                                 ^`},
		{"links of a page", minimalFile + "discover: {max_links: 0}\n", `
p.yaml:3:23: discover.max_links: 0 is out of range: expected 1 to 1000000
  3 | discover: {max_links: 0}
    |                       ^`},
		{"no bytes of a sitemap", minimalFile + "fetch: {max_sitemap_body: 0}\n", `
p.yaml:3:27: fetch.max_sitemap_body: 0 is out of range: expected 1 to 1099511627776
  3 | fetch: {max_sitemap_body: 0}
    |                           ^`},
		{"TLS sessions", minimalFile + "fetch: {connections: {tls_sessions: -1}}\n", `
p.yaml:3:37: fetch.connections.tls_sessions: -1 is out of range: expected 0 to 1000000
  3 | fetch: {connections: {tls_sessions: -1}}
    |                                     ^`},
		{"sitemaps of a host", minimalFile + "discover: {max_sitemaps: 0}\n", `
p.yaml:3:26: discover.max_sitemaps: 0 is out of range: expected 1 to 1000000
  3 | discover: {max_sitemaps: 0}
    |                          ^`},
		{"forms beside callbacks", minimalFile + "handler: books\ndiscover: {forms: true}\n", `
p.yaml:4:19: discover.forms: the callbacks of handler "books" choose which URLs to follow; leave one of the two out
  4 | discover: {forms: true}
    |                   ^`},
		{"resources beside callbacks", minimalFile + "handler: books\ndiscover: {resources: true}\n", `
p.yaml:4:23: discover.resources: the callbacks of handler "books" choose which URLs to follow; leave one of the two out
  4 | discover: {resources: true}
    |                       ^`},
		{"images beside callbacks", minimalFile + "handler: books\ndiscover: {images: true}\n", `
p.yaml:4:20: discover.images: the callbacks of handler "books" choose which URLs to follow; leave one of the two out
  4 | discover: {images: true}
    |                    ^`},
		{"zero", minimalFile + "fetch: {timeout: 0s}\n", `
p.yaml:3:18: fetch.timeout: expected more than 0
  3 | fetch: {timeout: 0s}
    |                  ^`},
		{"revisit interval", minimalFile + "revisit: {mode: interval, every: 0s}\n", `
p.yaml:3:34: revisit.every: 0s is out of range: expected 1s to 3650d
  3 | revisit: {mode: interval, every: 0s}
    |                                  ^`},
		{"revisit min above max", minimalFile + "revisit: {mode: adaptive, min: 31d}\n", `
p.yaml:3:32: revisit.min: 744h is longer than revisit.max, 720h
  3 | revisit: {mode: adaptive, min: 31d}
    |                                ^`},
		{"revisit freshness", minimalFile + "revisit: {max_freshness: 4000d}\n", `
p.yaml:3:26: revisit.max_freshness: 96000h is out of range: expected 0s to 3650d
  3 | revisit: {max_freshness: 4000d}
    |                          ^`},
		{"revisit sitemap freshness", minimalFile + "revisit: {max_sitemap_freshness: 4000d}\n", `
p.yaml:3:34: revisit.max_sitemap_freshness: 96000h is out of range: expected 0s to 3650d
  3 | revisit: {max_sitemap_freshness: 4000d}
    |                                  ^`},
		{"post-quantum key exchange", minimalFile + "fetch: {connections: {post_quantum: true}}\n", `
p.yaml:3:37: fetch.connections.post_quantum: "true" is not one of auto, always, never
  3 | fetch: {connections: {post_quantum: true}}
    |                                     ^`},
		{"revisit mode", minimalFile + "revisit: {mode: sometimes}\n", `
p.yaml:3:17: revisit.mode: "sometimes" is not one of none, interval, adaptive
  3 | revisit: {mode: sometimes}
    |                 ^`},
		{"media type", minimalFile + "fetch: {content_types: [html]}\n", `
p.yaml:3:25: fetch.content_types[0]: "html" is not a media type: expected type/subtype in lower case, as in text/html
  3 | fetch: {content_types: [html]}
    |                         ^`},
		{"connect_to", minimalFile + "fetch: {connect_to: ['localhost:80']}\n", `
p.yaml:3:22: fetch.connect_to[0]: "localhost:80" is not HOST:PORT:HOST2:PORT2 (IPv6 addresses in brackets)
  3 | fetch: {connect_to: ['localhost:80']}
    |                      ^`},
		{"hours", minimalFile + "politeness: {window: {hours: 22-6}}\n", `
p.yaml:3:30: politeness.window.hours: "22-6" is not a range of hours; write it as 22:00-06:00
  3 | politeness: {window: {hours: 22-6}}
    |                              ^`},
		{"hours without length", minimalFile + "politeness: {window: {hours: \"08:00-09:00, 10:00-10:00\"}}\n", `
p.yaml:3:30: politeness.window.hours: "10:00-10:00" is not a range of hours; write it as 22:00-06:00
  3 | politeness: {window: {hours: "08:00-09:00, 10:00-10:00"}}
    |                              ^`},
		{"a zone without hours", minimalFile + "politeness: {window: {zone: UTC}}\n", `
p.yaml:3:14: politeness.window: expected hours, as in 22:00-06:00
  3 | politeness: {window: {zone: UTC}}
    |              ^`},
		{"zone", minimalFile + "politeness:\n  hosts:\n    a.example: {window: {hours: \"22:00-06:00\", zone: " +
			"Prague}}\n", `
p.yaml:5:54: politeness.hosts.a.example.window.zone: "Prague" is not a time zone: expected its IANA name, as in Europe/Prague
  5 |     a.example: {window: {hours: "22:00-06:00", zone: Prague}}
    |                                                      ^`},
		{"address", minimalFile + "politeness: {ip: {concurrency: 0}}\n", `
p.yaml:3:32: politeness.ip.concurrency: 0 is out of range: expected 1 to 1000
  3 | politeness: {ip: {concurrency: 0}}
    |                                ^`},
		{"back-off", minimalFile + "politeness: {backoff: {initial: 2h}}\n", `
p.yaml:3:33: politeness.backoff.initial: 2h is longer than politeness.backoff.max, 1h
  3 | politeness: {backoff: {initial: 2h}}
    |                                 ^`},
		{"a factor of back-off", minimalFile + "politeness: {backoff: {factor: 0.5}}\n", `
p.yaml:3:32: politeness.backoff.factor: 0.5 is out of range: expected 1 to 100
  3 | politeness: {backoff: {factor: 0.5}}
    |                                ^`},
		{"a host's name", minimalFile + "politeness: {hosts: {'https://a.example/': {delay: 1s}}}\n", `
p.yaml:3:22: politeness.hosts.https://a.example/: "https://a.example/" is not the name of a host: expected no scheme, port, path or wildcard, as in intranet.example
  3 | politeness: {hosts: {'https://a.example/': {delay: 1s}}}
    |                      ^`},
		{"a wildcard", minimalFile + "politeness: {hosts: {'*.a.example': {delay: 1s}}}\n", `
p.yaml:3:22: politeness.hosts.*.a.example: "*.a.example" is not the name of a host: expected no scheme, port, path or wildcard, as in intranet.example
  3 | politeness: {hosts: {'*.a.example': {delay: 1s}}}
    |                      ^`},
		{"a host twice", minimalFile + "politeness:\n  hosts:\n    A.example: {}\n    a.example: {}\n", `
p.yaml:6:5: politeness.hosts.a.example: "a.example" is the same host as "A.example"
  6 |     a.example: {}
    |     ^`},
		{"a host's field", minimalFile + "politeness:\n  hosts:\n    a.example: {dealy: 1s}\n", `
p.yaml:5:17: unknown field politeness.hosts.a.example.dealy; did you mean politeness.hosts.a.example.delay?
  5 |     a.example: {dealy: 1s}
    |                 ^`},
		{"a host's concurrency", minimalFile + "politeness:\n  hosts:\n    a.example: {concurrency: 2000}\n", `
p.yaml:5:30: politeness.hosts.a.example.concurrency: 2000 is out of range: expected 1 to 1000
  5 |     a.example: {concurrency: 2000}
    |                              ^`},
		{"a host's adaptive delay", minimalFile + "politeness:\n  hosts:\n    a.example: {adaptive: -1}\n", `
p.yaml:5:27: politeness.hosts.a.example.adaptive: -1 is out of range: expected 0 to 1000
  5 |     a.example: {adaptive: -1}
    |                           ^`},
		{"a day", minimalFile + "politeness:\n  hosts:\n    a.example: {expires: 31.1.2027}\n", `
p.yaml:5:26: politeness.hosts.a.example.expires: "31.1.2027" is not a day; write it as 2027-01-31
  5 |     a.example: {expires: 31.1.2027}
    |                          ^`},
		{"a key without a ledger", minimalFile + "output: {ledger: false, ledger_key: k.pem}\n", `
p.yaml:3:37: output.ledger_key: has no effect without a ledger; leave it out, or output.ledger: false
  3 | output: {ledger: false, ledger_key: k.pem}
    |                                     ^`},
		{"files of lines too small", minimalFile + "output: {jsonl_max_size: 1B}\n", `
p.yaml:3:26: output.jsonl_max_size: 1 is out of range: expected 0, for one file of any size, or 1024 to 1099511627776
  3 | output: {jsonl_max_size: 1B}
    |                          ^`},
		{"standard output with a size limit", minimalFile + "output: {jsonl: '-', jsonl_max_size: 1MiB}\n", `
p.yaml:3:38: output.jsonl_max_size: cannot be used with output.jsonl: "-", since standard output is not a file; leave one of the two out
  3 | output: {jsonl: '-', jsonl_max_size: 1MiB}
    |                                      ^`},
		{"WARC files too small", minimalFile + "output: {warc: a, warc_max_size: 1B}\n", `
p.yaml:3:34: output.warc_max_size: 1 is out of range: expected 1024 to 1099511627776
  3 | output: {warc: a, warc_max_size: 1B}
    |                                  ^`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := testfile.Write(t, "p.yaml", tt.text)
			_, err := Read(file)
			if !strings.Contains(tt.want, "contact is required") && !strings.Contains(tt.want, "nothing to crawl") {
				err = withoutMissingFields(err)
			}
			got := ""
			if err != nil {
				got = strings.ReplaceAll(DetailedErrorText(err), filepath.Dir(file)+"/", "")
			}
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if e := (*Error)(nil); err != nil && !errors.As(err, &e) && !errors.As(err, new(*usage.Error)) {
				t.Errorf("%T is neither an *Error nor a *usage.Error", err)
			}
		})
	}
}

// withoutMissingFields returns err without the errors of the fields that a project must have, if others
// are left.
func withoutMissingFields(err error) error {
	list := (*ErrorList)(nil)
	if !errors.As(err, &list) {
		return err
	}
	list.errs = slices.DeleteFunc(list.errs, func(err error) bool {
		return strings.Contains(err.Error(), "contact is required") || strings.Contains(err.Error(), "nothing to crawl")
	})
	if len(list.errs) == 1 {
		return list.errs[0]
	}
	return list
}

func TestReadProjectRefusesAHugeFile(t *testing.T) {
	file := testfile.Write(t, "p.yaml", "#"+strings.Repeat("x", MaxFileSize))
	if _, err := Read(file); err == nil || !strings.Contains(err.Error(), "seed_files") {
		t.Errorf("error %v, want one that names seed_files", err)
	}
}

// TestSampleShowsEveryField: the sample shows every field of a project file. Fields that only some
// projects have, such as store.redis, may be in a comment.
func TestSampleShowsEveryField(t *testing.T) {
	const name = "testdata/project.yaml"
	d, err := ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var comments strings.Builder
	for line := range strings.Lines(string(text)) {
		if _, comment, ok := strings.Cut(line, "#"); ok {
			comments.WriteString(comment)
		}
	}
	for _, path := range leafFieldPaths("", reflect.TypeFor[Project]()) {
		_, isRead := d.positions[path]
		inComment := regexp.MustCompile(`\b` + path[strings.LastIndexByte(path, '.')+1:] +
			`:`).MatchString(comments.String())
		if !isRead && !inComment {
			t.Errorf("%s does not show %s", name, path)
		}
	}
}

// leafFieldPaths returns the paths of the fields of struct typ that are not structs themselves. A
// map of structs, such as politeness.hosts, counts as one field.
func leafFieldPaths(under string, typ reflect.Type) (paths []string) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		path := strings.TrimPrefix(under+"."+yamlFieldName(f), ".")
		fieldType := f.Type
		if fieldType.Kind() == reflect.Pointer {
			fieldType = fieldType.Elem()
		}
		if doctest.IsFieldStruct(fieldType) {
			paths = append(paths, leafFieldPaths(path, fieldType)...)
		} else {
			paths = append(paths, path)
		}
	}
	return paths
}

// TestProjectRoundTrip: the copy of a project that --resume reads equals the project.
func TestProjectRoundTrip(t *testing.T) {
	d, err := ReadFile("testdata/project.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(d.Project)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ReadFile(testfile.Write(t, "p.yaml", string(text)))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := cmp.Diff(d.Project, again.Project, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func FuzzReadProject(f *testing.F) {
	sample, err := os.ReadFile("testdata/project.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{string(sample), minimalFile, "", "{", "- - -", "a: b", "seeds: [", "? a",
		"---\n---", "a: |\n b", "\t"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := NewFile()
		d.file, d.Text = "p.yaml", text
		if err := d.decode(); err != nil {
			if !strings.HasPrefix(err.Error(), "p.yaml:") {
				t.Errorf("error without its position: %v", err)
			}
			return
		}
		_ = d.Check() // must not panic
	})
}
