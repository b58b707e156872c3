package replay

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// load finds the requests of the first run, and what came of them.
func (p *Player) load() error {
	byNumber := map[int64]*asked{}
	runs := 0
	for r, err := range p.records {
		switch {
		case err != nil:
			return err
		case r.Run != nil:
			if runs++; runs == 1 {
				p.clock.set(r.Time)
			}
		}
		switch {
		case runs > 1:
			p.report.Later++
		case r.Request != nil:
			a := &asked{Request: r.Request, n: r.Number}
			byNumber[r.Number] = a
			p.recorded[a.URL] = append(p.recorded[a.URL], a)
			if a.Kind != ledger.KindTDMRep { // else that is where the page was found that waited for it
				p.found(a.URL, a.Referrer, a.Source)
			}
		case r.Refusal != nil:
			p.found(r.Refusal.URL, r.Refusal.Referrer, r.Refusal.Source)
		case r.Response != nil && byNumber[r.Response.RequestNumber] != nil:
			byNumber[r.Response.RequestNumber].answer = r.Response
		}
	}
	if runs == 0 {
		return errors.New("the ledger has no run to replay")
	}
	return nil
}

// A led is what a page led to.
type led struct{ url, source string }

// found notes what a URL was found on, the first time.
func (p *Player) found(url, on, source string) {
	if _, known := p.foundOn[url]; !known {
		p.foundOn[url] = on
		p.led[on] = append(p.led[on], led{url, source})
	}
}

// awaited reports whether an entry that is found now was found on another page, of
// which the answer is awaited: of pages that are read at the same moment, the ledger
// does not say which was first, but what it says the URL was found on does. Should it
// not be found there, it is missed.
func (p *Player) awaited(e *storage.Entry) bool {
	on, known := p.foundOn[e.URL.String()]
	if !known || on == e.Referrer {
		return false
	}
	for _, v := range p.open {
		if v.ticket.URL().String() == on {
			return true
		}
	}
	return false
}

// unasked tells of the requests that were not made again.
func (p *Player) unasked() {
	all := slices.Concat(slices.Collect(maps.Values(p.recorded))...)
	slices.SortFunc(all, func(a, b *asked) int { return cmp.Compare(a.n, b.n) })
	for _, a := range all {
		p.differ(a.n, a.URL, "it was asked for, and would never be")
	}
}

// lead queues what a page led to of which the content is not archived, for it was
// not to be used: that is the word of the ledger, and what becomes of it is decided
// again.
func (p *Player) lead(v *crawler.Visit) error {
	if !p.calling.bare {
		return nil
	}
	p.report.Withheld++
	var entries []storage.Entry
	for _, l := range p.led[v.URL().String()] {
		u, err := decorum.ParseURL(l.url)
		source, noSource := storage.ParseSource(l.source)
		if err = errors.Join(err, noSource); err != nil {
			return err
		}
		entries = append(entries, storage.Entry{URL: u, Source: source, Depth: v.Lease.Depth + 1, Referrer: v.URL().String()})
	}
	_, err := p.crawl.Frontier.Discover(context.Background(), entries...)
	return err
}
