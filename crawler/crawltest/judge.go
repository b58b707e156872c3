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

// JudgeOptions sets what the judge expects of a crawler beyond the rules of each site. The zero
// JudgeOptions adds nothing.
type JudgeOptions struct {
	// MinDelay is the crawler's own policy: the shortest gap between two requests to any host.
	MinDelay time.Duration
	// RequiredProductToken must be in every User-Agent. Empty: any product.
	RequiredProductToken string
	// MaxRobotsAge is how old rules may be. Default 24 h; negative: any age.
	MaxRobotsAge time.Duration
	// GapTolerance is how much shorter than required a gap may be. Default: 0 in memory, 1 ms over
	// sockets, and 50 ms over sockets after an incomplete answer, because the server learns late
	// that the client has gone. Negative: 0.
	GapTolerance time.Duration
	// RestartTimes lists when the crawler was started again. Over sockets, all requests of the
	// crawler before must be in the log by then: see Server.AwaitDisconnects.
	RestartTimes []time.Time
	// CrashLossWindow is how long before a restart an answer may have come that the crawler lost
	// in the crash. The Retry-After of such an answer is not required. Default 0.
	CrashLossWindow time.Duration
	// AllowRevisits allows any number of requests for a page.
	AllowRevisits bool
}

// Judge judges the web's own log, as JudgeLog does.
func (w *Web) Judge(o JudgeOptions) JudgeReport {
	w.exchangeLog.mu.Lock()
	dropped := w.exchangeLog.unlogged
	w.exchangeLog.mu.Unlock()
	r := w.JudgeLog(w.Log(), o)
	r.UnloggedRequests = dropped
	return r
}

