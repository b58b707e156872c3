package sinks

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/robots/aiuse"
)

// An OutputRecord is one line of output: one visit to a page. Every line has every field except method,
// outlinks, not_for_indexing and ai_use. An unknown value is empty, 0 or null.
type OutputRecord struct {
	// URL is in canonical form.
	URL string `json:"url"`
	// Method is the request method, if it was not GET.
	Method string `json:"method,omitempty"`
	// Status is the status of the response; 0: no complete response arrived.
	Status int `json:"status"`
	// Error is why no complete response arrived, or why its content was not kept.
	Error string `json:"error"`
	// FetchedAt is when the request began, in UTC (RFC 3339).
	FetchedAt time.Time `json:"fetched_at"`
	// DurationMS is the time from fetched_at to the end of the response, in milliseconds.
	DurationMS int64 `json:"duration_ms"`
	// IP is the address of the server.
	IP string `json:"ip"`
	// ContentType is the Content-Type header of the response.
	ContentType string `json:"content_type"`
	// Bytes is the size of the body, as decoded.
	Bytes int `json:"bytes"`
	// SHA256 is the hash of the body, as decoded; empty if the body was cut or not read, and for 304.
	SHA256 string `json:"sha256"`
	// Depth is the number of links from the seed.
	Depth int `json:"depth"`
	// Referrer is the page that led to the URL.
	Referrer string `json:"referrer"`
	// URLSource is how the URL was found: seed, link, redirect, sitemap, feed, resource or revisit.
	URLSource string `json:"source"`
	// Title is the title of an HTML page.
	Title string `json:"title"`
	// LinkCount is the number of links that the page, or its callbacks, led to.
	LinkCount int `json:"links"`
	// Outlinks is the list of these links, in their order on the page, whether the crawl visits them or not; only
	// with output.outlinks. Links beyond 8 MiB of a line are left out.
	Outlinks []string `json:"outlinks,omitempty"`
	// RedirectTo is the target of a redirect, which is visited separately.
	RedirectTo string `json:"redirect_to"`
	// Canonical is the URL that the page names as its canonical one.
	Canonical string `json:"canonical"`
	// RobotsVerdict is the rule of robots.txt that allowed the visit.
	RobotsVerdict AllowingRobotsRule `json:"robots"`
	// DisallowedForMainRobot is true if the page must not be indexed, because robots.txt closes it to the
	// main robot of this agent's operator.
	DisallowedForMainRobot bool `json:"not_for_indexing,omitempty"`
	// DelayRequiredMS is the delay that the host required before this visit, in milliseconds; 0 for its
	// first visit.
	DelayRequiredMS int64 `json:"delay_required_ms"`
	// DelayObservedMS is the delay that passed before this visit, in milliseconds.
	DelayObservedMS int64 `json:"delay_observed_ms"`
	// MetaRobots is what X-Robots-Tag and robots meta elements say to this crawl.
	MetaRobots string `json:"meta_robots"`
	// AIUseSignals is the site's preferences about the use of the content.
	AIUseSignals *RecordedUsageSignals `json:"ai_use,omitempty"`
}

// RecordedUsageSignals are the site's preferences about the use of the page's content. The field is absent
// if the site states none.
type RecordedUsageSignals struct {
	Signals aiuse.Signals `json:"stated"` // each preference, with the place where it is stated
	// UsageConflict is the preference that conflicts with a purpose of the crawl. In that case error says
	// so, and the content was not kept.
	UsageConflict *aiuse.DisallowedPurposeError `json:"refused,omitempty"`
}

// An AllowingRobotsRule is why robots.txt allowed the visit.
type AllowingRobotsRule struct {
	FileSHA256 string `json:"file_sha256"` // the hash of the robots.txt file; empty: the site has no such file
	Rule       string `json:"rule"`        // the deciding rule, as the file has it; empty: no rule matched the URL
	Line       int    `json:"line"`        // the line of the rule, from 1; 0: no rule
}

