package crawler

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// remembered is how many origins or hosts the hallway keeps something of in
// memory; what it forgets it reads again.
const remembered = 10_000

// heededNote is the note, in the frontier's store, that says which robots.txt
// of an origin has been acted upon.
const heededNote = "heeded"

// A heeded robots.txt is one whose sitemaps are queued, and by which parked
// URLs have been judged again.
type heeded struct {
	mu    sync.Mutex
	files map[decorum.Origin]string
}

func (h *heeded) is(o decorum.Origin, file string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.files[o] == file
}

func (h *heeded) set(o decorum.Origin, file string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.files == nil || len(h.files) >= remembered {
		h.files = map[decorum.Origin]string{}
	}
	h.files[o] = file
}

// heed acts on an origin's robots.txt when a URL is judged by it for the first
// time: its sitemaps are queued, and parked URLs that it allows are revived.
// That this was done is noted in the same store, after it: a crash in between
// repeats it. So it does not matter which crawl learnt the file, or when.
func (c *Crawler) heed(ctx context.Context, o decorum.Origin, file robots.Snapshot) error {
	id := file.SHA256
	if id == "" {
		id = file.Outcome.String()
	}
	id += ", " + c.Gate.Dialect().String() // another may read other sitemaps in it
	if c.Settings.NoSitemaps {
		id += ", no sitemaps" // a later run may want them
	}
	if c.heeded.is(o, id) {
		return nil
	}
	note, err := c.Frontier.ReadNote(ctx, o, heededNote)
	if err != nil {
		return err
	}
	if string(note) != id {
		if err := c.act(ctx, o); err != nil {
			return err
		}
		if err := c.Frontier.SetNote(ctx, o, heededNote, []byte(id)); err != nil {
			return err
		}
	}
	c.heeded.set(o, id)
	return nil
}

// heedRefusal heeds a robots.txt that has just refused a URL, which is now parked. If
// the crawl goes on for long, the origin is watched from then on.
func (c *Crawler) heedRefusal(ctx context.Context, o decorum.Origin, file robots.Snapshot) error {
	if err := c.heed(ctx, o, file); err != nil || !c.Settings.Revisit.Wanted() {
		return err
	}
	_, err := c.Frontier.Discover(ctx, watch(o))
	return err
}

// act queues the sitemaps that the origin's robots.txt names, whatever their
// host (SMAP-04): each is checked against the rules of its own origin
// (SMAP-07). And it revives the parked URLs that the rules allow.
func (c *Crawler) act(ctx context.Context, o decorum.Origin) error {
	if !c.Settings.NoSitemaps {
		sitemaps, err := c.Gate.Sitemaps(ctx, o)
		if err != nil {
			return err
		}
		entries := make([]storage.Entry, len(sitemaps))
		for i, u := range sitemaps {
			entries[i] = storage.Entry{URL: u, Source: storage.Robots, Class: storage.Early,
				Referrer: o.RobotsURL().String(), Context: warrant(o, u)}
		}
		if err := c.queueSitemaps(ctx, o, entries); err != nil {
			return err
		}
	}
	return c.revive(ctx, o)
}

// revive queues the parked URLs of an origin again that its robots.txt and its
// tdmrep.json allow, as they are known now.
func (c *Crawler) revive(ctx context.Context, o decorum.Origin) error {
	evaluate, err := NewVerdictFunc(ctx, c.Gate, c.Frontier, o)
	if err != nil || evaluate == nil {
		return err
	}
	return c.Frontier.Revive(ctx, o, func(e storage.Entry) bool { return evaluate(c.aim(e)).Allowed })
}

// delays are the pauses that robots.txt files ask for, by host and origin.
type delays struct {
	mu    sync.Mutex
	hosts map[string]map[decorum.Origin]time.Duration
}

