package sitemap

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/decorum-crawler/decorum"
)

// A form is one of the kinds of documents that list URLs: the names of the
// elements that matter.
type form struct {
	entry string // holds one entry
	loc   string // its location
	href  bool   // the location is an attribute: Atom
	date  string // when it changed
	spare string // taken for the location if there is none and it is a URL
	index bool   // the locations are sitemaps
	feed  bool
}

// formOf returns the form of the document with that root element.
func formOf(root []byte) (form, bool) {
	switch string(local(root)) {
	case "urlset":
		return form{entry: "url", loc: "loc", date: "lastmod"}, true
	case "sitemapindex":
		return form{entry: "sitemap", loc: "loc", date: "lastmod", index: true}, true
	case "rss":
		return form{entry: "item", loc: "link", date: "pubDate", spare: "guid", feed: true}, true
	case "RDF":
		return form{entry: "item", loc: "link", feed: true}, true
	case "feed":
		return form{entry: "entry", loc: "link", href: true, date: "updated", feed: true}, true
	}
	return form{}, false
}

// A document is an XML document while it is being read.
type document struct {
	scanner
	form
	sink  *sink
	open  [][]byte // the names of the elements that are open
	outer []outer  // what locations were relative to before those of them with xml:base

	within int    // how deep the open entry is; 0 if none is
	field  int    // how deep the open field is; 0 if none is
	value  []byte // of the open field
	void   error  // why the value is unusable
	draft  draft  // the open entry
}

// An outer is what locations are relative to again when the element that is so deep
// ends.
type outer struct {
	depth int
	base  decorum.URL
}

// read reads the document to the end of its root element.
func (d *document) read() error {
	for {
		t, err := d.next()
		if err == nil {
			err = d.token(t)
		} else {
			err = broken(err)
		}
		if err != nil && !d.sink.stopped {
			err = d.salvage(t, err)
		}
		if err != nil {
			return err
		}
		if t.kind != text && len(d.open) == 0 {
			return nil
		}
	}
}

// salvage delivers the entry that an error at t left unfinished, if its
// location was read whole: before an end tag, however broken, it was.
func (d *document) salvage(t token, err error) error {
	if t.kind == end && d.field > 0 {
		if stop := d.end(); d.sink.stopped {
			return stop
		}
	}
	if d.within > 0 && len(d.draft.text()) > 0 {
		if stop := d.deliver(); d.sink.stopped {
			return stop
		}
	}
	return err
}

// token takes the document one token further.
func (d *document) token(t token) error {
	switch t.kind {
	case start:
		if err := d.begin(t); err != nil || !t.empty {
			return err
		}
		return d.end()
	case end:
		if len(d.open) == 0 || !bytes.Equal(d.open[len(d.open)-1], t.name) {
			return fmt.Errorf("end tag %.40q: %w", t.name, ErrSyntax)
		}
		return d.end()
	default:
		d.characters(t)
		return nil
	}
}

// begin opens an element.
func (d *document) begin(t token) error {
	if len(d.open) == d.sink.Depth {
		return fmt.Errorf("depth: %w", ErrLimit)
	}
	d.push(t.name)
	depth := len(d.open)
	switch {
	case depth == 1:
		form, known := formOf(t.name)
		if !known || d.sink.Feeds && !form.feed {
			return fmt.Errorf("element %.40q: %w", t.name, ErrNotSitemap)
		}
		d.form = form
		d.rebase(t)
	case d.within == 0:
		d.rebase(t)
		if string(local(t.name)) == d.entry {
			d.within = depth
			d.draft.reset()
		}
	case depth == d.within+1 && bytes.Equal(prefix(t.name), prefix(d.open[d.within-1])):
		return d.beginField(t)
	}
	return nil
}

