package sitemap

import (
	"bytes"
	"fmt"
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
}

// formOf returns the form of the document with that root element.
func formOf(root []byte) (form, bool) {
	switch string(local(root)) {
	case "urlset":
		return form{entry: "url", loc: "loc", date: "lastmod"}, true
	case "sitemapindex":
		return form{entry: "sitemap", loc: "loc", date: "lastmod", index: true}, true
	case "rss":
		return form{entry: "item", loc: "link", date: "pubDate", spare: "guid"}, true
	case "RDF":
		return form{entry: "item", loc: "link"}, true
	case "feed":
		return form{entry: "entry", loc: "link", href: true, date: "updated"}, true
	}
	return form{}, false
}

// A document is an XML document while it is being read.
type document struct {
	scanner
	form
	sink  *sink
	depth int      // that is allowed
	open  [][]byte // the names of the elements that are open

	within int    // how deep the open entry is; 0 if none is
	field  int    // how deep the open field is; 0 if none is
	value  []byte // of the open field
	void   bool   // the value is unusable
	draft  draft  // the open entry
}

// read reads the document to the end of its root element.
func (d *document) read() error {
	for {
		t, err := d.next()
		if err == nil {
			err = d.token(t)
		}
		if err != nil {
			return d.salvage(broken(err))
		}
		if t.kind != text && len(d.open) == 0 {
			return nil
		}
	}
}

// salvage delivers the entry that an error left unfinished, if its location
// was read whole.
func (d *document) salvage(err error) error {
	if d.within > 0 && !d.sink.stopped {
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
	if len(d.open) == d.depth {
		return fmt.Errorf("depth: %w", ErrLimit)
	}
	d.push(t.name)
	depth := len(d.open)
	switch {
	case depth == 1:
		form, known := formOf(t.name)
		if !known {
			return fmt.Errorf("element %.40q: %w", t.name, ErrNotSitemap)
		}
		d.form = form
	case d.within == 0:
		if string(local(t.name)) == d.entry {
			d.within = depth
			d.draft.reset()
		}
	case depth == d.within+1 && bytes.Equal(prefix(t.name), prefix(d.open[d.within-1])):
		return d.beginField(t)
	}
	return nil
}

// beginField opens an element of an entry.
func (d *document) beginField(t token) error {
	d.field, d.value, d.void = len(d.open), d.value[:0], false
	if !d.href || string(local(t.name)) != d.loc {
		return nil
	}
	rel := string(attribute(t.attrs, "rel"))
	if len(d.draft.loc) > 0 || rel != "" && rel != "alternate" {
		return nil
	}
	href, ok := decode(nil, attribute(t.attrs, "href"))
	if ok {
		d.draft.loc = append(d.draft.loc, href...)
	}
	return nil
}

// characters takes text: that of the open field, or else, where an entry has
// no location element, the entry's own.
func (d *document) characters(t token) {
	switch {
	case d.field > 0:
		d.void = d.void || t.unusable || len(d.value)+len(t.text) > maxValue
		if !d.void {
			d.value = append(d.value, t.text...)
		}
	case d.within == len(d.open) && d.within > 0 && !t.unusable:
		if own := bytes.TrimSpace(t.text); len(own) > 0 {
			d.draft.spare = append(d.draft.spare[:0], own...)
		}
	}
}

// end closes the innermost element.
func (d *document) end() error {
	depth := len(d.open)
	name := local(d.open[depth-1])
	d.open = d.open[:depth-1]
	switch depth {
	case d.field:
		d.field = 0
		return d.endField(string(name))
	case d.within:
		err := d.deliver()
		d.within = 0
		return err
	}
	return nil
}

// endField takes the value of a field over into the entry. A second location
// begins a new entry.
func (d *document) endField(name string) error {
	value := bytes.TrimSpace(d.value)
	if d.void || len(value) == 0 {
		return nil
	}
	switch name {
	case d.loc:
		if d.href {
			return nil
		}
		var err error
		if len(d.draft.loc) > 0 {
			err = d.deliver()
			d.draft.reset()
		}
		d.draft.loc = append(d.draft.loc, value...)
		return err
	case d.date:
		d.draft.date = parseDate(string(value))
	case d.spare:
		d.draft.spare = append(d.draft.spare[:0], value...)
	case "priority":
		d.draft.priority = parsePriority(string(value))
	case "changefreq":
		d.draft.frequency = parseFrequency(value)
	}
	return nil
}

// deliver hands the entry over.
func (d *document) deliver() error {
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
