package crawler

import (
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/extract"
	"github.com/decorum-crawler/decorum/robots/aiuse"
	"github.com/decorum-crawler/decorum/robots/gate"
)

// A ContentUsageAssessment is what a site says about the use of a page's content, and the
// consequence.
type ContentUsageAssessment struct {
	Signals aiuse.Signals // everything that the site says
	// PurposeConflict is the signal that objects to a purpose of the crawl; nil if none does. If
	// one does, the handler did not get the content, and it is not recorded.
	PurposeConflict *aiuse.DisallowedPurposeError
}

// ContentUsageAssessment returns what robots.txt, tdmrep.json, the header of the answer and the
// page say about the use of the page's content. It is zero for a visit that is not to a page.
func (v *Visit) ContentUsageAssessment() ContentUsageAssessment {
	return v.contentUsageAssessment.get()
}

// ContentWithheld reports whether the page's content was withheld from the handler and from
// records. ContentUsageAssessment().PurposeConflict says why.
func (v *Visit) ContentWithheld() bool { return v.contentWithheld }

// A contentAnalyzer scans pages, and assesses what their sites say about the use of their content.
type contentAnalyzer struct {
	gate        *gate.Gate
	tdmrep      *tdmrepCache
	settings    Settings
	counters    *counters
	log         *slog.Logger
	scannerPool sync.Pool // of *extract.Scanner, which reuse their buffers
}

// setLazyVisitFields sets the fields of v that are computed when they are first used.
func (r *contentAnalyzer) setLazyVisitFields(v *Visit) {
	v.headerScanResult = r.lazyScan(v.Response, func(s *extract.Scanner) *extract.ScanResult {
		return s.ScanHeaderLinks(v.Response.Header, v.URL())
	})
	v.pageScanResult = r.lazyScan(v.Response, func(s *extract.Scanner) *extract.ScanResult {
		v.bodyShare.Charge(int64(len(v.Response.Body))) // Scanning copies a body that is not UTF-8
		defer v.bodyShare.Release(int64(len(v.Response.Body)))
		return s.ScanPage(v.Response.Body, v.Response.Header.Get("Content-Type"), v.URL())
	})
	v.contentUsageAssessment = sync.OnceValue(func() ContentUsageAssessment { return r.assessContentUsage(v) })
}

// assessContentUsage compares what the site says about the content of v with the purposes of the
// crawl.
func (r *contentAnalyzer) assessContentUsage(v *Visit) ContentUsageAssessment {
	tdmrep := r.tdmrep.get(v.URL().Origin())
	// Collect what the site says: robots.txt, tdmrep.json, the header, the page.
	stated := append(r.gate.CachedUsageSignals(v.URL()), tdmrep.UsageSignalsForURL(v.URL())...)
	if v.Response == nil {
		return ContentUsageAssessment{Signals: stated}
	}
	stated = append(stated, aiuse.HeaderSignals(v.Response.Header)...)
	var header *extract.ScanResult
	stated = append(stated, directiveSignals(aiuse.InHeader,
		header.RobotsDirectivesFor(r.settings.ProductToken, v.Response.Header))...)
	if page := v.PageScanResult(); page != nil {
		stated = append(stated, directiveSignals(aiuse.InPage,
			page.RobotsDirectivesFor(r.settings.ProductToken, nil))...)
		if s, ok := aiuse.ParseTDMReservation(aiuse.InPage, page.TDMReservationMeta, page.TDMPolicyMeta); ok {
			stated = append(stated, s)
		}
	}
	return ContentUsageAssessment{stated,
		filterSignalsByContentType(stated, v.Response).ConflictWithPurposes(r.gate.Purposes())}
}

// directiveSignals returns the directives in d that concern the use of content, as signals.
func directiveSignals(source aiuse.Source, d extract.RobotsDirectives) (stated aiuse.Signals) {
	for _, directive := range []struct {
		isSet bool
		name  string
	}{{d.NoIndex, "noindex"}, {d.NoArchive, "noarchive"}, {d.NoAI, "noai"}, {d.NoImageAI, aiuse.NoImageAI}} {
		if directive.isSet {
			stated = append(stated, aiuse.NewDirectiveSignal(source, directive.name))
		}
	}
	return stated
}

