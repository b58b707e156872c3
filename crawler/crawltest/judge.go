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

// JudgeOptions say what the judge expects of a crawler beyond what each site asks.
// The zero JudgeOptions expect nothing more.
type JudgeOptions struct {
	// MinDelay is the crawler's own policy: the rest that every host is owed.
	MinDelay time.Duration
	// RequiredProductToken must be named in every User-Agent. Empty: any product will do.
	RequiredProductToken string
	// MaxRobotsAge is how old rules may be. Default 24 h; negative: any age.
	MaxRobotsAge time.Duration
	// GapTolerance is forgiven of every gap. Default: nothing in memory, 1 ms over
	// sockets, and 50 ms there after an answer that was cut, because the server
	// learns late that the client has gone. Negative: nothing.
	GapTolerance time.Duration
	// RestartTimes are the moments at which the crawler was started again. Over sockets, all
	// requests of the crawler before must be in the log by then: see Server.AwaitDisconnects.
	RestartTimes []time.Time
	// CrashLossWindow is how long before a restart an answer may have come and died
	// with the crawler: its Retry-After is not owed then. Default 0.
	CrashLossWindow time.Duration
	// AllowRevisits lets pages be asked for more than once.
	AllowRevisits bool
}

// Judge judges the web's own log: see JudgeLog.
func (w *Web) Judge(o JudgeOptions) JudgeReport {
	w.exchangeLog.mu.Lock()
	dropped := w.exchangeLog.unlogged
	w.exchangeLog.mu.Unlock()
	r := w.JudgeLog(w.Log(), o)
	r.UnloggedRequests = dropped
	return r
}

// JudgeLog says where the requests of a log, in the order of their Start,
// broke a rule. A host is a name: http and https, and all ports, share its
// pace. An origin is scheme, host and port: a robots.txt speaks for one. All
// times are the server's.
//
//   - Disallowed: a request for a path that the site's owner closes (Robots.IsDisallowed).
//     The rules are those of the last robots.txt of the origin that was read, with
//     its redirects, before the request came, as they were when it was asked for.
//   - BeforeRobots: no robots.txt of the origin had been read by then. Only requests
//     for /robots.txt and for what its redirects lead to may come earlier.
//   - RobotsUnreachable: the last answer for it was 429, 5xx, no answer, or broke off
//     before 500 KiB, and this had gone on for at most 30 days. After that the last
//     good file holds, or no rules if there was none.
//   - RobotsStale: the last answer for it was older than JudgeOptions.MaxRobotsAge.
//   - RobotsConditional: robots.txt was asked for with If-None-Match or If-Modified-Since.
//   - ShortGap: less than the rest owed lay between the end of an answer of the
//     host (Exchange.End) and the start of its next request. Owed is the longest of
//     Options.MinDelay, the Robots.CrawlDelay that had been read, for any origin of the
//     host, and the Retry-After of an answer of 429 or 503. Before a robots.txt
//     the Delay is owed only if it had been read since the last restart: what was
//     read just before it may have died with it; likewise JudgeOptions.CrashLossWindow. A
//     request that comes in the very moment in which an answer ends may as well
//     have come before it, where the site allows that many at a time.
//   - Overlap: more requests at a time than the site allows (Site.MaxConcurrency), or
//     than one where a Delay has been read.
//   - Duplicate: a URL, without the parameters that Clean-param takes off, was asked
//     for again with the same method, though its last answer was whole and neither
//     408, 425, 429 nor 5xx, and there was no restart in between. Robots.txt and its
//     redirects may be asked for again, and a page once more as it was found if the
//     URL without the parameters answered 404 or 410. With a method that is not
//     safe the same body may not be sent to a URL again, whatever happened.
//   - Anonymous: the User-Agent does not begin with product/version, does not name
//     Options.RequiredProductToken, or has no URL or mail address to complain to.
func (w *Web) JudgeLog(log []Exchange, o JudgeOptions) JudgeReport {
	if o.MaxRobotsAge == 0 {
		o.MaxRobotsAge = 24 * time.Hour
	}
	log = slices.Clone(log)
	sortLog(log)
	c := &logJudge{web: w, opts: o, exchanges: groupByURL(log)}
	c.robotsRedirectTargets = c.exchanges.robotsRedirectTargets(log)
	hosts := map[string][]Exchange{}
	for _, x := range log {
		hosts[hostOf(x.URL)] = append(hosts[hostOf(x.URL)], x)
	}
	if len(log) > 0 {
		c.report.firstRequestAt = log[0].Start
	}
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		c.judgeHost(host, hosts[host])
	}
	return c.report
}

// robotsRedirectTargets returns the URLs that the robots.txt files of a log led to.
func (a exchangesByURL) robotsRedirectTargets(log []Exchange) map[string]bool {
	targets := map[string]bool{}
	for _, x := range log {
		_, path := splitOriginAndPath(x.URL)
		if (path == robotsPath || targets[x.URL]) && isRedirect(x) {
			targets[redirectTarget(x)] = true
		}
	}
	return targets
}

// A logJudge hears the case of each host.
type logJudge struct {
	web                   *Web
	opts                  JudgeOptions
	exchanges             exchangesByURL
	robotsRedirectTargets map[string]bool // URLs that robots.txt redirects lead to
	report                JudgeReport
}

