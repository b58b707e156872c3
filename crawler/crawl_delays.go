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

// crawlDelays are the delays that robots.txt files ask for, by host and origin.
type crawlDelays struct {
	gate  *gate.Gate
	notes storage.Notes

	mu     sync.Mutex // guards byHost and the maps in it
	byHost recent.Map[string, map[decorum.Origin]time.Duration]
}

// hostDelayAndNextAllowedTime returns the longest delay that the origins of o's host ask for, by
// Crawl-delay or Request-rate, because they share one server and one clock. It also returns when o
// may be visited next by its Visit-time.
func (h *crawlDelays) hostDelayAndNextAllowedTime(ctx context.Context, o decorum.Origin,
	now time.Time) (maxDelay time.Duration, opensAt time.Time, err error) {
	ownDelay, opensAt, err := h.gate.DelayAndNextAllowedTime(ctx, o, now)
	if err != nil {
		return 0, opensAt, err
	}
	host := o.Host()
	h.mu.Lock()
	defer h.mu.Unlock()
	// Peek, unlike Get, lets an entry in use be dropped, so that its note is read again: another
	// process may have changed it.
	known, cached := h.byHost.Peek(host)
	if !cached {
		if known, err = h.loadCrawlDelaysOfHost(ctx, host, now); err != nil {
			return 0, opensAt, err
		}
		h.byHost.Put(host, known, maxCached)
	}
	// Update the delay of o: the gate may have a new robots.txt.
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

// loadCrawlDelaysOfHost returns the delays of the host's origins, which the gate may have learnt in
// an earlier run: of http and https on their default ports, and of the ports in the note. The
// caller holds h.mu.
func (h *crawlDelays) loadCrawlDelaysOfHost(ctx context.Context, host string,
	now time.Time) (map[decorum.Origin]time.Duration, error) {
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

// defaultPortAndNotedOrigins returns the origins of a host that can be listed without having
// visited them: http and https on their default ports, and the noted origins.
func (h *crawlDelays) defaultPortAndNotedOrigins(ctx context.Context, host string) ([]decorum.Origin, error) {
	origins, err := h.notedOriginsWithDelay(ctx, host)
	for _, scheme := range []string{"http", "https"} {
		if o, ok := parseOrigin(scheme + "://" + host); ok {
			origins = append(origins, o)
		}
	}
	return origins, err
}

// portsNote names a note of a host's http origin. It lists the host's origins on other ports that
// ask for a delay, one a line.
const portsNote = "ports"

// maxPorts bounds the origins in a portsNote.
const maxPorts = 1000

// notedOriginsWithDelay returns the origins in the portsNote of host.
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

// noteOriginWithDelay adds o to the portsNote of its host. After a restart the gate may learn the
// delay of o late, and the host's other origins must keep it from the beginning. The caller holds
// h.mu.
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

// parseOrigin returns the origin with the given text, and false if the text is invalid.
func parseOrigin(text string) (decorum.Origin, bool) {
	u, err := decorum.ParseURL(text + "/")
	return u.Origin(), err == nil // a host name may be valid for another scheme only
}
