package crawltest

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Options say what the judge expects of a crawler beyond what each site asks.
// The zero Options expect nothing more.
type Options struct {
	// MinDelay is the crawler's own policy: the rest that every host is owed.
	MinDelay time.Duration
	// Product must be named in every User-Agent. Empty: any product will do.
	Product string
	// MaxAge is how old rules may be. Default 24 h; negative: any age.
	MaxAge time.Duration
	// Tolerance is forgiven of every gap. Default: nothing in memory, 1 ms over
	// sockets, and 50 ms there after an answer that was cut, because the server
	// learns late that the client has gone. Negative: nothing.
	Tolerance time.Duration
	// Restarts are the moments at which the crawler was started again.
	Restarts []time.Time
	// Unflushed is how long before a restart an answer may have come and died
	// with the crawler: its Retry-After is not owed then. Default 0.
	Unflushed time.Duration
	// Revisits lets pages be asked for more than once.
	Revisits bool
}

// Judge judges the web's own log: see JudgeLog.
func (w *Web) Judge(o Options) Report {
	w.log.mu.Lock()
	dropped := w.log.dropped
	w.log.mu.Unlock()
	r := w.JudgeLog(w.Log(), o)
	r.Unlogged = dropped
	return r
}

// JudgeLog says where the requests of a log, in the order of their Start,
// broke a rule. A host is a name: http and https, and all ports, share its
// pace. An origin is scheme, host and port: a robots.txt speaks for one. All
// times are the server's.
//
//   - Disallowed: a request for a path that the site's owner closes (Robots.Disallow).
//     The rules are those of the last robots.txt of the origin that was read, with
//     its redirects, before the request came, as they were when it was asked for.
//   - RobotsLate: no robots.txt of the origin had been read by then. Only requests
//     for /robots.txt and for what its redirects lead to may come earlier.
//   - RobotsUnreachable: the last answer for it was 429, 5xx, no answer, or broke off
//     before 500 KiB, and this had gone on for at most 30 days. After that the last
//     good file holds, or no rules if there was none.
//   - RobotsStale: the last answer for it was older than Options.MaxAge.
//   - RobotsIfNew: robots.txt was asked for with If-None-Match or If-Modified-Since.
//   - ShortGap: less than the rest owed lay between the end of an answer of the
//     host (Exchange.End) and the start of its next request. Owed is the longest of
//     Options.MinDelay, the Robots.Delay that had been read, for any origin of the
//     host, and the Retry-After of an answer of 429 or 503. Before a robots.txt
//     the Delay is owed only if it had been read since the last restart: what was
//     read just before it may have died with it; likewise Options.Unflushed. A
//     request that comes in the very moment in which an answer ends may as well
//     have come before it, where the site allows that many at a time.
//   - Overlap: more requests at a time than the site allows (Site.Concurrency), or
//     than one where a Delay has been read.
//   - Duplicate: a URL, without the parameters that Clean-param takes off, was asked
//     for again with the same method, though its last answer was whole and neither
//     408, 425, 429 nor 5xx, and there was no restart in between. Robots.txt and its
//     redirects may be asked for again, and a page once more as it was found if the
//     URL without the parameters answered 404 or 410. With a method that is not
//     safe the same body may not be sent to a URL again, whatever happened.
//   - Anonymous: the User-Agent does not begin with product/version, does not name
//     Options.Product, or has no URL or mail address to complain to.
func (w *Web) JudgeLog(log []Exchange, o Options) Report {
	if o.MaxAge == 0 {
		o.MaxAge = 24 * time.Hour
	}
	log = slices.Clone(log)
	sortLog(log)
	c := &court{web: w, opts: o, archives: newArchives(log)}
	c.errands = c.archives.errands(log)
	hosts := map[string][]Exchange{}
	for _, x := range log {
		hosts[hostOf(x.URL)] = append(hosts[hostOf(x.URL)], x)
	}
	if len(log) > 0 {
		c.report.began = log[0].Start
	}
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		c.hear(host, hosts[host])
	}
	return c.report
}

// errands returns the URLs that the robots.txt files of a log led to.
func (a archives) errands(log []Exchange) map[string]bool {
	errands := map[string]bool{}
	for _, x := range log {
		_, path := split(x.URL)
		if (path == robotsPath || errands[x.URL]) && redirects(x) {
			errands[target(x)] = true
		}
	}
	return errands
}

// A court hears the case of each host.
type court struct {
	web      *Web
	opts     Options
	archives archives
	errands  map[string]bool // URLs that robots.txt redirects lead to
	report   Report
}