// newOutputRecord returns the record of a visit. productToken is that of the crawl; robots meta elements
// can address it.
func newOutputRecord(v *crawler.Visit, productToken string) OutputRecord {
	// Fill in what is known of every visit.
	verdict := v.Clearance.Verdict()
	r := OutputRecord{
		URL: v.URL().String(), Status: v.Status(),
		FetchedAt: v.Start.UTC().Truncate(time.Millisecond), DurationMS: v.End.Sub(v.Start).Milliseconds(),
		Depth: v.Lease.Depth, Referrer: v.Lease.Referrer, URLSource: v.SourceKind().String(), LinkCount: v.LinkCount,
		RobotsVerdict: AllowingRobotsRule{FileSHA256: v.Clearance.FetchSummary().SHA256,
			Rule: verdict.Rule, Line: verdict.Line},
		DisallowedForMainRobot: verdict.DisallowedForMainRobot,
		DelayRequiredMS:        v.RequiredDelay().Milliseconds(), DelayObservedMS: v.ObservedDelay().Milliseconds(),
	}
	if usagePolicy := v.ContentUsageAssessment(); len(usagePolicy.Signals) > 0 {
		r.AIUseSignals = &RecordedUsageSignals{usagePolicy.Signals, usagePolicy.PurposeConflict}
	}
	if v.Lease.Request != nil {
		r.Method = v.Lease.Request.Method
	}
	if v.Err != nil {
		r.Error = v.Err.Error()
	}
	// Add the response and the content of the page.
	if v.Response != nil {
		r.setResponse(v)
		doc := v.PageScanResult()
		if doc != nil {
			r.Title = doc.Title
		}
		r.Canonical = v.CanonicalURL().String()
		r.MetaRobots = doc.RobotsDirectivesFor(productToken, v.Response.Header).String()
	}
	return r
}

// maxOutlinkBytes bounds the links of a line, so that the line stays shorter than plaintext.MaxLineBytes.
const maxOutlinkBytes = 8 << 20

// setOutlinks sets Outlinks to the URLs of links, up to maxOutlinkBytes.
func (r *OutputRecord) setOutlinks(links []crawler.LinkToVisit) {
	size := 0
	for _, l := range links {
		url := l.URL.String()
		if size += len(url) + len(`"",`); size > maxOutlinkBytes {
			return
		}
		r.Outlinks = append(r.Outlinks, url)
	}
}

// setResponse sets the fields that describe the response. It sets Error for a body that was cut or not
// read, unless the visit has failed for another reason.
func (r *OutputRecord) setResponse(v *crawler.Visit) {
	res := v.Response
	r.Bytes = len(res.Body)
	switch {
	case res.Status == http.StatusNotModified: // the body is that of the last visit
	case !res.BodyLimitExceeded:
		sum := v.BodySHA256()
		r.SHA256 = hex.EncodeToString(sum[:])
	case r.Error != "":
	case r.Bytes == 0:
		r.Error = "body not read: its content type is not wanted"
	default:
		r.Error = fmt.Sprintf("body cut at %d bytes", r.Bytes)
	}
	r.ContentType = res.Header.Get("Content-Type")
	if res.Addr.IsValid() {
		r.IP = res.Addr.Addr().Unmap().String()
	}
	if to, ok := res.Location(); ok {
		r.RedirectTo = to.String()
	}
}

// encodeLine returns the record as a line of JSON, in buf if it fits. It writes the fields one by one, which is
// faster than encoding/json: every visit writes a line.
func (r *OutputRecord) encodeLine(buf []byte) ([]byte, error) {
	o := jsonline.NewObjectBuilder(buf)
	o.String("url", r.URL)
	o.StringNonEmpty("method", r.Method)
	o.Int("status", int64(r.Status))
	o.String("error", r.Error)
	o.Time("fetched_at", r.FetchedAt)
	o.Int("duration_ms", r.DurationMS)
	o.String("ip", r.IP)
	o.String("content_type", r.ContentType)
	o.Int("bytes", int64(r.Bytes))
	o.String("sha256", r.SHA256)
	o.Int("depth", int64(r.Depth))
	o.String("referrer", r.Referrer)
	o.String("source", r.URLSource)
	o.String("title", r.Title)
	o.Int("links", int64(r.LinkCount))
	if len(r.Outlinks) > 0 {
		o.Value("outlinks", r.Outlinks)
	}
	o.String("redirect_to", r.RedirectTo)
	o.String("canonical", r.Canonical)
	o.OpenObject("robots")
	o.String("file_sha256", r.RobotsVerdict.FileSHA256)
	o.String("rule", r.RobotsVerdict.Rule)
	o.Int("line", int64(r.RobotsVerdict.Line))
	o.CloseObject()
	o.BoolIfTrue("not_for_indexing", r.DisallowedForMainRobot)
	o.Int("delay_required_ms", r.DelayRequiredMS)
	o.Int("delay_observed_ms", r.DelayObservedMS)
	o.String("meta_robots", r.MetaRobots)
	if r.AIUseSignals != nil {
		o.Value("ai_use", r.AIUseSignals)
	}
	return o.Line()
}