// JudgeLog reports where the requests of a log broke a rule. It considers them in the order of
// their Start. A host is a name: http and https, and all ports, share its pace. An origin is
// scheme, host and port; a robots.txt applies to one origin. All times are the server's.
//
//   - Disallowed: a request for a path that the site's owner closes (RobotsSpec.IsDisallowed).
//     The rules are those of the last robots.txt of the origin, with its redirects, that the
//     crawler had read before the request, as they were when it requested that robots.txt.
//   - BeforeRobots: the crawler had not read a robots.txt of the origin before the request. Only
//     requests for /robots.txt and for the targets of its redirects may come earlier.
//   - RobotsUnreachable: the last answer for the robots.txt was 429, 5xx, no answer, or broke off
//     before 500 KiB, and this state had lasted at most 30 days. After 30 days the last good file
//     applies, or no rules if there was no good file.
//   - RobotsStale: the last answer for the robots.txt was older than JudgeOptions.MaxRobotsAge.
//   - RobotsConditional: a request for robots.txt had If-None-Match or If-Modified-Since.
//   - ShortGap: the gap between the end of an answer of the host (Exchange.End) and the start of
//     the next request was shorter than required. Required is the longest of
//     JudgeOptions.MinDelay, the RobotsSpec.CrawlDelay that the crawler had read for any origin
//     of the host, and the Retry-After of an answer of 429 or 503. For a request for robots.txt
//     a CrawlDelay counts only if the crawler read it after its last restart, because a delay
//     read just before a crash may be lost; JudgeOptions.CrashLossWindow does the same for
//     Retry-After. A request that starts exactly when an answer ends is treated as concurrent
//     with it if the site allows that many requests at a time.
//   - Overlap: more requests at a time than Site.MaxConcurrency, or more than one where the
//     crawler had read a CrawlDelay.
//   - Duplicate: a URL, without the parameters that Clean-param removes, was requested again with
//     the same method, although its last answer was complete and neither 408, 425, 429 nor 5xx,
//     and the crawler was not restarted in between. Robots.txt and its redirects may be requested
//     again, and so may, once, the URL with its parameters if the URL without them answered 404 or
//     410. With a method that is not safe the same body may never be sent to a URL again.
//   - Anonymous: the User-Agent does not begin with product/version, lacks
//     JudgeOptions.RequiredProductToken, or has no URL or mail address for complaints.
func (w *Web) JudgeLog(log []Exchange, o JudgeOptions) JudgeReport {
	if o.MaxRobotsAge == 0 {
		o.MaxRobotsAge = 24 * time.Hour
	}
	// Index the log: by URL for the rules in force, and by host for the pace.
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

// robotsRedirectTargets returns the URLs that redirects of robots.txt files in the log lead to.
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

// A logJudge judges a log, host by host.
type logJudge struct {
	web                   *Web
	opts                  JudgeOptions
	exchanges             exchangesByURL
	robotsRedirectTargets map[string]bool // URLs that robots.txt redirects lead to
	report                JudgeReport
}

// A hostJudge judges the requests of one host.
type hostJudge struct {
	*logJudge
	site              *Site // nil: the web has no such host
	hostReport        HostReport
	seenOrigins       map[string]bool // the origins of the host that were requested so far
	delayState        hostDelayState
	lastRequestByPage map[string]Exchange // by method, URL without Clean-param's parameters, and body
}

// judgeHost judges the requests of one host in the order of their Start.
func (c *logJudge) judgeHost(host string, log []Exchange) {
	h := &hostJudge{logJudge: c, site: c.web.siteOf(host), hostReport: HostReport{Host: host, MinGap: -1},
		seenOrigins: map[string]bool{}, lastRequestByPage: map[string]Exchange{}}
	for _, x := range log {
		h.judgeRequest(x)
	}
	h.hostReport.MinGap = max(h.hostReport.MinGap, 0)
	c.report.DistinctPages += len(h.lastRequestByPage)
	c.report.Hosts = append(c.report.Hosts, h.hostReport)
}

// judgeRequest counts one request, and checks it by each rule.
func (h *hostJudge) judgeRequest(x Exchange) {
	origin, path := splitOriginAndPath(x.URL)
	h.seenOrigins[origin] = true
	h.hostReport.Requests++
	h.report.Requests++
	h.report.BodyBytes += x.BodyBytes
	for _, t := range []time.Time{x.Start, x.End} {
		h.report.Duration = max(h.report.Duration, t.Sub(h.report.firstRequestAt))
	}
	// Rules for every request.
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
	// Rules for pages.
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

// checkAllowed checks a request for a page by the robots.txt rules in force.
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

// checkDuplicate checks that a request for a page is not an unnecessary repetition, and counts the
// necessary ones.
func (h *hostJudge) checkDuplicate(x Exchange, origin, path string, rules rulesInForce) {
	if rules.rules.RemoveCleanParams != nil {
		path = rules.rules.RemoveCleanParams(path)
	}
	page := x.Method + " " + origin + path + " " + x.RequestBodySHA256
	before, again := h.lastRequestByPage[page]
	h.lastRequestByPage[page] = x
	switch {
	case again && !isSafeMethod(x.Method):
		h.addViolation(Duplicate, x, "this method must not be repeated; first "+
			formatSeconds(x.Start.Sub(before.Start))+" before")
	case !again, isNotFoundOrGone(before) && before.URL == origin+path && x.URL != before.URL:
	case h.lastRestartBefore(x.Start).After(before.Start):
		h.report.RestartRefetches++
	case isRetryable(before):
		h.report.Retries++
	case !h.opts.AllowRevisits:
		h.addViolation(Duplicate, x, "first "+formatSeconds(x.Start.Sub(before.Start))+" before")
	}
}

// isSafeMethod reports whether a crawler may repeat a request with the method by itself.
func isSafeMethod(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// isNotFoundOrGone reports whether an answer is 404 or 410.
func isNotFoundOrGone(x Exchange) bool {
	return x.Status == http.StatusNotFound || x.Status == http.StatusGone
}

// isRetryable reports whether an answer is about a temporary state, so that the page may be requested
// again.
func isRetryable(x Exchange) bool {
	switch x.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return x.Incomplete || x.Status == 0 || x.Status >= 500
}

// lastRestartBefore returns the time of the last restart at or before at, or the zero Time.
func (c *logJudge) lastRestartBefore(at time.Time) time.Time {
	var last time.Time
	for _, t := range c.opts.RestartTimes {
		if !t.After(at) && t.After(last) {
			last = t
		}
	}
	return last
}

// userAgentPattern matches product/version followed, at any distance, by a URL or mail address.
var userAgentPattern = regexp.MustCompile(`^[!#$%&'*+.^_|~0-9A-Za-z-]+/\S+ .*(https?://\S|mailto:\S|\S@\S)`)

func namesProductAndContact(agent, product string) bool {
	return userAgentPattern.MatchString(agent) && strings.Contains(agent, product)
}
