package crawler

import (
	"bytes"
	"cmp"
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

// maxCached is of how many origins or hosts a crawl keeps something in memory at least, and of twice as
// many at most; what it forgets it reads again.
const maxCached = 10_000

// appliedRobotsNote is the note, in the frontier's store, that says which robots.txt
// of an origin has been acted upon.
const appliedRobotsNote = "heeded"

// robotsFollowUpsDone are the robots.txt files whose sitemaps are queued, and by which parked
// URLs have been judged again.
type robotsFollowUpsDone struct {
	mu      sync.Mutex // guards fileIDs
	fileIDs recent.Map[decorum.Origin, string]
}

func (h *robotsFollowUpsDone) isApplied(o decorum.Origin, file string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	applied, _ := h.fileIDs.Peek(o) // what is in use is read from the notes again, too, in the end
	return applied == file
}

func (h *robotsFollowUpsDone) setApplied(o decorum.Origin, file string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fileIDs.Put(o, file, maxCached)
}

// queueSitemapsAndUnparkOnce acts on an origin's robots.txt when a URL is judged by it for the first
// time: its sitemaps are queued, and parked URLs that it allows are revived.
// That this was done is noted in the same store, after it: a crash in between
// repeats it. So it does not matter which crawl learnt the file, or when.
func (c *Crawler) queueSitemapsAndUnparkOnce(ctx context.Context, o decorum.Origin, file gate.FetchSummary) error {
	id := cmp.Or(file.SHA256, file.Outcome.String())
	id += ", " + c.Gate.Dialect().String() // another may read other sitemaps in it
	if c.Settings.NoSitemaps {
		id += ", no sitemaps" // a later run may want them
	}
	if c.appliedRobots.isApplied(o, id) {
		return nil
	}
	note, err := c.Frontier.Store().ReadNote(ctx, o, appliedRobotsNote)
	if err != nil {
		return err
	}
	if string(note) != id {
		if err := c.queueSitemapsAndUnpark(ctx, o); err != nil {
			return err
		}
		if err := c.Frontier.Store().SetNote(ctx, o, appliedRobotsNote, []byte(id)); err != nil {
			return err
		}
	}
	c.appliedRobots.setApplied(o, id)
	return nil
}

// applyRobotsAfterDisallow heeds a robots.txt that has just refused a URL, which is now parked. If
// the crawl goes on for long, the origin is watched from then on.
func (c *Crawler) applyRobotsAfterDisallow(ctx context.Context, o decorum.Origin, file gate.FetchSummary) error {
	if err := c.queueSitemapsAndUnparkOnce(ctx, o, file); err != nil || !c.Settings.Revisit.IsEnabled() {
		return err
	}
	_, err := c.Frontier.Discover(ctx, storage.Entry{URL: o.RobotsURL(), Source: storage.SourcePrerequisite,
		PriorityClass: storage.ClassLate, Referrer: o.RobotsURL().String()}) // a RobotsRefresh
	return err
}

// queueSitemapsAndUnpark queues the sitemaps that the origin's robots.txt names, whatever their
// host (SMAP-04): each is checked against the rules of its own origin
// (SMAP-07). And it revives the parked URLs that the rules allow.
func (c *Crawler) queueSitemapsAndUnpark(ctx context.Context, o decorum.Origin) error {
	if !c.Settings.NoSitemaps {
		sitemaps, err := c.Gate.Sitemaps(ctx, o)
		if err != nil {
			return err
		}
		entries := make([]storage.Entry, len(sitemaps))
		for i, u := range sitemaps {
			entries[i] = storage.Entry{URL: u, Source: storage.SourcePrerequisite, PriorityClass: storage.ClassEarly,
				Referrer: o.RobotsURL().String(), CallbackData: encodeSitemapDeclaration(o, u)}
		}
		if err := c.queueSitemaps(ctx, o, entries); err != nil {
			return err
		}
	}
	return c.unparkAllowed(ctx, o)
}

// unparkAllowed queues the parked URLs of an origin again that its robots.txt and its
// tdmrep.json allow, as they are known now.
func (c *Crawler) unparkAllowed(ctx context.Context, o decorum.Origin) error {
	evaluate, err := NewVerdictFunc(ctx, c.Gate, c.Frontier.Store(), o)
	if err != nil || evaluate == nil || o.IsZero() { // the zero Origin would stand for all
		return err
	}
	return c.Frontier.UnparkMatchingURLs(ctx, o, func(e storage.Entry) bool { return evaluate(c.cleanURLToVisit(e)).Allowed })
}

// crawlDelays are the pauses that robots.txt files ask for, by host and origin.
type crawlDelays struct {
	mu     sync.Mutex // guards byHost and the maps in it
	byHost recent.Map[string, map[decorum.Origin]time.Duration]
}

// hostDelayAndNextAllowedTime returns the longest pause that the origins of o's host ask for, by
// Crawl-delay or Request-rate: they share one server, and so one clock. And it
// returns when o may be visited next by its Visit-time.
func (c *Crawler) hostDelayAndNextAllowedTime(ctx context.Context, o decorum.Origin, now time.Time) (maxDelay time.Duration, opensAt time.Time, err error) {
	ownDelay, opensAt, err := c.Gate.DelayAndNextAllowedTime(ctx, o, now)
	if err != nil {
		return 0, opensAt, err
	}
	host := o.Host()
	c.crawlDelays.mu.Lock()
	defer c.crawlDelays.mu.Unlock()
	known, cached := c.crawlDelays.byHost.Peek(host) // not Get: what others have noted is read again in the end
	if !cached {
		if known, err = c.loadCrawlDelaysOfHost(ctx, host, now); err != nil {
			return 0, opensAt, err
		}
		c.crawlDelays.byHost.Put(host, known, maxCached)
	}
	if ownDelay > 0 {
		if _, noted := known[o]; !noted {
			if err := c.noteOriginWithDelay(ctx, o); err != nil {
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
func (c *Crawler) loadCrawlDelaysOfHost(ctx context.Context, host string, now time.Time) (map[decorum.Origin]time.Duration, error) {
	origins, err := c.defaultPortAndNotedOrigins(ctx, host)
	if err != nil {
		return nil, err
	}
	known := map[decorum.Origin]time.Duration{}
	for _, o := range origins {
		d, _, err := c.Gate.DelayAndNextAllowedTime(ctx, o, now)
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
func (c *Crawler) defaultPortAndNotedOrigins(ctx context.Context, host string) ([]decorum.Origin, error) {
	origins, err := c.notedOriginsWithDelay(ctx, host)
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
func (c *Crawler) notedOriginsWithDelay(ctx context.Context, host string) (origins []decorum.Origin, err error) {
	httpOrigin, ok := parseOrigin("http://" + host)
	if !ok {
		return nil, nil
	}
	note, err := c.Frontier.Store().ReadNote(ctx, httpOrigin, portsNote)
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
func (c *Crawler) noteOriginWithDelay(ctx context.Context, o decorum.Origin) error {
	httpOrigin, ok := parseOrigin("http://" + o.Host())
	if !ok || o == httpOrigin || o.Scheme() == "https" && o.HostPort() == o.Host() {
		return nil
	}
	noted, err := c.notedOriginsWithDelay(ctx, o.Host())
	if err != nil || slices.Contains(noted, o) || len(noted) >= maxPorts {
		return err
	}
	var note strings.Builder
	for _, p := range append(noted, o) {
		note.WriteString(p.String() + "\n")
	}
	return c.Frontier.Store().SetNote(ctx, httpOrigin, portsNote, []byte(note.String()))
}

// parseOrigin returns an origin from its text.
func parseOrigin(text string) (decorum.Origin, bool) {
	u, err := decorum.ParseURL(text + "/")
	return u.Origin(), err == nil // a host may have a meaning for another scheme only
}

// handleRobots tells the gate what came back for a robots.txt, and the
// frontier what follows from it. The URL whose turn it was goes back and waits
// the delay just learned.
func (c *Crawler) handleRobots(ctx context.Context, v *Visit) (storage.Ack, error) {
	ack := storage.Ack{Outcome: storage.Requeue}
	if !v.Lease.RobotsFor.IsZero() {
		ack.Outcome = storage.Done // a hop is an errand of its own
	}
	if v.interrupted {
		c.Gate.CancelFetch(v.Clearance) // no news of the server: the next one may ask
		return storage.Ack{Outcome: storage.Requeue}, nil
	}
	if v.wasNeverSent() && v.Lease.RobotsFor.IsZero() {
		c.Gate.CancelFetch(v.Clearance) // no request left: the refusal was ours
		c.Log.Warn("not visited", "origin", v.URL().Origin(), "error", v.Err)
		return ack, c.Frontier.Hold(ctx, v.URL().Origin(), v.End.Add(suspendDuration), true)
	}
	ctx = commitContext(ctx) // what came back is learnt, even when the crawl is being halted
	result, err := c.Gate.RecordFetch(ctx, v.End, v.Clearance, v.Response, v.Err)
	if err != nil {
		return ack, err
	}
	if c.Hooks.RobotsFetched != nil {
		c.Hooks.RobotsFetched(result)
	}
	if err := c.recordIfHTTPSUnreachable(ctx, v); err != nil {
		return ack, err
	}
	// After a hop to another host, the origins of this one must know of its pause.
	if _, _, err := c.hostDelayAndNextAllowedTime(ctx, result.Origin, v.End); err != nil {
		return ack, err
	}
	return ack, c.followRobotsRedirectOrSetHold(ctx, v.URL(), result, v.Err)
}

// followRobotsRedirectOrSetHold acts on what was learnt of an origin's robots.txt by asking for from;
// failed is why no answer came, if none did.
func (c *Crawler) followRobotsRedirectOrSetHold(ctx context.Context, from decorum.URL, result gate.RecordFetchResult, fetchErr error) error {
	switch {
	case !result.RedirectURL.IsZero():
		// The target is paced on its own host like any visit, and the origin's pages wait for
		// it. The hold comes first: the visit to the hop ends it. It is short, for a crash may
		// leave the hold without the hop: see queueRobotsRedirect.
		until := c.now().Add(recheckDelay)
		if err := c.Frontier.Hold(ctx, result.Origin, until, result.PostponedErr.Suspended); err != nil {
			return err
		}
		return c.queueRobotsRedirect(ctx, from, result.Origin, result.PostponedErr)
	case !result.HasRulesInForce:
		if n := result.PostponedErr.ConsecutiveFailures; n&(n-1) == 0 { // the first time, and ever more seldom
			c.Log.Warn("origin closed: its robots.txt cannot be had", "origin", result.Origin,
				"why", result.PostponedErr.Reason, "attempts", n, "again_at", result.PostponedErr.Until)
		}
		return c.Frontier.Hold(ctx, result.Origin, result.PostponedErr.Until, result.PostponedErr.Suspended || isHostNotFound(fetchErr))
	}
	return c.Frontier.Hold(ctx, result.Origin, time.Time{}, false)
}

// robotsRedirectNote is the note, in the frontier's store, that says which redirect of an
// origin's robots.txt has been queued.
const robotsRedirectNote = "hop"

// queueRobotsRedirect queues the redirect that an origin waits for, unless that was done.
// The gate's notes are a store of their own: after a crash it may wait for what
// the frontier has lost.
func (c *Crawler) queueRobotsRedirect(ctx context.Context, from decorum.URL, o decorum.Origin, postponed *gate.OriginPostponedError) error {
	id := []byte(postponed.RedirectPendingSince.UTC().Format(time.RFC3339Nano) + " " + postponed.RedirectURL.String())
	if done, err := c.Frontier.Store().ReadNote(ctx, o, robotsRedirectNote); err != nil || bytes.Equal(done, id) {
		return err
	}
	entry := storage.Entry{URL: postponed.RedirectURL, Source: storage.SourcePrerequisite, PriorityClass: storage.ClassFirst, RobotsFor: o, Referrer: from.String()}
	if _, err := c.Frontier.Discover(ctx, entry); err != nil {
		return err
	}
	return c.Frontier.Store().SetNote(ctx, o, robotsRedirectNote, id)
}
