package frontier

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/recent"
	"github.com/decorum-crawler/decorum/storage"
)

// Bounds of what is kept of duplicates. A pattern beyond them stays open.
const (
	maxCountedDuplicatePatterns = 100_000 // patterns of all hosts that are counted at a time, at least
	maxClosedPatterns           = 10_000  // of all hosts together
	maxClosedPatternLength      = 512     // bytes of a pattern
	maxPatternDirectories       = 8       // directories of a path that are counted as patterns
)

// closedPatternNotePrefix begins the keys of the crawl's notes of closed patterns. Each pattern has its
// own note, so that processes that share a store overwrite nothing of each other.
const closedPatternNotePrefix = "duplicate pattern "

// A ClosedPattern is a pattern of URLs of a host that the crawl visits no longer, because nearly all of
// its pages had the body of another page of the host.
type ClosedPattern struct {
	Host string `json:"host"` // with :port unless it is the default port of the scheme
	// Pattern is a directory, such as /mirror/*; a path with any values of its parameters, such as
	// /list?sort=*; or what URLPattern returns, such as /day/#.
	Pattern    string `json:"pattern"`
	Duplicates int    `json:"duplicates"` // pages with the body of another page
	Pages      int    `json:"pages"`      // all pages of the pattern that were counted
}

// ClosedPatterns are the closed patterns of a crawl. The zero value is empty.
type ClosedPatterns struct {
	byHost map[string]map[string]ClosedPattern // by ClosedPattern.Host and pattern
	count  int
}

// LoadClosedPatterns returns the patterns that the crawl with this store has closed in all runs. It
// returns none if the store cannot list notes.
func LoadClosedPatterns(ctx context.Context, store storage.Notes) (patterns ClosedPatterns, err error) {
	notes, err := readCrawlNotes(ctx, store)
	return notes.closedPatterns, err
}

// add adds p, or replaces the pattern of that host and text.
func (c *ClosedPatterns) add(p ClosedPattern) {
	if c.byHost == nil {
		c.byHost = map[string]map[string]ClosedPattern{}
	}
	if c.byHost[p.Host] == nil {
		c.byHost[p.Host] = map[string]ClosedPattern{}
	}
	if !c.has(p.Host, p.Pattern) {
		c.count++
	}
	c.byHost[p.Host][p.Pattern] = p
}

func (c *ClosedPatterns) has(host, pattern string) bool {
	_, isClosed := c.byHost[host][pattern]
	return isClosed
}

// List returns the patterns of a host on all its ports, or of all hosts if host is empty, in the order of
// hosts and patterns.
func (c *ClosedPatterns) List(host string) (list []ClosedPattern) {
	for h, patterns := range c.byHost {
		if host == "" || h == host || strings.HasPrefix(h, host+":") {
			list = slices.AppendSeq(list, maps.Values(patterns))
		}
	}
	slices.SortFunc(list, func(a, b ClosedPattern) int {
		return cmp.Or(strings.Compare(a.Host, b.Host), strings.Compare(a.Pattern, b.Pattern))
	})
	return list
}

// Check returns an error of Kind decorum.OutOfScope if a pattern matches the URL of e. Only links and
// redirects are refused: a person or a sitemap names the other URLs. Pages that were visited before are
// revisited, because the pages that others repeat are among them.
func (c *ClosedPatterns) Check(e storage.Entry) error {
	patterns := c.byHost[hostAndPort(e.URL)]
	if len(patterns) == 0 || e.Source != storage.SourceLink && e.Source != storage.SourceRedirect ||
		e.VisitHistorySummary != nil {
		return nil
	}
	for _, pattern := range duplicatePatterns(e.URL.PathAndQuery()) {
		if p, isClosed := patterns[pattern]; isClosed {
			return outOfScopeError(e.URL, newRefusal(DuplicatePattern,
				"%d of %d pages as %s have the body of another page of the host", p.Duplicates, p.Pages, p.Pattern))
		}
	}
	return nil
}

// A duplicatePatternCloser counts, for each pattern of URLs, the pages that have the body of another
// page of their host, and closes the patterns that lead to hardly anything else.
type duplicatePatternCloser struct {
	limit     int         // ScopeConfig.MaxDuplicatesPerPattern; 0: no pattern is closed
	hasClosed atomic.Bool // closed has patterns

	mu     sync.RWMutex                   // guards counts and closed
	counts recent.Map[uint64, bodyCounts] // by a hash of host and pattern
	closed ClosedPatterns
}

// bodyCounts counts the pages of a pattern.
type bodyCounts struct{ duplicates, others int }

// closeAll closes patterns that earlier runs or other processes have closed.
func (d *duplicatePatternCloser) closeAll(patterns ClosedPatterns) {
	if d.limit == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range patterns.List("") {
		if d.closed.count < maxClosedPatterns || d.closed.has(p.Host, p.Pattern) {
			d.closeLocked(p)
		}
	}
}

// closeLocked closes p. The caller holds d.mu.
func (d *duplicatePatternCloser) closeLocked(p ClosedPattern) {
	d.closed.add(p)
	d.hasClosed.Store(true)
}

