package crawler

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/extract"
	"github.com/decorum-crawler/decorum/robots"
)

// A UsagePolicy is what a site asks of the use of a page's content, and what follows.
type UsagePolicy struct {
	Stated robots.Signals // all that is said of it
	// Refused is the signal that objects to a purpose of the crawl; nil: none does.
	// Then the content was given to no handler, and is not recorded.
	Refused *robots.Objection
}

// UsagePolicy returns what is asked of the use of the page's content: by robots.txt and
// tdmrep.json, by the header of the answer, and by the page. It is zero if v is to
// no page.
func (v *Visit) UsagePolicy() UsagePolicy {
	if v.usagePolicy == nil {
		return UsagePolicy{}
	}
	return v.usagePolicy()
}

// Withheld reports whether the content of the page was kept from its handler, and
// from what is written down: Use().Refused says why.
func (v *Visit) Withheld() bool { return v.withheld }

// readLazily lets what a page says be found out, when it is first asked.
func (c *Crawler) readLazily(v *Visit) {
	v.header = c.scan(v.Response, func(s *extract.Scanner) *extract.Document { return s.ScanHeader(v.Response.Header, v.URL()) })
	v.document = c.scan(v.Response, func(s *extract.Scanner) *extract.Document {
		v.share.Charge(int64(len(v.Response.Body))) // it is copied if it is not UTF-8
		defer v.share.Release(int64(len(v.Response.Body)))
		return s.Scan(v.Response.Body, v.Response.Header.Get("Content-Type"), v.URL())
	})
	v.usagePolicy = sync.OnceValue(func() UsagePolicy { return c.usagePolicyOf(v) })
}

// usagePolicyOf weighs what is said of a page's content against what the crawl is for.
func (c *Crawler) usagePolicyOf(v *Visit) UsagePolicy {
	stated := append(c.Gate.Usage(v.URL()), c.reservations.usage(v.URL())...)
	if v.Response == nil {
		return UsagePolicy{Stated: stated}
	}
	stated = append(stated, robots.HeaderSignals(v.Response.Header)...)
	var header *extract.Document
	stated = append(stated, directives(robots.InHeader, header.Directives(c.Settings.Token, v.Response.Header))...)
	if page := v.Document(); page != nil {
		stated = append(stated, directives(robots.InPage, page.Directives(c.Settings.Token, nil))...)
		if s, ok := robots.Reservation(robots.InPage, page.Reservation, page.Policy); ok {
			stated = append(stated, s)
		}
	}
	return UsagePolicy{stated, decisive(stated, v.Response).Objection(c.Gate.Purposes())}
}

// directives returns those that speak of the use of content, as signals.
func directives(in robots.Source, d extract.Directives) (stated robots.Signals) {
	for _, says := range []struct {
		asked bool
		word  string
	}{{d.NoIndex, "noindex"}, {d.NoArchive, "noarchive"}, {d.NoAI, "noai"}, {d.NoImageAI, robots.NoImageAI}} {
		if says.asked {
			stated = append(stated, robots.NewDirective(in, says.word))
		}
	}
	return stated
}

// decisive returns the signals that speak of the content itself: what is said of
// images says nothing of the page that shows them.
func decisive(stated robots.Signals, res *decorum.Response) robots.Signals {
	if strings.HasPrefix(strings.ToLower(res.Header.Get("Content-Type")), "image/") {
		return stated
	}
	return slices.DeleteFunc(slices.Clone(stated), func(s robots.Signal) bool { return s.Category == robots.NoImageAI })
}

// sparesImages reports whether the page asks that its images not be used for what
// the crawl is for.
func (c *Crawler) sparesImages(v *Visit) bool {
	others := func(s robots.Signal) bool { return s.Category != robots.NoImageAI }
	return slices.DeleteFunc(slices.Clone(v.UsagePolicy().Stated), others).Objection(c.Gate.Purposes()) != nil
}

// withheld reports whether the content of the page is kept from whom it is for:
// the site objects to what the crawl is for.
func (c *Crawler) withheld(v *Visit) bool {
	return len(c.Gate.Purposes()) > 0 && v.Status() != http.StatusNotModified && v.UsagePolicy().Refused != nil
}

// shown returns the visit as it is written down, and as hooks see it: without the
// content, if that is withheld.
func (c *Crawler) shown(v *Visit) *Visit {
	if v.usagePolicy == nil || !c.withheld(v) {
		return v
	}
	shown, res := *v, *v.Response
	shown.withheld, shown.withheldBytes = true, len(res.Body)
	res.Body, res.Truncated = nil, true
	shown.Response, shown.Exchange, shown.bodySum = &res, v.Exchange.Head(), nil
	shown.Err = &decorum.Error{Op: "use", URL: v.URL().String(), Kind: decorum.Disallowed, Err: v.UsagePolicy().Refused}
	if page := v.Document(); page != nil {
		said := &extract.Document{Canonical: page.Canonical, Base: page.Base, Robots: page.Robots,
			Reservation: page.Reservation, Policy: page.Policy}
		shown.document = func() *extract.Document { return said }
	}
	return &shown
}
