package crawler

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/recent"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// crawlDelays are the pauses that robots.txt files ask for, by host and origin.
type crawlDelays struct {
	gate  *gate.Gate
	notes storage.Notes

	mu     sync.Mutex // guards byHost and the maps in it
	byHost recent.Map[string, map[decorum.Origin]time.Duration]
}

// hostDelayAndNextAllowedTime returns the longest pause that the origins of o's host ask for, by
// Crawl-delay or Request-rate: they share one server, and so one clock. And it
// returns when o may be visited next by its Visit-time.
func (h *crawlDelays) hostDelayAndNextAllowedTime(ctx context.Context, o decorum.Origin, now time.Time) (maxDelay time.Duration, opensAt time.Time, err error) {
	ownDelay, opensAt, err := h.gate.DelayAndNextAllowedTime(ctx, o, now)
	if err != nil {
		return 0, opensAt, err
	}
	host := o.Host()
	h.mu.Lock()
	defer h.mu.Unlock()
	known, cached := h.byHost.Peek(host) // not Get: what others have noted is read again in the end
	if !cached {
		if known, err = h.loadCrawlDelaysOfHost(ctx, host, now); err != nil {
			return 0, opensAt, err
		}
		h.byHost.Put(host, known, maxCached)
	}
	if ownDelay > 0 {
		if _, noted := known[o]; !noted {
			if err := h.noteOriginWithDelay(ctx, o); err != nil {
				return 0, opensAt, err
			}
		}
		known[o] = ownDelay
	} else {
		delete(known, o)
	}
	for _, d := range known {
		maxDelay = max(maxDelay, d)
	}
	return maxDelay, opensAt, nil
}

// loadCrawlDelaysOfHost returns what is known of a host's origins, which the gate may have
// learnt in an earlier run: of http and https, and of the ports that are noted.
func (h *crawlDelays) loadCrawlDelaysOfHost(ctx context.Context, host string, now time.Time) (map[decorum.Origin]time.Duration, error) {
	origins, err := h.defaultPortAndNotedOrigins(ctx, host)
	if err != nil {
		return nil, err
	}
	known := map[decorum.Origin]time.Duration{}
	for _, o := range origins {
		d, _, err := h.gate.DelayAndNextAllowedTime(ctx, o, now)
		if err != nil {
			return nil, err
		}
		if d > 0 {
			known[o] = d
		}
	}
	return known, nil
}

// defaultPortAndNotedOrigins returns the origins of a host that need not have been met to be
// known: http and https, and the ports that are noted.
func (h *crawlDelays) defaultPortAndNotedOrigins(ctx context.Context, host string) ([]decorum.Origin, error) {
	origins, err := h.notedOriginsWithDelay(ctx, host)
	for _, scheme := range []string{"http", "https"} {
		if o, ok := parseOrigin(scheme + "://" + host); ok {
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

// notedOriginsWithDelay returns the origins that noteOriginWithDelay has noted.
func (h *crawlDelays) notedOriginsWithDelay(ctx context.Context, host string) (origins []decorum.Origin, err error) {
	httpOrigin, ok := parseOrigin("http://" + host)
	if !ok {
		return nil, nil
	}
	note, err := h.notes.ReadNote(ctx, httpOrigin, portsNote)
	for line := range strings.Lines(string(note)) {
		if o, ok := parseOrigin(strings.TrimSpace(line)); ok {
			origins = append(origins, o)
		}
	}
	return origins, err
}

// noteOriginWithDelay notes an origin that asks for a pause, so that after a restart, when
// the gate is not asked about it before its turn comes, the others of its host
// make that pause too.
func (h *crawlDelays) noteOriginWithDelay(ctx context.Context, o decorum.Origin) error {
	httpOrigin, ok := parseOrigin("http://" + o.Host())
	if !ok || o == httpOrigin || o.Scheme() == "https" && o.HostPort() == o.Host() {
		return nil
	}
	noted, err := h.notedOriginsWithDelay(ctx, o.Host())
	if err != nil || slices.Contains(noted, o) || len(noted) >= maxPorts {
		return err
	}
	var note strings.Builder
	for _, p := range append(noted, o) {
		note.WriteString(p.String() + "\n")
	}
	return h.notes.SetNote(ctx, httpOrigin, portsNote, []byte(note.String()))
}

// parseOrigin returns an origin from its text.
func parseOrigin(text string) (decorum.Origin, bool) {
	u, err := decorum.ParseURL(text + "/")
	return u.Origin(), err == nil // a host may have a meaning for another scheme only
}