// filterSignalsByContentType drops signals about images if the answer is not an image: they say
// nothing about the page that shows the images.
func filterSignalsByContentType(stated aiuse.Signals, res *decorum.Response) aiuse.Signals {
	if strings.HasPrefix(strings.ToLower(res.Header.Get("Content-Type")), "image/") {
		return stated
	}
	return slices.DeleteFunc(slices.Clone(stated), func(s aiuse.Signal) bool { return s.Category == aiuse.NoImageAI })
}

// forbidsImagesForPurposes reports whether the page objects to the use of its images for a purpose
// of the crawl.
func (r *contentAnalyzer) forbidsImagesForPurposes(v *Visit) bool {
	others := func(s aiuse.Signal) bool { return s.Category != aiuse.NoImageAI }
	return slices.DeleteFunc(slices.Clone(v.ContentUsageAssessment().Signals), others).
		ConflictWithPurposes(r.gate.Purposes()) != nil
}

// forbidsContentUse reports whether the page's content must be withheld, because the site objects
// to a purpose of the crawl.
func (r *contentAnalyzer) forbidsContentUse(v *Visit) bool {
	return len(r.gate.Purposes()) > 0 && v.Status() != http.StatusNotModified &&
		v.ContentUsageAssessment().PurposeConflict != nil
}

// visitWithoutWithheldContent returns v as hooks and recorders see it: a copy without the content
// if that must be withheld, else v itself.
func (r *contentAnalyzer) visitWithoutWithheldContent(v *Visit) *Visit {
	if v.contentUsageAssessment == nil || !r.forbidsContentUse(v) {
		return v
	}
	redacted, res := *v, *v.Response
	redacted.contentWithheld, redacted.withheldBytes, redacted.Links = true, len(res.Body), nil
	res.Body, res.BodyLimitExceeded = nil, true
	redacted.Response, redacted.Exchange, redacted.bodySHA256 = &res, v.Exchange.HeaderOnly(), nil
	redacted.Err = &decorum.Error{Op: "use", URL: v.URL().String(), Kind: decorum.Disallowed,
		Err: v.ContentUsageAssessment().PurposeConflict}
	if page := v.PageScanResult(); page != nil {
		doc := &extract.ScanResult{CanonicalURL: page.CanonicalURL, BaseURL: page.BaseURL, RobotsMeta: page.RobotsMeta,
			TDMReservationMeta: page.TDMReservationMeta, TDMPolicyMeta: page.TDMPolicyMeta}
		redacted.pageScanResult = func() *extract.ScanResult { return doc }
	}
	return &redacted
}

// lazyScan returns a function that scans res on its first call. It returns nil without an answer,
// and after a panic, which it logs.
func (r *contentAnalyzer) lazyScan(res *decorum.Response,
	scan func(*extract.Scanner) *extract.ScanResult) func() *extract.ScanResult {
	return sync.OnceValue(func() *extract.ScanResult {
		if res == nil {
			return nil
		}
		defer func() {
			if p := recover(); p != nil {
				r.counters.count(func(s *Stats) { s.Panics++ })
				r.log.Error("page could not be scanned", "url", res.URL, "panic", p, "stack", string(debug.Stack()))
			}
		}()
		s := r.getScanner()
		doc := scan(s)
		r.scannerPool.Put(s) // not after a panic: its state is unknown
		if doc != nil && doc.LinksTruncated {
			r.log.Warn("page has more links than are read", "url", res.URL, "limit", len(doc.Links))
		}
		return doc
	})
}

// getScanner returns a scanner from the pool, or a new one, with the settings of the crawl.
func (r *contentAnalyzer) getScanner() *extract.Scanner {
	s, ok := r.scannerPool.Get().(*extract.Scanner)
	if !ok {
		s = new(extract.Scanner)
	}
	follow := r.settings.FollowedLinkKinds
	s.MaxLinks, s.IncludeForms = r.settings.MaxLinks, follow.Forms
	s.IncludeImages, s.IncludeResources = follow.Images, follow.Resources
	return s
}