// check returns why e does not belong to the crawl if a closed pattern matches its URL, else nil.
func (d *duplicatePatternCloser) check(e storage.Entry) error {
	if !d.hasClosed.Load() {
		return nil
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.closed.Check(e)
}

// recordPage counts the page at u, and returns the patterns that it closes. A pattern is closed when
// limit of its pages are duplicates, and at most a tenth as many are not: the pages that list the
// duplicates often differ, at least in their title.
func (d *duplicatePatternCloser) recordPage(u decorum.URL, isDuplicate bool) (closed []ClosedPattern) {
	if d.limit == 0 {
		return nil
	}
	host, patterns := hostAndPort(u), duplicatePatterns(u.PathAndQuery())
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.ContainsFunc(patterns, func(pattern string) bool { return d.closed.has(host, pattern) }) {
		return nil
	}
	// Begin with the narrowest pattern. When it is closed, the wider ones count half of their duplicates
	// only, so that the next directory of a tree stays open when one is a copy.
	for _, pattern := range slices.Backward(patterns) {
		key := maphash.String(patternHashSeed, host+pattern)
		n, _ := d.counts.Get(key, maxCountedDuplicatePatterns)
		if isDuplicate {
			n.duplicates++
		} else {
			n.others++
		}
		if len(closed) > 0 {
			n.duplicates /= 2
		}
		if n.duplicates+n.others > 4*d.limit { // what was found lately counts more
			n.duplicates, n.others = n.duplicates/2, n.others/2
		}
		if n.duplicates < d.limit || n.others*10 > n.duplicates || d.closed.count >= maxClosedPatterns {
			d.counts.Put(key, n, maxCountedDuplicatePatterns)
			continue
		}
		d.counts.Delete(key)
		p := ClosedPattern{Host: host, Pattern: pattern, Duplicates: n.duplicates, Pages: n.duplicates + n.others}
		d.closeLocked(p)
		closed = append(closed, p)
	}
	return closed
}

// hostAndPort returns ClosedPattern.Host for the patterns of u: http and https on their default ports are
// one site, and other ports have sites of their own.
func hostAndPort(u decorum.URL) string {
	host := u.Origin().Host()
	_, port, _ := strings.Cut(strings.TrimPrefix(u.Origin().HostPort(), host), ":")
	if port == "" {
		return host
	}
	return host + ":" + port
}

// duplicatePatterns returns the patterns that a URL with this path and query belongs to, the widest
// first: its directories except the root, with "#" for numbers and random tokens; its path with any
// values of its parameters; and its URLPattern if that differs from the URL.
func duplicatePatterns(pathAndQuery string) []string {
	path, query, hasQuery := strings.Cut(pathAndQuery, "?")
	masked, _ := URLPattern(path)
	var patterns []string
	for i := 1; i < len(masked) && len(patterns) < maxPatternDirectories; i++ {
		if masked[i] == '/' {
			patterns = append(patterns, masked[:i+1]+"*")
		}
	}
	if hasQuery {
		patterns = append(patterns, path+"?"+anyValues(query))
	}
	if pattern, isMasked := URLPattern(pathAndQuery); isMasked {
		patterns = append(patterns, pattern)
	}
	return slices.DeleteFunc(patterns, func(p string) bool { return len(p) > maxClosedPatternLength })
}

// anyValues returns the query with "*" for the values of its parameters.
func anyValues(query string) string {
	params := strings.Split(query, "&")
	for i, param := range params {
		if name, _, hasValue := strings.Cut(param, "="); hasValue {
			params[i] = name + "=*"
		}
	}
	return strings.Join(params, "&")
}

// RecordPage counts a page whose body arrived, for ScopeConfig.MaxDuplicatesPerPattern. isDuplicate
// says that another URL of the host gave the same body before. Call it once for each page.
func (f *Frontier) RecordPage(ctx context.Context, u decorum.URL, isDuplicate bool) error {
	for _, p := range f.duplicates.recordPage(u, isDuplicate) {
		note, err := json.Marshal(p)
		if err != nil {
			return fmt.Errorf("encode the note of a closed pattern: %w", err)
		}
		if err := f.store.SetNote(ctx, decorum.Origin{}, closedPatternNotePrefix+p.Host+p.Pattern, note); err != nil {
			return err
		}
	}
	return nil
}

// DiscoverLinksOfDuplicate offers the links of a page that has the body of another page of its host.
// They are queued behind all other URLs of their origins. It refuses those after the first maxNew that
// are new, and returns how many were. It overwrites entries, which the caller must not use afterwards.
func (f *Frontier) DiscoverLinksOfDuplicate(ctx context.Context, entries []storage.Entry,
	maxNew int) (added int, err error) {
	// Only the store knows which links are new, so offer as many at a time as may be.
	for len(entries) > 0 && added < maxNew {
		offered := min(maxNew-added, len(entries))
		n, err := f.discover(ctx, nil, entries[:offered:offered], true)
		if added += n; err != nil {
			return added, err
		}
		entries = entries[offered:]
	}
	for _, e := range entries {
		f.refusals.countAndReport(e, outOfScopeError(e.URL, newRefusal(DuplicateLinks,
			"pages with the body of another page of the host have given too many links")))
	}
	return added, nil
}