// pace returns the longest pause that the origins of o's host ask for, by
// Crawl-delay or Request-rate: they share one server, and so one clock. And it
// returns when o may be visited next by its Visit-time.
func (c *Crawler) pace(ctx context.Context, o decorum.Origin, now time.Time) (maxDelay time.Duration, opens time.Time, err error) {
	own, opens, err := c.Gate.Pace(ctx, o, now)
	if err != nil {
		return 0, opens, err
	}
	host := o.Host()
	c.delays.mu.Lock()
	defer c.delays.mu.Unlock()
	known := c.delays.hosts[host]
	if known == nil {
		if known, err = c.delaysOf(ctx, host, now); err != nil {
			return 0, opens, err
		}
		if c.delays.hosts == nil || len(c.delays.hosts) >= remembered {
			c.delays.hosts = map[string]map[decorum.Origin]time.Duration{}
		}
		c.delays.hosts[host] = known
	}
	if own > 0 {
		if _, noted := known[o]; !noted {
			if err := c.notePort(ctx, o); err != nil {
				return 0, opens, err
			}
		}
		known[o] = own
	} else {
		delete(known, o)
	}
	for _, d := range known {
		maxDelay = max(maxDelay, d)
	}
	return maxDelay, opens, nil
}

// delaysOf returns what is known of a host's origins, which the gate may have
// learnt in an earlier run: of http and https, and of the ports that are noted.
func (c *Crawler) delaysOf(ctx context.Context, host string, now time.Time) (map[decorum.Origin]time.Duration, error) {
	origins, err := c.originsOf(ctx, host)
	if err != nil {
		return nil, err
	}
	known := map[decorum.Origin]time.Duration{}
	for _, o := range origins {
		d, _, err := c.Gate.Pace(ctx, o, now)
		if err != nil {
			return nil, err
		}
		if d > 0 {
			known[o] = d
		}
	}
	return known, nil
}

// originsOf returns the origins of a host that need not have been met to be
// known: http and https, and the ports that are noted.
func (c *Crawler) originsOf(ctx context.Context, host string) ([]decorum.Origin, error) {
	origins, err := c.ports(ctx, host)
	for _, scheme := range []string{"http", "https"} {
		if o, ok := originOf(scheme + "://" + host); ok {
			origins = append(origins, o)
		}
	}
	return origins, err
}

// portsNote is the note, with the http origin of a host, of those of its
// origins that are on other ports and ask for a pause: one a line.
const portsNote = "ports"

// maxPorts is how many of them are noted.
const maxPorts = 1000

// ports returns the origins that notePort has noted.
func (c *Crawler) ports(ctx context.Context, host string) (origins []decorum.Origin, err error) {
	home, ok := originOf("http://" + host)
	if !ok {
		return nil, nil
	}
	note, err := c.Frontier.ReadNote(ctx, home, portsNote)
	for line := range strings.Lines(string(note)) {
		if o, ok := originOf(strings.TrimSpace(line)); ok {
			origins = append(origins, o)
		}
	}
	return origins, err
}

// notePort notes an origin that asks for a pause, so that after a restart, when
// the gate is not asked about it before its turn comes, the others of its host
// make that pause too.
func (c *Crawler) notePort(ctx context.Context, o decorum.Origin) error {
	home, ok := originOf("http://" + o.Host())
	if !ok || o == home || o.Scheme() == "https" && o.HostPort() == o.Host() {
		return nil
	}
	noted, err := c.ports(ctx, o.Host())
	if err != nil || slices.Contains(noted, o) || len(noted) >= maxPorts {
		return err
	}
	var note strings.Builder
	for _, p := range append(noted, o) {
		note.WriteString(p.String() + "\n")
	}
	return c.Frontier.SetNote(ctx, home, portsNote, []byte(note.String()))
}

// originOf returns an origin from its text.
func originOf(text string) (decorum.Origin, bool) {
	u, err := decorum.ParseURL(text + "/")
	return u.Origin(), err == nil // a host may have a meaning for another scheme only
}