// A hearing is the case of one host.
type hearing struct {
	*court
	site    *Site
	host    HostReport
	origins map[string]bool
	pace    pace
	seen    map[string]Exchange // the last request for each page
}

// hear judges the requests of one host, in the order in which they came.
func (c *court) hear(host string, log []Exchange) {
	h := &hearing{court: c, site: c.web.sites[host], host: HostReport{Host: host, MinGap: -1},
		origins: map[string]bool{}, seen: map[string]Exchange{}}
	for _, x := range log {
		h.examine(x)
	}
	h.host.MinGap = max(h.host.MinGap, 0)
	c.report.Distinct += len(h.seen)
	c.report.Hosts = append(c.report.Hosts, h.host)
}

// examine judges one request.
func (h *hearing) examine(x Exchange) {
	origin, path := split(x.URL)
	h.origins[origin] = true
	h.host.Requests++
	h.report.Requests++
	h.report.Bytes += x.Bytes
	for _, t := range []time.Time{x.Start, x.End} {
		h.report.Time = max(h.report.Time, t.Sub(h.report.began))
	}
	isRobotsFetch := path == robotsPath || h.errands[x.URL]
	h.examinePace(x, isRobotsFetch)
	if !identified(x.Agent, h.opts.Product) {
		h.blame(Anonymous, x, fmt.Sprintf("%q", x.Agent))
	}
	if isRobotsFetch {
		if x.Conditional {
			h.blame(RobotsIfNew, x, "")
		}
		return
	}
	h.host.Pages++
	h.report.Pages++
	law := h.archives.law(h.site, origin, x.Start, time.Time{})
	h.examineRobots(x, path, law)
	h.examineRepeat(x, origin, path, law)
}

func (h *hearing) blame(rule Rule, x Exchange, detail string) {
	h.host.Offences++
	h.report.Offences = append(h.report.Offences, Offence{Rule: rule, Exchange: x, Detail: detail})
}

// examineRobots asks whether the request was allowed.
func (h *hearing) examineRobots(x Exchange, path string, law law) {
	age := x.Start.Sub(law.read)
	switch {
	case law.state == unread:
		h.blame(RobotsLate, x, "")
	case law.state == rulesUnreachable:
		h.blame(RobotsUnreachable, x, "")
	case h.opts.MaxAge >= 0 && age > h.opts.MaxAge:
		h.blame(RobotsStale, x, "read "+seconds(age)+" before")
	}
	if law.rules.Disallow != nil && law.rules.Disallow(path) {
		h.blame(Disallowed, x, "")
	}
}

// examineRepeat asks whether the page was asked for before, without need.
func (h *hearing) examineRepeat(x Exchange, origin, path string, law law) {
	if law.rules.Clean != nil {
		path = law.rules.Clean(path)
	}
	page := x.Method + " " + origin + path + " " + x.BodySHA256
	before, again := h.seen[page]
	h.seen[page] = x
	switch {
	case again && !safe(x.Method):
		h.blame(Duplicate, x, "it must not be sent twice; first "+seconds(x.Start.Sub(before.Start))+" before")
	case !again, missing(before) && before.URL == origin+path && x.URL != before.URL:
	case h.restart(x.Start).After(before.Start):
		h.report.Redone++
	case invitesRetry(before):
		h.report.Retries++
	case !h.opts.Revisits:
		h.blame(Duplicate, x, "first "+seconds(x.Start.Sub(before.Start))+" before")
	}
}

// safe reports whether a request by the method may be repeated unasked.
func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// missing reports whether an answer says that nothing is there.
func missing(x Exchange) bool { return x.Status == http.StatusNotFound || x.Status == http.StatusGone }

// invitesRetry reports whether an answer speaks of the moment, not of the page.
func invitesRetry(x Exchange) bool {
	switch x.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return x.Broken || x.Status == 0 || x.Status >= 500
}

// restart returns the last restart up to a moment, the zero time if none.
func (c *court) restart(at time.Time) time.Time {
	var last time.Time
	for _, t := range c.opts.Restarts {
		if !t.After(at) && t.After(last) {
			last = t
		}
	}
	return last
}

// identification is product/version and, somewhere after it, a contact.
var identification = regexp.MustCompile(`^[!#$%&'*+.^_|~0-9A-Za-z-]+/\S+ .*(https?://\S|mailto:\S|\S@\S)`)

func identified(agent, product string) bool {
	return identification.MatchString(agent) && strings.Contains(agent, product)
}