// rebase heeds the xml:base of a feed, or of an entry: Atom has it (RFC 4287 §2),
// and RSS is found with it. One that is too long for a URL is none: it would make
// all that is relative to it as long.
func (d *document) rebase(t token) {
	raw := attribute(t.attrs, "xml:base")
	if !d.feed || raw == nil {
		return
	}
	ref, bad := decode(&d.text, raw)
	u, err := d.sink.base.ResolveBytes(ref)
	if bad == nil && err == nil && len(u.String()) <= d.sink.URL {
		d.outer = append(d.outer, outer{len(d.open), d.sink.base})
		d.sink.base = u
	}
}

// beginField opens an element of an entry.
func (d *document) beginField(t token) error {
	d.field, d.value, d.void = len(d.open), d.value[:0], nil
	if !d.href || string(local(t.name)) != d.loc {
		return nil
	}
	rel := string(attribute(t.attrs, "rel"))
	if len(d.draft.loc) > 0 || rel != "" && rel != "alternate" {
		return nil
	}
	href, err := decode(&d.text, attribute(t.attrs, "href"))
	d.draft.locate(href, d.in.line, err)
	return nil
}

// characters takes text: that of the open field, or else, where an entry has
// no location element, the entry's own.
func (d *document) characters(t token) {
	switch {
	case d.field > 0:
		capacity := maxValue - len(d.value)
		d.value = append(d.value, t.text[:min(len(t.text), capacity)]...)
		if d.void = cmp.Or(d.void, t.unusable); d.void == nil && len(t.text) > capacity {
			d.void = ErrLimit
		}
	case d.within > 0 && d.within == len(d.open) && t.unusable == nil:
		if own := bytes.TrimSpace(t.text); len(own) > 0 {
			d.setSpare(own)
		}
	}
}

// setSpare notes what will do for a location if there is none.
func (d *document) setSpare(text []byte) {
	d.draft.spare = append(d.draft.spare[:0], text...)
	if len(d.draft.loc) == 0 {
		d.draft.line = d.in.line
	}
}

// end closes the innermost element.
func (d *document) end() (err error) {
	depth := len(d.open)
	name := local(d.open[depth-1])
	d.open = d.open[:depth-1]
	switch depth {
	case d.field:
		d.field = 0
		err = d.endField(name)
	case d.within:
		err = d.deliver()
		d.within = 0
	}
	if n := len(d.outer) - 1; n >= 0 && d.outer[n].depth == depth {
		d.sink.base, d.outer = d.outer[n].base, d.outer[:n]
	}
	return err
}

// endField takes the value of a field over into the entry.
func (d *document) endField(name []byte) error {
	value := bytes.TrimSpace(d.value)
	if len(value) == 0 {
		return nil
	}
	var err error
	switch string(name) {
	case d.loc:
		if d.href {
			return nil
		}
		return d.locate(value)
	case d.date:
		d.draft.date, err = parseDate(value)
	case d.spare:
		if d.void == nil {
			d.setSpare(value)
		}
	case "priority":
		d.draft.priority, err = parsePriority(value)
	case "changefreq":
		d.draft.frequency, err = parseFrequency(value)
	}
	if err != nil {
		d.sink.flaw(d.in.line, string(name), value, err)
	}
	return nil
}

// locate gives the entry its location. A second one begins a new entry.
func (d *document) locate(value []byte) (err error) {
	if len(d.draft.loc) > 0 {
		err = d.deliver()
		d.draft.reset()
	}
	d.draft.locate(value, d.in.line, d.void)
	return err
}

// deliver hands the entry over.
func (d *document) deliver() error {
	d.draft.line = cmp.Or(d.draft.line, d.in.line)
	return d.sink.put(&d.draft, d.index)
}

// push notes that an element is open, in memory used before.
func (d *document) push(name []byte) {
	n := len(d.open)
	if n < cap(d.open) {
		d.open = d.open[:n+1]
		d.open[n] = append(d.open[n][:0], name...)
		return
	}
	d.open = append(d.open, bytes.Clone(name))
}

// local returns an element's name without its prefix.
func local(name []byte) []byte { return name[bytes.LastIndexByte(name, ':')+1:] }

// prefix returns the prefix of an element's name, with its colon.
func prefix(name []byte) []byte { return name[:bytes.LastIndexByte(name, ':')+1] }