// A hostJudge is the case of one host.
type hostJudge struct {
	*logJudge
	site              *Site
	hostReport        HostReport
	seenOrigins       map[string]bool
	delayState        hostDelayState
	lastRequestByPage map[string]Exchange // the last request for each page
}

// judgeHost judges the requests of one host, in the order in which they came.
func (c *logJudge) judgeHost(host string, log []Exchange) {
	h := &hostJudge{logJudge: c, site: c.web.sites[host], hostReport: HostReport{Host: host, MinGap: -1},
		seenOrigins: map[string]bool{}, lastRequestByPage: map[string]Exchange{}}
	for _, x := range log {
		h.judgeRequest(x)
	}
	h.hostReport.MinGap = max(h.hostReport.MinGap, 0)
	c.report.DistinctPages += len(h.lastRequestByPage)
	c.report.Hosts = append(c.report.Hosts, h.hostReport)
}

// judgeRequest judges one request.
func (h *hostJudge) judgeRequest(x Exchange) {
	origin, path := splitOriginAndPath(x.URL)
	h.seenOrigins[origin] = true
	h.hostReport.Requests++
	h.report.Requests++
	h.report.BodyBytes += x.BodyBytes
	for _, t := range []time.Time{x.Start, x.End} {
		h.report.Duration = max(h.report.Duration, t.Sub(h.report.firstRequestAt))
	}
	isRobotsFetch := path == robotsPath || h.robotsRedirectTargets[x.URL]
	h.checkDelayAndOverlap(x, isRobotsFetch)
	if !namesProductAndContact(x.UserAgent, h.opts.RequiredProductToken) {
		h.addViolation(Anonymous, x, fmt.Sprintf("%q", x.UserAgent))
	}
	if isRobotsFetch {
		if x.Conditional {
			h.addViolation(RobotsConditional, x, "")
		}
		return
	}
	h.hostReport.PageRequests++
	h.report.PageRequests++
	rules := h.exchanges.rulesAt(h.site, origin, x.Start, time.Time{})
	h.checkAllowed(x, path, rules)
	h.checkDuplicate(x, origin, path, rules)
}

func (h *hostJudge) addViolation(rule JudgeRule, x Exchange, detail string) {
	h.hostReport.ViolationCount++
	h.report.Violations = append(h.report.Violations, Violation{Rule: rule, Exchange: x, Detail: detail})
}

// checkAllowed asks whether the request was allowed.
func (h *hostJudge) checkAllowed(x Exchange, path string, rules rulesInForce) {
	age := x.Start.Sub(rules.readAt)
	switch {
	case rules.state == rulesUnread:
		h.addViolation(BeforeRobots, x, "")
	case rules.state == rulesUnreachable:
		h.addViolation(RobotsUnreachable, x, "")
	case h.opts.MaxRobotsAge >= 0 && age > h.opts.MaxRobotsAge:
		h.addViolation(RobotsStale, x, "read "+formatSeconds(age)+" before")
	}
	if rules.rules.IsDisallowed != nil && rules.rules.IsDisallowed(path) {
		h.addViolation(Disallowed, x, "")
	}
}

// checkDuplicate asks whether the page was asked for before, without need.
func (h *hostJudge) checkDuplicate(x Exchange, origin, path string, rules rulesInForce) {
	if rules.rules.RemoveCleanParams != nil {
		path = rules.rules.RemoveCleanParams(path)
	}
	page := x.Method + " " + origin + path + " " + x.RequestBodySHA256
	before, again := h.lastRequestByPage[page]
	h.lastRequestByPage[page] = x
	switch {
	case again && !isSafeMethod(x.Method):
		h.addViolation(Duplicate, x, "it must not be sent twice; first "+formatSeconds(x.Start.Sub(before.Start))+" before")
	case !again, isNotFoundOrGone(before) && before.URL == origin+path && x.URL != before.URL:
	case h.lastRestartBefore(x.Start).After(before.Start):
		h.report.RestartRefetches++
	case isRetryable(before):
		h.report.Retries++
	case !h.opts.AllowRevisits:
		h.addViolation(Duplicate, x, "first "+formatSeconds(x.Start.Sub(before.Start))+" before")
	}
}

// isSafeMethod reports whether a request by the method may be repeated unasked.
func isSafeMethod(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// isNotFoundOrGone reports whether an answer says that nothing is there.
func isNotFoundOrGone(x Exchange) bool {
	return x.Status == http.StatusNotFound || x.Status == http.StatusGone
}

// isRetryable reports whether an answer speaks of the moment, not of the page.
func isRetryable(x Exchange) bool {
	switch x.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return x.Incomplete || x.Status == 0 || x.Status >= 500
}

// lastRestartBefore returns the last restart up to a moment, the zero time if none.
func (c *logJudge) lastRestartBefore(at time.Time) time.Time {
	var last time.Time
	for _, t := range c.opts.RestartTimes {
		if !t.After(at) && t.After(last) {
			last = t
		}
	}
	return last
}

// userAgentPattern is product/version and, somewhere after it, a contact.
var userAgentPattern = regexp.MustCompile(`^[!#$%&'*+.^_|~0-9A-Za-z-]+/\S+ .*(https?://\S|mailto:\S|\S@\S)`)

func namesProductAndContact(agent, product string) bool {
	return userAgentPattern.MatchString(agent) && strings.Contains(agent, product)
}
